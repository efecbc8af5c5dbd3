"""Every kernel agrees with the oracle; the exact ones are bit-identical however rows are ordered,
split, merged and threaded.
"""

import hashlib
import os
import platform
import subprocess
import sys
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
import oracle
import pytest
import specified
from by_kernel import sketch_by
from hypothesis import example, given
from hypothesis import strategies as st

import ckm
from ckm._core.frequencies import Frequencies
from ckm._core.moments import has_full_moment
from ckm._core.tally import UNIT, Tally
from ckm._kernels import KERNELS, load_kernel
from ckm._kernels.spec import COSINE, SINE
from ckm._sources.blocks import BLOCK_ROWS

exact_kernel = load_kernel("cpu").tally
EXACT = {"cpu", "gpu"}  # kernels whose sums are integers

# Small sizes, and rows on both sides of the groups of 64 that are summed together.
sizes = st.tuples(
    st.integers(1, 12),
    st.integers(1, 40),
    st.one_of(st.integers(0, 20), st.integers(60, 68), st.integers(250, 262), st.integers(0, 700)),
)
seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float32, np.float64])


def make_frequencies(n: int, m: int, seed: int, shift: float = 0.0) -> Frequencies:
    rng = np.random.default_rng([seed, 1])
    turns = rng.normal(size=(m, n)) * 10 ** rng.uniform(-2, 0.5)
    return Frequencies(turns, shift + rng.normal(size=n), 1.0, "gaussian")


def make_rows(
    n: int, count: int, seed: int, dtype: type = np.float64, shift: float = 0.0
) -> np.ndarray:
    """Read-only rows: a kernel that wrote to its input would fail."""
    return frozen(
        (shift + np.random.default_rng([seed, 2]).normal(size=(count, n)) * 2).astype(dtype)
    )


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def phase_error(f: Frequencies, X: np.ndarray) -> float:
    """How far float32 may put cosines and sines from the truth, beside the 1e-6 of the polynomials
    and of rounding to 2**-22.

    Each x_d is rounded to float32 once, and the n terms t_d x_d are added with n roundings, each
    with relative error u = 2**-24; to first order the phase in turns is off by at most (n + 1) u
    sum_d |t_d x_d|, and cosines and sines by 2 pi times that. A mean over rows errs by at most its
    worst row."""
    if not len(X):
        return 0.0
    turns = np.abs(X.astype(np.float64) - f.origin) @ np.abs(f.turns.astype(np.float64)).T
    return float(2 * np.pi * (f.n + 1) * 2.0**-24 * turns.max())


def z_of(tally: Tally) -> np.ndarray:
    cosines, sines = tally.sums * (UNIT / tally.weight)
    return cosines - 1j * sines


def assert_same_bits(a: Tally, b: Tally) -> None:
    """Equality of all that is exact: sums, weight, count and bounds."""
    assert a.sums.dtype == b.sums.dtype
    assert a.sums.tobytes() == b.sums.tobytes()
    assert (a.weight, a.count) == (b.weight, b.count)
    assert a.lower.tobytes() == b.lower.tobytes()
    assert a.upper.tobytes() == b.upper.tobytes()


def assert_close_to_oracle(
    z: np.ndarray, f: Frequencies, X: np.ndarray, beta: np.ndarray | None = None
) -> None:
    expected = np.array(
        oracle.sketch(
            X.tolist(), f.omega.tolist(), f.origin.tolist(), None if beta is None else beta.tolist()
        )
    )
    error = z - expected
    assert max(np.abs(error.real).max(), np.abs(error.imag).max()) <= 1e-6 + phase_error(f, X)


def test_there_is_no_other_kernel() -> None:
    known = {"numpy", "cpu", "torch", "gpu"}
    assert set(KERNELS) == known, (
        "name the new kernel in the fixture of conftest.py, so that the laws are tried on it"
    )


# Laws of every kernel


