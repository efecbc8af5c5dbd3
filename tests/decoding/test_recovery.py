"""Recovering a measure and placing centroids on it are two steps, and the first serves every K."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans

import ckm
from ckm._decoding.density import by_density, place_centroids
from ckm._decoding.gaussians import GaussianMeasure
from ckm._decoding.problem import Problem
from ckm._decoding.recovered import Branch, Recovered
from ckm._decoding.recovery import recover
from ckm._decoding.sample import SampledRows
from ckm._decoding.status import Status
from ckm._decoding.tight_groups import count_tight_groups, hides_tight_groups
from ckm.errors import ClustersWarning

Case = tuple[Problem, SampledRows | None, Branch]


def _case(X: np.ndarray, branch: Branch, **options: int) -> Case:
    sketch = ckm.sketch(X, n_clusters=4, random_state=0, **options)
    return Problem.of(sketch), SampledRows.of(sketch), branch


def _groups(count: int, rng: np.random.Generator) -> np.ndarray:
    """Rows in so many narrow groups."""
    centres = rng.uniform(-1, 1, size=(count, 3))
    return np.repeat(centres, 400, axis=0) + 1e-3 * rng.standard_normal((400 * count, 3))


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    rng = np.random.default_rng(0)
    clusters = ckm.datasets.gaussian_mixture(4000, 4, 3, separation=20, random_state=1).rows
    cloud = rng.exponential(size=(4000, 3))
    few = np.vstack([cloud, 1e3 * rng.standard_normal((4, 3))])
    return [
        _case(cloud[:100], Branch.ROWS, pool=400, cells=0),
        _case(clusters, Branch.SEPARATE, pool=0, cells=0),
        _case(cloud, Branch.ENSEMBLE, pool=0, cells=0),
        _case(few, Branch.ENSEMBLE, pool=200, cells=0),
        _case(few, Branch.ENSEMBLE, pool=0, cells=0),
        _case(cloud, Branch.CELLS, pool=0, cells=80),
        _case(few, Branch.CELLS, pool=200, cells=80),
        _case(_groups(12, rng), Branch.TIGHT, pool=0, cells=0, sketch_size=120),
    ]


def _recover(case: Case, K: int) -> Recovered:
    problem, rows, _ = case
    return recover(problem, K, rows, np.random.default_rng(3), 1)


def _mean_square(recovered: Recovered, C: np.ndarray) -> float:
    points, weights = recovered.many
    squares = ((points[:, None] - C) ** 2).sum(axis=2).min(axis=1)
    return float(weights @ squares / weights.sum())


def test_the_two_steps_in_sequence_are_the_decoder(cases: list[Case]) -> None:
    for problem, rows, branch in cases:
        rng = np.random.default_rng(3)
        recovered = recover(problem, 4, rows, rng, 1)
        assert recovered.branch is branch
        found = place_centroids(problem, recovered, 4, rng)
        whole = by_density(problem, 4, "auto", rows, np.random.default_rng(3), 1)
        assert np.array_equal(found.C, whole.C)
        assert found.cost == whole.cost


def test_centroids_for_any_smaller_number_can_be_placed(cases: list[Case]) -> None:
    for case in cases:
        problem = case[0]
        recovered = _recover(case, 4)
        rng = np.random.default_rng(0)
        found = [place_centroids(problem, recovered, K, rng) for K in (1, 2, 3, 4)]
        assert [len(candidate.C) for candidate in found] == [1, 2, 3, 4]
        squares = [_mean_square(recovered, candidate.C) for candidate in found]
        assert squares == sorted(squares, reverse=True)


def test_the_gaussians_have_the_sketch_and_the_moments_of_the_data(cases: list[Case]) -> None:
    for case in cases:
        problem = case[0]
        measure = _recover(case, 4).gaussians
        assert measure.shares.sum() == pytest.approx(1)
        at_sketch = measure.characteristic(2 * np.pi * problem.omega.turns.T)
        assert np.sqrt((np.abs(at_sketch - problem.z) ** 2).mean()) < 0.02
    exact = [_recover(case, 4).gaussians for case in (cases[0], cases[5], cases[6])]
    for case, measure in zip((cases[0], cases[5], cases[6]), exact, strict=True):
        deviation = np.sqrt(case[0].covariance.diagonal)
        assert np.allclose((measure.mean - case[0].mean) / deviation, 0, atol=1e-3)


def test_a_characteristic_function_is_that_of_drawn_rows() -> None:
    rng = np.random.default_rng(0)
    measure = GaussianMeasure.of(
        np.array([1.0, 3.0]), rng.standard_normal((2, 3)), np.array([[0.1, 0.2, 2.0], [0, 0, 0]])
    )
    omega = rng.standard_normal((50, 3))
    for draw in (measure.draw, measure.draw_evenly):
        rows = draw(rng, 40_000)
        seen = np.exp(-1j * rows @ omega.T).mean(axis=0)
        assert np.abs(seen - measure.characteristic(omega)).max() < 0.02
        assert np.allclose(rows.mean(axis=0), measure.mean, atol=0.03)
        assert np.allclose(rows.var(axis=0), measure.variance, atol=0.05)


def _repeated(distinct: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """20 000 rows, each of which is one of a few, and the share of each of these."""
    rng = np.random.default_rng(seed)
    values = np.sort(rng.standard_normal((distinct, 3)), axis=0)
    labels = rng.choice(distinct, 20_000, p=rng.dirichlet(np.full(distinct, 5.0)))
    return values[labels], np.bincount(labels, minlength=distinct) / len(labels)


@pytest.mark.parametrize("cells", [0, "auto"])
def test_few_distinct_rows_of_a_pool_are_the_data(cells: int | str) -> None:
    """A pool of 1000 rows holds 30 distinct ones often, in about their shares; the sketch tells
    what these are.
    """
    X, shares = _repeated(30)
    sketch = ckm.sketch(X, n_clusters=12, pool=1000, cells=cells, random_state=0)
    rows = SampledRows.of(sketch)
    assert rows is not None
    assert np.abs(rows.shares - shares).max() > 1e-3
    recovered = recover(Problem.of(sketch), 12, rows, np.random.default_rng(0), 1)
    assert recovered.branch is Branch.ROWS
    assert np.abs(recovered.many[1] - shares).max() < 1e-5
    found = ckm.decode(sketch, 12, random_state=0)
    assert found.status == "ok"
    best = KMeans(12, n_init=10, random_state=0).fit(X)
    assert found.score(X) >= -1.03 * best.inertia_


def test_distinct_rows_that_a_pool_lacks_are_not_forgotten() -> None:
    """Two rows of 20 000 are hardly ever in a pool: the sketch tells that something is missing."""
    X = _repeated(30)[0]
    X[:2] = 1.0
    sketch = ckm.sketch(X, n_clusters=12, pool=1000, cells=0, random_state=0)
    rows = SampledRows.of(sketch)
    assert rows is not None
    assert (len(rows.values), rows.unseen) == (30, 0)
    recovered = recover(Problem.of(sketch), 12, rows, np.random.default_rng(0), 1)
    assert recovered.branch is not Branch.ROWS


def test_points_beside_a_measure_take_their_share() -> None:
    measure = GaussianMeasure.of(np.ones(2), np.zeros((2, 1)), np.ones(2))
    both = measure.beside(np.array([[5.0]]), np.array([0.2]), 0.8)
    assert np.allclose(both.shares, [0.4, 0.4, 0.2])
    assert both.mean == pytest.approx(1.0)


def test_atoms_that_lack_variance_are_no_separate_clusters() -> None:
    """Few scattered rows hardly show in a sketch, but much in the variance, which is exact."""
    X = ckm.datasets.gaussian_mixture(20_000, 5, 6, separation=5, random_state=0).rows
    rng = np.random.default_rng(0)
    moved = rng.choice(len(X), 1000, replace=False)
    X[moved] = rng.uniform(X.min(axis=0), X.max(axis=0), (len(moved), 6))
    sketch = ckm.sketch(X, n_clusters=10, cells=0, random_state=0)
    recovered = recover(Problem.of(sketch), 10, None, np.random.default_rng(0), 1)
    assert recovered.branch is Branch.ENSEMBLE
    best = KMeans(10, n_init=5, random_state=0).fit(X).inertia_
    assert -ckm.decode(sketch, 10, random_state=0).score(X) < 1.02 * best


def test_as_few_atoms_are_used_as_explain_the_sketch() -> None:
    """For all numbers of clusters at once; a decoder of one number uses as many as usual."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    X = ckm.datasets.gaussian_mixture(10_000, 5, 6, random_state=0).rows @ (
        axes * [3, 1, 1, 1, 1, 1]
    )
    problem = Problem.of(ckm.sketch(X, n_clusters=10, cells=0, random_state=0))
    usual = recover(problem, 10, None, np.random.default_rng(0), 1)
    sparing = replace(problem, settings=problem.settings.of_every_number())
    few = recover(sparing, 10, None, np.random.default_rng(0), 1)
    assert usual.branch is few.branch is Branch.ENSEMBLE
    assert len(usual.few[0]) / len(usual.members) == 40
    assert len(few.few[0]) / len(few.members) == 20
    assert few.cost <= problem.settings.max_noise_ratio * problem.noise


