"""What noise does to centroids: how much SSE it is expected to add.

A centroid c of weight a and width w adds a exp(-i omega^T c - w |omega|^2 / 2) to the sketch, so
that noise of variance v on each number of the sketch moves its coordinate d by a variance of about

    v / (2 a^2 sum_j omega_jd^2 exp(-w |omega_j|^2)),

if the other clusters are known; they are not, and it is about twice as much. The SSE grows by the
weighted sum of these variances.
"""

import numpy as np

from ckm._decoding.candidate import Candidate
from ckm._decoding.problem import Problem

# What the other clusters, the weights and the width add, which are not known either: releases of
# the paper's data had 1.5 to 3 times what one cluster alone would (benchmarks/privacy.py).
_OTHERS = 2.0


def expected_excess(problem: Problem, found: Candidate) -> float:
    """The SSE that noise adds, as a share of the SSE; very large for clusters without weight."""
    within = found.mean_square
    if not within > 0:
        return 0.0
    decay = problem.blur(within / problem.n) ** 2
    # 2 omega^2 / 2, elementwise (n, m).
    information = 2 * problem.omega.half_squares @ decay
    variance = problem.noise / problem.m
    weights = np.maximum(found.weights, np.finfo(float).tiny)
    squares = variance / (2 * weights[:, None] ** 2 * information)
    return _OTHERS * float((weights[:, None] * squares).sum() / within)
