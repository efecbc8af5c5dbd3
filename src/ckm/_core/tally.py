"""What one piece of data adds up to: the part of a sketch that kernels compute and workers send
back.
"""

import math
from dataclasses import dataclass

import numpy as np

from ckm._core.moments import SecondMoment, second_moment_shape
from ckm._util.arrays import Array, Frozen, read_only
from ckm.errors import MismatchError

# Cosines and sines are rounded to multiples of this unit, so that their sums are sums of integers:
# exact in any order.
UNIT = 2.0**-22


@dataclass(frozen=True, eq=False)
class Tally(Frozen):
    """Sums over rows x with weights beta, for frequencies that are known elsewhere. Adding tallies
    merges data.

    Parameters
    ----------
    sums : int64 or float64 array (2, m)
        Sums of beta cos(omega^T (x - origin)) and beta sin(...), in multiples of `UNIT`. Integers
        when the rows were unweighted and the kernel exact; float64 otherwise (whole-number weights
        still add up exactly below 2**31 of total weight).
    weight, count : float, int
        Total weight and number of rows.
    lower, upper : float64 arrays (n,)
        Smallest and largest value of each column; +inf and -inf when there are no rows.
    first : float64 array (n,)
        Sum of beta (x - origin).
    second : float64 array (n, n) or (n,)
        Sum of beta (x - origin)(x - origin)^T, or only its diagonal where n is large against m.
    tight : bool
        False once rows were subtracted: `lower` and `upper` are then outer bounds.
    """

    sums: Array
    weight: float
    count: int
    lower: Array
    upper: Array
    first: Array
    second: Array
    tight: bool = True

    def __post_init__(self) -> None:
        kind = np.int64 if np.asarray(self.sums).dtype.kind == "i" else np.float64
        object.__setattr__(self, "sums", read_only(self.sums, kind))
        for name in ("lower", "upper", "first", "second"):
            # Adding zero turns -0.0 into 0.0, so that bounds do not depend on which zero came
            # first.
            array = np.add(getattr(self, name), 0.0, dtype=np.float64, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def empty(cls, m: int, n: int) -> "Tally":
        """The tally of no rows: the exact identity of `+`."""
        second = np.zeros(second_moment_shape(m, n))
        return cls(
            np.zeros((2, m), np.int64),
            0.0,
            0,
            np.full(n, np.inf),
            np.full(n, -np.inf),
            np.zeros(n),
            second,
        )

    @classmethod
    def owning(
        cls,
        sums: Array,
        weight: float,
        count: int,
        lower: Array,
        upper: Array,
        first: Array,
        second: Array,
    ) -> "Tally":
        """A tally of these very arrays, for the fastest kernels: read-only, nobody else's, of its
        types and without -0.0.
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
        )
        return tally

    @property
    def exact(self) -> bool:
        """Whether the sums are integers, the same bits for any order, split and merge of the rows."""
        return self.sums.dtype.kind == "i"

    @property
    def second_moment(self) -> SecondMoment:
        """`second` as a value that is full or diagonal."""
        return SecondMoment(self.second)

    def __add__(self, other: "Tally") -> "Tally":
        if not isinstance(other, Tally):
            return NotImplemented
        return Tally(
            self.sums + other.sums,
            self.weight + other.weight,
            self.count + other.count,
            np.minimum(self.lower, other.lower),
            np.maximum(self.upper, other.upper),
            self.first + other.first,
            self.second + other.second,
            self.tight and other.tight,
        )

    def __sub__(self, other: "Tally") -> "Tally":
        if not isinstance(other, Tally):
            return NotImplemented
        # weights are rounded when they are summed
        if other.count > self.count or other.weight > self.weight * (1 + 1e-9):
            raise MismatchError(
                f"Cannot take {other.count} rows of weight {other.weight:g} away from {self.count} of weight {self.weight:g}: "
                f"subtract only rows that were added before."
            )
        left, weight = self.sums - other.sums, self.weight - other.weight
        # A cosine is at most one, give or take its rounding: larger sums cannot be what is left of
        # these rows.
        slack = 1e-6 * self.weight
        outside = other.count and (
            (other.lower < self.lower).any() or (other.upper > self.upper).any()
        )
        too_much = (np.abs(left) * UNIT > max(weight, 0.0) + slack).any()
        if outside or too_much or (other.count == self.count and abs(weight) > slack):
            raise MismatchError(
                "These rows were not all in the sketch: subtract only rows that were added before."
            )
        # what is left weighs less than the rounding of what was added
        if other.count == self.count or weight <= 0:
            return Tally.empty(self.sums.shape[1], len(self.first))
        return Tally(
            left,
            weight,
            self.count - other.count,
            self.lower,
            self.upper,
            self.first - other.first,
            self.second - other.second,
            self.tight and other.count == 0,
        )

    def scaled(self, factor: float) -> "Tally":
        """Every row with its weight times `factor`. What is left counts as that share of the rows,
        rounded up; bounds become outer ones.
        """
        if factor == 1 or self.count == 0:
            return self
        sums, first, second = (factor * array for array in (self.sums, self.first, self.second))
        return Tally(
            sums,
            factor * self.weight,
            math.ceil(factor * self.count),
            self.lower,
            self.upper,
            first,
            second,
            tight=False,
        )
