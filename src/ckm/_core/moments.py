"""Second moments: a full (n, n) matrix while it is small beside the sketch, else its diagonal.

Every operation is written for both shapes here, so that no other module has to ask for the shape.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._util.arrays import Array, BoolArray, FloatArray, Frozen, read_only_view


def has_full_moment(m: int, n: int) -> bool:
    """Whether m frequencies in dimension n come with the full second moment.

    Its n (n + 1) / 2 numbers may take at most a quarter of the 2 m numbers of the sketch.
    """
    return n * (n + 1) / 2 <= m / 2


def second_moment_shape(m: int, n: int) -> tuple[int, ...]:
    """(n, n) or (n,): the shape of the second moment of m frequencies in dimension n."""
    return (n, n) if has_full_moment(m, n) else (n,)


def weighted_squares(x: Any, weights: Any, full: bool) -> Any:
    """sum_l weights_l x_l x_l^T for the rows of x (N, n): (n, n), or its diagonal (n,).

    Written with operators that NumPy arrays and torch tensors share.
    """
    if full:
        return (x * weights[:, None]).T @ x
    return weights @ x**2


# The share of the squared range of the data by which moments may violate its bounds before they are
# replaced by the nearest possible ones: far above the rounding of sums, far below what matters.
MOMENT_TOLERANCE = 1e-7


def nearest_possible_moments(
    mean: FloatArray, second: "SecondMoment", lower: FloatArray, upper: FloatArray
) -> "tuple[FloatArray, SecondMoment] | None":
    """The nearest moments that points between `lower` and `upper` (n,) can have.

    Parameters
    ----------
    mean : float64 array (n,)
        The mean of the points.
    second : SecondMoment
        The mean of x x^T.
    lower, upper : float64 arrays (n,)
        The bounds.

    Returns
    -------
    tuple of float64 array (n,) and SecondMoment, or None
        Mean and second moment; None if the given ones are possible, up to `MOMENT_TOLERANCE`.
    """
    if moment_violation(mean, second, lower, upper) <= MOMENT_TOLERANCE:
        return None
    mean = np.clip(mean, lower, upper)
    covariance = second.minus_outer(mean)
    before = covariance.diagonal
    after = np.clip(before, 0.0, (upper - mean) * (mean - lower))
    ratios = np.sqrt(np.divide(after, before, out=np.zeros_like(after), where=before > 0))
    values = covariance.values * covariance._outer(ratios)
    if covariance.is_full:
        root = SecondMoment((values + values.T) / 2).root
        values = root @ root.T
    return mean, SecondMoment(values).plus_outer(mean)


def moment_violation(
    mean: FloatArray, second: "SecondMoment", lower: FloatArray, upper: FloatArray
) -> float:
    """How far moments are from those that points between `lower` and `upper` (n,) can have.

    The largest of these, relative to the distance of the bounds from zero or its square: the
    distance of the mean from the bounds; how far variances are below zero, or above their maximum
    (upper - mean) (mean - lower); how far the second moment is from a symmetric one with a positive
    semidefinite covariance. Moments that are not numbers give infinity.
    """
    reach = np.maximum(np.abs(lower), np.abs(upper))
    # A column of zeros has no reach: whatever its moments are, they are far too large.
    reach = np.maximum(reach, np.finfo(np.float32).smallest_subnormal)
    covariance = second.minus_outer(mean)
    variances = covariance.diagonal
    possible = (upper - mean) * (mean - lower)
    violations = [
        np.maximum(lower - mean, mean - upper) / reach,
        np.maximum(-variances, variances - np.maximum(possible, 0.0)) / reach**2,
    ]
    if second.is_full:
        scaled = second.scaled(reach).values
        violations.append(np.abs(scaled - scaled.T).ravel())
        relative = covariance.scaled(reach).values
        if np.isfinite(relative).all():
            violations.append(-np.linalg.eigvalsh((relative + relative.T) / 2) / len(mean))
    largest = float(np.concatenate(violations).max())
    return largest if np.isfinite(largest) else np.inf


@dataclass(frozen=True, eq=False)
class SecondMoment(Frozen):
    """A symmetric second moment, full or diagonal: a covariance, or a sum of x x^T.

    Parameters
    ----------
    values : float64 array (n, n) or (n,)
        The matrix, or its diagonal.

    Examples
    --------
    >>> full = SecondMoment(np.array([[4.0, 1.0], [1.0, 2.0]]))
    >>> full.is_full, full.trace
    (True, 6.0)
    >>> SecondMoment(np.array([4.0, 2.0])).minus_outer(np.array([1.0, 1.0])).diagonal
    array([3., 1.])
    """

    values: FloatArray

    def __post_init__(self) -> None:
        # A read-only view rather than a copy: the array that was given stays writeable.
        object.__setattr__(self, "values", read_only_view(np.asarray(self.values)))

    @classmethod
    def of_points(
        cls, points: FloatArray, shares: FloatArray | None = None, *, full: bool
    ) -> "SecondMoment":
        """sum_l shares_l x_l x_l^T for points (N, n); their mean x x^T without shares."""
        if shares is not None:
            return cls(weighted_squares(points, shares, full))
        if full:
            return cls(points.T @ points / len(points))
        return cls((points**2).mean(axis=0))

    @property
    def is_full(self) -> bool:
        """Whether the whole matrix is known."""
        return self.values.ndim == 2

    @property
    def diagonal(self) -> FloatArray:
        """The diagonal (n,)."""
        return np.diag(self.values) if self.is_full else self.values

    @property
    def matrix(self) -> FloatArray:
        """The matrix (n, n), with zeros where it is not known."""
        return self.values if self.is_full else np.diag(self.values)

    @property
    def trace(self) -> float:
        """The sum of the diagonal."""
        return float(np.trace(self.values) if self.is_full else self.values.sum())

    @property
    def root(self) -> FloatArray:
        """R (n, n) with R R^T = `matrix`; negative eigenvalues count as zero."""
        if self.is_full:
            eigenvalues, vectors = np.linalg.eigh(self.values)
            return np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0)))
        return np.diag(np.sqrt(np.maximum(self.values, 0)))

    def __sub__(self, other: "SecondMoment") -> "SecondMoment":
        return SecondMoment(self.values - other.values)

    def __truediv__(self, number: float) -> "SecondMoment":
        return SecondMoment(self.values / number)

    def scaled(self, step: FloatArray) -> "SecondMoment":
        """The moment of x / step: entries divided by step_i step_j."""
        return SecondMoment(self.values / self._outer(step))

    def plus_outer(self, v: FloatArray) -> "SecondMoment":
        """The moment plus v v^T."""
        return SecondMoment(self.values + self._outer(v))

    def minus_outer(self, v: FloatArray) -> "SecondMoment":
        """The moment less v v^T: a covariance, if v is the mean of a normalised moment."""
        return SecondMoment(self.values - self._outer(v))

    def without_negative(self) -> "SecondMoment":
        """The same covariance, with zeros for variances that rounding made negative."""
        is_negative = self.diagonal < 0
        return self.masked(~is_negative) if is_negative.any() else self

    def masked(self, kept: BoolArray) -> "SecondMoment":
        """Zero where a row or column is not `kept` (n,)."""
        return SecondMoment(self.values * self._outer(kept))

    def replaced(self, kept: BoolArray, variances: FloatArray) -> "SecondMoment":
        """The columns that are not `kept` (n,) with these variances (n,), and uncorrelated."""
        other = np.diag(variances) if self.is_full else variances
        return SecondMoment(np.where(self._outer(kept), self.values, other))

    def _outer(self, v: Array) -> Array:
        """v v^T, or its diagonal, as `values` is."""
        return np.outer(v, v) if self.is_full else v * v
