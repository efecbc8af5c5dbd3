"""How far the SSE of centroids may be from the smallest, judged without the data.

What a sketch says of the data is true of many measures. Centroids are placed on all of them
together; if one of them were the data, Lloyd's algorithm would improve the centroids on it. The
share of the SSE that this gains, on average, is the regret: near zero where the sketch determines
the centroids, large where it leaves them open. Measures may also disagree about the SSE itself.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ckm._decoding.settings import Settings
from ckm._kmeans.lloyd import lloyd
from ckm._kmeans.points import Points, points_on
from ckm._util.arrays import FloatArray


class Doubt(NamedTuple):
    """What speaks against centroids.

    Parameters
    ----------
    regret : float
        The share of the SSE that other centroids gain if one plausible measure is the data.
    disagreement : float
        The standard deviation of the SSE over these measures, as a share of the SSE.
    """

    regret: float = 0.0
    disagreement: float = 0.0


def compare_members(
    members: Sequence[FloatArray],
    C: FloatArray,
    mean_square: float,
    settings: Settings,
    device: Any = None,
) -> Doubt:
    """The doubt that several measures raise, points (p, n) each, in shares of `mean_square`.

    Half of the points move the centroids. What is gained on these is too much, because centroids
    follow single points; what is gained on the other half is as much too little.
    """
    before = []
    gains = []
    for points in members:
        # Points come in opposite pairs, which stay together.
        is_first = np.arange(len(points)) // 2 % 2 == 0
        halves = [_evenly_weighted(points[kept], device) for kept in (is_first, ~is_first)]
        moved = _improve(halves[0], C, settings)
        squares = np.array([[_mean_square(half, D) for D in (C, moved)] for half in halves])
        before.append(squares[:, 0].mean())
        gains.append(squares[:, 0].mean() - squares[:, 1].mean())
    count = len(before)
    if count < 2 or not mean_square > 0:
        return Doubt()
    # Centroids of all members lie closer to each of them than to the data, as a sample mean does to
    # its sample: with M members by a factor of 1 - 1/M.
    regret = float(np.sum(gains)) / (count - 1)
    return Doubt(regret / mean_square, float(np.std(before, ddof=1)) / mean_square)


def compare_measure(
    points: FloatArray, weights: FloatArray, C: FloatArray, settings: Settings
) -> Doubt:
    """The doubt that one other measure raises, of weighted points."""
    measure = points_on(None, np.ascontiguousarray(points), weights)
    before = _mean_square(measure, C)
    if not before > 0:
        return Doubt()
    return Doubt(1 - _mean_square(measure, _improve(measure, C, settings)) / before)


def _evenly_weighted(points: FloatArray, device: Any) -> Points:
    return points_on(device, np.ascontiguousarray(points), np.ones(len(points)))


def _improve(points: Points, C: FloatArray, settings: Settings) -> FloatArray:
    return lloyd(points, C, max_iterations=settings.regret_steps, empty="stay").centroids


def _mean_square(points: Points, C: FloatArray) -> float:
    _, squares = points.nearest(C)
    return float(points.weights @ squares / points.weights.sum())
