"""What noise does to centroids: how much SSE it is expected to add.

A centroid c of weight a and width w adds a exp(-i omega^T c - w |omega|^2 / 2) to the sketch, so
that noise of variance v on each number of the sketch moves its coordinate d by a variance of about

    v / (2 a^2 sum_j omega_jd^2 exp(-w |omega_j|^2)),

if the other clusters are known; they are not, and it is about twice as much. The SSE grows by the
weighted sum of these variances.
"""

from typing import NamedTuple

import numpy as np

from ckm._decoding.candidate import Candidate
from ckm._decoding.problem import Problem
from ckm._util.arrays import FloatArray

# What the other clusters, the weights and the width add, which are not known either: releases of
# the paper's data had 1.5 to 3 times what one cluster alone would (benchmarks/privacy.py).
_OTHERS = 2.0


class NoiseError(NamedTuple):
    """What noise is expected to do to centroids.

    Parameters
    ----------
    excess : float
        The SSE that it adds, as a share of the SSE.
    displacements : float64 array (K,)
        The squared distance by which it moves each centroid, as a share of the mean squared
        distance of rows to theirs; very large for clusters without weight. One that is moved by
        as much as its rows are spread may well be made of noise.
    """

    excess: float
    displacements: FloatArray


def expected_error(problem: Problem, found: Candidate) -> NoiseError:
    """The error of centroids that noise is expected to make."""
    within = found.mean_square
    if not within > 0:
        return NoiseError(0.0, np.zeros(len(found.C)))
    decay = problem.blur(within / problem.n) ** 2
    # 2 omega^2 / 2, elementwise (n, m).
    information = 2 * problem.omega.half_squares @ decay
    variance = problem.noise / problem.m
    weights = np.maximum(found.weights, np.finfo(float).tiny)
    squares = (variance / (2 * weights[:, None] ** 2 * information)).sum(axis=1)
    displacements = _OTHERS * squares / within
    return NoiseError(float(weights @ displacements), displacements)
