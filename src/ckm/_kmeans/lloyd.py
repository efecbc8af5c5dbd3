"""Lloyd's algorithm on weighted points in memory. (`polish` runs it on data of any size.)"""

from typing import Literal, NamedTuple

import numpy as np

from ckm._kmeans.points import Points
from ckm._util.arrays import FloatArray, LabelArray

# Squared movement of all centroids, relative to the mean variance of the points, that ends a run:
# what scikit-learn's KMeans stops at.
TOLERANCE = 1e-4
# Iterations of a run at most, as in scikit-learn.
MAX_ITERATIONS = 300
# Steps without momentum that end a run with it.
LAST_STEPS = 3
EmptyClusters = Literal["move", "stay"]


class Clustering(NamedTuple):
    """Where a run of k-means ended.

    Parameters
    ----------
    centroids : array (K, n)
    labels : int32 array (N,)
        The nearest centroid of each point.
    squares : array (N,)
        Its squared distance.
    error : float
        The weighted sum of these.
    """

    centroids: FloatArray
    labels: LabelArray
    squares: FloatArray
    error: float


def lloyd(
    points: Points,
    C: FloatArray,
    *,
    tolerance: float | None = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    empty: EmptyClusters = "move",
    momentum: float = 0.0,
) -> Clustering:
    """Move each centroid to the mean of the points nearest to it, until they hardly move.

    With `tolerance` None, exactly `max_iterations` times. A centroid that is nearest to no point
    moves to the point farthest from its own centroid, or stays where it is.

    Hundreds of centroids that share borders creep for hundreds of steps in the same direction. With
    `momentum`, at most that share of the last step is made again before each step (Nesterov, 1983),
    but for the last few.
    """
    converged_below = -np.inf if tolerance is None else tolerance * points.mean_variance
    if momentum:
        C = _accelerated(points, C, converged_below, max_iterations, empty, momentum)
    else:
        C = _plain(points, C, converged_below, max_iterations, empty)
    labels, squares = points.nearest(C)
    return Clustering(C, labels, squares, float(points.weights @ squares))


def _plain(
    points: Points, C: FloatArray, converged_below: float, steps: int, empty: EmptyClusters
) -> FloatArray:
    while steps:
        C, steps = points.take_steps(C, steps, converged_below)
        if steps:
            moved = _means(points, C, empty)
            steps = steps - 1 if ((moved - C) ** 2).sum() > converged_below else 0
            C = moved
    return C


def _accelerated(
    points: Points,
    C: FloatArray,
    converged_below: float,
    steps: int,
    empty: EmptyClusters,
    momentum: float,
) -> FloatArray:
    ahead = C
    for step in range(steps):
        moved = _means(points, ahead, empty)
        movement = ((moved - C) ** 2).sum()
        share = min(momentum, step / (step + 3)) if step + LAST_STEPS < steps else 0.0
        ahead = moved + share * (moved - C)
        C = moved
        if movement <= converged_below:
            break
    return C


def step_to_means(points: Points, C: FloatArray, steps: int, overstep: float) -> FloatArray:
    """Centroids after so many steps of Lloyd's algorithm, without labels. All but the last go
    `overstep` times as far as the means, since k-means moves centroids that share borders too
    little. Those that are nearest to no point stay where they are.
    """
    for _ in range(steps - 1):
        C = C + overstep * (_means(points, C, "stay") - C)
    return _means(points, C, "stay")


def _means(points: Points, C: FloatArray, empty: EmptyClusters) -> FloatArray:
    """The means of the points nearest to each centroid."""
    sums, mass = points.sums(C)
    has_points = mass > 0
    means = sums / np.where(has_points, mass, 1.0)[:, None]
    if has_points.all():
        return np.asarray(means)
    if empty == "stay":
        return np.where(has_points[:, None], means, C)
    without = np.flatnonzero(mass == 0)
    labels, _ = points.nearest(C)
    squares = ((points.values - C[labels]) ** 2).sum(axis=1)
    squares = np.where(points.weights > 0, squares, 0.0)
    farthest = np.argsort(-squares, kind="stable")[: len(without)]
    is_apart = squares[farthest, None] > 0
    means[without] = np.where(is_apart, points.values[farthest], C[without])
    return np.asarray(means)
