"""Sums over rows: the part of a sketch that kernels compute and workers send back."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ckm._core.bounds import BoundedSums
from ckm._core.column_sums import ColumnSums
from ckm._core.moments import SecondMoment, nearest_possible_moments, second_moment_shape
from ckm._util.arrays import Array, FloatArray, Frozen, read_only
from ckm.errors import DataError, MismatchError

# Cosines and sines are rounded to multiples of this unit, so that their sums are sums of integers:
# exact in any order.
UNIT = 2.0**-22

# The longest pair that one row adds to one frequency, c^2 + s^2 in units of UNIT^2: found by trying
# every phase (`tests/kernels/test_pair_bound.py`). It is what private releases rely on.
PAIR_BOUND = 17_592_204_107_592  # (1 + 1.03e-6) 2^44

# Rows whose sums fit int64: each adds at most 1 / UNIT, and one more for rounding.
MAX_EXACT_ROWS = (2**63 - 1) // (2**22 + 1)
# Rows that files can count.
MAX_ROWS = 2**63 - 1
# Total weights whose products with the squares of float32 numbers neither overflow nor vanish.
MIN_WEIGHT = 1e-200
MAX_WEIGHT = 1e200

# Weights are rounded when they are summed, so that a total may fall below a part by this share.
WEIGHT_TOLERANCE = 1e-9
# Cosines are rounded, so that a sum may exceed the total weight by this share of it.
SUM_TOLERANCE = 1e-6
# What rounding may leave of squared weights that were all subtracted, as a share of them.
_SQUARES_TOLERANCE = 1e-12

_Sums = TypeVar("_Sums")


@dataclass(frozen=True, eq=False)
class Tally(Frozen):
    """Sums over rows x with weights beta, for frequencies that are stored elsewhere.

    Adding the tallies of two sets of rows gives the tally of all the rows.

    Parameters
    ----------
    sums : int64 or float64 array (2, m)
        Sums of beta cos(omega^T (x - origin)) and beta sin(omega^T (x - origin)), in multiples of
        `UNIT`. Integers if the rows are unweighted and the kernel is exact, else float64 (in which
        whole-number weights still add up exactly, below 2**31 of total weight). See `repeated`.
    weight : float
        Total weight.
    count : int
        Number of rows.
    lower, upper : float64 arrays (n,)
        Smallest and largest value of each column; +inf and -inf without rows.
    first : float64 array (n,)
        Sum of beta (x - origin).
    second : float64 array (n, n) or (n,)
        Sum of beta (x - origin)(x - origin)^T, or its diagonal, see `ckm._core.moments`.
    tight : bool
        Whether `lower` and `upper` are attained. They are outer bounds once rows were subtracted.
    columns : ColumnSums, optional
        For rows that are projected, sums over their own columns; all else is then of their
        projections.
    squared_weight : float, optional
        Sum of beta^2, from which the variance of a weighted mean is known. Of exact sums, it is
        their count if it is not given; None for other rows if it is not known, as in files of
        earlier versions.
    bounded : BoundedSums, optional
        For frequencies with public bounds, sums over the rows within them.
    """

    sums: Array
    weight: float
    count: int
    lower: FloatArray
    upper: FloatArray
    first: FloatArray
    second: FloatArray
    tight: bool = True
    columns: ColumnSums | None = None
    squared_weight: float | None = None
    bounded: BoundedSums | None = None

    def __post_init__(self) -> None:
        kind = np.int64 if np.asarray(self.sums).dtype.kind == "i" else np.float64
        squares = self.squared_weight
        if squares is None and kind is np.int64:
            squares = float(self.count)
        # Squares of the smallest and largest weights are not numbers any more.
        is_known = squares is not None and (0 < squares < math.inf or self.count == 0)
        object.__setattr__(self, "squared_weight", squares if is_known else None)
        object.__setattr__(self, "sums", read_only(self.sums, kind))
        for name in ("lower", "upper", "first", "second"):
            # Adding zero turns -0.0 into 0.0, so that bounds do not depend on which zero came
            # first.
            array = np.add(getattr(self, name), 0.0, dtype=np.float64, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def empty(
        cls, m: int, n: int, width: int | None = None, *, has_bounds: bool = False
    ) -> "Tally":
        """The tally of zero rows: the exact identity of `+`. `width` is the number of columns of
        rows that are projected, and `has_bounds` whether the frequencies have public bounds.
        """
        return cls(
            np.zeros((2, m), np.int64),
            0.0,
            0,
            np.full(n, np.inf),
            np.full(n, -np.inf),
            np.zeros(n),
            np.zeros(second_moment_shape(m, n)),
            columns=None if width is None else ColumnSums.empty(width),
            bounded=BoundedSums.empty(n) if has_bounds else None,
        )

    def emptied(self) -> "Tally":
        """The tally of zero rows of the same shapes."""
        width = None if self.columns is None else len(self.columns.first)
        n = len(self.first)
        return Tally.empty(self.sums.shape[1], n, width, has_bounds=self.bounded is not None)

    @classmethod
    def owning(
        cls,
        sums: Array,
        weight: float,
        count: int,
        lower: FloatArray,
        upper: FloatArray,
        first: FloatArray,
        second: FloatArray,
        squared_weight: float | None,
    ) -> "Tally":
        """A tally of these arrays themselves, without copies or checks: for the fastest kernels.

        The arrays must be read-only, shared with nobody, of the right types, and without -0.0.
        """
        tally = cls.__new__(cls)
        tally.__dict__.update(
            sums=sums,
            weight=weight,
            count=count,
            lower=lower,
            upper=upper,
            first=first,
            second=second,
            tight=True,
            columns=None,
            squared_weight=squared_weight,
            bounded=None,
        )
        return tally

    @property
    def exact(self) -> bool:
        """Whether the sums are integers: identical for any order, split and merge of the rows."""
        return self.sums.dtype.kind == "i"

    def repeated(self) -> "Tally":
        """The same sums, of whole-number weights, as those of rows that are there so many times.

        A row of weight w counts as w rows, and sums are integers. They must be exact: those of a
        block of rows are, with weights up to `ckm._core.bounds.LARGEST_CAP`.
        """
        return replace(self, sums=self.sums.astype(np.int64), count=int(self.weight))

    @property
    def effective_size(self) -> float | None:
        """The number of unweighted rows whose mean varies as much as that of these rows,
        (sum of beta)^2 / sum of beta^2; None if it is not known.
        """
        if self.squared_weight is None:
            return None
        return self.weight * (self.weight / self.squared_weight) if self.count else 0.0

    @property
    def second_moment(self) -> SecondMoment:
        """`second` as a value that is full or diagonal."""
        return SecondMoment(self.second)

    def require_capacity(self) -> None:
        """Raise `DataError` if there are more rows or weight than these sums can hold."""
        if self.exact and self.count > MAX_EXACT_ROWS:
            raise DataError(
                f"{self.count:,} rows are more than exact sums can hold ({MAX_EXACT_ROWS:,}); keep "
                "them in several sketches, or add rounded sums: a.scaled(0.5) + b.scaled(0.5)."
            )
        if self.count > MAX_ROWS:
            raise DataError(
                f"{self.count:,} rows are more than a sketch can count (2**63 - 1); "
                "keep them in several sketches."
            )
        if self.count and not MIN_WEIGHT <= self.weight <= MAX_WEIGHT:
            raise DataError(
                f"The weights of the rows add up to {self.weight:g}, where a sketch holds "
                f"{MIN_WEIGHT:g} to {MAX_WEIGHT:g}; multiply all weights by one number."
            )

    def __add__(self, other: "Tally") -> "Tally":
        if not isinstance(other, Tally):
            return NotImplemented
        total = self._sum(other)
        if total.count > MAX_EXACT_ROWS:
            total.require_capacity()
        return total

    def _sum(self, other: "Tally") -> "Tally":
        return Tally(
            self.sums + other.sums,
            self.weight + other.weight,
            self.count + other.count,
            np.minimum(self.lower, other.lower),
            np.maximum(self.upper, other.upper),
            self.first + other.first,
            self.second + other.second,
            self.tight and other.tight,
            _both(self.columns, other.columns, operator.add),
            self._squared_weight_with(other),
            _both(self.bounded, other.bounded, operator.add),
        )

    def _squared_weight_with(self, other: "Tally") -> float | None:
        if self.squared_weight is None or other.squared_weight is None:
            return None
        return self.squared_weight + other.squared_weight

    def __sub__(self, other: "Tally") -> "Tally":
        """The tally without rows that were added before; MismatchError if they cannot have been."""
        if not isinstance(other, Tally):
            return NotImplemented
        count = self._remaining_count(other)
        if count < 0 or other.weight > self.weight * (1 + WEIGHT_TOLERANCE):
            raise MismatchError(
                f"Cannot take {other.count} rows of weight {other.weight:g} away from {self.count} "
                f"of weight {self.weight:g}: subtract only rows that were added before."
            )
        sums = self.sums - other.sums
        weight = self.weight - other.weight
        if not self._can_contain(other, sums, weight, count):
            raise MismatchError(
                "These rows were not all in the sketch: subtract only rows that were added before."
            )
        # A weight of next to nothing or below is what rounding left of the weights that were added.
        if count == 0 or weight < MIN_WEIGHT:
            return self.emptied()
        return Tally(
            sums if sums.dtype.kind == "i" else _shortened(sums, weight),
            weight,
            count,
            self.lower,
            self.upper,
            self.first - other.first,
            self.second - other.second,
            self.tight and other.count == 0,
            _both(self.columns, other.columns, operator.sub),
            self._squared_weight_without(other, weight),
            _both(self.bounded, other.bounded, operator.sub),
        )

    def _squared_weight_without(self, other: "Tally", weight: float) -> float | None:
        """The squared weights of the rows that are left, which have this weight; None if rounding
        may have made what is left of them.
        """
        if self.squared_weight is None or other.squared_weight is None:
            return None
        squares = self.squared_weight - other.squared_weight
        # Whole numbers, of which nothing is lost.
        if self.exact and other.exact:
            return max(squares, weight)
        if squares <= _SQUARES_TOLERANCE * self.squared_weight:
            return None
        return min(squares, weight * weight)

    def _remaining_count(self, other: "Tally") -> int:
        """The number of rows without those of `other`.

        Scaling rounds counts up, so that those of parts may add up to more than the whole.
        """
        count = self.count - other.count
        may_be_rounded = not (self.exact or self.tight)
        if count > 0 or not may_be_rounded:
            return count
        return 1 if self.weight - other.weight > SUM_TOLERANCE * self.weight else 0

    def _can_contain(self, other: "Tally", sums: Array, weight: float, count: int) -> bool:
        """Whether `other` may be part of these rows, given sums, weight and count of the rest."""
        # Outer bounds of the other rows may be wider than those of all.
        has_bounds = other.count > 0 and other.tight
        # Projections that are not exact differ in their last bits, and so do their bounds.
        if self.columns is not None and not (self.exact and other.exact):
            has_bounds = False
        if has_bounds and ((other.lower < self.lower).any() or (other.upper > self.upper).any()):
            return False
        # Exact sums of the remaining rows are known exactly, others to the rounding of all rows.
        is_exact = sums.dtype.kind == "i"
        slack = SUM_TOLERANCE * (weight if is_exact else self.weight)
        # The pair of a row has length one: larger sums cannot be those of the remaining rows.
        if (_lengths(sums) > max(weight, 0.0) + slack).any():
            return False
        return count != 0 or abs(weight) <= slack

    def with_possible_moments(self, origin: FloatArray) -> "Tally":
        """The same tally, with the nearest moments that rows within the bounds can have.

        Subtracting a large number of rows may leave little more than rounding errors of moments.
        """
        if self.count == 0:
            return self
        moments = nearest_possible_moments(
            self.first / self.weight,
            self.second_moment / self.weight,
            self.lower - origin,
            self.upper - origin,
        )
        if moments is None:
            return self
        mean, second = moments
        return replace(self, first=self.weight * mean, second=self.weight * second.values)

    def scaled(self, factor: float) -> "Tally":
        """The same rows with their weights times `factor`.

        The count becomes that share of the rows, rounded up, and bounds become outer bounds. Rows
        are forgotten when their total weight falls below `MIN_WEIGHT`.
        """
        if factor == 1 or self.count == 0:
            return self
        if factor * self.weight < MIN_WEIGHT:
            return self.emptied()
        return Tally(
            factor * self.sums,
            factor * self.weight,
            math.ceil(factor * self.count),
            self.lower,
            self.upper,
            factor * self.first,
            factor * self.second,
            tight=False,
            columns=None if self.columns is None else self.columns.scaled(factor),
            squared_weight=None if self.squared_weight is None else factor**2 * self.squared_weight,
        )


def sum_of_squares(weights: FloatArray) -> float:
    """Sum of beta^2 of weights (N,); infinite if it is too large for a number."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.dot(weights, weights))


def _both(
    a: _Sums | None, b: _Sums | None, combine: Callable[[_Sums, _Sums], _Sums]
) -> _Sums | None:
    return None if a is None or b is None else combine(a, b)


def _lengths(sums: Array) -> FloatArray:
    """The length of each pair of sums (2, m), in units of weight (m,)."""
    cosines, sines = sums.astype(np.float64) * UNIT
    return np.asarray(np.hypot(cosines, sines))


def _shortened(sums: FloatArray, weight: float) -> FloatArray:
    """Sums (2, m) that rounding made longer than `weight`, cut to this length."""
    lengths = _lengths(sums)
    return np.asarray(sums * (weight / np.maximum(lengths, weight)))
