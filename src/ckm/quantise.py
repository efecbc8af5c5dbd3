"""Place K centroids on a measure so that its SSE is small: k-means on points drawn from it, without touching the data."""

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ckm.readonly import Array


def place(
    points: Array, weights: Array | None, K: int, rng: np.random.Generator, n_init: int = 5, start: Array | None = None
) -> tuple[Array, Array, float]:
    """Centroids (K, n), the share of each (K,), and the mean squared distance to the nearest.

    The best of `n_init` runs of k-means++, and of one from `start` where there is one.
    """
    if len(points) <= K:
        return _one_each(points, weights, K)
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than K: the shares of zero say so
        runs = [KMeans(K, n_init=n_init, random_state=seed).fit(points, sample_weight=weights)]
        if start is not None:
            runs.insert(0, KMeans(K, init=start, n_init=1).fit(points, sample_weight=weights))
    # A start is trusted unless another run is clearly better: points drawn at random make small differences.
    best = runs[0] if runs[0].inertia_ <= runs[-1].inertia_ * (1 + 1e-3) else runs[-1]
    total = len(points) if weights is None else weights.sum()
    shares = np.bincount(best.labels_, weights=weights, minlength=K) / total
    return best.cluster_centers_, shares, float(best.inertia_ / total)


def _one_each(points: Array, weights: Array | None, K: int) -> tuple[Array, Array, float]:
    """A centroid on every point; those left over repeat the first and have no weight."""
    missing = K - len(points)
    shares = np.full(len(points), 1 / len(points)) if weights is None else weights / weights.sum()
    return np.vstack([points, np.repeat(points[:1], missing, axis=0)]), np.concatenate([shares, np.zeros(missing)]), 0.0
