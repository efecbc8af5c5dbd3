"""k-means on weighted points in memory: k-means++, Lloyd's algorithm, breathing k-means."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from ckm._kmeans.breathing import breathe, place
from ckm._kmeans.init import draw_in_proportion, kmeans_plus_plus
from ckm._kmeans.lloyd import lloyd, step_to_means
from ckm._kmeans.points import WeightedPoints


@pytest.mark.parametrize("n_trials", [1, 4])
@pytest.mark.parametrize("subtract", [False, True])
def test_seeds_are_distinct_points_that_have_weight(n_trials: int, subtract: bool) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 2))
    weights = rng.integers(0, 2, size=300).astype(float)
    points = WeightedPoints(values, weights, subtract=subtract)
    seeds = kmeans_plus_plus(points, 40, rng, n_trials)
    numbers = [int(np.flatnonzero((values == seed).all(axis=1))[0]) for seed in seeds]
    assert len(set(numbers)) == 40
    assert (weights[numbers] == 1).all()


def test_seeds_with_one_trial_agree_with_a_plain_loop() -> None:
    values = np.random.default_rng(0).normal(size=(200, 3))
    weights = np.random.default_rng(1).uniform(size=200)
    rng = np.random.default_rng(2)
    chosen = [rng.choice(200, p=weights / weights.sum())]
    for _ in range(9):
        squares = ((values[:, None] - values[chosen]) ** 2).sum(axis=2).min(axis=1)
        p = weights * squares
        chosen.append(rng.choice(200, p=p / p.sum()))
    seeds = kmeans_plus_plus(WeightedPoints(values, weights), 10, np.random.default_rng(2))
    assert np.array_equal(seeds, values[chosen])


def test_covered_points_need_no_more_random_numbers() -> None:
    values = np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0)
    rng = np.random.default_rng(0)
    points = WeightedPoints(values, np.ones(10), subtract=True)
    seeds = kmeans_plus_plus(points, 6, rng, stop_when_covered=True)
    assert len(np.unique(seeds, axis=0)) == 2
    assert np.array_equal(seeds[2:], np.repeat(seeds[:1], 4, axis=0))
    used = np.random.default_rng(0)
    used.random(2)
    assert rng.random() == used.random()


def test_draws_are_in_proportion() -> None:
    drawn = draw_in_proportion(np.array([0.0, 1.0, 0.0, 3.0]), np.array([0.0, 0.2, 0.25, 0.999]))
    assert drawn.tolist() == [1, 1, 3, 3]


def test_empty_clusters_move_or_stay() -> None:
    points = WeightedPoints(np.array([[0.0], [1.0], [9.0]]), np.ones(3))
    start = np.array([[0.5], [900.0]])
    moved = lloyd(points, start)
    assert moved.centroids.tolist() == [[0.5], [9.0]]
    stayed = lloyd(points, start, tolerance=None, max_iterations=3, empty="stay")
    assert stayed.centroids.tolist() == [[10 / 3], [900.0]]


def test_lloyd_leaves_no_centroid_without_points() -> None:
    rng = np.random.default_rng(0)
    points = np.repeat([[0.0], [10.0], [20.0]], 50, axis=0) + rng.normal(size=(150, 1))
    found = lloyd(WeightedPoints(points, np.ones(150)), np.array([[5.0], [15.0], [900.0]]))
    assert found.error == pytest.approx(KMeans(3, n_init=5, random_state=0).fit(points).inertia_)
    same = lloyd(WeightedPoints(np.ones((9, 2)), np.ones(9)), np.array([[1.0, 1.0], [2.0, 2.0]]))
    assert same.error == 0
    assert (same.labels == 0).all()


def test_momentum_leads_farther_in_as_many_steps() -> None:
    """Many centroids in one cloud creep."""
    rng = np.random.default_rng(0)
    points = WeightedPoints(rng.normal(size=(20_000, 2)), np.ones(20_000))
    start = points.values[:100]
    plain = lloyd(points, start, tolerance=None, max_iterations=30)
    faster = lloyd(points, start, tolerance=None, max_iterations=30, momentum=0.9)
    longer = lloyd(points, start, tolerance=None, max_iterations=60)
    assert faster.error < longer.error < plain.error


def test_long_steps_lead_farther_and_end_at_means() -> None:
    rng = np.random.default_rng(0)
    points = WeightedPoints(rng.uniform(size=(3000, 2)), np.ones(3000))
    start = points.values[:20]
    plain = step_to_means(points, start, 4, 1.0)
    same = lloyd(points, start, tolerance=None, max_iterations=4, empty="stay").centroids
    np.testing.assert_array_equal(plain, same)
    longer = step_to_means(points, start, 4, 1.8)
    assert points.nearest(longer)[1].sum() < points.nearest(plain)[1].sum()


def test_breathing_leaves_local_minima() -> None:
    """Two centroids in one blob and one for two blobs: Lloyd's algorithm stays there."""
    rng = np.random.default_rng(0)
    means = [[0.0, 0.0], [20.0, 0.0], [24.0, 0.0]]
    points = np.repeat(means, 200, axis=0) + rng.normal(size=(600, 2))
    for weights in (np.ones(600), rng.uniform(0.5, 2, size=600)):
        weighted = WeightedPoints(points, weights)
        trap = lloyd(weighted, np.array([[-1.0, 0.0], [1.0, 0.0], [22.0, 0.0]]))
        best = KMeans(3, n_init=10, random_state=0).fit(points, sample_weight=weights).inertia_
        assert trap.error > 1.5 * best
        assert breathe(weighted, trap, rng).error == pytest.approx(best, rel=1e-3)


