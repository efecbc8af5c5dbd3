"""Place K centroids on a measure so that its SSE is small: k-means on points drawn from it, without touching the data."""

from operator import attrgetter
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ckm.nearest import Targets, find_nearest
from ckm.readonly import Array

_MOVED = 5  # centroids that one breath adds and removes, at first
_NUDGE = 0.01  # how far an added centroid is from the one it relieves, in standard deviations of a cluster
_CLOSE, _ROUGH = 1e-4, 1e-3  # the squared movement of all centroids that ends a run, relative to the points' variance
_SAMPLE = 2000  # points that show it


class Run(NamedTuple):
    """Where a run of k-means ended: centroids (K, n), each point's nearest, its squared distance, and the weighted sum of these."""

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
) -> tuple[Array, Array, float]:
    """Centroids (K, n), the share of each (K,), and the mean squared distance to the nearest.

    The best of `n_init` runs of k-means++ and of one from `start`, where there is one. Unless `search` is False, the better of every two
    goes on: its centroids are moved from where they are hardly needed to where the error is large, as long as that helps.
    """
    if len(points) <= K:
        return _one_each(points, weights, K)
    points, beta = np.ascontiguousarray(points, np.float64), np.ones(len(points)) if weights is None else weights
    starts = [_seeds(points, beta, K, rng) for _ in range(n_init)] + ([] if start is None else [start])
    pairs = (starts[i : i + 2] for i in range(0, len(starts), 2))
    runs = (min((lloyd(points, beta, C) for C in pair), key=_error) for pair in pairs)
    best = min((_breathe(points, beta, run, rng) if search and K > 1 else run for run in runs), key=_error)
    total = beta.sum()
    return best.C, np.bincount(best.labels, beta, minlength=K) / total, best.error / total


def lloyd(points: Array, beta: Array, C: Array, tolerance: float = _CLOSE, most: int = 300) -> Run:
    """Lloyd's algorithm: each centroid to the mean of the points nearest to it, until they hardly move."""
    enough = tolerance * points[:: 1 + len(points) // _SAMPLE].var(axis=0).mean()
    for _ in range(most):
        moved = _means(points, beta, C)
        shift, C = ((moved - C) ** 2).sum(), moved
        if shift <= enough:
            break
    labels, squares = _nearest(points, C)
    return Run(C, labels, squares, float(beta @ squares))


def _nearest(points: Array, C: Array) -> tuple[Array, Array]:
    labels, squares = np.empty(len(points), np.int32), np.empty(len(points))
    find_nearest(points, Targets(C), labels, squares)
    return labels, squares


def _means(points: Array, beta: Array, C: Array) -> Array:
    """Of the points nearest to each centroid; one that is nearest to none moves to the point that is farthest from its own."""
    labels = np.empty(len(points), np.int32)
    find_nearest(points, Targets(C), labels)
    members = csr_array((beta, labels, np.arange(len(points) + 1)), shape=(len(points), len(C)))
    mass, sums = np.bincount(labels, beta, minlength=len(C)), members.T @ points
    empty = np.flatnonzero(mass == 0)
    means = sums / np.where(mass > 0, mass, 1.0)[:, None]
    if len(empty):
        apart = np.where(beta > 0, ((points - C[labels]) ** 2).sum(axis=1), 0.0)
        farthest = np.argsort(-apart, kind="stable")[: len(empty)]
        means[empty] = np.where(apart[farthest, None] > 0, points[farthest], C[empty])
    return np.asarray(means)


def _seeds(points: Array, beta: Array, K: int, rng: np.random.Generator) -> Array:
    """k-means++ (Arthur and Vassilvitskii, 2007): points drawn in proportion to their squared distance to the nearest so far; each time
    the best of a few.
    """
    norms, trials = (points**2).sum(axis=1), 2 + int(np.log(K))
    left, chosen = np.ones(len(points)), list[int]()
    for k in range(K):
        ends = np.cumsum(beta * left)
        drawn = np.minimum(np.searchsorted(ends, rng.random(trials if k else 1) * ends[-1], side="right"), len(points) - 1)
        squares = np.maximum(norms[drawn, None] - 2 * points[drawn] @ points.T + norms, 0)
        after = np.minimum(left, squares) if k else squares
        best = int(np.argmin(after @ beta))
        left = after[best]
        chosen.append(int(drawn[best]))
    return points[chosen]


def _breathe(points: Array, beta: Array, best: Run, rng: np.random.Generator) -> Run:
    """Out of a local minimum of k-means by adding a few centroids and removing as many (breathing k-means: Fritzke, 2020)."""
    K, run = len(best.C), best
    moved = min(_MOVED, K - 1, len(points) - K)
    while moved > 0:
        worst = np.argsort(-np.bincount(run.labels, beta * run.squares, minlength=K), kind="stable")[:moved]
        nudge = _NUDGE * np.sqrt(best.error / beta.sum() / points.shape[1])
        added = run.C[worst] + nudge * rng.standard_normal((moved, points.shape[1]))
        C = lloyd(points, beta, np.vstack([run.C, added]), _ROUGH, most=100).C
        run = lloyd(points, beta, np.delete(C, _least_useful(points, beta, C, moved), axis=0), _ROUGH, most=100)
        if run.error < best.error * (1 - 1e-4):
            best = run
        else:
            moved -= 1
    return lloyd(points, beta, best.C, most=100)


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
