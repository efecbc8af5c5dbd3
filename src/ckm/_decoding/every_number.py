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

from ckm._core.moments import SecondMoment
from ckm._decoding.cell_shapes import ShapedCells
from ckm._decoding.placing import Placement
from ckm._decoding.recovered import Branch, Recovered, Weighted
from ckm._kmeans.breathing import breathe, least_useful
from ckm._kmeans.lloyd import Clustering, lloyd
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
# Points drawn from cells, and steps, that do so, and others that show what rows gain across cells.
_REFINING_CELL_POINTS = 6000
_REFINING_CELL_STEPS = 6
_MEASURING_CELL_POINTS = 6000

# One number in so many is searched for a better minimum; the others start from those. To search all
# of them takes twice the time, for an SSE that is 0.01 % lower on average over nine sets.
_SEARCHED_NUMBERS = 5

# Centroids that are left out in turn of those of the number after it. On all points, too, since a
# few may mislead: MNIST's spectral features were up to 10 % above k-means without (now 3 %).
_LEFT_OUT = 2

_error = attrgetter("error")


def place_every_number(
    recovered: Recovered, covariance: SecondMoment, K_max: int, rng: np.random.Generator
) -> list[Placement]:
    """Centroids, their shares and the mean squared distance, for K = 1 to K_max clusters; all rows
    together have this covariance.
    """
    is_exact = recovered.branch in (Branch.ROWS, Branch.CELLS)
    few = recovered.few if is_exact else recovered.many
    shown = _points(_thinned(few, _FEW_POINTS))
    candidates = _Candidates.among(shown)
    runs = _go_up(candidates, min(K_max, len(shown)), rng)
    _go_down(candidates, runs)
    refining, steps, measure = _finer_points(recovered, covariance, rng)
    if refining.values is not shown.values:
        refine = partial(lloyd, refining, max_iterations=steps, empty="stay")
        runs[1:] = [refine(run.centroids) for run in runs[1:]]
        if recovered.cells is None:
            _leave_out(refining, runs, refine)
    found = []
    for K in range(1, K_max + 1):
        C = runs[min(K, len(runs)) - 1].centroids
        found.append(measure(np.vstack([C, np.repeat(C[:1], K - len(C), axis=0)])))
    return found


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


def _finer_points(
    recovered: Recovered, covariance: SecondMoment, rng: np.random.Generator
) -> tuple[Points, int, Callable[[FloatArray], Placement]]:
    """Points that refine centroids, in how many steps, and what measures these: cells, or the
    points.
    """
    cells = recovered.cells
    if cells is None:
        every = _points(recovered.many)
        return every, _REFINING_STEPS, partial(_measure, every)
    refining, measuring = (
        ShapedCells.of(recovered.few, cells.variances, covariance, count, rng)
        for count in (_REFINING_CELL_POINTS, _MEASURING_CELL_POINTS)
    )
    return refining.points, _REFINING_CELL_STEPS, measuring.measure


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
        """The centroids of a run, with a point added: the candidate that lowers the error most (the
        fast global k-means of Likas, Vlassis and Verbeek, 2003), or the point farthest from its
        centroid in the worst cluster.
        """
        points = self.points
        weighted = points.weights * run.squares
        gains = points.weights @ np.maximum(run.squares[:, None] - self.squares, 0.0)
        errors = np.bincount(run.labels, weighted, minlength=len(run.centroids))
        farthest = np.where(run.labels == errors.argmax(), weighted, -1.0).argmax()
        added = [self.added[gains.argmax()], points.values[farthest]]
        if (added[0] == added[1]).all():
            added.pop()
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


def _go_down(candidates: _Candidates, runs: list[Clustering]) -> None:
    """Replace a run by the one after it without a centroid that is hardly useful, where that is
    better; then by the one before it with one more, where that one was replaced.
    """
    points = candidates.points
    before = list(runs)
    _leave_out(points, runs, partial(lloyd, points))
    for K in range(1, len(runs)):
        if runs[K - 1] is not before[K - 1]:
            more = candidates.with_one_more(runs[K - 1])
            runs[K] = min([runs[K], *(lloyd(points, D) for D in more)], key=_error)


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