def test_tight_groups_are_counted_and_found() -> None:
    """Twelve groups and four clusters: centroids are those of k-means, in each of three tries."""
    for seed in range(3):
        X = _groups(12, np.random.default_rng(seed))
        sketch = ckm.sketch(X, n_clusters=4, sketch_size=120, random_state=seed, cells=0)
        count = count_tight_groups(Problem.of(sketch), 0.5)
        assert 8 < count < 18  # |z|^2 of thirty frequencies err by a fifth
        best = KMeans(4, n_init=20, random_state=0).fit(X).inertia_
        found = ckm.decode(sketch, 4, random_state=seed)
        assert -found.score(X) < 1.02 * best
        assert found.status is Status.OK


def test_smooth_data_has_no_tight_groups() -> None:
    for seed in range(5):
        X = np.random.default_rng(seed).exponential(size=(4000, 3))
        sketch = ckm.sketch(X, n_clusters=4, sketch_size=120, random_state=seed, cells=0)
        assert count_tight_groups(Problem.of(sketch), 0.8) == 0


def test_tight_groups_that_frequencies_cannot_tell_are_said_to_hide() -> None:
    X = _groups(200, np.random.default_rng(0))
    problems = [
        Problem.of(ckm.sketch(X, n_clusters=4, sketch_size=m, random_state=0, cells=0))
        for m in (240, 1200)
    ]
    assert [hides_tight_groups(problem, 4) for problem in problems] == [True, False]
    assert not hides_tight_groups(problems[0], 190)  # hardly more groups than clusters


def test_many_sampled_rows_settle_what_the_sketch_leaves_open() -> None:
    """Frequencies say little of where in a heavy tail rows are."""
    rng = np.random.default_rng(1)
    amount = 1000 * np.exp(rng.normal(size=100_000))
    X = np.column_stack([amount, 1e-4 * amount + rng.normal(size=len(amount))])
    sketch = ckm.sketch(X, n_clusters=4, cells=0, pool=10_000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClustersWarning)
        found = ckm.decode(sketch, 4, random_state=0)
    labels = found.predict(X)
    for k, centroid in enumerate(found.centroids):
        assert np.abs(centroid[0] - amount[labels == k].mean()) < 0.02 * amount.std()
