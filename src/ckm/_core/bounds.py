"""Public bounds of columns, and sums over rows within them: what a private release is made of.

The design of a private sketch comes from public knowledge alone. Rows are clipped to its bounds, so
that one row can change their sums by no more than the bounds say. With u = (x - middle) / half, in
[-1, 1] for each column, a clipped row adds to each column the whole numbers

    rint(2^16 u)   and   rint(2^16 u^2),

which are at most 2^16: exact in any order, and no larger than that whatever the rounding of u.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ckm._messages import Argument
from ckm._util.arrays import FloatArray, Frozen, IntArray, read_only
from ckm.errors import MismatchError, ParameterError

# Steps of half the width of a column: their rounding, at most 2^-17 for each row and mostly
# cancelling, is far below the noise of a release.
GRID = 2**16
# Half widths that float32 phases and squares can hold.
_MIN_HALF = 1e-30
_MAX_REACH = 1e30


@dataclass(frozen=True, eq=False)
class Bounds(Frozen):
    """The smallest and the largest value of each column that count.

    Parameters
    ----------
    lower, upper : float64 arrays (n,)
        Public knowledge, not taken from the rows: values beyond are moved to them.
    """

    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", read_only(self.lower, np.float64))
        object.__setattr__(self, "upper", read_only(self.upper, np.float64))
        _check(self.lower, self.upper)

    @property
    def middle(self) -> FloatArray:
        """The middle of each column (n,)."""
        return np.asarray(self.lower + (self.upper - self.lower) / 2)

    @cached_property
    def half(self) -> FloatArray:
        """Half the width of each column (n,)."""
        return read_only((self.upper - self.lower) / 2)

    def clip(self, rows: Any) -> tuple[FloatArray, int]:
        """Rows (b, n) in float64, moved to the bounds where they are beyond, and how many were.

        Rows with a value that is not a number, or infinite, are left for the kernel to refuse.
        """
        given = np.asarray(rows, np.float64)
        if not np.isfinite(given).all():
            return given, 0
        clipped = np.clip(given, self.lower, self.upper)
        return clipped, int((clipped != given).any(axis=1).sum())


def _check(lower: FloatArray, upper: FloatArray) -> None:
    name = Argument("bounds")
    if lower.ndim != 1 or lower.shape != upper.shape or not len(lower):
        raise ParameterError(
            name,
            " must be a lower and an upper value for each column, two arrays of one length; got "
            f"shapes {lower.shape} and {upper.shape}.",
        )
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        column = int(np.argmin(np.isfinite(lower) & np.isfinite(upper)))
        raise ParameterError(
            name,
            f" must be finite numbers; those of column {column} are {lower[column]:g} and "
            f"{upper[column]:g}.",
        )
    half = (upper - lower) / 2
    if not (half >= _MIN_HALF).all() or np.abs(np.concatenate([lower, upper])).max() > _MAX_REACH:
        column = int(np.argmin(half >= _MIN_HALF))
        raise ParameterError(
            name,
            f" must have a lower value below the upper one, within {_MAX_REACH:g}; those of column "
            f"{column} are {lower[column]:g} and {upper[column]:g}.",
        )


@dataclass(frozen=True, eq=False)
class BoundedSums(Frozen):
    """Whole-number sums over rows within public bounds, beside those of a tally.

    Parameters
    ----------
    first : int64 array (n,)
        Sum of rint(2^16 u).
    second : int64 array (n,)
        Sum of rint(2^16 u^2).
    clipped : int
        The number of rows that were beyond the bounds. It is known to the owner of the rows, and
        is no part of a release.
    user_cap : int, optional
        The largest number of rows that one user has, if rows beyond were left out; zero for zero
        rows.
    """

    first: IntArray
    second: IntArray
    clipped: int = 0
    user_cap: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", read_only(self.first, np.int64))
        object.__setattr__(self, "second", read_only(self.second, np.int64))

    @classmethod
    def empty(cls, n: int) -> "BoundedSums":
        """The sums over zero rows."""
        return cls(np.zeros(n, np.int64), np.zeros(n, np.int64), user_cap=0)

    @classmethod
    def of_rows(cls, bounds: Bounds, rows: FloatArray, clipped: int) -> "BoundedSums":
        """The sums over clipped rows (b, n), of which so many were beyond the bounds."""
        u = np.clip((rows - bounds.middle) / bounds.half, -1.0, 1.0)
        # Whole numbers in float64 are exact, in any order, far beyond a block of rows.
        first = np.rint(GRID * u).sum(axis=0)
        second = np.rint(GRID * (u * u)).sum(axis=0)
        return cls(first.astype(np.int64), second.astype(np.int64), clipped)

    def __add__(self, other: "BoundedSums") -> "BoundedSums":
        return BoundedSums(
            self.first + other.first,
            self.second + other.second,
            self.clipped + other.clipped,
            _joint_cap(self, other),
        )

    def __sub__(self, other: "BoundedSums") -> "BoundedSums":
        clipped = self.clipped - other.clipped
        if clipped < 0:
            raise MismatchError(
                "These rows were not all in the sketch: subtract only rows that were added before."
            )
        return BoundedSums(
            self.first - other.first, self.second - other.second, clipped, self.user_cap
        )

    def identity(self) -> tuple[object, ...]:
        """What equality of sketches compares."""
        return (self.first.tobytes(), self.second.tobytes(), self.clipped, self.user_cap)


def _joint_cap(a: BoundedSums, b: BoundedSums) -> int | None:
    """The cap of all rows: a user may have rows in both parts, up to the cap of each."""
    if a.user_cap == 0:
        return b.user_cap
    if b.user_cap == 0:
        return a.user_cap
    if (a.user_cap is None) != (b.user_cap is None):
        raise MismatchError(
            "One of these sketches holds a limited number of rows of each user, the other any "
            "number; sketch both with ",
            Argument("max_rows_per_user", ..., function="ckm.sketch"),
            ", or both without.",
        )
    if a.user_cap is None or b.user_cap is None:
        return None
    return a.user_cap + b.user_cap
