"""Moments of the data beside its sketch: which to trust, and how well a mixture matches them.

A handful of outliers may make up most of a column's variance, and be too few for the sketch to
show. Such a column's moments are not matched.
"""

from typing import TYPE_CHECKING

import numpy as np

from ckm._core.moments import SecondMoment
from ckm._decoding.settings import Settings
from ckm._util.arrays import BoolArray, FloatArray
from ckm._util.jit import entry, leaf

if TYPE_CHECKING:
    from ckm._decoding.problem import Problem

# Step of a rounded covariance, in units of its largest entry: far above the rounding of sums in
# another order, far below what matters to a decoder.
_COVARIANCE_GRID = 2.0**-20
# Step of a rounded mean, in units of the square root of the covariance's step: 2^-20 standard
# deviations.
_MEAN_GRID = 2.0**-10
# Variance that the steps are computed for if the data has less, in units of sigma^2: rows that are
# all equal have none.
_MIN_VARIANCE = 2.0**-40


def round_moments(mean: FloatArray, covariance: SecondMoment) -> tuple[FloatArray, SecondMoment]:
    """Mean and covariance on a grid.

    The last bits of moments depend on the order of rows. Rounded ones hardly ever do.
    """
    largest = max(float(np.abs(covariance.values).max()), _MIN_VARIANCE)
    grid = _COVARIANCE_GRID * largest
    rounded_mean = _round_to(mean, np.sqrt(grid) * _MEAN_GRID)
    return rounded_mean, SecondMoment(_round_to(covariance.values, grid))


def _round_to(values: FloatArray, grid: float) -> FloatArray:
    # A power of two, so that a change of units by a power of two changes no bit.
    step = 2.0 ** np.round(np.log2(grid))
    return np.asarray(np.rint(values / step) * step)


def min_rows_of_variance(
    lower: FloatArray, upper: FloatArray, covariance: SecondMoment, size: float
) -> FloatArray:
    """The least number of rows that can make up the variance of each column (n,).

    Rows at a bound, given relative to the mean, make up the most of it.
    """
    reach = np.maximum(np.abs(lower), np.abs(upper))
    unbounded = np.full(len(reach), np.inf)
    squares = size * covariance.diagonal
    return np.asarray(np.divide(squares, reach**2, out=unbounded, where=reach > 0))


def detectable_columns(
    lower: FloatArray,
    upper: FloatArray,
    covariance: SecondMoment,
    size: float,
    m: int,
    settings: Settings,
) -> BoolArray:
    """Which columns need more rows to make up their variance than m frequencies can miss (n,).

    An atom of weight w stands out of the sampling noise where m w > sqrt(m / size), so fewer than
    sqrt(size / m) rows do not. Where a column has much of the whole variance, they should stand
    out clearly. A column whose range is negligible beside the variance of another is always
    trusted.
    """
    variances = covariance.diagonal
    is_large = variances >= settings.large_variance * variances.mean()
    times = np.where(is_large, settings.clear_detection, 1.0)
    squared_reach = np.maximum(-lower, upper) ** 2
    is_negligible = squared_reach <= settings.negligible_variance * variances.max()
    rows = min_rows_of_variance(lower, upper, covariance, size)
    return np.asarray(is_negligible | (rows >= times * np.sqrt(size / m)))


def moment_misfit(
    problem: "Problem", C: FloatArray, alpha: FloatArray, widths: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """How far a mixture's mean and covariance are from the data's, relative to its variance.

    |mean - mean_X|^2 / t + |cov - cov_X|_F^2 / t^2 with t the trace of cov_X, over the trusted
    columns, and its gradients in C (K, n), alpha (K,) and the widths (K, n).
    """
    trace = problem.covariance.trace
    total = float(alpha.sum())
    by_C = np.zeros(C.shape)
    by_alpha = np.zeros(len(alpha))
    by_widths = np.zeros(C.shape)
    if not problem.trusted.any() or trace <= 0 or total <= 0:
        return 0.0, by_C, by_alpha, by_widths
    # A diagonal is one line of a matrix.
    target = np.atleast_2d(problem.covariance.values)
    value: float = _misfit(
        (C, alpha / total, widths),
        (problem.mean, target, problem.trusted.astype(np.float64), trace),
        (by_C, by_alpha, by_widths),
        np.zeros((2, *target.shape)),
        np.zeros((3, C.shape[1])),
    )
    by_alpha /= total
    return value, by_C, by_alpha, by_widths


@entry
def _misfit(mixture, data, gradients, matrices, vectors):  # type: ignore[no-untyped-def]
    """Write the gradients for shares that sum to one, and return the value."""
    C, shares, widths = mixture
    target_mean, target, trusted, trace = data
    by_C, by_alpha, by_widths = gradients
    covariance, error = matrices
    mean, mean_error, pull = vectors
    n = len(mean)
    for k in range(len(C)):
        for d in range(n):
            mean[d] += shares[k] * C[k, d]
    _add_covariances(C, shares, widths, mean, covariance)
    value = 0.0
    for d in range(n):
        mean_error[d] = (mean[d] - target_mean[d]) * trusted[d]
        value += mean_error[d] ** 2 / trace
    inner = 0.0
    is_full = len(target) > 1 or n == 1
    for i in range(len(target)):
        for d in range(n):
            both = trusted[i] * trusted[d] if is_full else trusted[d]
            error[i, d] = (covariance[i, d] - target[i, d]) * both
            value += error[i, d] ** 2 / trace**2
            inner += error[i, d] * covariance[i, d]
    for k in range(len(C)):
        _pull(C[k], mean, error, is_full, pull)
        own = -inner
        along = 0.0
        for d in range(n):
            own_error = error[d, d] if is_full else error[0, d]
            deviation = C[k, d] - mean[d]
            own += pull[d] * deviation + widths[k, d] * own_error
            along += deviation * mean_error[d]
            by_C[k, d] = shares[k] * (2 * mean_error[d] / trace + 4 * pull[d] / trace**2)
            by_widths[k, d] = 2 * shares[k] * own_error / trace**2
        by_alpha[k] = 2 * along / trace + 2 * own / trace**2
    return value


@leaf
def _add_covariances(C, shares, widths, mean, covariance):  # type: ignore[no-untyped-def]
    """The covariance of a mixture, or its diagonal."""
    n = len(mean)
    is_full = len(covariance) > 1 or n == 1
    for k in range(len(C)):
        for i in range(len(covariance)):
            if is_full:
                a = shares[k] * (C[k, i] - mean[i])
                for d in range(n):
                    covariance[i, d] += a * (C[k, d] - mean[d])
                covariance[i, i] += shares[k] * widths[k, i]
            else:
                for d in range(n):
                    square = (C[k, d] - mean[d]) ** 2
                    covariance[i, d] += shares[k] * (square + widths[k, d])


@leaf
def _pull(centre, mean, error, is_full, pull):  # type: ignore[no-untyped-def]
    """The error of the covariance times the deviation of one centre."""
    n = len(mean)
    for d in range(n):
        pull[d] = 0.0 if is_full else error[0, d] * (centre[d] - mean[d])
    if is_full:
        for i in range(n):
            a = centre[i] - mean[i]
            for d in range(n):
                pull[d] += a * error[i, d]