def test_fewer_points_than_centroids() -> None:
    points = np.array([[0.0], [1.0]])
    C, shares, spread = place(points, np.array([1.0, 3.0]), 3, np.random.default_rng(0))
    assert C.tolist() == [[0.0], [1.0], [0.0]]
    assert shares.tolist() == [0.25, 0.75, 0.0]
    assert spread == 0


def test_the_two_nearest_centroids_and_ties() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(-3, 4, size=(200, 2)).astype(float)
    C = rng.integers(-3, 4, size=(30, 2)).astype(float)
    nearest, first, second = WeightedPoints(values, np.ones(200)).two_nearest(C)
    squares = ((values[:, None] - C) ** 2).sum(axis=2)
    np.testing.assert_array_equal(nearest, squares.argmin(axis=1))
    np.testing.assert_array_equal(np.stack([first, second], axis=1), np.sort(squares)[:, :2])


def test_steps_on_few_points_agree_with_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 3))
    weights = rng.uniform(size=300)
    start = values[:7]
    expected = start
    for _ in range(4):
        labels = ((values[:, None] - expected) ** 2).sum(axis=2).argmin(axis=1)
        members = [labels == k for k in range(7)]
        expected = np.array([np.average(values[m], axis=0, weights=weights[m]) for m in members])
    points = WeightedPoints(values, weights)
    found = lloyd(points, start, tolerance=None, max_iterations=4)
    np.testing.assert_allclose(found.centroids, expected, rtol=1e-12)
    squares = ((values[:, None] - found.centroids) ** 2).sum(axis=2)
    assert np.array_equal(found.labels, squares.argmin(axis=1))
    np.testing.assert_allclose(found.squares, squares.min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("empty", ["move", "stay"])
def test_few_and_many_points_end_at_the_same_place(
    monkeypatch: pytest.MonkeyPatch, empty: str
) -> None:
    """Also where a centroid has no points, at first or on the way."""
    rng = np.random.default_rng(0)
    values = np.vstack([rng.normal(size=(200, 2)), rng.normal(40, 1, size=(200, 2))])
    points = WeightedPoints(values, np.ones(400))
    start = np.vstack([rng.normal(0, 3, size=(4, 2)), [[1e3, 1e3], [20.0, 20.0], [21.0, 21.0]]])
    before = start.copy()
    few = lloyd(points, start, tolerance=1e-12, empty=empty)
    assert np.array_equal(start, before)
    monkeypatch.setattr("ckm._kmeans.points.MAX_DIRECT_PRODUCTS", 0)
    many = lloyd(points, start, tolerance=1e-12, empty=empty)
    np.testing.assert_allclose(few.centroids, many.centroids, rtol=1e-12)
    assert np.array_equal(few.labels, many.labels)