@given(size=sizes, seed=seeds, dtype=dtypes, shift=st.sampled_from([0.0, 1e3]))
@example(size=(12, 40, 700), seed=0, dtype=np.float32, shift=0.0)
def test_z_is_equation_3(
    kernel: str, size: tuple[int, int, int], seed: int, dtype: type, shift: float
) -> None:
    n, m, count = size
    f, X = make_frequencies(n, m, seed, shift), make_rows(n, max(count, 1), seed, dtype, shift)
    before = X.copy()
    assert_close_to_oracle(z_of(load_kernel(kernel).tally(f, X, None)), f, X)
    assert np.array_equal(X, before)


@given(size=sizes, seed=seeds, dtype=dtypes)
def test_weighted_z_is_equation_3(
    kernel: str, size: tuple[int, int, int], seed: int, dtype: type
) -> None:
    n, m, count = size
    f, X = make_frequencies(n, m, seed), make_rows(n, max(count, 1), seed, dtype)
    beta = frozen(np.random.default_rng(seed).gamma(0.5, size=len(X)) + 1e-3)
    before = beta.copy()
    tally = load_kernel(kernel).tally(f, X, beta)
    assert_close_to_oracle(z_of(tally), f, X, beta)
    assert tally.squared_weight == pytest.approx((beta**2).sum())
    assert np.array_equal(beta, before)


@given(size=sizes, seed=seeds, weighted=st.booleans())
def test_no_rows_add_nothing(
    kernel: str, size: tuple[int, int, int], seed: int, weighted: bool
) -> None:
    n, m, count = size
    f, X = make_frequencies(n, m, seed), make_rows(n, count, seed)
    tally, beta = load_kernel(kernel).tally, frozen(np.full(count, 1.5)) if weighted else None
    nothing, some = tally(f, X[:0], None if beta is None else beta[:0]), tally(f, X, beta)
    for total in (
        nothing + some,
        some + nothing,
        Tally.empty(m, n) + some,
        some + Tally.empty(m, n),
    ):
        assert_same_bits(total, some)
        assert np.array_equal(total.first, some.first)
        assert np.array_equal(total.second, some.second)


@pytest.mark.parametrize("n", [3, 20])
@pytest.mark.parametrize("weighted", [False, True])
def test_tallies_share_no_memory(kernel: str, n: int, weighted: bool) -> None:
    f, X = make_frequencies(n, 50, 0), make_rows(n, 200, 0)
    tally, beta = load_kernel(kernel).tally, frozen(np.full(200, 1.5)) if weighted else None
    found = tally(f, X, beta)
    arrays = [found.sums, found.lower, found.upper, found.first, found.second]
    before = [array.copy() for array in arrays]
    tally(f, 2 * X[:100], None if beta is None else beta[:100])
    assert all(map(np.array_equal, arrays, before))
    assert not any(array.flags.writeable for array in arrays)


@pytest.mark.parametrize("n", [3, 20])
def test_bounds_and_moments_do_not_distinguish_zeros(kernel: str, n: int) -> None:
    f = make_frequencies(n, 50, 0)
    zero = load_kernel(kernel).tally(replace(f, origin=np.zeros(n)), np.full((70, n), -0.0), None)
    for array in (zero.lower, zero.upper, zero.first, zero.second):
        assert not np.signbit(array).any()


@given(size=sizes, seed=seeds)
def test_weights_equal_repetition(kernel: str, size: tuple[int, int, int], seed: int) -> None:
    n, m, count = size
    f, X = make_frequencies(n, m, seed), make_rows(n, max(count, 1), seed)
    times = np.random.default_rng(seed).integers(1, 4, size=len(X))
    tally = load_kernel(kernel).tally
    weighted, repeated = (
        tally(f, X, times.astype(np.float64)),
        tally(f, np.repeat(X, times, axis=0), None),
    )
    assert weighted.weight == repeated.weight
    if kernel in EXACT:  # whole multiples of whole numbers: bit-identical
        assert np.array_equal(weighted.sums, repeated.sums)
        assert z_of(weighted).tobytes() == z_of(repeated).tobytes()
    # float64 sums of at most 2100 numbers below one, in another order
    np.testing.assert_allclose(z_of(weighted), z_of(repeated), rtol=0, atol=1e-12)
    assert_moments_agree(weighted, f, np.repeat(X, times, axis=0), np.ones(times.sum()))


