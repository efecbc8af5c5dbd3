"""Columns that the frequencies do not see: they hardly matter for distances, and a measure that
explains the sketch may have its atoms anywhere in them.

The sketch knows their mean and their covariance with the other columns exactly. Given the other
coordinates of a centroid, the best linear estimate of the one in such a column is

    E x_s + Cov(x_s, x_r) Cov(x_r, x_r)^-1 (c_r - E x_r)

with the other columns r; without the covariance, it is the mean. Far from the mean a straight line
says little, so that no centroid is taken for farther from it than `max_regression_distance`
standard deviations. Sampled rows say more: the estimate counts as one more row beside those of a
cluster, and then centroids move so that their mean is that of all rows, those of few rows most.
"""

import numpy as np

from ckm._decoding.problem import Problem
from ckm._decoding.sample import SampledRows
from ckm._kmeans.assign import Centroids
from ckm._sources.arrays import ArraySource
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
    problem: Problem, C: FloatArray, shares: FloatArray, rows: SampledRows | None
) -> FloatArray:
    """Centroids (K, n) of clusters with these shares, with estimates in the columns that the
    frequencies do not see: linear ones, and those of sampled rows if there are some.
    """
    unresolved = unresolved_columns(problem)
    if not unresolved.any():
        return C
    settled = C.copy()
    settled[:, unresolved] = problem.mean[unresolved]
    if problem.covariance.is_full:
        settled[:, unresolved] += _linear_estimates(problem, C, unresolved)
    if rows is not None:
        means, variances = _sampled_means(C, rows, unresolved, settled[:, unresolved])
        settled[:, unresolved] = _with_mean(means, variances, shares, problem.mean[unresolved])
    return settled


def _sampled_means(
    C: FloatArray, rows: SampledRows, unresolved: BoolArray, guesses: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Estimates (K, s) of the means of clusters in unresolved columns, and their variances (K,) as
    shares of the variance of a column: those of sampled rows, of which `guesses` count as one more.
    """
    labels = Centroids(C[:, ~unresolved]).label(ArraySource(rows.values[:, ~unresolved]), n_jobs=1)
    K = len(C)
    weights = np.bincount(labels, rows.weights, minlength=K)
    # Rows that are in the pool for sure leave nothing to chance.
    chances = np.bincount(labels, rows.weights**2 * (1 - rows.probabilities), minlength=K)
    has_rows = weights > 0
    own = chances / np.where(has_rows, weights, 1.0) ** 2
    trust = np.where(has_rows, 1 / (1 + own), 0.0)
    sums = np.zeros_like(guesses)
    np.add.at(sums, labels, rows.weights[:, None] * rows.values[:, unresolved])
    means = sums / np.where(has_rows, weights, 1.0)[:, None]
    return guesses + trust[:, None] * (means - guesses), np.where(has_rows, trust * own, 1.0)


def _with_mean(
    C: FloatArray, variances: FloatArray, shares: FloatArray, mean: FloatArray
) -> FloatArray:
    """The most probable centroids, given estimates C (K, s) with these variances (K,), whose mean
    over clusters is `mean` (s,).
    """
    share = shares / shares.sum()
    amounts = share * variances
    total = float(share @ amounts)
    if not total > 0:
        return C
    return np.asarray(C + np.outer(amounts / total, mean - share @ C))


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
