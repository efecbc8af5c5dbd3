"""Rows too few for a sketch to see, imagined from what it also holds: the moments and the bounds of every column.

A handful of rows very far out may have most of the SSE. Once the measure of all others is recovered, the second moment that it lacks is
theirs, R = sum_j a_j d_j d_j^T, and the bounds say how far they reach. Whether they are a group or the end of a tail nobody knows; so the
k-th farthest on a side is imagined at bound / k^gamma, with gamma such that their squares add up to what is missing: one row at the bound
at one end, as many as stay unseen all at the bound at the other. A centroid placed on these serves either.
"""

import numpy as np
from scipy.optimize import brentq

from ckm.atoms import Problem
from ckm.readonly import Array

_STEEPEST = 20.0  # gamma beyond which only the first row is far out


def imagine_rows(problem: Problem, bulk: Problem, points: Array, weights: Array) -> tuple[Array, Array]:
    """Rows (f, n) that `problem` has besides the weighted `points` of the `bulk`, a narrower box, and their shares of the weight (f,)."""
    missing = _second_moment(problem) - _spread_around(problem.mean, points, weights, problem.covariance.ndim)
    rows, shares = [np.empty((0, problem.n))], [np.empty(0)]
    far = np.flatnonzero(~bulk.trusted)
    for _ in range(len(far)):
        c = far[np.argmax(np.diag(missing)[far])]
        if not missing[c, c] > 0:
            break
        direction = missing[c] / missing[c, c]  # of the other coordinates on this one, over the rows far out
        along, share = _along(problem, bulk, int(c), float(missing[c, c]))
        rows.append(np.clip(problem.mean + along[:, None] * direction, problem.lower, problem.upper))
        shares.append(share)
        missing = missing - np.outer(missing[c], direction)
        far = far[far != c]
    return np.vstack(rows), np.concatenate(shares)


def _second_moment(problem: Problem) -> Array:
    return problem.covariance if problem.covariance.ndim == 2 else np.diag(problem.covariance)


def _spread_around(mean: Array, points: Array, weights: Array, ndim: int) -> Array:
    D, shares = points - mean, weights / weights.sum()
    second = (shares[:, None] * D).T @ D
    return second if ndim == 2 else np.diag(np.diag(second))


def _along(problem: Problem, bulk: Problem, c: int, missing: float) -> tuple[Array, Array]:
    """How far from the mean rows lie along column c, and their shares, so that their second moment is what is `missing`."""
    ends = np.array([problem.lower[c], problem.upper[c]])
    outside = np.array([problem.lower[c] < bulk.lower[c], problem.upper[c] > bulk.upper[c]])
    reach = (ends - problem.mean[c])[outside]
    squares = problem.size * missing
    left = squares - (reach**2).sum()
    if not len(reach) or left <= 0:  # at most the rows at the bounds
        return reach, np.full(len(reach), missing / max(float((reach**2).sum()), np.finfo(float).tiny))
    # Between a tail as heavy on both sides and one as wide as the bounds say.
    sums = reach**2 + left * np.abs(reach) / np.abs(reach).sum()
    along = np.concatenate([_tail(bound, total / bound**2, problem.unseen) for bound, total in zip(reach, sums, strict=True)])
    return along, np.full(len(along), 1 / problem.size)


def _tail(bound: float, count: float, most: int) -> Array:
    """`most` numbers, the k-th bound / k^gamma, whose squares add up to those of `count` at the bound."""
    k = np.arange(1, most + 1)
    if count >= most:
        return np.full(most, bound)
    gamma = brentq(lambda g: (k ** (-2.0 * g)).sum() - count, 0, _STEEPEST) if (k ** (-2 * _STEEPEST)).sum() < count else _STEEPEST
    return np.asarray(bound * k**-gamma)
