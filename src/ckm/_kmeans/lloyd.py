"""Place K centroids on a measure so that its SSE is small: k-means on points drawn from it, without
touching the data.
"""

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ckm._kmeans.points import Cloud
from ckm._util.arrays import Array

_MOVED = 5  # centroids that one breath adds and removes, at first
# how far an added centroid is from the one it relieves, in standard deviations of a cluster
_NUDGE = 0.01
# the squared movement of all centroids that ends a run, relative to the points' variance
_CLOSE, _ROUGH = 1e-4, 1e-3
_SAMPLE = 2000  # points that show it


class Run(NamedTuple):
    """Where a run of k-means ended: centroids (K, n), each point's nearest, its squared distance,
    and the weighted sum of these.
    """

    C: Array
    labels: Array
    squares: Array
    error: float


_error = attrgetter("error")


def place(
    points: Array,
    weights: Array | None,
    K: int,
    rng: np.random.Generator,
    n_init: int = 6,
    start: Array | None = None,
    *,
    search: bool = True,
    device: Any = None,
) -> tuple[Array, Array, float]:
    """Centroids (K, n), the share of each (K,), and the mean squared distance to the nearest.

    The best of `n_init` runs of k-means++ and of one from `start`, where there is one. Unless
    `search` is False, the better of every two goes on: its centroids are moved from where they are
    hardly needed to where the error is large, as long as that helps. On a card, if `device` is one.
    """
    if len(points) <= K:
        return _one_each(points, weights, K)
    points, beta = (
        np.ascontiguousarray(points, np.float64),
        np.ones(len(points)) if weights is None else weights,
    )
    cloud = _cloud(points, beta, device)
    starts = [cloud.seeds(K, rng) for _ in range(n_init)] + ([] if start is None else [start])
    pairs = (starts[i : i + 2] for i in range(0, len(starts), 2))
    runs = (min((lloyd(cloud, C) for C in pair), key=_error) for pair in pairs)
    best = min((_breathe(cloud, run, rng) if search and K > 1 else run for run in runs), key=_error)
    total = beta.sum()
    return best.C, np.bincount(best.labels, beta, minlength=K) / total, best.error / total


def _cloud(points: Array, beta: Array, device: Any) -> Cloud:
    if device is None:
        return Cloud(points, beta)
    from ckm._kmeans.points_gpu import CardCloud

    return CardCloud(points, beta, device)


def lloyd(cloud: Cloud, C: Array, tolerance: float = _CLOSE, most: int = 300) -> Run:
    """Lloyd's algorithm: each centroid to the mean of the points nearest to it, until they hardly
    move.
    """
    enough = tolerance * cloud.points[:: 1 + len(cloud.points) // _SAMPLE].var(axis=0).mean()
    for _ in range(most):
        moved = _means(cloud, C)
        shift, C = ((moved - C) ** 2).sum(), moved
        if shift <= enough:
            break
    labels, squares = cloud.nearest(C)
    return Run(C, labels, squares, float(cloud.beta @ squares))


def _means(cloud: Cloud, C: Array) -> Array:
    """Of the points nearest to each centroid; one that is nearest to none moves to the point that
    is farthest from its own.
    """
    sums, mass = cloud.sums(C)
    empty = np.flatnonzero(mass == 0)
    means = sums / np.where(mass > 0, mass, 1.0)[:, None]
    if len(empty):
        labels, _ = cloud.nearest(C)
        apart = np.where(cloud.beta > 0, ((cloud.points - C[labels]) ** 2).sum(axis=1), 0.0)
        farthest = np.argsort(-apart, kind="stable")[: len(empty)]
        means[empty] = np.where(apart[farthest, None] > 0, cloud.points[farthest], C[empty])
    return np.asarray(means)


def _breathe(cloud: Cloud, best: Run, rng: np.random.Generator) -> Run:
    """Out of a local minimum of k-means by adding a few centroids and removing as many (breathing
    k-means: Fritzke, 2020).
    """
    (points, beta), K, run = (cloud.points, cloud.beta), len(best.C), best
    moved = min(_MOVED, K - 1, len(points) - K)
    while moved > 0:
        worst = np.argsort(
            -np.bincount(run.labels, beta * run.squares, minlength=K), kind="stable"
        )[:moved]
        nudge = _NUDGE * np.sqrt(best.error / beta.sum() / points.shape[1])
        added = run.C[worst] + nudge * rng.standard_normal((moved, points.shape[1]))
        C = lloyd(cloud, np.vstack([run.C, added]), _ROUGH, most=100).C
        run = lloyd(cloud, np.delete(C, _least_useful(cloud, C, moved), axis=0), _ROUGH, most=100)
        if run.error < best.error * (1 - 1e-4):
            best = run
        else:
            moved -= 1
    return lloyd(cloud, best.C, most=100)


def _least_useful(cloud: Cloud, C: Array, count: int) -> list[int]:
    """The centroids whose points lose least by going to the next nearest; of two neighbours only
    one, whose points the other takes.
    """
    nearest, first, second = cloud.two_nearest(C)
    order = np.argsort(
        np.bincount(nearest, cloud.beta * (second - first), minlength=len(C)), kind="stable"
    )
    gaps = ((C[:, None] - C) ** 2).sum(axis=2) + np.diag(np.full(len(C), np.inf))
    chosen: list[int] = []
    kept: set[int] = set()
    for k in order:
        if len(chosen) < count and int(k) not in kept:
            chosen.append(int(k))
            kept.add(int(np.argmin(gaps[k])))
    spare = [int(k) for k in order if int(k) not in chosen]
    return chosen + spare[: count - len(chosen)]


def _one_each(points: Array, weights: Array | None, K: int) -> tuple[Array, Array, float]:
    """A centroid on every point; those left over repeat the first and have no weight."""
    missing = K - len(points)
    shares = np.full(len(points), 1 / len(points)) if weights is None else weights / weights.sum()
    return (
        np.vstack([points, np.repeat(points[:1], missing, axis=0)]),
        np.concatenate([shares, np.zeros(missing)]),
        0.0,
    )