@given(size=sizes, seed=seeds, dtype=dtypes, weighted=st.booleans())
def test_bounds_and_moments_are_numpys(
    kernel: str, size: tuple[int, int, int], seed: int, dtype: type, weighted: bool
) -> None:
    n, m, count = size
    f, X = make_frequencies(n, m, seed), make_rows(n, max(count, 1), seed, dtype)
    beta = frozen(np.random.default_rng(seed).uniform(0.1, 3, size=len(X)))
    tally = load_kernel(kernel).tally(f, X, beta if weighted else None)
    assert tally.count == len(X)
    assert np.array_equal(tally.lower, X.min(axis=0))
    assert np.array_equal(tally.upper, X.max(axis=0))
    assert_moments_agree(tally, f, X, beta if weighted else np.ones(len(X)))


def assert_moments_agree(tally: Tally, f: Frequencies, X: np.ndarray, beta: np.ndarray) -> None:
    """Moments in float64 may differ from NumPy's by rounding only: 1e-12 of the sum of absolute
    terms, for at most 2100 terms.
    """
    x = X.astype(np.float64) - f.origin
    weight, full = beta.sum(), has_full_moment(f.m, f.n)
    second, size = (
        ((x * beta[:, None]).T @ x, np.abs(x * beta[:, None]).T @ np.abs(x))
        if full
        else (beta @ x**2, beta @ x**2)
    )
    assert abs(tally.weight - weight) <= 1e-12 * weight
    assert np.all(np.abs(tally.first - beta @ x) <= 1e-12 * (beta @ np.abs(x)))
    assert tally.second.shape == second.shape
    assert np.all(np.abs(tally.second - second) <= 1e-12 * size)


# Laws of the exact kernel: bit-identical sums


@given(size=sizes, seed=seeds, dtype=dtypes, cuts=st.lists(st.integers(0, 700), max_size=6))
@example(size=(3, 5, 700), seed=0, dtype=np.float32, cuts=[1, 255, 256, 257, 512])
def test_order_split_and_merge_change_no_bit(
    size: tuple[int, int, int], seed: int, dtype: type, cuts: list[int]
) -> None:
    n, m, count = size
    f, X = make_frequencies(n, m, seed), make_rows(n, count, seed, dtype)
    whole = exact_kernel(f, X, None)
    assert whole.exact
    rng = np.random.default_rng(seed)
    shuffled = X[rng.permutation(count)]
    assert_same_bits(exact_kernel(f, shuffled, None), whole)
    parts = [
        exact_kernel(f, np.ascontiguousarray(part), None)
        for part in np.split(shuffled, sorted(min(c, count) for c in cuts))
    ]
    assert_same_bits(reduce(Tally.__add__, parts), whole)
    while len(parts) > 1:  # merge two at random until one is left
        a, b = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append(a + b)
    assert_same_bits(parts[0], whole)


@given(size=sizes, seed=seeds, cut=st.integers(1, 699))
def test_adding_and_subtracting_is_exact(size: tuple[int, int, int], seed: int, cut: int) -> None:
    n, m, count = size
    f, X = make_frequencies(n, m, seed), make_rows(n, count + 1, seed)
    cut = min(cut, len(X))
    a, b = exact_kernel(f, X[:cut], None), exact_kernel(f, X[cut:], None)
    again = a + b - b
    assert again.sums.tobytes() == a.sums.tobytes()
    assert (again.count, again.weight, again.exact) == (a.count, a.weight, True)
    assert again.tight == (b.count == 0)
    assert np.all(again.lower <= a.lower)
    assert np.all(again.upper >= a.upper)


def test_threads_change_nothing() -> None:
    n, m = 3, 17
    count = 20 * BLOCK_ROWS + 1234  # enough for threads to take several blocks at once
    f, X = make_frequencies(n, m, 5), make_rows(n, count, 5)
    assert BLOCK_ROWS == 16384
    whole = ckm.sketch(X, like=f, n_jobs=1)
    shuffled = X[np.random.default_rng(0).permutation(count)]
    for n_jobs in (1, 2, 4):
        again = ckm.sketch(X, like=f, n_jobs=n_jobs)
        assert_same_bits(again.tally, whole.tally)
        assert np.array_equal(again.tally.first, whole.tally.first)
        assert np.array_equal(again.tally.second, whole.tally.second)
        assert ckm.sketch(shuffled, like=f, n_jobs=n_jobs) == whole
    parts = [
        ckm.sketch(part, like=f)
        for part in np.split(shuffled, [1, 300, BLOCK_ROWS, BLOCK_ROWS + 1])
    ]
    assert ckm.merge(reversed(parts)) == whole


