"""The frequencies Omega: m vectors of R^n with an origin, as one frozen value.

The sign and the normalisation of a sketch are those of equation (3) everywhere in the library: for
data X (N, n) with weights beta (N,) and frequencies omega (m, n),

    z_j = sum_l beta_l exp(-i omega_j^T (x_l - origin)) / sum_l beta_l
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ckm._core import hadamard
from ckm._core.bounds import Bounds
from ckm._core.preparation import Preparation, unprepared
from ckm._core.projection import Projection
from ckm._messages import Argument
from ckm._util.arrays import Float32Array, FloatArray, Frozen, SignArray, read_only
from ckm._util.checks import COSINE, EUCLIDEAN, check_metric, check_variance
from ckm.errors import ParameterError

# Units of columns: their standard deviations.
MIN_UNIT = 1e-45
MAX_UNIT = 1e45
# Lengths of the longest of m frequencies, times the standard deviation that they were drawn for.
# Radii are at most about 13, and structured ones are multiplied by up to 32.
MIN_LENGTH = 1e-12
MAX_LENGTH = 1e3


@dataclass(frozen=True, eq=False)
class Frequencies(Frozen):
    """The points of R^n at which a sketch samples the characteristic function of the data.

    `draw_frequencies` makes them. Two values are equal if their frequencies and origin are
    bit-identical; `fingerprint` identifies both.

    Parameters
    ----------
    turns : float32 array (m, n), or (m,) with `signs`
        The frequencies divided by 2 pi. Phases are computed in turns and in float32, and `omega` is
        defined as 2 pi times this, so that a sketch has the same meaning on every machine. For
        structured frequencies, their lengths only.
    origin : float64 array (n,)
        Subtracted from every row first, so that float32 phases are precise for data far from zero.
    scale : float
        The variance sigma^2 that the distribution was scaled to.
    distribution : str
        The name of the distribution, as in `draw_frequencies`.
    seed : int, optional
        The seed the frequencies were drawn with, for the record.
    spread : float, optional
        The variance of the data along an axis: its mean squared distance from the origin, divided
        by n. It decides how rows are sampled for a pool.
    units : float64 array (n,), optional
        The unit of each column, if columns were standardised. Distances, `scale` and `spread` are
        then measured in these units.
    signs : int8 array (1 + 2 blocks, p), optional
        The random signs of structured frequencies: frequency j is 2 pi turns[j] times row j of a
        product of Hadamard matrices with these signs.
    projection : Projection, optional
        For wide data, what maps a row to the d numbers that these frequencies are for: all else
        here is in those d coordinates, and n is d.
    metric : {"euclidean", "cosine"}, default="euclidean"
        With "cosine", each row is divided by its length before anything else: all else here is
        about unit rows.
    bounds : Bounds, optional
        Public bounds of the columns, to which rows are clipped: then nothing here comes from rows,
        and sketches can be released privately.
    preparation : Preparation, optional
        What is done to columns before anything else, such as logarithms: all else here is about
        prepared rows.

    See Also
    --------
    draw_frequencies : Draw frequencies from a distribution.

    Examples
    --------
    >>> import ckm
    >>> f = ckm.draw_frequencies(100, 3, scale=2.0, seed=1)
    >>> f.m, f.n, f.distribution
    (100, 3, 'multiscale')
    >>> f.omega.shape
    (100, 3)
    >>> f == ckm.draw_frequencies(100, 3, scale=2.0, seed=1)
    True
    """

    turns: Float32Array
    origin: FloatArray
    scale: float
    distribution: str
    seed: int | None = None
    spread: float | None = None
    units: FloatArray | None = None
    signs: SignArray | None = None
    projection: Projection | None = None
    metric: str = EUCLIDEAN
    bounds: Bounds | None = None
    preparation: Preparation | None = None

    def __post_init__(self) -> None:
        self._set(
            turns=read_only(self.turns, np.float32),
            origin=read_only(self.origin, np.float64),
            scale=check_variance(self.scale, "scale"),
            seed=None if self.seed is None else int(self.seed),
            spread=None if self.spread is None else check_variance(self.spread, "spread"),
            units=None if self.units is None else read_only(self.units, np.float64),
        )
        if self.signs is not None:
            self._set(signs=read_only(self.signs, np.int8))
        self._check_shapes()
        if not (np.isfinite(self.turns).all() and np.isfinite(self.origin).all()):
            raise ParameterError(
                "Frequencies must be finite numbers in float32; rescale the data so that they are."
            )
        self._check_units()
        self._check_projection()
        self._check_metric()
        self._check_bounds()

    def _set(self, **values: Any) -> None:
        """Set fields of this frozen value while it is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_shapes(self) -> None:
        shapes = (self.turns.shape, self.origin.shape)
        is_dense = self.signs is None
        if (
            self.turns.ndim != (2 if is_dense else 1)
            or self.origin.ndim != 1
            or (is_dense and self.origin.shape != self.turns.shape[1:])
            or 0 in (*self.turns.shape, *self.origin.shape)
        ):
            raise ParameterError(
                "Frequencies need " if is_dense else "Structured frequencies need ",
                Argument("turns"),
                f" of shape {'(m, n)' if is_dense else '(m,)'} and an ",
                Argument("origin"),
                f" of shape (n,), both at least 1; got {shapes[0]} and {shapes[1]}.",
            )
        if self.signs is None:
            return
        expected = hadamard.signs_shape(self.m, self.n)
        if self.signs.shape != expected or not (np.abs(self.signs) == 1).all():
            raise ParameterError(
                f"{self.m} structured frequencies in dimension {self.n} need ",
                Argument("signs"),
                f" of shape {expected}, each 1 or -1.",
            )

    def _check_units(self) -> None:
        if self.units is not None and not (
            self.units.shape == self.origin.shape
            and (self.units >= MIN_UNIT).all()
            and (self.units <= MAX_UNIT).all()
        ):
            raise ParameterError(
                Argument("units"),
                f" must be {self.n} positive numbers, one for each column, from {MIN_UNIT:g} to "
                f"{MAX_UNIT:g}.",
            )
        if self.signs is not None and not (np.isfinite(self.factors).all() and self.factors.all()):
            raise ParameterError(
                Argument("units"),
                " must be numbers that float32 can divide by; rescale the data so that they are.",
            )

    def _check_projection(self) -> None:
        if self.projection is None:
            return
        if self.projection.d != self.n or self.units is not None:
            raise ParameterError(
                f"Frequencies in dimension {self.n} need a ",
                Argument("projection"),
                f" to as many numbers, which has the units; got one to {self.projection.d}.",
            )

    def _check_metric(self) -> None:
        check_metric(self.metric)
        if self.metric == COSINE and self.column_units is not None:
            raise ParameterError(
                Argument("metric", COSINE),
                " divides each row by its length, which columns in units of their own do not have; "
                "leave out ",
                Argument("units", ...),
                ".",
            )

    def _check_bounds(self) -> None:
        """Refuse bounds of rows that are not summed as they are."""
        if self.bounds is None:
            return
        if self.bounds.lower.shape != self.origin.shape:
            raise ParameterError(
                Argument("bounds"),
                f" of {len(self.bounds.lower)} columns do not fit frequencies in dimension "
                f"{self.n}; give one lower and one upper value for each column.",
            )
        if self.projection is not None or self.metric == COSINE:
            raise ParameterError(
                Argument("bounds"),
                " are for rows that are neither projected nor divided by their lengths; leave out ",
                Argument("projection", ...),
                " and ",
                Argument("metric", ...),
                ".",
            )

    def require_possible_lengths(self) -> None:
        """Raise `ParameterError` unless some law draws frequencies this long at this scale."""
        if self.signs is None:
            longest = float((self._largest_turns * self.step).max())
        else:
            row = hadamard.row_length(self.n, whole=True)
            longest = float(np.abs(self.turns).max()) * row * math.sqrt(self.scale)
        length = 2 * np.pi * longest
        shortest = MIN_LENGTH
        # A single frequency may have been drawn for the standard deviation of the data.
        if self.m == 1 and self.spread is not None:
            shortest *= math.sqrt(min(1.0, self.scale / self.spread))
        if not shortest <= length <= MAX_LENGTH:
            raise ParameterError(
                f"Frequencies of the length {length:.3g} cannot be for ",
                Argument("scale", self.scale),
                ", where they are about 1, or float32 cannot hold them; rescale the data.",
            )

    @property
    def m(self) -> int:
        """The number of frequencies: the size of the sketch."""
        return int(self.turns.shape[0])

    @property
    def n(self) -> int:
        """The dimension: the number of columns of the data, or of what it is projected to."""
        return len(self.origin)

    @property
    def n_features(self) -> int:
        """The number of columns of the data."""
        return self.n if self.projection is None else self.projection.n

    @property
    def column_units(self) -> FloatArray | None:
        """The unit of each column of the data, if columns were standardised (n_features,)."""
        return self.units if self.projection is None else self.projection.units

    @property
    def row_origin(self) -> FloatArray:
        """The origin in the columns of the data, before rows are projected (n_features,)."""
        if self.projection is None:
            return self.origin
        return self.projection.absolute(np.zeros(self.projection.n))

    @property
    def fill_values(self) -> FloatArray:
        """What stands for missing values of rows as they are read, not prepared (n_features,)."""
        return unprepared(self.row_origin, self.preparation)

    @cached_property
    def step(self) -> FloatArray:
        """One standard deviation of a cluster along each column, in the data's units (n,)."""
        units = np.ones(self.n) if self.units is None else self.units
        return read_only(math.sqrt(self.scale) * units)

    def relative(self, points: FloatArray) -> FloatArray:
        """Convert points of the data to the coordinates of decoders.

        Parameters
        ----------
        points : float64 array (..., n)
            Points in the coordinates of the data.

        Returns
        -------
        float64 array (..., n)
            Their difference from the origin, in multiples of `step`.

        Examples
        --------
        >>> import numpy as np
        >>> import ckm
        >>> f = ckm.draw_frequencies(10, 2, scale=4.0, origin=np.array([1.0, 0.0]))
        >>> f.relative(np.array([3.0, 2.0]))
        array([1., 1.])
        """
        return np.asarray((points - self.origin) / self.step)

    def absolute(self, points: FloatArray) -> FloatArray:
        """Convert points in the coordinates of decoders to those of the data.

        Parameters
        ----------
        points : float64 array (..., n)
            Differences from the origin, in multiples of `step`.

        Returns
        -------
        float64 array (..., n)
            Points in the coordinates of the data: the inverse of `relative`.

        Examples
        --------
        >>> import numpy as np
        >>> import ckm
        >>> f = ckm.draw_frequencies(10, 2, scale=4.0, origin=np.array([1.0, 0.0]))
        >>> f.absolute(np.array([1.0, 1.0]))
        array([3., 2.])
        """
        return np.asarray(self.origin + self.step * points)

    @cached_property
    def omega(self) -> FloatArray:
        """The frequencies in radians, float64 (m, n)."""
        turns = self.turns.astype(np.float64)
        if self.signs is not None:
            turns = turns[:, None] * hadamard.rows(self.factors, self.m, self.n)
        return read_only(2 * np.pi * turns)

    @cached_property
    def factors(self) -> Float32Array:
        """For structured frequencies, the diagonal of each round, float32 (1 + 2 blocks, p)."""
        assert self.signs is not None
        return read_only(hadamard.factors(self.signs, self.units))

    @cached_property
    def _largest_turns(self) -> FloatArray:
        """The largest absolute value of each column of `turns` (n,)."""
        return read_only(np.abs(self.turns).max(axis=0), np.float64)

    def max_turns(self, reach: FloatArray, enough: float = 0.0) -> float:
        """An upper bound of the phases of rows within a given distance from the origin.

        Parameters
        ----------
        reach : float64 array (n,)
            The largest distance of a row from the origin along each column.
        enough : float, default=0.0
            A coarser bound, which is faster to compute, is returned if it is at most this.

        Returns
        -------
        float
            The bound, in turns.

        Examples
        --------
        >>> import numpy as np
        >>> import ckm
        >>> f = ckm.draw_frequencies(10, 2, seed=0)
        >>> reach = np.array([5.0, 5.0])
        >>> rows = np.random.default_rng(0).uniform(-5, 5, size=(100, 2))
        >>> bool(np.abs(rows @ f.omega.T / (2 * np.pi)).max() <= f.max_turns(reach))
        True
        """
        if self.signs is None:
            rough = float(self._largest_turns @ reach)
            return rough if rough <= enough else float((np.abs(self.turns) @ reach).max())
        farthest = np.linalg.norm(reach if self.units is None else reach / self.units)
        return float(np.abs(self.turns).max() * hadamard.row_length(self.n, whole=True) * farthest)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the frequencies and the origin: 64 hexadecimal digits."""
        kind = "frequencies" if self.signs is None else "structured frequencies"
        digest = hashlib.sha256(f"ckm {kind} {self.m} {self.n}\n".encode())
        digest.update(self.turns.astype("<f4").tobytes())
        if self.signs is not None:
            digest.update(self.factors.astype("<f4").tobytes())
        digest.update(self.origin.astype("<f8").tobytes())
        if self.projection is not None:
            digest.update(self.projection.fingerprint.encode())
        if self.metric != EUCLIDEAN:
            digest.update(self.metric.encode())
        if self.bounds is not None:
            digest.update(self.bounds.lower.astype("<f8").tobytes())
            digest.update(self.bounds.upper.astype("<f8").tobytes())
            if self.bounds.max_weight is not None:
                digest.update(f"max_weight {self.bounds.max_weight}".encode())
        if self.preparation is not None:
            digest.update(self.preparation.fingerprint.encode())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frequencies) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return (
            f"Frequencies(m={self.m}, n={self.n}, distribution={self.distribution!r}, "
            f"scale={self.scale:.6g}, fingerprint={self.fingerprint[:8]})"
        )
