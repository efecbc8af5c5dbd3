"""Columns that the frequencies do not see: they hardly matter for distances, and a measure that
explains the sketch may have its atoms anywhere in them.

The sketch knows their mean and their covariance with the other columns exactly. Given the other
coordinates of a centroid, the best linear estimate of the one in such a column is

    E x_s + Cov(x_s, x_r) Cov(x_r, x_r)^-1 (c_r - E x_r)

with the other columns r; without the covariance, it is the mean. Far from the mean a straight line
says little, so that no centroid is taken for farther from it than `max_regression_distance`
standard deviations.
"""

import numpy as np

from ckm._decoding.problem import Problem
from ckm._util.arrays import BoolArray, FloatArray


def unresolved_columns(problem: Problem) -> BoolArray:
    """The columns (n,) whose standard deviation is so small that no frequency tells values apart:
    phases differ by less than `min_resolved_phase`.
    """
    longest = np.sqrt(2 * problem.omega.half_squares.max(axis=1))
    phases = longest * np.sqrt(problem.covariance.diagonal)
    unresolved = problem.trusted & (phases < problem.settings.min_resolved_phase)
    # If no frequency sees anything, there is nothing to tell the other columns from.
    return unresolved if not unresolved.all() else np.zeros_like(unresolved)


def settle_unresolved(
    problem: Problem, C: FloatArray, known: BoolArray | None = None
) -> FloatArray:
    """Centroids (K, n) with their linear estimates in columns that the frequencies do not see;
    those that are `known` (K,) stay as they are.
    """
    unresolved = unresolved_columns(problem)
    if not unresolved.any():
        return C
    settled = C.copy()
    settled[:, unresolved] = problem.mean[unresolved]
    if problem.covariance.is_full:
        settled[:, unresolved] += _linear_estimates(problem, C, unresolved)
    return settled if known is None else np.where(known[:, None], C, settled)


def _linear_estimates(problem: Problem, C: FloatArray, unresolved: BoolArray) -> FloatArray:
    """How far from the mean centroids are expected to be in the unresolved columns (K, s)."""
    resolved = ~unresolved
    covariance = problem.covariance.values
    apart = C[:, resolved] - problem.mean[resolved]
    # Coefficients (r, K) of the covariances with each resolved column.
    solved = np.linalg.lstsq(covariance[np.ix_(resolved, resolved)], apart.T, rcond=None)[0]
    distances = np.sqrt(np.maximum((apart.T * solved).sum(axis=0), 0.0))
    limit = problem.settings.max_regression_distance
    solved *= limit / np.maximum(distances, limit)
    return np.asarray(solved.T @ covariance[np.ix_(resolved, unresolved)])
