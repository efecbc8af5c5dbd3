"""Which columns differ between two sketches, and how: in mean, in variance, or in shape.

Sketches hold the mean and the variance of every column exactly. Their standard errors are those of
the columns' second and fourth moments; the fourth comes from a mixture that explains both sketches,
and from the bounds. The shape of a column's own distribution is known from cells.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import kolmogorov, log_ndtr

from ckm._analysis.cluster_changes import ClusterEvidence, VariancesWithin
from ckm._analysis.comparison import MEAN, SHAPE, VARIANCE, WIDTHS, WITHIN
from ckm._analysis.explanation import Explanation
from ckm._analysis.mixture_columns import MixtureColumns, mixture_columns
from ckm._core.sketch import Sketch
from ckm._util.arrays import Array, FloatArray

# Points at which the distribution functions of a column are compared.
_GRID = 48
# The grid ends so many standard deviations from the mean.
_GRID_REACH = 4.0
# Rows as far out as the outermost that account for the fourth moment of a tail that no cells see:
# of Student's t with 3 degrees of freedom the k-th row is k^(1/3) times closer, and the sum of
# k^(-4/3) is 3.6.
_UNSEEN_TAIL_ROWS = 3.6
# Differences of means below this share of the largest value are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class ColumnEvidence:
    """What is known of every column, as arrays (n,).

    Parameters
    ----------
    means_a, means_b : float64 arrays
        Means.
    deviation : float64 array
        The standard deviation within both.
    ratio : float64 array
        The variance of the second, divided by that of the first.
    z_mean : float64 array
        The difference of the means in its standard errors.
    z_variance : float64 array or None
        The same for the logarithm of the variances; None if fourth moments are not known.
    distance : float64 array or None
        The largest difference of the two distribution functions; None if there are no cells.
    log_shape : float64 array or None
        The logarithm of the probability of such a distance by chance.
    shift_within : float64 array or None
        How far clusters moved on average, in standard deviations within them; None if there are
        no clusters, or none in these columns.
    z_within : float64 array or None
        The same in standard errors.
    ratio_within : float64 array or None
        The ratio of the variances within clusters; None if there are no cells.
    z_ratio_within : float64 array or None
        Its logarithm in standard errors.
    """

    means_a: FloatArray
    means_b: FloatArray
    deviation: FloatArray
    ratio: FloatArray
    z_mean: FloatArray
    z_variance: FloatArray | None
    distance: FloatArray | None
    log_shape: FloatArray | None
    shift_within: FloatArray | None
    z_within: FloatArray | None
    ratio_within: FloatArray | None
    z_ratio_within: FloatArray | None

    @property
    def log_p_values(self) -> dict[str, FloatArray]:
        """Logarithms of the two-sided probabilities by chance, (n,) for each kind of change that is
        known.
        """
        tests = {MEAN: log_two_sided(self.z_mean)}
        if self.z_variance is not None:
            tests[VARIANCE] = log_two_sided(self.z_variance)
        if self.z_within is not None:
            tests[WITHIN] = log_two_sided(self.z_within)
        if self.z_ratio_within is not None:
            tests[WIDTHS] = log_two_sided(self.z_ratio_within)
        if self.log_shape is not None:
            tests[SHAPE] = self.log_shape
        return tests


def find_evidence(
    a: Sketch,
    b: Sketch,
    both: Sketch,
    explanation: Explanation,
    clusters: ClusterEvidence | None,
) -> ColumnEvidence:
    """The evidence in two sketches of known effective sizes, which a mixture explains together as
    `both`, and in their clusters.
    """
    size_a, size_b = _size(a), _size(b)
    means_a, means_b = a.mean, b.mean
    own_a, own_b = _variances(a) * size_a / (size_a - 1), _variances(b) * size_b / (size_b - 1)
    within = ((size_a - 1) * own_a + (size_b - 1) * own_b) / (size_a + size_b - 2)
    spread = 1 / size_a + 1 / size_b
    difference = means_b - means_a
    largest = np.maximum(np.abs(means_a), np.abs(means_b))
    difference = np.where(np.abs(difference) > _ROUNDING * largest, difference, 0.0)
    z_mean = _ratio(difference, np.sqrt(within * spread))
    z_variance = None
    distance = None
    log_shape = None
    shift_within = None
    z_within = None
    ratio_within = None
    z_ratio_within = None
    if a.frequencies.projection is None:
        kurtosis = _kurtosis(both, explanation)
        z_variance = _z_of_variances(own_a, own_b, within, (kurtosis - 1) * spread)
        distance = _distances(a, b, both)
        if clusters is not None:
            within_clusters = np.sqrt((clusters.deviations**2).mean(axis=0))
            shift_within = _ratio(clusters.shifts_within, within_clusters)
            z_within = clusters.z_within
            if clusters.variances is not None:
                ratio_within, z_ratio_within = _within_ratios(clusters.variances, size_a, size_b)
    if distance is not None:
        # The tail of Kolmogorov's law, whose logarithm underflows far out.
        scaled = distance / np.sqrt(spread)
        with np.errstate(divide="ignore"):
            log_shape = np.where(
                scaled < 5, np.log(kolmogorov(scaled)), np.log(2) - 2 * scaled**2
            ).clip(max=0.0)
    return ColumnEvidence(
        means_a,
        means_b,
        np.sqrt(within),
        _ratio(own_b, own_a, both_zero=1.0),
        z_mean,
        z_variance,
        distance,
        log_shape,
        shift_within,
        z_within,
        ratio_within,
        z_ratio_within,
    )


def _within_ratios(
    variances: VariancesWithin, size_a: float, size_b: float
) -> tuple[FloatArray, FloatArray]:
    """The ratios of variances within clusters, and their logarithms in standard errors."""
    first, second, fourth = variances
    both = (size_a * first + size_b * second) / (size_a + size_b)
    kurtosis = np.maximum(_ratio(fourth, both**2, both_zero=3.0), 1.0)
    squared_error = (kurtosis - 1) * (1 / size_a + 1 / size_b)
    return _ratio(second, first, both_zero=1.0), _z_of_variances(first, second, both, squared_error)


def _size(sketch: Sketch) -> float:
    size = sketch.effective_size
    assert size is not None
    return size


def _variances(sketch: Sketch) -> FloatArray:
    covariance = sketch.covariance
    return np.diag(covariance) if covariance.ndim == 2 else covariance


def _ratio(top: FloatArray, bottom: FloatArray, both_zero: float = 0.0) -> FloatArray:
    """top / bottom; infinite, with the sign of `top`, where only the bottom is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((top == 0) & (bottom == 0), both_zero, top / bottom)


