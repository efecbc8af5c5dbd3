"""Cells obey the laws of sums: any order, split and merge of the rows gives the same bits, weights
equal repetition, and what was added can be subtracted.
"""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ckm
from ckm._core.cells import Anchors, Cells
from ckm._core.defaults import usual_cells
from ckm._core.storage import deserialise, serialise
from ckm._core.whole_numbers import from_limbs, to_limbs
from ckm._kernels.cpu.cells import tally_cells
from ckm._sketching.options import SketchOptions
from ckm.errors import CellsWarning, MismatchError, ParameterError, PhaseWarning

seeds = st.integers(0, 2**32 - 1)
shapes = st.tuples(st.integers(1, 40), st.integers(1, 300), st.integers(1, 20))
dtypes = st.sampled_from([np.float32, np.float64])


def make(n: int, N: int, s: int, seed: int, dtype: type = np.float64) -> tuple[Anchors, np.ndarray]:
    """Anchors around rows far from zero, some of which are far from the others."""
    rng = np.random.default_rng(seed)
    X = 5 + rng.normal(size=(N, n))
    X[rng.random(N) < 0.05] *= 10.0 ** rng.integers(0, 9)
    metric = np.exp(rng.normal(size=n))
    anchors = Anchors.on_grids(rng.normal(size=(s, n)), metric, np.ones(n), 1.0)
    return anchors, X.astype(dtype)


def cells_of(anchors: Anchors, X: np.ndarray, weights: np.ndarray | None = None) -> Cells:
    return tally_cells(anchors, np.full(anchors.n, 5.0), X, weights)


