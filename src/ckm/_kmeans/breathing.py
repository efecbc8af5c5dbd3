"""Place K centroids on a measure so that its SSE is small: breathing k-means on points drawn from
it, without reading the data.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import numpy as np

from ckm._kmeans.init import default_trials, kmeans_plus_plus
from ckm._kmeans.lloyd import MAX_ITERATIONS, Clustering, lloyd
from ckm._kmeans.points import Points, points_on
from ckm._util.arrays import FloatArray

# Centroids that one breath adds and removes, at first: five (Fritzke, 2020), or one in so many.
# With K = 1000, five at a time left the SSE 2 % higher.
BREATH_CENTROIDS = 5
CENTROIDS_PER_BREATH = 10
# The part of them that the next breath leaves out, where one has not helped.
FEWER = 0.25
# Distance of an added centroid from the one beside it, in standard deviations of a cluster: small,
# so that both share the same points.
OFFSET = 0.01
# Tolerance of runs inside a breath, ten times that of `lloyd`: the last run makes up for it.
BREATH_TOLERANCE = 1e-3
BREATH_ITERATIONS = 100
# A breath is kept if it lowers the error by this share; less would be rounding.
MIN_GAIN = 1e-4

_error = attrgetter("error")


def place(
    points: FloatArray,
    weights: FloatArray | None,
    K: int,
    rng: np.random.Generator,
    n_init: int = 6,
    start: FloatArray | None = None,
    *,
    search: bool = True,
    device: Any = None,
    max_iterations: int = MAX_ITERATIONS,
) -> tuple[FloatArray, FloatArray, float]:
    """Centroids (K, n), the share of each (K,), and the mean squared distance to the nearest.

    The result is the best of `n_init` runs from k-means++ and one from `start`, if given. Unless
    `search` is False, the better run of every two is improved by `breathe`. `device` is the
    torch.device that computes, None for the CPU. A run of k-means has at most `max_iterations`.
    """
    if len(points) <= K:
        return _one_centroid_per_point(points, weights, K)
    beta = np.ones(len(points)) if weights is None else weights
    placed = points_on(device, np.ascontiguousarray(points, np.float64), beta)
    starts = [kmeans_plus_plus(placed, K, rng, default_trials(K)) for _ in range(n_init)]
    if start is not None:
        starts.append(start)
    runs = _improve(placed, starts, rng, max_iterations, search=search and K > 1)
    best = min(runs, key=_error)
    total = beta.sum()
    shares = np.bincount(best.labels, beta, minlength=K) / total
    return best.centroids, shares, best.error / total


def _improve(
    points: Points,
    starts: list[FloatArray],
    rng: np.random.Generator,
    max_iterations: int,
    *,
    search: bool,
) -> Iterator[Clustering]:
    """The better run of every two starts, improved by breathing if `search` is true."""
    for i in range(0, len(starts), 2):
        pair = starts[i : i + 2]
        run = min((lloyd(points, C, max_iterations=max_iterations) for C in pair), key=_error)
        yield breathe(points, run, rng, min(max_iterations, BREATH_ITERATIONS)) if search else run


def breathe(
    points: Points,
    best: Clustering,
    rng: np.random.Generator,
    max_iterations: int = BREATH_ITERATIONS,
) -> Clustering:
    """Leave a local minimum of k-means by adding a few centroids where the error is large and
    removing as many where they are least useful (breathing k-means: Fritzke, 2020).
    """
    K, n = best.centroids.shape
    run = best
    wanted = max(BREATH_CENTROIDS, K // CENTROIDS_PER_BREATH)
    count = min(wanted, K - 1, len(points) - K)
    while count > 0:
        errors = np.bincount(run.labels, points.weights * run.squares, minlength=K)
        worst = np.argsort(-errors, kind="stable")[:count]
        offset = OFFSET * np.sqrt(best.error / points.weights.sum() / n)
        added = run.centroids[worst] + offset * rng.standard_normal((count, n))
        more = _run_roughly(points, np.vstack([run.centroids, added]), max_iterations).centroids
        fewer = np.delete(more, least_useful(points, more, count), axis=0)
        run = _run_roughly(points, fewer, max_iterations)
        if run.error < best.error * (1 - MIN_GAIN):
            best = run
        else:
            count -= max(1, int(FEWER * count))
    return lloyd(points, best.centroids, max_iterations=max_iterations)


def _run_roughly(points: Points, C: FloatArray, max_iterations: int) -> Clustering:
    return lloyd(points, C, tolerance=BREATH_TOLERANCE, max_iterations=max_iterations)


def least_useful(points: Points, C: FloatArray, count: int) -> list[int]:
    """The centroids whose removal raises the error least; not two neighbours, of which one takes
    over the points of the other.
    """
    nearest, first, second = points.two_nearest(C)
    losses = np.bincount(nearest, points.weights * (second - first), minlength=len(C))
    order = [int(k) for k in np.argsort(losses, kind="stable")]
    chosen = list[int]()
    protected = set[int]()
    for k in order:
        if len(chosen) < count and k not in protected:
            chosen.append(k)
            gaps = ((C - C[k]) ** 2).sum(axis=1)
            gaps[k] = np.inf
            protected.add(int(np.argmin(gaps)))
    others = [k for k in order if k not in chosen]
    return chosen + others[: count - len(chosen)]


def _one_centroid_per_point(
    points: FloatArray, weights: FloatArray | None, K: int
) -> tuple[FloatArray, FloatArray, float]:
    """A centroid on every point; centroids left over repeat the first and have no weight."""
    beta = np.ones(len(points)) if weights is None else weights
    extra = K - len(points)
    centroids = np.vstack([points, np.repeat(points[:1], extra, axis=0)])
    return centroids, np.concatenate([beta / beta.sum(), np.zeros(extra)]), 0.0