@given(seed=seeds, zeros=st.lists(st.sampled_from([0.0, -0.0]), min_size=2, max_size=6))
def test_signed_zeros_do_not_depend_on_order(kernel: str, seed: int, zeros: list[float]) -> None:
    f = make_frequencies(1, 3, seed)
    X = np.array(zeros)[:, None]
    assert sketch_by(kernel, X, f) == sketch_by(kernel, X[::-1], f)


# Layouts in memory

LAYOUTS = {
    "C": lambda X: X,
    "F": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "last row first": lambda X: X[::-1].copy()[::-1],
    "last column first": lambda X: X[:, ::-1].copy()[:, ::-1],
    "among other columns": lambda X: np.concatenate(
        [np.full((len(X), 3), np.nan), X, np.full((len(X), 5), np.nan)], axis=1
    )[:, 3:-5],
    "not aligned": lambda X: np.frombuffer(b"x" + X.tobytes(), X.dtype, offset=1).reshape(X.shape),
    "F, among other rows": lambda X: np.asfortranarray(
        np.concatenate([X, np.full_like(X, np.nan)])
    )[: len(X)],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "count"), [(1, 300), (2, 63), (7, 129), (8, 64), (16, 200), (17, 65), (33, 1), (130, 70)]
)
def test_rows_of_any_layout_are_summed(layout: str, dtype: type, n: int, count: int) -> None:
    # both with all second moments and with few
    f, X = make_frequencies(n, 300 if n < 17 else 5, n), make_rows(n, count, count, dtype)
    beta = np.random.default_rng(n).integers(1, 9, size=count).astype(np.float64)
    lying = frozen(LAYOUTS[layout](X))
    assert np.array_equal(lying, X)
    for weights in (None, beta):
        straight, tally = exact_kernel(f, X, weights), exact_kernel(f, lying, weights)
        assert_same_bits(tally, straight)
        assert tally.lower.tolist() == X.min(axis=0).tolist()
        assert tally.upper.tolist() == X.max(axis=0).tolist()
        assert tally.first.tobytes() == straight.first.tobytes()
        assert tally.second.tobytes() == straight.second.tobytes()
        assert_moments_agree(tally, f, X, np.ones(count) if weights is None else weights)


def test_rows_may_overlap() -> None:
    f, series = make_frequencies(5, 9, 1), make_rows(1, 400, 1)[:, 0]
    windows = np.lib.stride_tricks.sliding_window_view(series, 5)
    assert_same_bits(exact_kernel(f, windows, None), exact_kernel(f, windows.copy(), None))
    same = np.broadcast_to(series[:5], (300, 5))
    assert_same_bits(exact_kernel(f, same, None), exact_kernel(f, same.copy(), None))


def in_another_process(script: str, **environment: str) -> str:
    """What the script prints; it finds these tests and what they import."""
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(ckm.__file__).parents[1])])
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="memory is protected through Linux's C library")
def test_nothing_is_read_beyond_the_rows() -> None:
    """Rows between two pages that must not be touched: reading there would end the process."""
    in_another_process("""
import ctypes, mmap
import numpy as np
from test_kernels import exact_kernel, make_frequencies
size = mmap.PAGESIZE
memory = mmap.mmap(-1, 6 * size)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
for page in (0, 5):
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + page * size), size, 0) == 0
for kind in (np.float32, np.float64):
    for n in (1, 2, 3, 10, 15, 16, 17, 33):
        f = make_frequencies(n, 4, n)
        for count in (1, 5, 63, 64, 65, 4 * size // (n * np.dtype(kind).itemsize)):
            length = count * n * np.dtype(kind).itemsize
            if length > 4 * size:
                continue
            for start in (size, 5 * size - length):
                flat = np.frombuffer(memory, kind, count * n, start)
                by_row, by_column = flat.reshape(count, n), flat.reshape(n, count).T
                for rows in (by_row, by_row[::-1], by_column, by_column[::-1]):
                    expected = exact_kernel(f, np.zeros((count, n)), None)
                    found = exact_kernel(f, rows, None)
                    assert found.sums[0].tolist() == expected.sums[0].tolist()
""")


