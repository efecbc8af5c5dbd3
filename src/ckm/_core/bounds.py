"""Public bounds of columns, and sums over rows within them: what a private release is made of.

The design of a private sketch comes from public knowledge alone. Rows are clipped to its bounds, so
that one row can change their sums by no more than the bounds say. With u = (x - middle) / half, in
[-1, 1] for each column, a clipped row adds to each column the whole numbers

    rint(2^16 u)   and   rint(2^16 u^2),

which are at most 2^16: exact in any order, and no larger than that whatever the rounding of u. A
row whose weight is a whole number w counts as w rows, and w is at most a public cap.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ckm._messages import Argument
from ckm._util.arrays import FloatArray, Frozen, IntArray, read_only
from ckm._util.checks import check_whole_number
from ckm.errors import DataError, MismatchError, ParameterError

# Steps of half the width of a column: their rounding, at most 2^-17 for each row and mostly
# cancelling, is far below the noise of a release.
GRID = 2**16
# Half widths that float32 phases and squares can hold.
_MIN_HALF = 1e-30
_MAX_REACH = 1e30
# Weights whose products with the integers of a row add up exactly in float64 over two million rows,
# far more than a block has. Noise grows with the cap, so that nobody wants a larger one.
LARGEST_CAP = 1000


@dataclass(frozen=True, eq=False)
class Bounds(Frozen):
    """The smallest and the largest value of each column that count, and the largest weight.

    Parameters
    ----------
    lower, upper : float64 arrays (n,)
        Public knowledge, not taken from the rows: values beyond are moved to them.
    max_weight : int, optional
        The largest weight of a row that counts. Rows have no weights if it is None.
    """

    lower: FloatArray
    upper: FloatArray
    max_weight: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", read_only(self.lower, np.float64))
        object.__setattr__(self, "upper", read_only(self.upper, np.float64))
        _check(self.lower, self.upper)
        if self.max_weight is not None:
            object.__setattr__(self, "max_weight", _checked_cap(self.max_weight))

    @property
    def row_copies(self) -> int:
        """How many rows of weight one a row counts for, at most."""
        return self.max_weight or 1

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

    def cap(self, weights: FloatArray) -> tuple[FloatArray, int]:
        """Weights (b,), lowered to `max_weight` where they are above, and how many were.

        Only whole numbers have exact sums: DataError, which quotes no weight, for others.
        """
        assert self.max_weight is not None
        is_whole = np.rint(weights) == weights
        if not is_whole.all():
            raise DataError(
                f"{np.count_nonzero(~is_whole):,} of {len(weights):,} weights are not whole "
                "numbers, and only these have the exact sums that a private release needs. Round "
                "them, or multiply all of them by one number that does not depend on the rows and "
                "round; or sketch the rows without weights."
            )
        capped = np.minimum(weights, self.max_weight)
        return capped, int((capped != weights).sum())


def _checked_cap(value: Any) -> int:
    cap = check_whole_number(value, "max_weight", 1)
    if cap > LARGEST_CAP:
        raise ParameterError(
            Argument("max_weight", cap),
            f" is more than {LARGEST_CAP}; divide the weights by a public number, and round them.",
        )
    return cap


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
    capped : int
        The number of rows whose weight was above the cap; for the owner, too.
    user_cap : int, optional
        The largest number of rows that one user has, if rows beyond were left out; zero for zero
        rows.
    """

    first: IntArray
    second: IntArray
    clipped: int = 0
    user_cap: int | None = None
    capped: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", read_only(self.first, np.int64))
        object.__setattr__(self, "second", read_only(self.second, np.int64))

    @classmethod
    def empty(cls, n: int) -> "BoundedSums":
        """The sums over zero rows."""
        return cls(np.zeros(n, np.int64), np.zeros(n, np.int64), user_cap=0)

    @classmethod
    def of_rows(
        cls, bounds: Bounds, rows: FloatArray, weights: FloatArray | None = None
    ) -> "BoundedSums":
        """The sums over clipped rows (b, n), with whole-number weights (b,) up to the cap."""
        u = np.clip((rows - bounds.middle) / bounds.half, -1.0, 1.0)
        # Whole numbers in float64 are exact, in any order, far beyond a block of rows.
        beta = 1.0 if weights is None else weights[:, None]
        first = (beta * np.rint(GRID * u)).sum(axis=0)
        second = (beta * np.rint(GRID * (u * u))).sum(axis=0)
        return cls(first.astype(np.int64), second.astype(np.int64))

    def __add__(self, other: "BoundedSums") -> "BoundedSums":
        return BoundedSums(
            self.first + other.first,
            self.second + other.second,
            self.clipped + other.clipped,
            _joint_cap(self, other),
            self.capped + other.capped,
        )

    def __sub__(self, other: "BoundedSums") -> "BoundedSums":
        clipped = self.clipped - other.clipped
        capped = self.capped - other.capped
        if min(clipped, capped) < 0:
            raise MismatchError(
                "These rows were not all in the sketch: subtract only rows that were added before."
            )
        return BoundedSums(
            self.first - other.first,
            self.second - other.second,
            clipped,
            self.user_cap,
            capped,
        )

    def identity(self) -> tuple[object, ...]:
        """What equality of sketches compares."""
        numbers = (self.clipped, self.user_cap, self.capped)
        return (self.first.tobytes(), self.second.tobytes(), *numbers)


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
