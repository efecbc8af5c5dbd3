"""Centroids placed on cells, where the sketch certifies them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans

import ckm
from ckm._decoding.cells import CellMeasure
from ckm._decoding.density import by_density
from ckm._decoding.problem import Problem
from ckm._decoding.refining import _refine_few, doubt_of_sides
from ckm._decoding.sample import SampledRows
from ckm._decoding.settings import DEFAULT
from ckm._decoding.status import Status
from ckm._kmeans.assign import Centroids
from ckm._sources.arrays import ArraySource
from ckm.errors import ParameterError


def relative_sse(X: np.ndarray, centroids: np.ndarray) -> float:
    best = KMeans(len(centroids), n_init=5, random_state=0).fit(X).inertia_
    return Centroids(centroids).sse(ArraySource(X)) / best


def skewed(N: int = 20_000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2, size=(N, 3))


def test_cells_give_the_sse_of_k_means_without_a_pool() -> None:
    X = skewed()
    found = ckm.decode(ckm.sketch(X, n_clusters=5, random_state=0), 5, random_state=0)
    assert found.status is Status.OK
    assert relative_sse(X, found.centroids) < 1.01
    shares = np.bincount(Centroids(found.centroids).label(ArraySource(X)), minlength=5) / len(X)
    np.testing.assert_allclose(found.weights, shares, atol=0.006)


@pytest.mark.slow
def test_steps_on_many_points_lower_the_sse_of_many_clusters() -> None:
    """As from 500 clusters on by default, but with 100."""
    X = ckm.datasets.gaussian_mixture(50_000, 100, 3, random_state=0).rows
    s = ckm.sketch(X, n_clusters=100, random_state=0)

    def sse(many_clusters: int) -> float:
        problem = Problem.of(s, settings=replace(DEFAULT, many_clusters=many_clusters))
        C = by_density(problem, 100, "auto", None, np.random.default_rng(0), 1).C
        centroids = s.frequencies.origin + C * s.frequencies.step
        return Centroids(centroids).sse(ArraySource(X), n_jobs=1)

    assert sse(100) < 0.998 * sse(101)


def test_the_result_does_not_depend_on_the_order_of_rows() -> None:
    """The pool would: it is sampled. Cells are the same sums."""
    X = skewed()
    design = ckm.sketch(X, n_clusters=5, random_state=0)
    found = {
        ckm.decode(ckm.sketch(rows, like=design), 5, random_state=0).centroids.tobytes()
        for rows in (X, X[::-1], np.random.default_rng(1).permutation(X))
    }
    assert len(found) == 1


@pytest.mark.parametrize("standardize", [False, True])
def test_distances_are_in_the_units_of_the_sketch(standardize: bool) -> None:
    X = skewed() * [1, 1, 1e-3]
    s = ckm.sketch(X, n_clusters=4, standardize=standardize, random_state=0)
    found = ckm.decode(s, 4, random_state=0)
    units = X.std(axis=0) if standardize else np.ones(3)
    assert relative_sse(X / units, found.centroids / units) < 1.01


def test_rows_that_have_moved_since_are_noticed() -> None:
    X = skewed()
    X = X[np.argsort(X[:, 0])]
    first = ckm.sketch(X[:4000], n_clusters=5, random_state=0)
    whole = ckm.sketch(X, like=first)
    found = ckm.decode(whole, 5, random_state=0)
    assert found.status is Status.STALE_CELLS
    assert "without like=" in found.message
    alone = ckm.decode(whole.without_cells(), 5, random_state=0)
    assert found.centroids.tobytes() == alone.centroids.tobytes()


def test_a_few_rows_in_wide_cells_have_not_moved() -> None:
    """Heavy tails: the outermost rows are not in the sample that the anchors were chosen on."""
    s = ckm.sketch(skewed(), n_clusters=5, random_state=0)
    before = CellMeasure.of(s)
    after = CellMeasure.of(s + ckm.sketch(20 * skewed(100, 1), like=s))
    assert before is not None
    assert after is not None
    assert after.variance_within > 3 * before.variance_within
    assert after.widening == pytest.approx(before.widening, rel=0.1)


def test_few_frequencies_judge_few_cells() -> None:
    """One Gaussian for each of four cells per cluster leaves a residual, but the cells are no wider
    than expected: the sketch, which is too small to be decoded alone, has nothing better.
    """
    X = np.random.default_rng(0).integers(0, 2, size=(20_000, 6)).astype(float)
    s = ckm.sketch(X, n_clusters=6, sketch_size=21, cells=24, random_state=0)
    problem = Problem.of(s)
    assert not problem.can_stand_alone(6)
    found = ckm.decode(s, 6, random_state=0)
    assert np.sqrt(found.cost / problem.m) > 0.03
    assert Status.SMALL_SKETCH not in {finding.status for finding in found.findings}
    assert relative_sse(X, found.centroids) < 1.05


def test_fewer_frequencies_than_unknowns_judge_cells() -> None:
    X = skewed(5000)
    s = ckm.sketch(X, n_clusters=12, sketch_size=16, cells=120, random_state=0)
    found = ckm.decode(s, 12, random_state=0)
    assert found.status is Status.OK
    assert relative_sse(X, found.centroids) < 1.01
    fitted = ckm.CompressiveKMeans(12, sketch_size=16, cells=120, random_state=0).fit(X)
    assert fitted.solution_.status is Status.OK


def test_stale_cells_are_used_and_said_if_frequencies_are_too_few_without_them() -> None:
    X = skewed()
    X = X[np.argsort(X[:, 0])]
    first = ckm.sketch(X[:2000], n_clusters=12, sketch_size=16, cells=120, random_state=0)
    found = ckm.decode(ckm.sketch(X, like=first), 12, random_state=0)
    assert found.status is Status.STALE_CELLS
    assert "16 frequencies are too few to find 12 centroids without the cells" in found.message
    assert np.isfinite(found.centroids).all()
    assert (found.weights > 0).all()


def test_a_sketch_that_only_judges_needs_its_cells() -> None:
    s = ckm.sketch(skewed(), n_clusters=12, sketch_size=16, cells=120, random_state=0)
    with pytest.raises(ParameterError, match="too small for 12 clusters"):
        ckm.decode(s.without_cells(), 12)
    with pytest.raises(ParameterError, match="too small for 12 clusters"):
        ckm.decode(s, 12, decoder="clompr")
    with pytest.raises(ParameterError, match="too small for 61 clusters"):
        ckm.decode(s, 61)
    with pytest.raises(ParameterError, match="too small for 12 clusters"):
        ckm.CompressiveKMeans(12, sketch_size=16, decoder="clompr").fit(skewed(100))
    with pytest.raises(ParameterError, match="too small for 12 clusters"):
        ckm.sketch(skewed(100), n_clusters=12, sketch_size=16, cells=0)


def test_few_means_have_all_runs_refined_and_dozens_of_clusters_more_runs() -> None:
    assert [DEFAULT.placing_runs(K) for K in (3, 10, 29, 30, 50, 100, 1000)] == [
        *(20, 6, 5, 10, 10, 5, 1)
    ]
    assert DEFAULT.refinements(10, means=119) == DEFAULT.placing_runs(10)
    assert DEFAULT.refinements(10, means=120) == DEFAULT.refined_runs


@pytest.mark.parametrize(("errors", "runs"), [((1.0, 1.0001, 1.0002), 5), ((1.0, 1.0, 1.01), 10)])
def test_dozens_of_clusters_get_more_runs_only_if_these_disagree(
    errors: tuple[float, ...], runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = ckm.sketch(skewed(), n_clusters=30, random_state=0)
    made = list[float]()

    def known_place(points: np.ndarray, *_: object, search: bool = True, **__: object) -> object:
        if search:
            made.append((*errors, 2.0, 2.0, *[2.0] * 5)[len(made)])
        return points[:30], np.full(30, 1 / 30), made[-1]

    monkeypatch.setattr("ckm._decoding.placing.place", known_place)
    ckm.decode(s, 30, random_state=0)
    assert len(made) == runs


@pytest.mark.parametrize("distance", [1e3, 1e6])
@pytest.mark.parametrize("N", [2000, 50_000])
def test_one_row_far_away_gets_its_centroid(N: int, distance: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    X[:, 0] += 8 * rng.integers(2, size=N)
    X[7] = distance
    model = ckm.CompressiveKMeans(3, random_state=0).fit(X)
    assert model.solution_.status is Status.OK
    assert relative_sse(X, model.cluster_centers_) < 1.01


def test_known_rows_are_taken_out_of_their_cells() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    s = ckm.sketch(X, n_clusters=3, pool=20, random_state=0)
    far = np.array([[3e5, -2e5], [1e6, 1e6]])
    more = s + ckm.sketch(far, like=s, pool=20, random_state=1)
    cells = CellMeasure.of(more)
    known = SampledRows.of(more, far)
    assert cells is not None
    assert known is not None
    known = known._replace(weights=np.full(2, 1 / 5002), probabilities=np.ones(2))
    rest = cells.without(known)
    before = CellMeasure.of(s)
    assert before is not None
    assert rest.shares.sum() == pytest.approx(5000 / 5002)
    assert rest.variance_within == pytest.approx(before.variance_within * 5000 / 5002, rel=1e-3)
    np.testing.assert_allclose(rest.means, before.means, atol=1e-4)


@pytest.mark.parametrize("is_even", [False, True])
def test_points_drawn_within_cells_fall_in_them_and_have_their_moments(is_even: bool) -> None:
    X = ckm.datasets.gaussian_mixture(20_000, 20, 2, random_state=0).rows
    cells = CellMeasure.of(ckm.sketch(X, n_clusters=20, random_state=0))
    assert cells is not None

    def own_share(points: np.ndarray, weights: np.ndarray) -> float:
        """The weight of points that are nearest to the anchor of the cell that they are for."""
        gaps = (points**2).sum(axis=1)[:, None] - 2 * points @ cells.anchors.T
        fallen = np.bincount(np.argmin(gaps + (cells.anchors**2).sum(axis=1), axis=1), weights)
        return float(
            np.minimum(np.pad(fallen, (0, len(cells.shares) - len(fallen))), cells.shares).sum()
        )

    rng = np.random.default_rng(0)
    needs = np.full(len(cells.shares), 1 / len(cells.shares)) if is_even else None
    points, weights = cells.draw_within(rng, 40_000, needs)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ points, cells.shares @ cells.means, atol=1e-9)
    total = cells.shares @ (2 * cells.variances + (cells.means**2).sum(axis=1))
    assert weights @ (points**2).sum(axis=1) == pytest.approx(total, rel=1e-6)
    assert own_share(points, weights) > own_share(*cells.draw(rng, 40_000))


def test_points_have_the_moments_of_their_cells() -> None:
    s = ckm.sketch(skewed(), n_clusters=3, random_state=0)
    cells = CellMeasure.of(s)
    assert cells is not None
    points, weights = cells.draw(np.random.default_rng(0), 5000)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ points, cells.shares @ cells.means, atol=1e-9)
    total = cells.shares @ (3 * cells.variances + (cells.means**2).sum(axis=1))
    assert weights @ (points**2).sum(axis=1) == pytest.approx(total, rel=0.01)
    assert cells.cost(Problem.of(s).objective) < 10 * Problem.of(s).noise


def test_cells_have_as_many_points_as_they_need() -> None:
    X = np.vstack([skewed(200_000), 40 + skewed(300)])
    cells = CellMeasure.of(ckm.sketch(X, n_clusters=3, random_state=0))
    assert cells is not None
    rare = cells.means.sum(axis=1) > 0.5 * cells.means.sum(axis=1).max()
    counts = []
    for needs in (None, np.full(len(rare), 1 / len(rare))):
        points, weights = cells.draw(np.random.default_rng(0), 20_000, needs)
        counts.append((points.sum(axis=1) > 0.5 * points.sum(axis=1).max()).sum())
        assert weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(weights @ points, cells.shares @ cells.means, atol=1e-9)
    assert counts[1] > 3 * counts[0]
    assert counts[1] <= np.ceil(cells.rows[rare]).sum()


def test_cells_at_borders_leave_in_doubt_on_which_side_rows_are() -> None:
    """A point of a cell stands for as many rows as the cell has for each of its points, and matters
    most to the lighter cluster.
    """
    some = CellMeasure.of(ckm.sketch(skewed()[:, :2], n_clusters=2, random_state=0))
    assert some is not None
    cells = replace(
        some,
        means=np.array([[-4.0, 0.0], [0.1, 0.0], [0.1, 3.0], [4.0, 0.0], [0.1, 9.0]]),
        shares=np.array([0.6, 0.08, 0.02, 0.25, 0.05]),
        variances=np.array([0.1, 0.1, 0.1, 0.1, 0.0]),
        caps=np.full(2, np.inf),
    )
    C = np.array([[-4.0, 0.0], [4.0, 0.0], [100.0, 0.0]])
    doubts = doubt_of_sides(cells, C, np.array([0.7, 0.3, 0.0]))
    assert doubts[1] == pytest.approx(4 * doubts[2])
    assert doubts[[0, 3]].max() < 1e-6 * doubts[1]
    assert doubts[4] == 0
    np.testing.assert_allclose(
        doubt_of_sides(cells, C, np.array([0.85, 0.15, 0.0])), 2 * doubts, atol=1e-12
    )
    np.testing.assert_array_equal(doubt_of_sides(cells, C[:1], np.ones(1)), 0)


def test_centroids_of_a_heavy_tailed_table_are_the_means_of_their_rows() -> None:
    """Also in a column that hardly matters for distances."""
    rng = np.random.default_rng(0)
    amount = 1000 * np.exp(rng.normal(size=200_000))
    X = np.column_stack([amount, 1e-4 * amount + rng.normal(size=len(amount))])
    s = ckm.sketch(X, n_clusters=4, random_state=0)
    for seed in range(4):
        found = ckm.decode(s, 4, random_state=seed)
        labels = found.predict(X)
        for k, centroid in enumerate(found.centroids):
            apart = np.abs(centroid - X[labels == k].mean(axis=0)) / X.std(axis=0)
            assert apart.max() < (0.005 if (labels == k).sum() > 1000 else 0.03)


def test_k_means_on_points_of_cells_has_converged() -> None:
    """So that centroids of few clusters are the means of their rows: of one cloud many divisions
    are nearly as good, and k-means is slow.
    """
    X = np.random.default_rng(0).random((50_000, 6))
    problem = Problem.of(ckm.sketch(X, n_clusters=8, random_state=0))
    cells = problem.cells
    assert cells is not None
    start = by_density(problem, 8, "auto", None, np.random.default_rng(0), 1).C + 0.1
    one_step = replace(problem, settings=replace(DEFAULT, placing_iterations=1))

    def draw(count: int, _: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        return cells.draw(np.random.default_rng(1), count)

    shares = np.full(8, 1 / 8)
    C = _refine_few(problem, cells, start, shares, draw)[0]
    D = _refine_few(one_step, cells, C, shares, draw)[0]
    assert ((D - C) ** 2).sum() < 2e-5 * problem.covariance.diagonal.mean()
    assert ((C - start) ** 2).sum() > 1e-2 * problem.covariance.diagonal.mean()
