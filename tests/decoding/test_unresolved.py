"""Coordinates of centroids in columns that hardly matter for distances."""

import warnings

import numpy as np
import pytest

import ckm
from ckm._decoding.problem import Problem
from ckm._decoding.sample import SampledRows
from ckm._decoding.unresolved import settle_unresolved
from ckm.errors import ClustersWarning


def table(N: int = 50_000, seed: int = 0) -> np.ndarray:
    """An amount that decides distances, and two small columns that depend on it, one of them not
    along a straight line.
    """
    rng = np.random.default_rng(seed)
    amount = rng.gamma(1.5, 1000, size=N)
    curved = np.cos(amount / 800) + 0.3 * rng.normal(size=N)
    return np.column_stack([amount, curved, 1e-4 * amount + 0.1 * rng.normal(size=N)])


def largest_error(X: np.ndarray, found: ckm.Solution) -> np.ndarray:
    """Distances of coordinates from the means of rows (n,), in standard deviations."""
    labels = found.predict(X)
    means = np.stack([X[labels == k].mean(axis=0) for k in range(len(found.centroids))])
    return np.asarray((np.abs(found.centroids - means) / X.std(axis=0)).max(axis=0))


def test_a_pool_tells_coordinates_that_the_frequencies_do_not() -> None:
    X = table()
    errors = []
    for pool in (0, 2000):
        s = ckm.sketch(X, n_clusters=4, cells=0, pool=pool, random_state=0)
        with pytest.warns(ClustersWarning, match="do not tell apart"):
            found = ckm.decode(s, 4, random_state=0)
        errors.append(largest_error(X, found))
        if pool:
            assert "pool" in found.message
    # The straight line misses what is curved.
    assert errors[0][1] > 0.4
    assert errors[1][1] < 0.15
    assert errors[1][2] < 0.15


def test_the_mean_of_centroids_is_that_of_all_rows() -> None:
    X = table()
    s = ckm.sketch(X, n_clusters=4, cells=0, pool=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClustersWarning)
        found = ckm.decode(s, 4, random_state=0)
    mean = found.weights @ found.centroids
    apart = (mean - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(apart[1:], 0, atol=1e-3)


def test_a_cluster_without_sampled_rows_gets_its_linear_estimate() -> None:
    X = table()
    s = ckm.sketch(X, n_clusters=4, cells=0, pool=2000, random_state=0)
    problem = Problem.of(s)
    rows = SampledRows.of(s)
    assert rows is not None
    C = np.array([[-0.5, 0.0, 0.0], [1.0, 0.0, 0.0], [400.0, 0.0, 0.0]])
    shares = np.array([0.6, 0.4, 0.0])
    alone = settle_unresolved(problem, C, shares, None)
    settled = settle_unresolved(problem, C, shares, rows)
    np.testing.assert_array_equal(settled[:, 0], C[:, 0])
    np.testing.assert_allclose(settled[2], alone[2])
    assert np.abs(settled[:2, 1] - alone[:2, 1]).min() > 0
