"""Centroids for every number of clusters at once, on one recovered measure.

Placing K centroids from scratch for each K costs as much as K decodings. The centroids of K
clusters are nearly those of K - 1 and K + 1: each number starts from the one before with a centroid
more, and is compared at the end with the one after with a centroid less. Few points show where
centroids belong, more refine them, others measure the SSE.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

import numpy as np

from ckm._decoding.cell_shapes import CellShapes
from ckm._decoding.cells import CellMeasure
from ckm._decoding.placing import Placement
from ckm._decoding.problem import Problem
from ckm._decoding.recovered import Branch, Recovered, Weighted
from ckm._kmeans.breathing import breathe, least_useful
from ckm._kmeans.lloyd import Clustering, lloyd, step_to_means
from ckm._kmeans.points import Points, WeightedPoints
from ckm._util.arrays import FloatArray

# Points that show where centroids belong, unless cells do. Half as many left centroids up to 8 %
# above k-means (MNIST's spectral features, K = 20), where these leave 2 %.
_FEW_POINTS = 2400
# Of these, points that a new centroid is tried at.
_CANDIDATES = 300
# Others that are tried, because they have most of the variance.
_FAR_CANDIDATES = 100
# Steps of Lloyd's algorithm at most that refine the centroids of each number on all points.
_REFINING_STEPS = 10
# Points drawn from cells, at most one for each row, and steps, that do so; others show what rows
# gain across cells. With steps twice as long, three do as much as six.
_REFINING_CELL_POINTS = 6000
_REFINING_CELL_STEPS = 3
_OVERSTEP = 2.0
_MEASURING_CELL_POINTS = 4000

# One number in so many is searched for a better minimum; the others start from those. To search all
# of them takes twice the time, for an SSE that is 0.01 % lower on average over nine sets.
_SEARCHED_NUMBERS = 5

# Centroids that are left out in turn of those of the number after it. On all points, too, since a
# few may mislead: MNIST's spectral features were up to 10 % above k-means without (now 3 %).
_LEFT_OUT = 3

# What measures centroids.
Measuring = Callable[[FloatArray], Placement]

_error = attrgetter("error")


def place_every_number(
    problem: Problem, recovered: Recovered, K_max: int, rng: np.random.Generator
) -> list[Placement]:
    """Centroids, their shares and the mean squared distance, for K = 1 to K_max clusters."""
    is_exact = recovered.branch in (Branch.ROWS, Branch.CELLS)
    few = recovered.few if is_exact else recovered.many
    shown = _points(_thinned(few, _FEW_POINTS))
    candidates = _Candidates.among(shown)
    runs = _go_up(candidates, min(K_max, len(shown)), rng)
    _leave_out(shown, runs, partial(lloyd, shown))
    if recovered.cells is not None:
        found, measure = _refine_on_cells(problem, recovered, recovered.cells, runs, rng)
    else:
        found, measure = _refine_on_points(_points(recovered.many), shown, runs)
    placed = []
    for K in range(1, K_max + 1):
        C = found[min(K, len(found)) - 1]
        placed.append(measure(np.vstack([C, np.repeat(C[:1], K - len(C), axis=0)])))
    return placed


def _refine_on_points(
    every: Points, shown: Points, runs: list[Clustering]
) -> tuple[list[FloatArray], Measuring]:
    """Centroids of runs on the shown points, after steps on all points, and what measures them."""
    finer = list(runs)
    if every.values is not shown.values:
        refine = partial(lloyd, every, max_iterations=_REFINING_STEPS, empty="stay")
        finer[1:] = [refine(run.centroids) for run in runs[1:]]
        _leave_out(every, finer, refine)
    return [run.centroids for run in finer], partial(_measure, every)


def _refine_on_cells(
    problem: Problem,
    recovered: Recovered,
    cells: CellMeasure,
    runs: list[Clustering],
    rng: np.random.Generator,
) -> tuple[list[FloatArray], Measuring]:
    """Centroids of these runs after steps on points of cells, and what measures them: other ones,
    which no centroid fits by chance.
    """
    shapes = CellShapes.of(recovered.few, cells.variances, problem.covariance)
    shapes = shapes.explaining(problem, rng)
    refining = shapes.draw(min(_REFINING_CELL_POINTS, int(problem.size)), rng)
    measuring = shapes.draw(_MEASURING_CELL_POINTS, rng)
    finer = [
        step_to_means(refining.points, run.centroids, _REFINING_CELL_STEPS, _OVERSTEP)
        for run in runs[1:]
    ]
    return [runs[0].centroids, *finer], measuring.measure


def _leave_out(
    points: Points, runs: list[Clustering], refine: Callable[[FloatArray], Clustering]
) -> None:
    """Replace a run by the one after it without a centroid that is hardly useful, where that is
    better.
    """
    for K in range(len(runs) - 1, 1, -1):
        C = runs[K].centroids
        fewer = [np.delete(C, k, axis=0) for k in least_useful(points, C, _LEFT_OUT)]
        runs[K - 1] = min([runs[K - 1], *map(refine, fewer)], key=_error)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Points that show where centroids belong, and those of them that a centroid is added at.

    Parameters
    ----------
    points : Points
        All points.
    added : float64 array (c, n)
        Those that are tried.
    squares : float64 array (p, c)
        The squared distances of all points to them.
    """

    points: Points
    added: FloatArray
    squares: FloatArray

    @classmethod
    def among(cls, points: Points) -> "_Candidates":
        """Some of these points, all of them if they are few."""
        values = points.values
        # Odd, because points come in pairs.
        every = len(points) // _CANDIDATES // 2 * 2 + 1
        tried = np.arange(0, len(points), every)
        if every > 1:
            far = np.argsort(-_squares_of(values, points.weights))[:_FAR_CANDIDATES]
            tried = np.union1d(tried, far)
        added = values[tried]
        lengths = np.einsum("pn,pn->p", values, values)
        squares = lengths[:, None] + lengths[tried] - 2 * values @ added.T
        return cls(points, added, np.maximum(squares, 0.0))

    def with_one_more(self, run: Clustering) -> list[FloatArray]:
        """The centroids of a run, with the candidate added that lowers the error most (the fast
        global k-means of Likas, Vlassis and Verbeek, 2003); and, unless every point is a candidate,
        with the point farthest from its centroid in the worst cluster.
        """
        points = self.points
        gains = points.weights @ np.maximum(run.squares[:, None] - self.squares, 0.0)
        added = [self.added[gains.argmax()]]
        if len(self.added) < len(points):
            weighted = points.weights * run.squares
            errors = np.bincount(run.labels, weighted, minlength=len(run.centroids))
            farthest = np.where(run.labels == errors.argmax(), weighted, -1.0).argmax()
            added.append(points.values[farthest])
        return [np.vstack([run.centroids, point]) for point in added]


