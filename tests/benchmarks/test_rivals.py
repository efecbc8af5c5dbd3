"""The one-pass summaries that sketches are compared with are what their papers say."""

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.baselines import sse
from benchmarks.clustering_features import bico_features
from benchmarks.coreset_tree import reduce_to_representatives
from benchmarks.mix import feature_bytes, mix_sizes, sketch_bytes
from benchmarks.rivals import (
    Summary,
    bico,
    cells_alone,
    lightweight_coreset,
    place_on,
    sensitivity_coreset,
    stream_kmeans,
    tree_of_means,
    uniform_sample,
)

K = 4
BUDGET = 6000

RIVALS: dict[str, Callable[[np.ndarray, int], Summary]] = {
    "uniform": lambda X, seed: uniform_sample(X, BUDGET, np.random.default_rng(seed)),
    "lightweight": lambda X, seed: lightweight_coreset(X, BUDGET, np.random.default_rng(seed)),
    "sensitivity": lambda X, seed: sensitivity_coreset(X, K, BUDGET, np.random.default_rng(seed)),
    "streamkm++": lambda X, seed: stream_kmeans(X, BUDGET, np.random.default_rng(seed)),
    "means-tree": lambda X, seed: tree_of_means(X, BUDGET, np.random.default_rng(seed)),
    "bico": lambda X, seed: bico(X, BUDGET),
    "cells": lambda X, seed: cells_alone(X, BUDGET, seed),
}


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0, 0], [8, 0, 0], [0, 8, 0], [0, 0, 8]])
    return centres[rng.integers(K, size=6000)] + rng.standard_normal((6000, 3))


def cost(summary: Summary, C: np.ndarray) -> float:
    squares = ((summary.points[:, None] - C) ** 2).sum(axis=2).min(axis=1)
    return float(summary.weights @ squares)


@pytest.mark.slow
@pytest.mark.parametrize("name", RIVALS)
def test_weights_stand_for_all_rows(X: np.ndarray, name: str) -> None:
    totals = [RIVALS[name](X, seed).weights.sum() for seed in range(20)]
    drawn = name in ("lightweight", "sensitivity")
    np.testing.assert_allclose(
        np.mean(totals) if drawn else totals, len(X), rtol=0.02 * drawn + 1e-9
    )


@pytest.mark.parametrize("name", RIVALS)
def test_a_summary_keeps_its_budget(X: np.ndarray, name: str) -> None:
    each = {"uniform": 12, "bico": feature_bytes(3), "cells": feature_bytes(3)}.get(name, 16)
    found = RIVALS[name](X, 0)
    assert 0.2 * BUDGET < each * len(found.points) <= BUDGET


@pytest.mark.parametrize("name", ["uniform", "lightweight", "sensitivity"])
def test_the_cost_of_any_centroids_is_unbiased(X: np.ndarray, name: str) -> None:
    C = np.array([[0.0, 0, 0], [5, 5, 5]])
    costs = [cost(RIVALS[name](X, seed), C) for seed in range(200)]
    error = np.std(costs) / np.sqrt(len(costs))
    assert abs(np.mean(costs) - sse(X, C)) < 4 * error


@pytest.mark.parametrize("name", ["bico", "cells"])
def test_features_hold_the_first_two_moments_of_all_rows(X: np.ndarray, name: str) -> None:
    found = RIVALS[name](X, 0)
    np.testing.assert_allclose(found.weights @ found.points, X.sum(axis=0), rtol=1e-6)
    squares = found.weights @ ((found.points**2).sum(axis=1) + 3 * found.variances)
    np.testing.assert_allclose(squares, (X**2).sum(), rtol=1e-6)


def test_a_tree_of_means_keeps_the_mean(X: np.ndarray) -> None:
    found = RIVALS["means-tree"](X, 0)
    np.testing.assert_allclose(found.weights @ found.points, X.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("name", RIVALS)
def test_four_clusters_are_found(X: np.ndarray, name: str) -> None:
    best = sse(X, np.array([[0, 0, 0], [8, 0, 0], [0, 8, 0], [0, 0, 8]]))
    assert sse(X, place_on(RIVALS[name](X, 0), K, 0)) < 1.06 * best


def test_representatives_stand_for_the_points_that_chose_them() -> None:
    """With as many representatives as distinct points, each point is one, with its own weight."""
    points = np.repeat(np.arange(5.0), [1, 2, 3, 4, 5])[:, None]
    chosen, masses = reduce_to_representatives(
        points, np.full(15, 2.0), 9, np.random.default_rng(0)
    )
    found = dict(zip(points[chosen, 0], masses, strict=True))
    assert found == {0: 2, 1: 4, 2: 6, 3: 8, 4: 10}


def test_representatives_are_drawn_by_squared_distance() -> None:
    """The second of two is one of the points away from the first, in proportion to 1 and 9."""
    points = np.array([[0.0], [1.0], [3.0]])
    weights = np.array([1e6, 1, 1])
    second = [
        reduce_to_representatives(points, weights, 2, np.random.default_rng(seed))[0][1]
        for seed in range(400)
    ]
    assert abs(np.mean(np.array(second) == 2) - 0.9) < 0.06


def test_bico_keeps_rows_that_fit() -> None:
    rows = np.array([[0.0, 0], [5, 0], [0, 7], [5, 0]])
    counts, means, squares = bico_features(rows, 3)
    assert sorted(map(tuple, np.column_stack([means, counts]))) == [(0, 0, 1), (0, 7, 1), (5, 0, 2)]
    assert not squares.any()


def test_bico_joins_the_nearest_rows_first() -> None:
    rows = np.array([[0.0], [100], [1], [200], [101]])
    counts, means, _ = bico_features(rows, 3)
    assert sorted(zip(means[:, 0], counts, strict=True)) == [(0.5, 2), (100.5, 2), (200, 1)]


@pytest.mark.parametrize("n", [2, 10, 64])
@pytest.mark.parametrize("times", [80, 160, 320, 640])
def test_the_mix_fits_in_its_budget(n: int, times: int) -> None:
    budget = times * 10 * n
    m, cells = mix_sizes(budget, 10, n)
    assert budget - feature_bytes(n) < sketch_bytes(m, cells, n) <= budget
    assert m == (16 if times == 80 else times // 160 * 10 * n)
