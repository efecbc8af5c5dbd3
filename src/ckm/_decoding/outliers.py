"""Outliers below the sketch's detection limit, reconstructed from bounds and second moments.

A handful of outliers may have most of the SSE. Once the measure of all other rows, the bulk, is
recovered, the second moment that it lacks is theirs, R = sum_j a_j d_j d_j^T, and the bounds say
how far they reach. The bulk says whether they are a group or the end of a tail: a tail goes on from
where the sketch still sees rows to the bound. What a tail does not explain are rows anywhere on the
way to the bound, or a group near it: a code for missing values is far from all other rows, on one
side.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from ckm._core.moments import SecondMoment
from ckm._decoding.problem import Problem
from ckm._decoding.settings import DEFAULT, Settings
from ckm._util.arrays import Array, FloatArray

# Share of the rows beyond what the sketch sees, at most, on each side: of a hundred rows, it could
# miss so many that hardly any would be left.
_MAX_UNSEEN_SHARE = 0.01


def reconstruct_outliers(
    problem: Problem, bulk: Problem, points: FloatArray, *, in_groups: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Rows (f, n) of `problem` that are not among `points`, a sample of its `bulk` in a narrower
    box, and their shares of the weight (f,). Those that no tail explains are in groups near the
    bounds where nothing speaks against it, or everywhere if `in_groups` is set.

    Columns are taken one after the other, the one that lacks most variance first. The other
    coordinates of its outliers follow from the second moments, and what these outliers explain of
    the other columns is no longer missing there.
    """
    D = points - problem.mean
    columns = np.flatnonzero(~bulk.trusted)
    rows = [np.empty((0, problem.n))]
    shares = [np.empty(0)]
    is_full = problem.covariance.is_full
    # Variances alone do not say in which columns the same rows are outliers.
    if not is_full and len(columns) > 1:
        columns = columns[:0]
    missing = (problem.covariance - SecondMoment.of_points(D, full=is_full)).matrix
    while len(columns):
        c = int(columns[np.argmax(missing[columns, columns])])
        columns = columns[columns != c]
        if missing[c, c] > 0:
            direction = missing[c] / missing[c, c]
            along, share = _reconstruct_column(
                problem, bulk, D[:, c], c, float(missing[c, c]), in_groups=in_groups
            )
            found = problem.mean + along[:, None] * direction
            rows.append(np.clip(found, problem.lower, problem.upper))
            shares.append(share)
            missing = missing - np.outer(missing[c], direction)
    return np.vstack(rows), np.concatenate(shares)


def box_in_sight(bulk: Problem, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds (n,) of what the sketch sees of a bulk, of which these points (p, n) are a sample.

    Where moments are not trusted, an atom too light for the sketch to detect may be anywhere in the
    bulk's box, and have most of the SSE. So columns end some way beyond the distance from the
    median that only so few rows exceed.
    """
    share = min(_MAX_UNSEEN_SHARE, bulk.detection_limit / bulk.size)
    low, median, high = np.quantile(points, [share, 0.5, 1 - share], axis=0)
    reach = bulk.settings.sight_factor
    lower = np.where(bulk.trusted, -np.inf, median + reach * (low - median))
    upper = np.where(bulk.trusted, np.inf, median + reach * (high - median))
    return lower, upper


class _Side(NamedTuple):
    """One end of a column, relative to the mean: its bound, and how far from the mean the sketch
    still sees rows.
    """

    bound: float
    edge: float


def _reconstruct_column(
    problem: Problem,
    bulk: Problem,
    deviations: FloatArray,
    c: int,
    missing: float,
    *,
    in_groups: bool,
) -> tuple[FloatArray, FloatArray]:
    """The distances from the mean of the outliers along column c, and their shares, which make up
    the `missing` second moment.
    """
    sides = _unseen_sides(problem, bulk, deviations, c)
    if not sides:
        return np.empty(0), np.empty(0)
    bounds = np.array([side.bound for side in sides])
    squares = problem.size * missing
    least = float((bounds**2).sum())
    if squares <= least:
        # At most the rows at the bounds.
        return bounds, np.full(len(bounds), missing / least)
    gap = problem.settings.group_gap
    is_apart = len(sides) == 1 and abs(sides[0].bound) > gap * sides[0].edge
    # Between tails that are as heavy on both sides, and tails as wide as the bounds say.
    sums = bounds**2 + (squares - least) * np.abs(bounds) / np.abs(bounds).sum()
    tails = [
        make_tail(
            side.bound,
            side.edge,
            total / side.bound**2,
            problem.detection_limit,
            problem.settings,
            is_group=in_groups or is_apart,
        )
        for side, total in zip(sides, sums, strict=True)
    ]
    along = np.concatenate([distances for distances, _ in tails])
    counts = np.concatenate([counts for _, counts in tails])
    return along, counts / problem.size


def _unseen_sides(problem: Problem, bulk: Problem, deviations: FloatArray, c: int) -> list[_Side]:
    """The ends of column c where the data reaches farther than the bulk."""
    quantile = 1 - min(1.0, problem.detection_limit / problem.size)
    sides = []
    for sign, bound, bulk_bound in (
        (-1, problem.lower[c], bulk.lower[c]),
        (1, problem.upper[c], bulk.upper[c]),
    ):
        if bound != bulk_bound:
            edge = max(float(np.quantile(sign * deviations, quantile)), 0.0)
            sides.append(_Side(bound - problem.mean[c], edge))
    return sides


def make_tail(
    bound: float,
    edge: float,
    count: float,
    most: int,
    settings: Settings = DEFAULT,
    *,
    is_group: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Distances whose squares add up to those of `count` rows at the bound, and the number of rows
    at each.

    The k-th farthest row is at bound / k^gamma, and the last of the `most` rows that the sketch
    cannot see is at the edge of what it sees. Where these squares are too many, the tail is
    steeper; where they are too few, the other rows are a group whose farthest row is at the bound,
    or lie anywhere on the way there.
    """
    k = np.arange(1, most + 1)
    steepest = settings.max_tail_exponent
    gamma = steepest
    if edge > 0:
        gamma = float(np.clip(np.log(abs(bound) / edge) / np.log(most), 0, steepest))
    rest = count - _sum_of_squares(k, gamma)
    if rest < 0:
        total = max(count, _sum_of_squares(k, steepest))
        gamma = brentq(lambda g: _sum_of_squares(k, g) - total, gamma, steepest)
        rest = 0.0
    others = np.array([settings.group_mean])
    if not is_group:
        others = np.geomspace(settings.spread_start, 1, settings.spread_points)
    distances = np.append(k**-gamma, others)
    each = rest / (others @ others)
    return bound * distances, np.append(np.ones(most), np.full(len(others), each))


def _sum_of_squares(k: Array, gamma: float) -> float:
    """The sum of squared distances of a tail, in units of the squared bound."""
    return float((k ** (-2.0 * gamma)).sum())