def _go_up(candidates: _Candidates, K_max: int, rng: np.random.Generator) -> list[Clustering]:
    """One run for each K, from the run before with a point added; every few numbers, out of a local
    minimum that the others would start from.
    """
    points = candidates.points
    mean = points.weights @ points.values / points.weights.sum()
    runs = [lloyd(points, mean[None], max_iterations=1)]
    for K in range(2, K_max + 1):
        starts = candidates.with_one_more(runs[-1])
        best = min((lloyd(points, C) for C in starts), key=_error)
        is_searched = K % _SEARCHED_NUMBERS == 0 or K_max == K
        runs.append(breathe(points, best, rng) if is_searched and len(points) > K else best)
    return runs


def _measure(points: Points, C: FloatArray) -> Placement:
    labels, squares = points.nearest(C)
    total = points.weights.sum()
    shares = np.bincount(labels, points.weights, minlength=len(C)) / total
    return C, shares, float(points.weights @ squares / total)


def _thinned(weighted: Weighted, count: int) -> Weighted:
    """About `count` of the points, that stand for all; all of them if there are hardly more.

    Those that have more of the variance than one of so many points on average stay: a few outliers
    may have most of it.
    """
    points, weights = weighted
    # Odd, because points come in pairs.
    every = len(points) // count // 2 * 2 + 1
    if every == 1:
        return weighted
    squares = _squares_of(points, weights)
    is_far = squares > squares.sum() / count
    near = np.flatnonzero(~is_far)[::every]
    scaled = weights[near] * (weights[~is_far].sum() / weights[near].sum())
    return (
        np.vstack([points[near], points[is_far]]),
        np.concatenate([scaled, weights[is_far]]),
    )


def _squares_of(points: FloatArray, weights: FloatArray) -> FloatArray:
    """The part that each point has in the variance of all (p,), up to a factor."""
    mean = weights @ points / weights.sum()
    return np.asarray(weights * ((points - mean) ** 2).sum(axis=1))


def _points(weighted: Weighted) -> WeightedPoints:
    points, weights = weighted
    return WeightedPoints(np.ascontiguousarray(points, np.float64), np.asarray(weights, np.float64))
