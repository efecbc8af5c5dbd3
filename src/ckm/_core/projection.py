"""`Projection`: the few numbers that stand for a wide row, y = P (x - origin).

Frequencies of a sketch of wide rows lie in a subspace: Omega = Omega_d P, so that the phases of a
row are those of y, which has d numbers where the row has n. P belongs to the design of a sketch, as
frequencies do.

The arithmetic is specified, so that y is bit-identical on every CPU, whatever the number of
threads, and for sparse and dense rows alike:

    x_c = float32(float64(row_c) - origin_c)                      float32(row_c) without an origin
    y_j = 0,  then  y_j = fma(p_jc, x_c, y_j)  for c = 0 .. n-1   float32

A zero changes nothing, so rows that are mostly zeros are projected from their other numbers, in the
order of their columns, if there is no origin.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ckm._messages import Argument
from ckm._util.arrays import Float32Array, FloatArray, Frozen, read_only
from ckm.errors import ParameterError

# Numbers of P, at most: 256 MB.
MAX_ENTRIES = 2**26


@dataclass(frozen=True, eq=False)
class Projection(Frozen):
    """A linear map from n columns to d.

    Parameters
    ----------
    axes : float32 array (d, n)
        P, for columns in their `units`. Principal axes are orthonormal; any matrix will do.
    origin : float64 array (n,), optional
        Subtracted from every row first; zero if it is None.
    units : float64 array (n,), optional
        The unit of each column, if columns were standardised.
    kept : float, optional
        The share of the variance that lies along the axes, in the sample that they were chosen on.

    Examples
    --------
    >>> import numpy as np
    >>> first_two = Projection(np.eye(2, 5))
    >>> first_two.d, first_two.n
    (2, 5)
    >>> first_two.lift(np.array([[3.0, 4.0]]))
    array([[3., 4., 0., 0., 0.]])
    """

    axes: Float32Array
    origin: FloatArray | None = None
    units: FloatArray | None = None
    kept: float | None = None

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):
            object.__setattr__(self, "axes", read_only(self.axes, np.float32))
        for name in ("origin", "units"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, read_only(value, np.float64))
        self._check()

    def _check(self) -> None:
        shape = self.axes.shape
        if len(shape) != 2 or not 0 < shape[0] <= shape[1]:
            raise ParameterError(
                "A ",
                Argument("projection"),
                f" must be a matrix (d, n) with 1 <= d <= n; got shape {shape}.",
            )
        for name in ("origin", "units"):
            value = getattr(self, name)
            if value is not None and (value.shape != shape[1:] or not np.isfinite(value).all()):
                raise ParameterError(
                    Argument(name), f" must be {shape[1]} finite numbers, one for each column."
                )
        if self.units is not None and not (self.units > 0).all():
            raise ParameterError(Argument("units"), " must be positive.")
        if not np.isfinite(self.coefficients).all() or not self._has_full_rank:
            raise ParameterError(
                "The lines of a ",
                Argument("projection"),
                " must be finite in float32 and linearly independent.",
            )

    @property
    def _has_full_rank(self) -> bool:
        lengths = np.sqrt((self.axes.astype(np.float64) ** 2).sum(axis=1))
        if not (lengths > 0).all():
            return False
        lines = self.axes / lengths[:, None]
        return bool(np.linalg.eigvalsh(lines @ lines.T)[0] > 1e-9)

    @property
    def d(self) -> int:
        """The number of numbers that stand for a row."""
        return int(self.axes.shape[0])

    @property
    def n(self) -> int:
        """The number of columns."""
        return int(self.axes.shape[1])

    @cached_property
    def coefficients(self) -> Float32Array:
        """P of the specification, for columns as they are: float32 (d, n)."""
        if self.units is None:
            return self.axes
        with np.errstate(over="ignore"):
            return read_only(self.axes / self.units, np.float32)

    @cached_property
    def _dual(self) -> FloatArray:
        """The pseudo-inverse of the axes, transposed (d, n): the axes, if they are orthonormal."""
        axes = self.axes.astype(np.float64)
        return read_only(np.linalg.solve(axes @ axes.T, axes))

    def lift(self, y: FloatArray) -> FloatArray:
        """The shortest differences of rows, in the units of the columns, with these projections.

        Parameters
        ----------
        y : float64 array (..., d)
            Differences in the d coordinates.

        Returns
        -------
        float64 array (..., n)
            Differences in the columns of the data.
        """
        wide = y @ self._dual
        return np.asarray(wide if self.units is None else wide * self.units)

    def centred(self, x: FloatArray) -> FloatArray:
        """Points of the data (..., n) relative to the origin."""
        return np.asarray(x, np.float64) if self.origin is None else np.asarray(x - self.origin)

    def absolute(self, x: FloatArray) -> FloatArray:
        """Points relative to the origin (..., n) in the coordinates of the data."""
        return np.asarray(x if self.origin is None else x + self.origin)

    def reduce(self, x: FloatArray) -> FloatArray:
        """The projection of a few points (..., n) in float64, where rounding does not matter."""
        return np.asarray(self.centred(x) @ self.coefficients.T.astype(np.float64))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of matrix, origin and units: 64 hexadecimal digits."""
        digest = hashlib.sha256(f"ckm projection {self.d} {self.n}\n".encode())
        digest.update(self.axes.astype("<f4").tobytes())
        for name in ("origin", "units"):
            value = getattr(self, name)
            digest.update(name.encode() if value is None else value.astype("<f8").tobytes())
        return digest.hexdigest()
