"""The plain loops that the generated vectors are compared with (`benchmarks/plain_loops.py`) follow
the same specification: their sums are bit-identical.
"""

import numpy as np
import pytest
from test_kernels import golden_input

import ckm
from benchmarks.plain_loops import dense_sums, structured_sums
from ckm._kernels import load_kernel


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "m", "count"), [(1, 1, 1), (2, 5, 255), (6, 9, 257), (10, 100, 1000), (64, 30, 300)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_dense_sums_are_bit_identical(n: int, m: int, count: int, dtype: type) -> None:
    rng = np.random.default_rng([n, m])
    f = ckm.draw_frequencies(m, n, scale=0.5, origin=rng.normal(size=n), seed=1)
    X = (3 * rng.normal(size=(count, n))).astype(dtype)
    np.testing.assert_array_equal(dense_sums(f, X), load_kernel("cpu").tally(f, X).sums)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "count"), [(5, 64, 255), (64, 100, 300), (100, 300, 257)])
def test_plain_structured_sums_are_bit_identical(n: int, m: int, count: int) -> None:
    rng = np.random.default_rng([n, m])
    f = ckm.draw_frequencies(
        m, n, scale=0.5, distribution="structured", origin=rng.normal(size=n), seed=1
    )
    X = (3 * rng.normal(size=(count, n))).astype(np.float32)
    np.testing.assert_array_equal(structured_sums(f, X), load_kernel("cpu").tally(f, X).sums)


@pytest.mark.slow
def test_plain_sums_of_the_golden_input() -> None:
    f, X = golden_input()
    np.testing.assert_array_equal(dense_sums(f, X), load_kernel("cpu").tally(f, X).sums)
