"""Algorithm 1: its steps, and the starts Range, Sample and K++."""

from dataclasses import replace

import numpy as np
import pytest
from decoding_cases import matched_error, problems, random_mixture
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

import ckm
from ckm._decoding.clompr import keep_heaviest, maximise_correlation
from ckm._decoding.mixture import descend_diracs
from ckm._decoding.objective import atoms, correlation
from ckm._decoding.problem import Problem
from ckm._decoding.sample import SampledRows
from ckm._decoding.starts import make_start, plusplus_start, range_start, sample_start
from ckm.errors import ParameterError


@given(problem=problems, seed=st.integers(0, 1000))
def test_searches_climb_and_stay_in_the_box(problem: Problem, seed: int) -> None:
    start = np.random.default_rng(seed).uniform(problem.lower, problem.upper)
    c = maximise_correlation(problem, problem.z, start)
    assert (
        correlation(problem.omega, problem.z, c)[0]
        >= correlation(problem.omega, problem.z, start)[0] - 1e-12
    )
    C, alpha = random_mixture(problem, 3)
    better_C, better_alpha = descend_diracs(problem, C, alpha)
    assert problem.objective.cost(better_C, better_alpha)[0] <= problem.objective.cost(C, alpha)[
        0
    ] * (1 + 1e-12)
    assert (better_alpha >= 0).all()
    for point in (c, *better_C):
        assert (problem.lower <= point).all()
        assert (point <= problem.upper).all()


@given(problem=problems, K=st.integers(1, 3))
def test_weights_stay_positive_where_negative_ones_would_fit_better(
    problem: Problem, K: int
) -> None:
    C, alpha = random_mixture(problem, K)
    negative = replace(problem, z=-(alpha @ atoms(problem.omega, C)))
    assert (descend_diracs(negative, C, alpha)[1] >= 0).all()
    assert (negative.objective.fit_weights(C) >= 0).all()


@given(weights=st.lists(st.floats(0, 1), min_size=1, max_size=8), K=st.integers(1, 8))
def test_hard_thresholding_keeps_the_heaviest_in_their_order(weights: list[float], K: int) -> None:
    C = np.arange(len(weights), dtype=float)[:, None]
    kept = keep_heaviest(C, np.array(weights), K)[:, 0].astype(int)
    assert len(kept) == min(K, len(weights))
    assert (np.diff(kept) > 0).all()
    dropped = set(range(len(weights))) - set(kept)
    assert all(weights[k] >= weights[d] for k in kept for d in dropped)


def test_range_starts_fill_the_box() -> None:
    rng = np.random.default_rng(0)
    lower = np.array([-1.0, 5.0])
    upper = np.array([2.0, 5.5])
    starts = np.array([range_start(lower, upper)(rng, np.empty((0, 2))) for _ in range(2000)])
    for d in range(2):
        assert (
            stats.kstest(starts[:, d], stats.uniform(lower[d], upper[d] - lower[d]).cdf).pvalue
            > 1e-4
        )


def test_sample_starts_are_rows_drawn_by_weight() -> None:
    rng = np.random.default_rng(0)
    rows = np.arange(4.0)[:, None]
    weights = np.array([1.0, 0.0, 2.0, 5.0])
    drawn = [float(sample_start(rows, weights)(rng, np.empty((0, 1)))[0]) for _ in range(2000)]
    counts = np.array([drawn.count(float(i)) for i in range(4)])
    assert counts[1] == 0
    assert counts.sum() == 2000
    assert stats.chisquare(counts[[0, 2, 3]], 2000 * weights[[0, 2, 3]] / 8).pvalue > 1e-4


def test_plusplus_starts_in_proportion_to_weight_and_squared_distance() -> None:
    rng = np.random.default_rng(0)
    rows = np.array([[0.0], [1.0], [2.0], [9.0], [10.0]])
    weights = np.array([7.0, 1.0, 2.0, 3.0, 7.0])
    start = plusplus_start(rows, weights)
    C = np.array([[0.0], [10.0]])
    drawn = [float(start(rng, C)[0]) for _ in range(2000)]
    assert drawn.count(0.0) == drawn.count(10.0) == 0, "never where a centroid is"
    p = np.array([1 * 1, 2 * 4, 3 * 1]) / 12
    assert stats.chisquare([drawn.count(x) for x in (1.0, 2.0, 9.0)], 2000 * p).pvalue > 1e-4