# Through ckm.sketch: any dtype and layout


@given(
    size=sizes,
    seed=seeds,
    dtype=st.sampled_from(
        [
            np.int8,
            np.uint16,
            np.int32,
            np.int64,
            np.uint64,
            np.bool_,
            np.float16,
            np.float32,
            np.float64,
            np.longdouble,
        ]
    ),
    layout=st.sampled_from(
        ["C", "F", "every other row", "every other column", "reversed", "read-only"]
    ),
)
def test_any_dtype_and_layout_give_the_same_sketch(
    size: tuple[int, int, int], seed: int, dtype: type, layout: str
) -> None:
    n, m, count = size
    f = make_frequencies(n, m, seed)
    values = (
        np.random.default_rng(seed)
        .integers(0, 2 if dtype is np.bool_ else 100, size=(count, n))
        .astype(dtype)
    )
    X = {
        "C": lambda: values,
        "F": lambda: np.asfortranarray(values),
        "every other row": lambda: np.repeat(values, 2, axis=0)[::2],
        "every other column": lambda: np.repeat(values, 2, axis=1)[:, ::2],
        "reversed": lambda: np.ascontiguousarray(values[::-1])[::-1],
        "read-only": lambda: frozen(values.copy()),
    }[layout]()
    before = X.copy()
    s = ckm.sketch(X, like=f)
    assert_same_bits(s.tally, exact_kernel(f, values.astype(np.float64), None))
    assert s.exact
    assert np.array_equal(X, before)
    assert X.dtype == before.dtype


@given(seed=seeds)
def test_float32_rows_are_the_same_rows_in_float64(kernel: str, seed: int) -> None:
    f, X = make_frequencies(4, 9, seed), make_rows(4, 300, seed, np.float32)
    a, b = (
        sketch_by(kernel, X, f),
        sketch_by(kernel, X.astype(np.float64), f),
    )
    assert_same_bits(a.tally, b.tally)


def test_only_sums_of_the_specified_arithmetic_are_exact() -> None:
    f, X = make_frequencies(2, 3, 0), make_rows(2, 10, 0)
    assert ckm.sketch(X, like=f).exact
    inexact = sketch_by("numpy", X, f)
    assert not inexact.exact
    assert not ckm.sketch(X, like=f, sample_weight=np.ones(10)).exact
    assert not (ckm.sketch(X, like=f) + inexact).exact


# The specified arithmetic


def awkward_rows(n: int) -> np.ndarray:
    """Rows where phases are large, tiny, halfway between two turns, or zero."""
    return np.array(
        [
            [v] * n
            for v in (
                0.0,
                -0.0,
                0.5,
                -0.5,
                1.5,
                2.5,
                1e-45,
                1e-30,
                1e7,
                -3e7,
                8388607.5,
                2.0**24 + 2,
                1 / 3,
                1e9,
            )
        ]
    )


@pytest.mark.parametrize(("n", "seed"), [(1, 0), (2, 1), (5, 2), (11, 3), (18, 4), (65, 5)])
def test_every_pair_is_the_specified_integer(n: int, seed: int) -> None:
    f, X = make_frequencies(n, 5, seed), np.concatenate([make_rows(n, 20, seed), awkward_rows(n)])
    for row in X:
        assert exact_kernel(f, row[None], None).sums.tolist() == specified.sums(
            f.turns, row[None], f.origin
        )


def test_phases_halfway_between_turns_are_specified() -> None:
    f = Frequencies([[1.0], [0.5], [-0.25]], [0.0], 1.0, "gaussian")
    for row in awkward_rows(1):
        assert exact_kernel(f, row[None], None).sums.tolist() == specified.sums(
            f.turns, row[None], f.origin
        )


