"""Moments of the data beside its sketch: which to trust, and how well a mixture matches them.

A handful of outliers may make up most of a column's variance, and be too few for the sketch to
show. Such a column's moments are not matched.
"""

from typing import TYPE_CHECKING

import numpy as np

from ckm._core.moments import SecondMoment
from ckm._decoding.settings import Settings
from ckm._util.arrays import BoolArray, FloatArray

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
    total = alpha.sum()
    if not problem.trusted.any() or trace <= 0 or total <= 0:
        return 0.0, np.zeros(C.shape), np.zeros(len(alpha)), np.zeros(C.shape)
    shares = alpha / total
    mean = shares @ C
    D = C - mean
    covariance = SecondMoment.of_mixture(D, shares, widths, full=problem.covariance.is_full)
    mean_error = mean - problem.mean
    error = covariance - problem.covariance
    if not problem.has_trusted_moments:
        mean_error = mean_error * problem.trusted
        error = error.masked(problem.trusted)
    pull = error.times_rows(D)
    value = float(mean_error @ mean_error / trace + error.squared_norm / trace**2)
    by_C = shares[:, None] * (2 * mean_error / trace + 4 * pull / trace**2)
    own = (pull * D).sum(axis=1) + widths @ error.diagonal - error.inner(covariance)
    by_alpha = (2 * D @ mean_error / trace + 2 * own / trace**2) / total
    by_widths = 2 * shares[:, None] * error.diagonal / trace**2
    return value, by_C, by_alpha, by_widths
