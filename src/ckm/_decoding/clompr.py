"""CLOMPR for k-means: Algorithm 1 of the paper, line by line. The reference decoder."""

import numpy as np

from ckm._decoding.objective import (
    Problem,
    fit_weights,
    maximise_correlation,
    minimise_cost,
    residual,
)
from ckm._decoding.starts import Start
from ckm._util.arrays import Array


def clompr(problem: Problem, K: int, start: Start, rng: np.random.Generator) -> tuple[Array, Array]:
    """Greedily find K centroids and their weights: argmin over C, alpha >= 0 of |z - sum_k alpha_k
    a(c_k)|^2 (equation 4).

    Parameters
    ----------
    problem : Problem
        The sketch z, the frequencies and the box.
    K : int
        How many centroids.
    start : Start
        Draws the point that each step 1 starts from.
    rng : numpy.random.Generator

    Returns
    -------
    C : array (K, n)
        Centroids, in the problem's coordinates.
    alpha : array (K,)
        Their weights, as fitted: they sum to about one.
    """
    r, C = problem.z, np.empty((0, problem.n))
    for _ in range(2 * K):
        c = maximise_correlation(problem, r, start(rng, C))  # step 1: find a new centroid
        C = np.vstack([C, c])  # step 2: expand the support
        if len(C) > K:  # step 3: hard thresholding
            C = keep_heaviest(C, fit_weights(problem, C), K)
        alpha = fit_weights(problem, C)  # step 4: project
        C, alpha = minimise_cost(problem, C, alpha)  # step 5: global descent
        r = residual(problem, C, alpha)
    return C, alpha


def keep_heaviest(C: Array, beta: Array, K: int) -> Array:
    """The K centroids with the largest weights, in their order."""
    heaviest = np.argsort(-beta, kind="stable")[:K]
    kept: Array = C[np.sort(heaviest)]
    return kept
