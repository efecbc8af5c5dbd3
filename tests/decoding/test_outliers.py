"""Outliers below the detection limit, reconstructed from moments and bounds."""

from dataclasses import replace

import numpy as np
import pytest

import ckm
from ckm._core.moments import SecondMoment
from ckm._decoding.moments import moment_misfit
from ckm._decoding.outliers import box_in_sight, make_tail, reconstruct_outliers
from ckm._decoding.problem import Problem
from ckm._decoding.status import Status
from ckm._kmeans.assign import Centroids
from ckm._sources.arrays import ArraySource

N = 20_000


def bulk_rows(n: int = 3) -> np.ndarray:
    """Five clusters."""
    rng = np.random.default_rng(0)
    return 4 * rng.normal(size=(5, n))[rng.integers(5, size=N)] + rng.normal(size=(N, n))


def reconstructed(X: np.ndarray, bulk: np.ndarray, m: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the data's coordinates and their number, given a perfect measure of the bulk."""
    s = ckm.sketch(X, n_clusters=5, sketch_size=m, random_state=0, cells=0)
    rows, shares = reconstruct_outliers(
        Problem.of(s), Problem.of(s).without_outliers(), s.frequencies.relative(bulk)
    )
    return s.frequencies.absolute(rows), shares * len(X)


def test_one_outlier_is_found_exactly() -> None:
    """The bounds and second moments leave no doubt about a single row."""
    X = bulk_rows()
    far = np.array([900.0, -300.0, 500.0])
    rows, counts = reconstructed(np.vstack([X, far]), X)
    heaviest = np.argmax(counts * (rows**2).sum(axis=1))
    assert rows[heaviest] == pytest.approx(far, rel=0.02)
    assert counts[np.abs(rows[:, 0]) > 450].sum() == pytest.approx(1, abs=0.05)


def test_a_group_beside_a_bulk_without_tail() -> None:
    X = bulk_rows()
    rows, counts = reconstructed(np.vstack([X, np.tile([0, -1000.0, 0], (6, 1))]), X)
    far = rows[:, 1] < -800
    assert counts[far].sum() == pytest.approx(6, abs=1)
    assert (counts * rows[:, 1] ** 2).sum() == pytest.approx(6 * 1000**2, rel=0.03)


@pytest.mark.parametrize(
    ("edge", "count"), [(0, 1), (0, 3), (1, 1), (1, 1.2), (1, 4), (30, 3), (99, 2), (100, 1)]
)
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("is_group", [True, False])
def test_a_tail_has_the_squares_that_are_missing(
    edge: float, count: float, sign: int, *, is_group: bool
) -> None:
    along, counts = make_tail(sign * 100.0, edge, count, 12, is_group=is_group)
    assert (counts * along**2).sum() == pytest.approx(count * 100**2)
    assert (counts >= 0).all()
    assert (sign * along >= 0).all()
    assert (sign * along <= 100).all()


def test_a_tail_of_the_bulk_continues() -> None:
    along, counts = make_tail(100.0, 20.0, 2.5, 16)
    assert counts[-1] == pytest.approx(0), "no group beside it"
    assert (np.diff(along[:-1]) < 0).all()


def test_outliers_on_both_sides_are_no_group() -> None:
    """Codes for missing values are on one side; heavy tails are on both, with rows on the way."""
    X = bulk_rows()
    far = np.zeros((14, 3))
    far[:, 1] = np.concatenate([np.geomspace(100, 1000, 7), -np.geomspace(100, 1000, 7)])
    rows, counts = reconstructed(np.vstack([X, far]), X)
    is_middle = (np.abs(rows[:, 1]) > 90) & (np.abs(rows[:, 1]) < 500)
    assert counts[is_middle].sum() == pytest.approx(10, abs=4)
    assert (counts * rows[:, 1] ** 2).sum() == pytest.approx((far[:, 1] ** 2).sum(), rel=0.05)


def test_nothing_is_reconstructed_where_no_variance_is_missing() -> None:
    X = bulk_rows()
    s = ckm.sketch(X, n_clusters=5, random_state=0, cells=0)
    problem = Problem.of(s)
    assert problem.without_outliers() is problem
    assert len(reconstruct_outliers(problem, problem, s.frequencies.relative(X))[0]) == 0


def test_outliers_in_several_columns_need_mixed_moments() -> None:
    """Whether they are the same rows, variances alone do not say."""
    X = bulk_rows()
    s = ckm.sketch(
        np.vstack([X, [[900.0, 0, 0], [0, 900.0, 0]]]), n_clusters=5, random_state=0, cells=0
    )
    whole = Problem.of(s)
    variances = replace(whole, covariance=SecondMoment(whole.covariance.diagonal))
    points = s.frequencies.relative(X)
    assert len(reconstruct_outliers(whole, whole.without_outliers(), points)[0]) > 0
    assert len(reconstruct_outliers(variances, variances.without_outliers(), points)[0]) == 0


def test_a_group_below_the_detection_limit_gets_its_centroid() -> None:
    """Without any of its rows in a pool: for example a code for missing values."""
    X = np.vstack([bulk_rows(), np.tile([0.0, -999, 0], (6, 1))])
    s = ckm.sketch(X, n_clusters=6, random_state=0, cells=0)
    found = ckm.decode(s, 6, random_state=0)
    assert found.status is Status.FAR_OUT
    assert np.abs(found.centroids[:, 1]).max() == pytest.approx(999, rel=0.15)
    assert Centroids(found.centroids).sse(ArraySource(X)) < 0.1 * 6 * 999**2


def test_the_misfit_of_some_columns_has_its_gradient() -> None:
    rng = np.random.default_rng(0)
    whole = Problem.of(ckm.sketch(bulk_rows(), n_clusters=5, random_state=0, cells=0))
    problem = replace(whole, trusted=np.array([True, False, True]))
    x = rng.uniform(0.5, 2, (2, 3, 4))
    step = 1e-6
    C = x[0].T[:, :3]
    widths = x[1].T[:, :3]
    alpha = np.full(4, 0.25)
    value, by_C, _, by_widths = moment_misfit(problem, C, alpha, widths)
    assert value > 0
    for gradient, moved in (
        (by_C, lambda d: (C + d, alpha, widths)),
        (by_widths, lambda d: (C, alpha, widths + d)),
    ):
        for place in np.ndindex(4, 3):
            d = np.zeros((4, 3))
            d[place] = step
            slope = (
                moment_misfit(problem, *moved(d))[0] - moment_misfit(problem, *moved(-d))[0]
            ) / (2 * step)
            assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("rows", [6, 40, 2000])
def test_hardly_any_of_the_bulk_is_out_of_sight(rows: int) -> None:
    """Of six rows the sketch could miss any, but a measure of them keeps its points."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    X[0] = 1e5
    problem = Problem.of(ckm.sketch(X, n_clusters=3, cells=0, random_state=0))
    assert not problem.has_trusted_moments
    points = rng.normal(size=(5000, 3))
    lower, upper = box_in_sight(problem.without_outliers(), points)
    assert ((points >= lower) & (points <= upper)).all(axis=1).mean() > 0.99
    stray = np.array([50.0, 0, 0])
    assert not ((stray >= lower) & (stray <= upper)).all()
