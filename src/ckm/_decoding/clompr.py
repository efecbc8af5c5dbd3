"""CLOMPR for k-means: Algorithm 1 of the paper, line by line. The reference decoder."""

import numpy as np

from ckm._decoding.candidate import Candidate
from ckm._decoding.lbfgs import Limits, descend
from ckm._decoding.mixture import descend_diracs
from ckm._decoding.objective import correlation
from ckm._decoding.problem import Problem
from ckm._decoding.sample import SampledRows
from ckm._decoding.starts import Init, Start, make_start
from ckm._util.arrays import ComplexArray, FloatArray
from ckm._util.stages import enter_stage


def by_clompr(
    problem: Problem,
    K: int,
    init: Init,
    rows: SampledRows | None,
    rng: np.random.Generator,
    threads: int,
) -> Candidate:
    """The decoder "clompr": K Diracs whose sketch is close to z (equation 4)."""
    start = make_start(init, problem.lower, problem.upper, rows)
    C, alpha = clompr(problem, K, start, rng)
    return Candidate(C, alpha, problem.objective.cost(C, alpha)[0])


def clompr(
    problem: Problem, K: int, start: Start, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Greedily find K centroids and their weights: argmin over C, alpha >= 0 of
    |z - sum_k alpha_k a(c_k)|^2 (equation 4).

    Parameters
    ----------
    problem : Problem
        The sketch z, the frequencies and the box.
    K : int
        The number of centroids.
    start : Start
        Draws the point that each step 1 starts from.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    C : float64 array (K, n)
        Centroids, in the problem's coordinates.
    alpha : float64 array (K,)
        Their weights, as fitted: they sum to about one.
    """
    objective = problem.objective
    r = problem.z
    C = np.empty((0, problem.n))
    for step in range(2 * K):
        enter_stage(f"step {step + 1} of {2 * K}")
        c = maximise_correlation(problem, r, start(rng, C))  # step 1: find a new centroid
        C = np.vstack([C, c])  # step 2: expand the support
        if len(C) > K:  # step 3: hard thresholding
            C = keep_heaviest(C, objective.fit_weights(C), K)
        alpha = objective.fit_weights(C)  # step 4: project
        C, alpha = descend_diracs(problem, C, alpha)  # step 5: global descent
        r = objective.residual(C, alpha)
    return C, alpha


def maximise_correlation(problem: Problem, r: ComplexArray, start: FloatArray) -> FloatArray:
    """A local maximum of Re <a(c)/|a(c)|, r> over c in the box, from `start` (step 1)."""
    settings = problem.settings
    limits = Limits(settings.ascent_steps, slope=settings.ascent_slope)

    def cost(c: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = correlation(problem.omega, r, c)
        return -value, -gradient

    return descend(cost, start, problem.lower, problem.upper, limits, settings).x


def keep_heaviest(C: FloatArray, beta: FloatArray, K: int) -> FloatArray:
    """The K centroids with the largest weights, in their order (step 3)."""
    heaviest = np.argsort(-beta, kind="stable")[:K]
    kept: FloatArray = C[np.sort(heaviest)]
    return kept
