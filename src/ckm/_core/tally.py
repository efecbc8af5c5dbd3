"""Sums over rows: the part of a sketch that kernels compute and workers send back."""

import math
from dataclasses import dataclass

import numpy as np

from ckm._core.moments import SecondMoment, second_moment_shape
from ckm._util.arrays import Array, FloatArray, Frozen, read_only
from ckm.errors import MismatchError

# Cosines and sines are rounded to multiples of this unit, so that their sums are sums of integers:
# exact in any order.
UNIT = 2.0**-22

# Weights are rounded when they are summed, so that a total may fall below a part by this share.
WEIGHT_TOLERANCE = 1e-9
# Cosines are rounded, so that a sum may exceed the total weight by this share of it.
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Tally(Frozen):
    """Sums over rows x with weights beta, for frequencies that are stored elsewhere.

    Adding the tallies of two sets of rows gives the tally of all the rows.

    Parameters
    ----------
    sums : int64 or float64 array (2, m)
        Sums of beta cos(omega^T (x - origin)) and beta sin(omega^T (x - origin)), in multiples of
        `UNIT`. Integers if the rows are unweighted and the kernel is exact, else float64 (in which
        whole-number weights still add up exactly, below 2**31 of total weight).
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
    """

    sums: Array
    weight: float
    count: int
    lower: FloatArray
    upper: FloatArray
    first: FloatArray
    second: FloatArray
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
        """The tally of zero rows: the exact identity of `+`."""
        return cls(
            np.zeros((2, m), np.int64),
            0.0,
            0,
            np.full(n, np.inf),
            np.full(n, -np.inf),
            np.zeros(n),
            np.zeros(second_moment_shape(m, n)),
        )

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
        )
        return tally

    @property
    def exact(self) -> bool:
        """Whether the sums are integers: identical for any order, split and merge of the rows."""
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
        """The tally without rows that were added before; MismatchError if they cannot have been."""
        if not isinstance(other, Tally):
            return NotImplemented
        if other.count > self.count or other.weight > self.weight * (1 + WEIGHT_TOLERANCE):
            raise MismatchError(
                f"Cannot take {other.count} rows of weight {other.weight:g} away from {self.count} "
                f"of weight {self.weight:g}: subtract only rows that were added before."
            )
        sums = self.sums - other.sums
        weight = self.weight - other.weight
        if not self._can_contain(other, sums, weight):
            raise MismatchError(
                "These rows were not all in the sketch: subtract only rows that were added before."
            )
        # A weight of zero or below is what rounding left of the weights that were added.
        if other.count == self.count or weight <= 0:
            return Tally.empty(self.sums.shape[1], len(self.first))
        return Tally(
            sums,
            weight,
            self.count - other.count,
            self.lower,
            self.upper,
            self.first - other.first,
            self.second - other.second,
            self.tight and other.count == 0,
        )

    def _can_contain(self, other: "Tally", sums: Array, weight: float) -> bool:
        """Whether `other` may be part of these rows, given the sums and the weight of the rest."""
        slack = SUM_TOLERANCE * self.weight
        if other.count and ((other.lower < self.lower).any() or (other.upper > self.upper).any()):
            return False
        # A cosine is at most one: larger sums cannot be those of the remaining rows.
        if (np.abs(sums) * UNIT > max(weight, 0.0) + slack).any():
            return False
        return other.count != self.count or abs(weight) <= slack

    def scaled(self, factor: float) -> "Tally":
        """The same rows with their weights times `factor`.

        The count becomes that share of the rows, rounded up, and bounds become outer bounds.
        """
        if factor == 1 or self.count == 0:
            return self
        return Tally(
            factor * self.sums,
            factor * self.weight,
            math.ceil(factor * self.count),
            self.lower,
            self.upper,
            factor * self.first,
            factor * self.second,
            tight=False,
        )