@given(taken=st.sets(st.integers(0, 5), min_size=1, max_size=6), seed=st.integers(0, 100))
def test_plusplus_never_starts_at_a_centroid_while_others_are_farther(
    taken: set[int], seed: int
) -> None:
    rows = np.arange(6.0)[:, None]
    start = plusplus_start(rows, np.ones(6))(np.random.default_rng(seed), rows[list(taken)])
    assert float(start[0]) not in taken or len(taken) == 6


def test_the_first_plusplus_start_is_a_sample() -> None:
    rows = np.arange(6.0)[:, None]
    weights = np.arange(6.0)
    none = np.empty((0, 1))
    for seed in range(20):
        a, b = (
            make(rows, weights)(np.random.default_rng(seed), none)
            for make in (plusplus_start, sample_start)
        )
        assert np.array_equal(a, b)


def test_auto_starts_at_rows_if_there_are_some() -> None:
    lower = np.zeros(1)
    upper = np.ones(1)
    rows = SampledRows(np.array([[0.5]]), np.ones(1), np.zeros(1), 1.0)
    rng = np.random.default_rng(0)
    none = np.empty((0, 1))
    assert make_start("auto", lower, upper, rows)(rng, none) == 0.5
    assert make_start("auto", lower, upper, None)(rng, none) != 0.5
    assert make_start("range", lower, upper, rows)(rng, none) != 0.5


@pytest.mark.parametrize("init", ["range", "sample", "k++"])
def test_every_init_finds_well_separated_clusters(
    clusters: np.ndarray, sketch: ckm.Sketch, init: str
) -> None:
    means = KMeans(3, n_init=5, random_state=0).fit(clusters).cluster_centers_
    found = ckm.decode(sketch, 3, init=init, n_init=5, random_state=0)
    # Diracs for clusters of width one: even at the minimum of the cost, centroids are off by a few
    # tenths of a standard deviation.
    assert matched_error(means, found.centroids) < 0.5
    np.testing.assert_allclose(np.sort(found.weights), 1 / 3, atol=0.1)


@pytest.mark.parametrize("init", ["sample", "k++"])
def test_rows_may_be_passed_instead_of_a_pool(clusters: np.ndarray, init: str) -> None:
    pooled = ckm.sketch(clusters[:300], sketch_size=60, pool=300, random_state=0, cells=0)
    bare = pooled.without_pool()
    from_pool = ckm.decode(pooled, 3, decoder="clompr", init=init, random_state=1)
    from_rows = ckm.decode(
        bare, 3, decoder="clompr", init=init, random_state=1, rows=clusters[:300][::-1]
    )
    assert from_rows.centroids.tobytes() == from_pool.centroids.tobytes()
    with pytest.raises(
        ParameterError,
        match=rf"init='{init.replace('+', '[+]')}' starts from rows.*pool=1000.*init='range'",
    ):
        ckm.decode(bare, 3, init=init, random_state=1)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("K", "widths"), [(3, [0.05, 0.05, 0.05]), (10, np.geomspace(0.01, 1, 10))]
)
def test_range_starts_find_clusters_that_are_tight_or_of_very_different_widths(
    K: int, widths: list[float]
) -> None:
    rng = np.random.default_rng(K)
    means = 2 * rng.normal(size=(K, 10))
    labels = rng.integers(0, K, size=5000)
    X = means[labels] + np.array(widths)[labels, None] * rng.normal(size=(5000, 10))
    sketch = ckm.sketch(X, sketch_size=1000, distribution="adapted-radius", cells=0, random_state=0)
    found = ckm.decode(sketch, K, decoder="clompr", init="range", random_state=0)
    true = ((X - means[labels]) ** 2).sum()
    assert -found.score(X) < 1.1 * true


def test_distinct_rows_are_found_exactly_though_more_clusters_were_asked_for() -> None:
    corners = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    s = ckm.sketch(
        np.repeat(corners, 20, axis=0), sketch_size=60, pool=30, scale=1.0, random_state=0, cells=0
    )
    found = ckm.decode(s, 5, decoder="clompr", init="k++", n_init=3, random_state=0)
    assert found.cost < 1e-8
    heavy = found.centroids[found.weights > 1e-3]
    nearest = cdist(heavy, corners).argmin(axis=1)
    assert cdist(heavy, corners).min(axis=1).max() < 1e-3
    np.testing.assert_allclose(
        np.bincount(nearest, found.weights[found.weights > 1e-3], minlength=3), 1 / 3, atol=1e-3
    )