def fused(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """fma in float32: rounded once, from exact numbers to the nearest, ties to even."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    near = np.float32(float(exact))
    options = {
        near,
        np.nextafter(near, np.float32(np.inf)),
        np.nextafter(near, -np.float32(np.inf)),
    }
    return min(options, key=lambda y: (abs(Fraction(float(y)) - exact), int(y.view(np.int32)) & 1))


def nearest_by_the_specification(anchors: Anchors, row: np.ndarray) -> int:
    scores = []
    for coefficients, half in zip(anchors.coefficients, anchors.halves, strict=True):
        score = half
        for b, x in zip(coefficients, row, strict=True):
            score = fused(b, x, score)
        scores.append(score)
    return int(np.argmin(scores))


@given(seed=seeds, n=st.integers(1, 5), s=st.integers(1, 9), dtype=dtypes)
def test_every_row_goes_where_the_specification_says(
    seed: int, n: int, s: int, dtype: type
) -> None:
    anchors, X = make(n, 30, s, seed, dtype)
    found = cells_of(anchors, X)
    x = (X.astype(np.float64) - 5.0).astype(np.float32)
    labels = [nearest_by_the_specification(anchors, row) for row in x]
    numbers, lengths = anchors.quantise(x)
    mass = [0] * s
    sums = [[0] * n for _ in range(s)]
    squares = [0] * s
    for k, row, length in zip(labels, numbers, lengths, strict=True):
        mass[k] += 1
        squares[k] += int(length)
        for d in range(n):
            sums[k][d] += int(row[d])
    assert found.mass.tolist() == mass
    assert found.sums.tolist() == sums
    assert found.squares.tolist() == squares


@given(shape=shapes, seed=seeds, dtype=dtypes)
def test_any_order_and_split_gives_the_same_bits(
    shape: tuple[int, int, int], seed: int, dtype: type
) -> None:
    n, N, s = shape
    anchors, X = make(n, N, s, seed, dtype)
    whole = cells_of(anchors, X)
    rng = np.random.default_rng(seed)
    shuffled = X[rng.permutation(N)]
    cuts = [0, *sorted(rng.integers(0, N + 1, size=3)), N]
    total = Cells.empty(anchors)
    for low, high in itertools.pairwise(cuts):
        total = total + cells_of(anchors, shuffled[low:high])
    assert total.identity() == whole.identity()
    part = cells_of(anchors, X[: N // 2])
    assert (whole - part).identity() == cells_of(anchors, X[N // 2 :]).identity()
    assert (whole - whole).identity() == Cells.empty(anchors).identity()


@given(shape=shapes, seed=seeds)
def test_whole_weights_are_repetition(shape: tuple[int, int, int], seed: int) -> None:
    n, N, s = shape
    anchors, X = make(n, N, s, seed)
    weights = np.random.default_rng(seed).integers(1, 4, size=N)
    weighted = cells_of(anchors, X, weights.astype(np.float64))
    repeated = cells_of(anchors, np.repeat(X, weights, axis=0))
    assert not weighted.exact
    for a, b in zip(weighted.arrays, repeated.arrays, strict=True):
        np.testing.assert_allclose(a, b.astype(np.float64), rtol=1e-12)


@given(st.lists(st.integers(-(2**300), 2**300), min_size=1, max_size=5))
def test_whole_numbers_of_any_size_are_kept(numbers: list[int]) -> None:
    assert from_limbs(to_limbs(np.array(numbers, object))).tolist() == numbers


def test_rows_of_any_length_are_added_exactly() -> None:
    anchors, _ = make(2, 1, 3, 0)
    X = np.array([[3e38, 5.0], [-3e38, 5.0], [5.0, 1e20], [6.0, 5.0]])
    found = cells_of(anchors, X)
    assert found.sums.dtype == object
    rest = found - cells_of(anchors, X[:3])
    assert rest.identity() == cells_of(anchors, X[3:]).identity()
    assert rest.sums.dtype == np.int64


def test_statistics_are_those_of_the_rows() -> None:
    X = np.random.default_rng(0).normal(3, 2, size=(5000, 3))
    s = ckm.sketch(X, n_clusters=4, random_state=0)
    assert s.cells is not None
    mass, means, variances = s.cells.statistics()
    assert mass.sum() == 5000
    assert mass @ means / 5000 + s.frequencies.origin == pytest.approx(X.mean(axis=0), abs=1e-6)
    between = (mass[:, None] * (means + s.frequencies.origin - X.mean(axis=0)) ** 2).sum()
    assert mass @ variances + between == pytest.approx(5000 * X.var(axis=0).sum(), rel=1e-6)


# Sketches with cells


def sketch(seed: int = 0, **options: object) -> ckm.Sketch:
    X = np.random.default_rng(seed).normal(size=(500, 2))
    return ckm.sketch(X, **{"n_clusters": 3, "random_state": 0} | options)


def test_the_number_of_cells() -> None:
    assert 60 < len(sketch().cells.anchors) <= 160
    assert len(sketch(cells=17).cells.anchors) <= 17
    assert sketch(cells=0).cells is None
    assert ckm.sketch(np.eye(2), like=sketch(), cells=0).cells is None
    for wrong in (-1, 1.5, "many", True):
        with pytest.raises(ParameterError, match="cells"):
            sketch(cells=wrong)
    with pytest.raises(ParameterError, match="cells=5 contradicts like"):
        ckm.sketch(np.eye(2), like=sketch(), cells=5)


@pytest.mark.parametrize(("K", "cells"), [(2, 160), (10, 160), (499, 7984), (500, 24_000)])
def test_the_usual_number_of_anchors(K: int, cells: int) -> None:
    """Many clusters have more of them each."""
    assert usual_cells(K) == cells


@pytest.mark.parametrize(
    ("K", "n", "cells", "m"),
    [
        (10, 10, "auto", 500),
        (100, 8, "auto", 4000),
        (100, 10, "auto", 4000),
        (10, 16, "auto", 650),
        (10, 64, "auto", 1280),
        (10, 64, 0, 3200),
        (1000, 5, "auto", 10_000),
        (1000, 5, 30, 10_000),
        (1000, 5, 0, 25_000),
    ],
)
def test_many_clusters_or_columns_have_fewer_frequencies_beside_cells(
    K: int, n: int, cells: int | str, m: int
) -> None:
    options = SketchOptions(K, cells=cells, projection=None)
    assert options.check(n) == m
    assert replace(options, sketch_size=5 * K * n).check(n) == 5 * K * n


def test_cells_pass_through_files_sums_and_scaling() -> None:
    a = sketch()
    b = sketch(1, like=a, n_clusters=None)
    both = a + b
    assert deserialise(serialise(both)) == both
    assert (both - b).cells.identity() == a.cells.identity()
    assert both != both.without_cells()
    half = both.scaled(0.5)
    assert half.cells.mass.sum() == pytest.approx(500)
    assert deserialise(serialise(half)) == half
    with pytest.warns(PhaseWarning):
        far = a + ckm.sketch(np.array([[1e38, 0.0]]), like=a)
    assert far.cells.sums.dtype == object
    assert deserialise(serialise(far)) == far
    assert b"cells" in serialise(a)
    assert b"cells" not in serialise(a.without_cells())


def test_a_sketch_with_cells_and_one_without_give_none() -> None:
    a = sketch()
    with pytest.warns(CellsWarning, match="sketch both alike"):
        assert (a + a.without_cells()).cells is None
    assert (a + ckm.Sketch.empty(a.frequencies)).cells is not None
    with pytest.raises(MismatchError, match="around different anchors"):
        a + ckm.Sketch(a.frequencies, a.tally, cells=sketch(cells=9).cells)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("mass", lambda a: a + 1),
        ("mass", lambda a: -a),
        ("sums", lambda a: a + 2**40),
        ("squares", lambda a: a * 0),
        ("squares", lambda a: a * 10**6),
        ("squares", lambda a: a.astype(float)),
    ],
)
def test_cells_that_no_rows_have_are_refused(field: str, change: object) -> None:
    s = sketch()
    values = dict(zip(("mass", "sums", "squares"), s.cells.arrays, strict=True))
    values[field] = change(values[field])  # type: ignore[operator]
    forged = ckm.Sketch(s.frequencies, s.tally, cells=Cells(s.cells.anchors, **values))
    with pytest.raises(ckm.errors.SketchFileError):
        deserialise(serialise(forged))