def test_a_block_of_rows_is_the_sum_of_specified_integers() -> None:
    f, X = make_frequencies(3, 2, 9), make_rows(3, 300, 9)
    assert exact_kernel(f, X, None).sums.tolist() == specified.sums(f.turns, X, f.origin)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_many_equal_rows_do_not_overflow(value: float) -> None:
    """Cosines of one, and of minus one, as often as a block has rows: sums of 32 bits hold 511 of
    them.
    """
    f = Frequencies([[0.5], [1.0], [-0.5], [2.5]], [0.0], 1.0, "gaussian")
    cosines, sines = exact_kernel(f, np.full((BLOCK_ROWS + 1, 1), value), None).sums
    signs = np.array([1 if value == 0 or round(t) == t else -1 for t in (0.5, 1.0, -0.5, 2.5)])
    assert cosines.tolist() == (signs * 2**22 * (BLOCK_ROWS + 1)).tolist()
    assert sines.tolist() == [0] * 4


def test_the_specified_rounding_is_float32s() -> None:
    """The rational `float32` of the test agrees with the machine's on products, which are exact in
    float64.
    """
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(500, 2)) * 10.0 ** rng.integers(-20, 10, size=(500, 1))).astype(
        np.float32
    )
    for a, b in values:
        assert float(
            specified.float32(specified.Fraction(float(a)) * specified.Fraction(float(b)))
        ) == float(a * b)


def test_coefficients_belong_to_the_format() -> None:
    assert tuple(map(float, COSINE)) == specified.COSINE
    assert tuple(map(float, SINE)) == specified.SINE


def test_polynomials_have_the_stated_errors() -> None:
    r = np.linspace(-0.5, 0.5, 100_001)
    cosine, sine = (
        np.polynomial.polynomial.polyval(r * r, c)
        for c in ((1.0, *map(float, COSINE)), tuple(map(float, SINE)))
    )
    assert np.abs(cosine - np.cos(2 * np.pi * r)).max() <= 1.4e-8
    assert np.abs(sine * r - np.sin(2 * np.pi * r)).max() <= 8.5e-9


def golden_input() -> tuple[Frequencies, np.ndarray]:
    """Turns, origin and rows from integer arithmetic alone, so that they are the same under every
    version of everything.
    """

    def integers(count: int, multiplier: int) -> np.ndarray:
        return np.array(
            [(k * multiplier + 12345) % 2**24 - 2**23 for k in range(1, count + 1)], np.float64
        )

    # of 24 bits, so that float32 holds them
    turns = integers(37 * 7, 1103515245).reshape(37, 7) / 2**24
    origin = integers(7, 69069) / 2**18
    rows = integers(1000 * 7, 22695477).reshape(1000, 7) / 2**20 + origin.round()
    return Frequencies(turns, origin, 1.0, "gaussian"), rows


GOLDEN = "9ec5a616ebc4797b04194defd40390f8a1f3fc94720a2b4b4ad1d80826e438a6"


def test_the_bits_are_pinned() -> None:
    f, X = golden_input()
    sums = exact_kernel(f, X, None).sums
    assert hashlib.sha256(sums.astype("<i8").tobytes()).hexdigest() == GOLDEN
    sample = slice(0, 1000, 125)
    assert exact_kernel(f, np.ascontiguousarray(X[sample]), None).sums.tolist() == specified.sums(
        f.turns, X[sample], f.origin
    )


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a processor of this architecture")
def test_narrower_processors_are_bit_identical() -> None:
    """As for a processor without 512-bit registers, and without the instruction that takes whole
    turns off.
    """
    digest = in_another_process(
        """
import hashlib
from test_kernels import exact_kernel, golden_input
from ckm._kernels.cpu.dense import _sweep
f, X = golden_input()
print(hashlib.sha256(exact_kernel(f, X, None).sums.astype("<i8").tobytes()).hexdigest())
assert "zmm" not in _sweep.inspect_asm(_sweep.signatures[0])
""",
        NUMBA_CPU_NAME="x86-64",
        NUMBA_CPU_FEATURES="",
    )
    assert digest.strip() == GOLDEN
