"""What can be wrong with decoded centroids, each in a sentence that a person can act on."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from ckm.atoms import Problem, atoms
from ckm.checks import FREQUENCIES_PER_PARAMETER
from ckm.readonly import Array

_STARVED_SHARE = 0.01  # of the weight that a centroid would have if all had the same
_ALIKE = 0.01  # how much the sketch of two centroids may differ from that of one in their place, and they still pass for one


class Status(StrEnum):
    """How a decoding ended."""

    OK = "ok"
    SMALL_SKETCH = "small-sketch"  # too few frequencies for so many clusters
    MERGED = "merged"  # some centroids are so close that the sketch cannot tell them apart
    STARVED = "starved"  # some centroids have hardly any weight


class Finding(NamedTuple):
    """Something to know about a solution."""

    status: Status
    sentence: str


def diagnose(problem: Problem, C: Array, weights: Array) -> tuple[Finding, ...]:
    """What is wrong with these centroids (K, n), in the problem's coordinates, and their weights, which sum to one."""
    findings = (small_sketch(problem.m, *C.shape), _merged(problem, C, weights), _starved(weights))
    return tuple(finding for finding in findings if finding)


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
    K = len(C)
    if K < 2:
        return None
    gaps = ((C[:, None] - C) ** 2).sum(axis=2) + np.diag(np.full(K, np.inf))
    nearest = np.argmin(gaps, axis=1)
    share = np.divide(weights, weights + weights[nearest], out=np.full(K, 0.5), where=weights + weights[nearest] > 0)[:, None]
    middle = share * C + (1 - share) * C[nearest]
    a = atoms(problem.omega, C)
    difference = share * a + (1 - share) * a[nearest] - atoms(problem.omega, middle)
    count = int(((np.abs(difference) ** 2).mean(axis=1) <= _ALIKE**2).sum())
    if not count:
        return None
    return Finding(
        Status.MERGED,
        f"{count} of {K} centroids are so close to another that the sketch cannot tell them apart: there seem to be fewer clusters; "
        f"ask for fewer.",
    )


def _starved(weights: Array) -> Finding | None:
    K = len(weights)
    count = int((weights < _STARVED_SHARE / K).sum())
    if not count:
        return None
    return Finding(
        Status.STARVED,
        f"{count} of {K} centroids have hardly any weight (below {_STARVED_SHARE / K:.2g}) and may stand where no rows are; "
        f"ask for fewer clusters, or use a larger sketch.",
    )
