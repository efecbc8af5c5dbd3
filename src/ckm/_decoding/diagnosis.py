"""What can be wrong with decoded centroids, each in a sentence that a person can act on."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from ckm._decoding.objective import Problem, atoms
from ckm._util.arrays import Array
from ckm._util.checks import FREQUENCIES_PER_PARAMETER

_STARVED_SHARE = 0.01  # of the weight that a centroid would have if all had the same
# how much the sketches of two centroids may differ, a frequency, and they still pass for one
_ALIKE = 0.1
_OTHER = 25.0  # times the variance, from which on frequencies miss what tells clusters apart
_ALL = 1 - 1e-9  # of the weight
_MISFIT = 0.03  # how much the sketch of what was found may differ from the data's, a frequency


class Status(StrEnum):
    """How a decoding ended."""

    OK = "ok"
    UNEXPLAINED = "unexplained"  # what was found does not have the data's sketch
    SMALL_SKETCH = "small-sketch"  # too few frequencies for so many clusters
    OTHER_SPREAD = "other-spread"  # the frequencies were chosen for data of another scale
    FAR_OUT = "far-out"  # rows too few to be seen may decide the SSE
    MERGED = "merged"  # some centroids are so close that the sketch cannot tell them apart
    STARVED = "starved"  # some centroids have hardly any weight


class Finding(NamedTuple):
    """Something to know about a solution."""

    status: Status
    sentence: str


def diagnose(
    problem: Problem, C: Array, weights: Array, cost: float | None, known: Array | None = None
) -> tuple[Finding, ...]:
    """What is wrong with these centroids (K, n), in the problem's coordinates, and their weights,
    which sum to one.

    `cost` is that of the measure they were placed on; None where it is known to be large, as for
    points that stand for wide clusters. `known` is the weight that each has from rows that are
    known to be there; None where rows far out may have been missed. Where it is all the weight,
    nothing had to be searched for.
    """
    searched = known is None or known.sum() < _ALL
    other = _other_spread(problem) if searched else None
    unexplained = _unexplained(problem, cost) if searched and cost is not None else None
    far = _far_out(problem) if known is None else None
    small, merged, starved = (
        small_sketch(problem.m, *C.shape),
        _merged(problem, C, weights),
        _starved(weights, known),
    )
    return tuple(
        finding for finding in (small, other, unexplained, far, merged, starved) if finding
    )


def small_sketch(m: int, K: int, n: int) -> Finding | None:
    """Fewer frequencies than twice the coordinates to be found leave centroids in doubt."""
    if m >= 2 * K * n:
        return None
    return Finding(
        Status.SMALL_SKETCH,
        f"This sketch has {m} frequencies; for {K} clusters in dimension {n} fewer than 2 K n = {2 * K * n} leave centroids in doubt. "
        f"Sketch with sketch_size={FREQUENCIES_PER_PARAMETER * K * n} (5 K n), or ask for fewer clusters.",
    )


def _merged(problem: Problem, C: Array, weights: Array) -> Finding | None:
    K = len(weights)
    heavy = C[~_light(weights)]
    if len(heavy) < 2:
        return None
    gaps = ((heavy[:, None] - heavy) ** 2).sum(axis=2) + np.diag(np.full(len(heavy), np.inf))
    # those further apart than a cluster's width are not worth a look
    close = np.flatnonzero(gaps.min(axis=1) < problem.n)
    other = np.argmin(gaps[close], axis=1)
    difference = atoms(problem, heavy[close]) - atoms(problem, heavy[other])
    count = int(((np.abs(difference) ** 2).mean(axis=1) <= _ALIKE**2).sum())
    if not count:
        return None
    return Finding(
        Status.MERGED,
        f"{count} of {K} centroids are so close to another that the sketch cannot tell them apart: there seem to be fewer clusters; "
        f"ask for fewer.",
    )


def _unexplained(problem: Problem, cost: float) -> Finding | None:
    if cost <= max(2 * problem.noise, _MISFIT**2 * problem.m):
        return None
    return Finding(
        Status.UNEXPLAINED,
        f"What was found has a sketch that differs from the data's by {np.sqrt(cost / problem.m):.2g} a frequency, where chance explains "
        f"{np.sqrt(problem.noise / problem.m):.2g}: clusters may be missed. Sketch with a pool of rows (pool=1000), try n_init=5, or use a "
        f"larger sketch.",
    )


def _other_spread(problem: Problem) -> Finding | None:
    """Frequencies come from other data where a sketch was made `like` another."""
    # what a few rows far out do to moments is a matter of its own
    if problem.spread is None or not problem.moments:
        return None
    variances = np.diag(problem.covariance) if problem.covariance.ndim == 2 else problem.covariance
    ratio = float(variances.mean()) / problem.spread
    if 1 / _OTHER <= ratio <= _OTHER:
        return None
    return Finding(
        Status.OTHER_SPREAD,
        f"The variance of these rows is {ratio:.3g} times that of the rows that the frequencies were chosen for: frequencies so "
        f"{'high' if ratio > 1 else 'low'} may miss clusters, and centroids may be far off. Sketch the rows anew, without like=.",
    )


def _far_out(problem: Problem) -> Finding | None:
    if problem.moments:
        return None
    variances = np.diag(problem.covariance) if problem.covariance.ndim == 2 else problem.covariance
    reach = np.maximum(problem.mean - problem.lower, problem.upper - problem.mean)
    ratios = np.divide(reach, np.sqrt(variances), out=np.zeros(problem.n), where=variances > 0)
    return Finding(
        Status.FAR_OUT,
        f"Column {np.argmax(ratios)} (counted from 0) reaches {ratios.max():.3g} standard deviations from its mean: a few rows there may "
        f"decide the SSE, and a sketch cannot see so few. Sketch with a larger pool of rows (pool=1000), which keeps such rows; or "
        f"transform or clip that column.",
    )


def _light(weights: Array) -> Array:
    return np.asarray(weights < _STARVED_SHARE / len(weights))


def _starved(weights: Array, known: Array | None) -> Finding | None:
    K = len(weights)
    doubted = np.ones(K, bool) if known is None else known <= weights / 2
    count = int((_light(weights) & doubted).sum())
    if not count:
        return None
    return Finding(
        Status.STARVED,
        f"{count} of {K} centroids have hardly any weight (below {_STARVED_SHARE / K:.2g}) and may stand where no rows are; "
        f"ask for fewer clusters, or use a larger sketch.",
    )
