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

P has d n numbers, too many for millions of columns. There, P is random: each column has one entry,
1 or -1, in a line drawn at random, so that it takes two bytes per column. Squared distances of y
are those of x on average, with a standard deviation of about sqrt(2 / d) of themselves where no
column has much of them (Li, Hastie and Church, 2006, show it for far fewer entries).
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ckm._messages import Argument
from ckm._util.arrays import Array, Float32Array, FloatArray, Frozen, IntArray, read_only
from ckm.errors import ParameterError

# Numbers of P, at most: 256 MB. Beyond that P has one entry, 1 or -1, per column.
MAX_ENTRIES = 2**26


@dataclass(frozen=True, eq=False)
class Projection(Frozen):
    """A linear map from n columns to d.

    Parameters
    ----------
    axes : float32 array (d, n), or int16 array (n,)
        P, for columns in their `units`. Principal axes are orthonormal; any matrix will do. Whole
        numbers stand for one entry per column: j + 1 for 1 in line j, -(j + 1) for -1.
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
    >>> signed = Projection(np.array([1, -2, 2, 1], np.int16))
    >>> signed.reduce(np.array([3.0, 4.0, 5.0, 6.0]))
    array([9., 1.])
    """

    axes: Array
    origin: FloatArray | None = None
    units: FloatArray | None = None
    kept: float | None = None

    def __post_init__(self) -> None:
        axes = np.asarray(self.axes)
        kind = np.int16 if axes.ndim == 1 and axes.dtype == np.int16 else np.float32
        with np.errstate(over="ignore"):
            object.__setattr__(self, "axes", read_only(axes, kind))
        for name in ("origin", "units"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, read_only(value, np.float64))
        self._check()

    @classmethod
    def random(cls, d: int, n: int, rng: np.random.Generator) -> "Projection":
        """A projection from n columns to d, n at least d, with one entry per column: as many in
        each line, up to one.
        """
        lines = rng.permutation(np.arange(n, dtype=np.int64) % d) + 1
        signs = 2 * rng.integers(2, size=n) - 1
        return cls((signs * lines).astype(np.int16))

    @property
    def is_signed(self) -> bool:
        """Whether P has one entry per column, 1 or -1."""
        return self.axes.ndim == 1

    def _check(self) -> None:
        if self.is_signed:
            self._check_signed()
            return
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

    def _check_signed(self) -> None:
        is_plain = self.origin is None and self.units is None
        if not is_plain or not len(self.axes) or not self.axes.all() or not self.counts.all():
            raise ParameterError(
                "A ",
                Argument("projection"),
                " of signs must have an entry in each column and each line, and neither origin nor "
                "units.",
            )

    @cached_property
    def lines(self) -> IntArray:
        """The line that each column has its entry in (n,), of signs."""
        return read_only(np.abs(self.axes.astype(np.int64)) - 1)

    @cached_property
    def counts(self) -> IntArray:
        """The number of entries of each line (d,), of signs."""
        return read_only(np.bincount(self.lines))

    @property
    def gram(self) -> FloatArray:
        """P P^T (d, d), for columns in their units."""
        if self.is_signed:
            return np.diag(self.counts.astype(np.float64))
        axes = self.axes.astype(np.float64)
        return np.asarray(axes @ axes.T)

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
        return len(self.counts) if self.is_signed else int(self.axes.shape[0])

    @property
    def n(self) -> int:
        """The number of columns."""
        return int(self.axes.shape[-1])

    @cached_property
    def coefficients(self) -> Float32Array:
        """P of the specification, for columns as they are: float32 (d, n)."""
        if self.is_signed:
            signs = np.zeros((self.d, self.n), np.float32)
            signs[self.lines, np.arange(self.n)] = np.sign(self.axes)
            return read_only(signs)
        if self.units is None:
            return self.axes
        with np.errstate(over="ignore"):
            return read_only(self.axes / self.units, np.float32)

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
        if self.is_signed:
            return np.asarray((y / self.counts)[..., self.lines] * np.sign(self.axes))
        # Times the pseudo-inverse of P, which for orthonormal axes is their transpose.
        wide = (y @ np.linalg.inv(self.gram)) @ self.axes.astype(np.float64)
        return np.asarray(wide if self.units is None else wide * self.units)

    def centred(self, x: FloatArray) -> FloatArray:
        """Points of the data (..., n) relative to the origin."""
        return np.asarray(x, np.float64) if self.origin is None else np.asarray(x - self.origin)

    def absolute(self, x: FloatArray) -> FloatArray:
        """Points relative to the origin (..., n) in the coordinates of the data."""
        return np.asarray(x if self.origin is None else x + self.origin)

    def reduce(self, x: FloatArray) -> FloatArray:
        """The projection of a few points (..., n) in float64, where rounding does not matter."""
        if self.is_signed:
            points = (np.atleast_2d(x) * np.sign(self.axes)).reshape(-1, self.n)
            y = np.stack([np.bincount(self.lines, point, minlength=self.d) for point in points])
            return np.asarray(y.reshape((*np.shape(x)[:-1], self.d)))
        return np.asarray(self.centred(x) @ self.coefficients.T.astype(np.float64))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of matrix, origin and units: 64 hexadecimal digits."""
        digest = hashlib.sha256(f"ckm projection {self.d} {self.n}\n".encode())
        digest.update(self.axes.astype("<i2" if self.is_signed else "<f4").tobytes())
        for name in ("origin", "units"):
            value = getattr(self, name)
            digest.update(name.encode() if value is None else value.astype("<f8").tobytes())
        return digest.hexdigest()
