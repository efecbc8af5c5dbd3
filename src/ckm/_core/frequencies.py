"""The frequencies Omega: m vectors of R^n with an origin, as one frozen value.

The one convention of the library, written here and nowhere contradicted: data X is (N, n),
frequencies `omega` (m, n), and

    z_j = sum_l beta_l exp(-i omega_j^T (x_l - origin)) / sum_l beta_l
    (equation 3)
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ckm._core import hadamard
from ckm._core.laws import DEFAULT_DISTRIBUTION, draw_structure, find_law, multiscale
from ckm._util.arrays import Array, Frozen, read_only
from ckm._util.checks import check_variance, check_whole_number
from ckm._util.random import seed_of, stream
from ckm.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Frequencies(Frozen):
    """Where the characteristic function is sampled.

    Parameters
    ----------
    turns : float32 array (m, n), or (m,) with `signs`
        Omega divided by 2 pi. Phases are counted in turns and in float32, and `omega` is *defined*
        as 2 pi times this, so that a sketch means the same thing on every machine. Of structured
        frequencies, the lengths alone.
    origin : float64 array (n,)
        What is subtracted from every row first, so that float32 phases lose nothing on data far
        from zero.
    scale : float
        The variance sigma^2 the law was scaled to.
    distribution : str
        The law's name, see `ckm._core.laws`.
    seed : int or None
        The seed it was drawn with, for the record.
    spread : float or None
        The data's mean squared distance from the origin along an axis, where it is known: a pool is
        sampled by it.
    units : float64 array (n,) or None
        The unit of each column, where columns were standardised: distances, `scale` and `spread`
        are then measured in these units.
    signs : int8 array (1 + 2 blocks, p) or None
        What makes frequencies structured: frequency j is 2 pi turns[j] times row j of the matrices
        that `ckm._core.hadamard` makes of these.

    Two values are equal when their frequencies and origin are, bit for bit; `fingerprint` names
    that equality.
    """

    turns: Array
    origin: Array
    scale: float
    distribution: str
    seed: int | None = None
    spread: float | None = None
    units: Array | None = None
    signs: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "turns", read_only(self.turns, np.float32))
        object.__setattr__(self, "origin", read_only(self.origin, np.float64))
        object.__setattr__(self, "scale", check_variance(self.scale))
        object.__setattr__(self, "seed", None if self.seed is None else int(self.seed))
        object.__setattr__(
            self, "spread", None if self.spread is None else check_variance(self.spread)
        )
        object.__setattr__(
            self, "units", None if self.units is None else read_only(self.units, np.float64)
        )
        if self.signs is not None:
            object.__setattr__(self, "signs", read_only(self.signs, np.int8))
            self._check_structure(self.signs)
        elif (
            self.turns.ndim != 2
            or self.origin.shape != self.turns.shape[1:]
            or 0 in self.turns.shape
        ):
            raise ParameterError(
                f"Frequencies need turns of shape (m, n) and an origin of shape (n,), both at least 1; "
                f"got {self.turns.shape} and {self.origin.shape}."
            )
        if not (np.isfinite(self.turns).all() and np.isfinite(self.origin).all()):
            raise ParameterError(
                "Frequencies must be finite numbers in float32; rescale the data so that they are."
            )
        if self.units is not None and not (
            self.units.shape == self.origin.shape
            and np.isfinite(self.units).all()
            and (self.units > 0).all()
        ):
            raise ParameterError(f"Units must be {self.n} positive numbers, one for each column.")
        if self.signs is not None and not (np.isfinite(self.factors).all() and self.factors.all()):
            raise ParameterError(
                "Units must be numbers that float32 can divide by; rescale the data so that they are."
            )

    def _check_structure(self, signs: Array) -> None:
        if (
            self.turns.ndim != 1
            or self.origin.ndim != 1
            or 0 in (self.turns.size, self.origin.size)
        ):
            raise ParameterError(
                f"Structured frequencies need turns of shape (m,) and an origin of shape (n,), both at least 1; "
                f"got {self.turns.shape} and {self.origin.shape}."
            )
        expected = hadamard.signs_shape(self.m, self.n)
        if signs.shape != expected or not (np.abs(signs) == 1).all():
            raise ParameterError(
                f"{self.m} structured frequencies in dimension {self.n} need signs of shape {expected}, each 1 or -1."
            )

    @property
    def m(self) -> int:
        """The number of frequencies: the size of the sketch."""
        return int(self.turns.shape[0])

    @property
    def n(self) -> int:
        """The dimension of the data."""
        return len(self.origin)

    @cached_property
    def step(self) -> Array:
        """One standard deviation of a cluster along each column (n,), in the data's own units."""
        return read_only(
            math.sqrt(self.scale) * (np.ones(self.n) if self.units is None else self.units)
        )

    def relative(self, points: Array) -> Array:
        """Points of the data in the coordinates of the decoders: relative to the origin, in steps."""
        return np.asarray((points - self.origin) / self.step)

    def absolute(self, points: Array) -> Array:
        """Points in the coordinates of the decoders back in the data's own."""
        return np.asarray(self.origin + self.step * points)

    @cached_property
    def omega(self) -> Array:
        """The frequencies in radians, float64 (m, n)."""
        turns = self.turns.astype(np.float64)
        if self.signs is not None:
            turns = turns[:, None] * hadamard.rows(self.factors, self.m, self.n)
        return read_only(2 * np.pi * turns)

    @cached_property
    def factors(self) -> Array:
        """Of structured frequencies, what numbers are multiplied by before each round, float32 (1 +
        2 blocks, p).
        """
        assert self.signs is not None
        return read_only(hadamard.factors(self.signs, self.units))

    @cached_property
    def _widest(self) -> Array:
        """The largest turn of any frequency along each column."""
        return read_only(np.abs(self.turns).max(axis=0), np.float64)

    def max_turns(self, reach: Array, enough: float = 0.0) -> float:
        """An upper bound of the phases, in turns, of rows no farther from the origin than `reach`
        (n,) along each column.

        A rough one takes no time, and will do where it is at most `enough`.
        """
        if self.signs is None:
            rough = float(self._widest @ reach)
            return rough if rough <= enough else float((np.abs(self.turns) @ reach).max())
        farthest = np.linalg.norm(reach if self.units is None else reach / self.units)
        return float(np.abs(self.turns).max() * hadamard.row_length(self.n, whole=True) * farthest)

    @cached_property
    def fingerprint(self) -> str:
        """A name for these frequencies and this origin: 64 hexadecimal digits."""
        kind = "frequencies" if self.signs is None else "structured frequencies"
        digest = hashlib.sha256(f"ckm {kind} {self.m} {self.n}\n".encode())
        digest.update(self.turns.astype("<f4").tobytes())
        if self.signs is not None:
            digest.update(self.factors.astype("<f4").tobytes())
        digest.update(self.origin.astype("<f8").tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frequencies) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return (
            f"Frequencies(m={self.m}, n={self.n}, distribution={self.distribution!r}, scale={self.scale:.6g}, "
            f"fingerprint={self.fingerprint[:8]})"
        )


