"""Place K centroids on a measure so that its SSE is small: k-means on points drawn from it, without touching the data."""

import numpy as np
from sklearn.cluster import KMeans

from ckm.readonly import Array

_MOVED = 5  # centroids that one breath adds and removes, at first
_NUDGE = 0.01  # how far an added centroid is from the one it relieves, in standard deviations of a cluster


def place(
    points: Array,
    weights: Array | None,
    K: int,
    rng: np.random.Generator,
    n_init: int = 4,
    start: Array | None = None,
    *,
    search: bool = True,
) -> tuple[Array, Array, float]:
    """Centroids (K, n), the share of each (K,), and the mean squared distance to the nearest.

    The best of `n_init` runs of k-means++ and of one from `start`, where there is one; then, unless `search` is False, centroids are moved
    from where they are hardly needed to where the error is large, as long as that helps.
    """
    if len(points) <= K:
        return _one_each(points, weights, K)
    seed = int(rng.integers(2**31))
    runs = [KMeans(K, n_init=n_init, random_state=seed).fit(points, sample_weight=weights)]
    if start is not None:
        runs.append(KMeans(K, init=start, n_init=1).fit(points, sample_weight=weights))
    best = min(runs, key=lambda run: run.inertia_)
    if search and K > 1:
        best = _breathe(points, weights, best, rng)
    total = len(points) if weights is None else weights.sum()
    shares = np.bincount(best.labels_, weights=weights, minlength=K) / total
    return best.cluster_centers_, shares, float(best.inertia_ / total)


def _breathe(points: Array, weights: Array | None, best: KMeans, rng: np.random.Generator) -> KMeans:
    """Out of a local minimum of k-means by adding a few centroids and removing as many (breathing k-means: Fritzke, 2020)."""
    K, beta = best.n_clusters, np.ones(len(points)) if weights is None else weights
    C, moved = best.cluster_centers_, min(_MOVED, K - 1, len(points) - K)
    while moved > 0:
        nearest, first, _ = _two_nearest(points, C)
        worst = np.argsort(-np.bincount(nearest, beta * first, minlength=K), kind="stable")[:moved]
        nudge = _NUDGE * np.sqrt(best.inertia_ / beta.sum() / points.shape[1])
        C = _lloyd(points, weights, np.vstack([C, C[worst] + nudge * rng.standard_normal((moved, points.shape[1]))])).cluster_centers_
        run = _lloyd(points, weights, np.delete(C, _least_useful(points, beta, C, moved), axis=0))
        C = run.cluster_centers_
        if run.inertia_ < best.inertia_ * (1 - 1e-4):
            best = run
        else:
            moved -= 1
    return _lloyd(points, weights, best.cluster_centers_, tolerance=1e-4)


def _lloyd(points: Array, weights: Array | None, C: Array, tolerance: float = 1e-3) -> KMeans:
    return KMeans(len(C), init=C, n_init=1, tol=tolerance, max_iter=100).fit(points, sample_weight=weights)


def _least_useful(points: Array, beta: Array, C: Array, count: int) -> list[int]:
    """The centroids whose points lose least by going to the next nearest; of two neighbours only one, whose points the other takes."""
    nearest, first, second = _two_nearest(points, C)
    order = np.argsort(np.bincount(nearest, beta * (second - first), minlength=len(C)), kind="stable")
    gaps = ((C[:, None] - C) ** 2).sum(axis=2) + np.diag(np.full(len(C), np.inf))
    chosen: list[int] = []
    kept: set[int] = set()
    for k in order:
        if len(chosen) < count and int(k) not in kept:
            chosen.append(int(k))
            kept.add(int(np.argmin(gaps[k])))
    spare = [int(k) for k in order if int(k) not in chosen]
    return chosen + spare[: count - len(chosen)]


def _two_nearest(points: Array, C: Array, rows: int = 8192) -> tuple[Array, Array, Array]:
    """Each point's nearest centroid, and its squared distances to that one and to the next."""
    nearest, first, second = np.empty(len(points), int), np.empty(len(points)), np.empty(len(points))
    for at in range(0, len(points), rows):
        piece, here = points[at : at + rows], slice(at, at + rows)
        squares = ((piece**2).sum(axis=1)[:, None] - 2 * piece @ C.T) + (C**2).sum(axis=1)
        each = np.arange(len(piece))
        nearest[here] = np.argmin(squares, axis=1)
        first[here] = squares[each, nearest[here]]
        squares[each, nearest[here]] = np.inf
        second[here] = squares.min(axis=1)
    return nearest, np.maximum(first, 0), np.maximum(second, 0)


def _one_each(points: Array, weights: Array | None, K: int) -> tuple[Array, Array, float]:
    """A centroid on every point; those left over repeat the first and have no weight."""
    missing = K - len(points)
    shares = np.full(len(points), 1 / len(points)) if weights is None else weights / weights.sum()
    return np.vstack([points, np.repeat(points[:1], missing, axis=0)]), np.concatenate([shares, np.zeros(missing)]), 0.0
