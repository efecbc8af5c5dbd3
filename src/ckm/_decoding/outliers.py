"""Rows too few for a sketch to see, imagined from what it also holds: the moments and the bounds of
every column.

A handful of rows very far out may have most of the SSE. Once the measure of all others, the bulk,
is recovered, the second moment that it lacks is theirs, R = sum_j a_j d_j d_j^T, and the bounds say
how far they reach. Whether they are a group or the end of a tail the bulk tells: a tail goes on
from where the sketch still sees rows to the bound. What that does not explain is put near the
bound.
"""

import numpy as np
from scipy.optimize import brentq

from ckm._decoding.objective import Problem
from ckm._util.arrays import Array

_STEEPEST = 20.0  # a tail of which only the first row is far out
_WITHIN = 0.9  # where the mean of a group is, if its farthest row is at one


def imagine_rows(problem: Problem, bulk: Problem, points: Array) -> tuple[Array, Array]:
    """Rows (f, n) of `problem` that are not among `points`, a sample of its `bulk` in a narrower
    box, and their shares of the weight (f,).

    One column after the other, the one that lacks most first: the other coordinates follow it as
    the second moments say, and what rows far out in one column explain of the others is no longer
    missing there.
    """
    D, far = points - problem.mean, np.flatnonzero(~bulk.trusted)
    rows, shares = [np.empty((0, problem.n))], [np.empty(0)]
    # which columns the same rows are far out in, nobody knows
    if problem.covariance.ndim == 1 and len(far) > 1:
        far = far[:0]
    missing = (
        problem.covariance - D.T @ D / len(D)
        if problem.covariance.ndim == 2
        else np.diag(problem.covariance - (D**2).mean(axis=0))
    )
    while len(far):
        c = int(far[np.argmax(missing[far, far])])
        far = far[far != c]
        if missing[c, c] > 0:
            direction = missing[c] / missing[c, c]
            along, share = _along(problem, bulk, D[:, c], c, float(missing[c, c]))
            rows.append(
                np.clip(problem.mean + along[:, None] * direction, problem.lower, problem.upper)
            )
            shares.append(share)
            missing = missing - np.outer(missing[c], direction)
    return np.vstack(rows), np.concatenate(shares)


def _along(
    problem: Problem, bulk: Problem, seen: Array, c: int, missing: float
) -> tuple[Array, Array]:
    """How far from the mean rows lie along column c, and their shares, which make the second moment
    that is `missing`.
    """
    sides = [
        (
            bound - problem.mean[c],
            max(float(np.quantile(sign * seen, 1 - min(1.0, problem.unseen / problem.size))), 0.0),
        )
        for sign, bound, inner in (
            (-1, problem.lower[c], bulk.lower[c]),
            (1, problem.upper[c], bulk.upper[c]),
        )
        if bound != inner
    ]
    if not sides:
        return np.empty(0), np.empty(0)
    bounds = np.array([bound for bound, _ in sides])
    squares, least = problem.size * missing, float((bounds**2).sum())
    if squares <= least:  # at most the rows at the bounds
        return bounds, np.full(len(bounds), missing / least)
    # Between tails that are as heavy on both sides, and tails that are as wide as the bounds say.
    sums = bounds**2 + (squares - least) * np.abs(bounds) / np.abs(bounds).sum()
    tails = [
        _tail(bound, edge, total / bound**2, problem.unseen)
        for (bound, edge), total in zip(sides, sums, strict=True)
    ]
    along, counts = (np.concatenate(parts) for parts in zip(*tails, strict=True))
    return along, counts / problem.size


def _tail(bound: float, edge: float, count: float, most: int) -> tuple[Array, Array]:
    """Distances whose squares add up to those of `count` rows at the bound, and the number of rows
    at each.

    The k-th farthest row is at bound / k^gamma, and the last of as many as are not seen at the edge
    of what is. Where these make too much, the tail is steeper; where they make too little, the
    others are a group, whose farthest row is at the bound.
    """
    k = np.arange(1, most + 1)
    gamma = (
        float(np.clip(np.log(abs(bound) / edge) / np.log(most), 0, _STEEPEST))
        if edge > 0
        else _STEEPEST
    )
    rest = count - _squares(k, gamma)
    if rest < 0:
        gamma, rest = (
            brentq(lambda g: _squares(k, g) - max(count, _squares(k, _STEEPEST)), gamma, _STEEPEST),
            0.0,
        )
    return np.append(bound * k**-gamma, _WITHIN * bound), np.append(
        np.ones(most), rest / _WITHIN**2
    )


def _squares(k: Array, gamma: float) -> float:
    return float((k ** (-2.0 * gamma)).sum())