def draw_frequencies(
    m: int,
    n: int,
    *,
    scale: float = 1.0,
    distribution: str = DEFAULT_DISTRIBUTION,
    origin: Array | None = None,
    spread: float | None = None,
    units: Array | None = None,
    seed: int = 0,
) -> Frequencies:
    """Draw m frequencies in dimension n from a law scaled to the variance `scale`; "multiscale" and
    "structured" also see variances up to `spread`. Where columns have `units`, both are measured in
    them.

    Parties that may not share rows can agree on these first: the same arguments give the same
    frequencies.

    >>> draw_frequencies(100, 3, scale=2.0, seed=1) == draw_frequencies(100, 3, scale=2.0, seed=1)
    True
    """
    m, n, seed, scale = (
        check_whole_number(m, "m", 1),
        check_whole_number(n, "n", 1),
        seed_of(seed),
        check_variance(scale),
    )
    rng = stream(seed, "frequencies")
    reach = 1.0 if spread is None else check_variance(spread) / scale
    signs = None
    if distribution == "structured":
        unit, signs = draw_structure(rng, m, n, reach)
    elif distribution == "multiscale":
        unit = multiscale(rng, m, n, reach)
    else:
        unit = find_law(distribution)(rng, m, n)
    origin = np.zeros(n) if origin is None else origin
    turns = scaled_turns(unit, scale, None if distribution == "structured" else units)
    return Frequencies(turns, origin, scale, distribution, seed, spread, units, signs)


def scaled_turns(unit: Array, scale: float, units: Array | None = None) -> Array:
    """Turns of frequencies (or of their lengths) that were drawn at sigma^2 = 1."""
    with np.errstate(over="ignore"):
        turns = unit / (2 * np.pi * math.sqrt(check_variance(scale)))
        return np.asarray((turns if units is None else turns / units).astype(np.float32))