def _z_of_variances(
    own_a: FloatArray, own_b: FloatArray, within: FloatArray, squared_error: FloatArray
) -> FloatArray:
    """log(own_b / own_a) in standard errors; the plain difference where one of them is zero."""
    error = np.sqrt(np.maximum(squared_error, 0.0))
    has_both = (own_a > 0) & (own_b > 0)
    logarithms = np.log(np.where(has_both, own_b, 1.0)) - np.log(np.where(has_both, own_a, 1.0))
    return _ratio(np.where(has_both, logarithms, _ratio(own_b - own_a, within)), error)


def log_two_sided(z: FloatArray) -> FloatArray:
    """The logarithm of the probability of a standard normal variable beyond -|z| or |z|."""
    return np.asarray(np.minimum(np.log(2) + log_ndtr(-np.abs(z)), 0.0))


def _kurtosis(both: Sketch, explanation: Explanation) -> FloatArray:
    """E (x - mean)^4 / variance^2 of each column (n,), of both sketches together."""
    f = both.frequencies
    second = both.central_moment.scaled(f.step).diagonal
    fourth = mixture_columns(*explanation[:3], second).fourth_moments
    # The mixture does not know how far outliers are. The rows at the bounds are there; in tails as
    # heavy as those of Student's t they make up a good part of the fourth moment. Cells see others
    # beside them, a few Gaussians do not.
    tail_rows = 1 if both.cells is not None else _UNSEEN_TAIL_ROWS
    mean = f.relative(both.mean)
    ends = (f.relative(both.lower) - mean) ** 4 + (f.relative(both.upper) - mean) ** 4
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = (fourth + tail_rows * ends / _size(both)) / second**2
    return np.where(second > 0, np.maximum(kurtosis, 1.0), 3.0)


def _distances(a: Sketch, b: Sketch, both: Sketch) -> FloatArray | None:
    """The largest difference between the distribution functions of each column (n,)."""
    if a.cells is None or b.cells is None:
        return None
    parts = [_cell_marginals(sketch) for sketch in (a, b)]
    origin = both.frequencies.origin
    mean = both.mean - origin
    reach = _GRID_REACH * np.sqrt(both.central_moment.diagonal)
    low = np.maximum(mean - reach, both.lower - origin)
    high = np.minimum(mean + reach, both.upper - origin)
    places = (np.arange(_GRID) + 0.5) / _GRID
    grid = low[:, None] + (high - low)[:, None] * places
    first, second = (part.distribution(grid) for part in parts)
    return np.asarray(np.abs(first - second).max(axis=1))


def _cell_marginals(sketch: Sketch) -> MixtureColumns:
    """The columns of a sketch's cells, relative to the origin."""
    assert sketch.cells is not None
    mass, means, variances = sketch.cells.statistics()
    columns: Array = sketch.central_moment.diagonal
    return mixture_columns(mass / mass.sum(), means, variances, columns)
