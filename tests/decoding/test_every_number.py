"""Centroids for every number of clusters, placed on one measure."""

import numpy as np
import pytest
from decoding_cases import problem_of_rows
from sklearn.cluster import KMeans

from ckm._decoding.every_number import place_every_number
from ckm._decoding.gaussians import GaussianMeasure
from ckm._decoding.recovered import Branch, Recovered

K_MAX = 8


def _measure() -> tuple[np.ndarray, np.ndarray]:
    """Three clusters of many points, and three points of small weight that have most variance."""
    rng = np.random.default_rng(0)
    bulk = 6 * rng.integers(3, size=(16_000, 1)) + rng.standard_normal((16_000, 2))
    far = np.array([[0, 3000.0], [2000.0, 0], [-1000.0, -1000.0]])
    return np.vstack([bulk, far]), np.append(np.ones(len(bulk)), np.full(3, 0.5))


def test_few_points_of_much_variance_get_centroids_as_all_points_say() -> None:
    points, weights = _measure()
    gaussians = GaussianMeasure.of(weights, points, np.zeros(len(points)))
    recovered = Recovered(
        Branch.ENSEMBLE, K_MAX, (points, weights), (points, weights), gaussians, cost=0.0
    )
    problem = problem_of_rows(points, 50, weights)
    placed = place_every_number(problem, recovered, K_MAX, np.random.default_rng(0))
    for K, (C, shares, mean_square) in enumerate(placed, 1):
        best = KMeans(K, n_init=10, random_state=0).fit(points, sample_weight=weights).inertia_
        assert mean_square == pytest.approx(best / weights.sum(), rel=0.02)
        assert C.shape == (K, 2)
        assert shares.sum() == pytest.approx(1)
