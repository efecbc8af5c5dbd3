"""Second moments: a full (n, n) matrix while it is small beside the sketch, else its diagonal.

Every operation is written for both shapes here, so that no other module has to ask for the shape.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._util.arrays import Array, BoolArray, FloatArray, Frozen


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
        # A read-only view rather than a copy: decoders make these values in their inner loops.
        values = np.asarray(self.values).view()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @classmethod
    def of_mixture(
        cls, deviations: FloatArray, shares: FloatArray, widths: FloatArray, *, full: bool
    ) -> "SecondMoment":
        """The covariance of a mixture of Gaussians.

        Parameters
        ----------
        deviations : float64 array (K, n)
            Means less the mean of the mixture.
        shares : float64 array (K,)
            Weights that sum to one.
        widths : float64 array (K, n)
            Variances along each axis.
        full : bool
            Whether to compute the matrix, or its diagonal only.
        """
        if full:
            return cls(weighted_squares(deviations, shares, full) + np.diag(shares @ widths))
        return cls(shares @ (deviations**2 + widths))

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

    @property
    def squared_norm(self) -> float:
        """The sum of the squares of all known entries."""
        return float((self.values**2).sum())

    def __add__(self, other: "SecondMoment") -> "SecondMoment":
        return SecondMoment(self.values + other.values)

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

    def masked(self, kept: BoolArray) -> "SecondMoment":
        """Zero where a row or column is not `kept` (n,)."""
        return SecondMoment(self.values * self._outer(kept))

    def replaced(self, kept: BoolArray, variances: FloatArray) -> "SecondMoment":
        """The columns that are not `kept` (n,) with these variances (n,), and uncorrelated."""
        other = np.diag(variances) if self.is_full else variances
        return SecondMoment(np.where(self._outer(kept), self.values, other))

    def times_rows(self, x: FloatArray) -> FloatArray:
        """x (N, n) times `matrix`."""
        return np.asarray(x @ self.values if self.is_full else x * self.values)

    def inner(self, other: "SecondMoment") -> float:
        """The sum of the products of entries: the Frobenius inner product, of what is known."""
        return float((self.values * other.values).sum())

    def _outer(self, v: Array) -> Array:
        """v v^T, or its diagonal, as `values` is."""
        return np.outer(v, v) if self.is_full else v * v
