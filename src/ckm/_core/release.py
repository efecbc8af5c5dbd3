"""`Release`: the sums of a sketch with noise on them, and what that says about privacy.

A release is one vector of whole numbers with discrete Gaussian noise of one variance on each. A row
within the bounds adds to it, for m frequencies and n columns,

    the pair of each frequency        of squared length at most PAIR_BOUND    (`ckm._core.tally`)
    count_step                        to the number of rows
    first_step  rint(2^16 u)          to each column, u in [-1, 1]            (`ckm._core.bounds`)
    second_step rint(2^16 u^2)        to each column,

so that with or without the row its squared length differs by at most

    Delta^2 = m PAIR_BOUND + count_step^2 + n 2^32 (first_step^2 + second_step^2).

A row of weight w counts as w rows, w a whole number up to a public cap, and differs by w Delta.

The steps are whole numbers that share the budget out: most of it to the frequencies, which say
nearly everything.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ckm._core.bounds import GRID
from ckm._core.budget import Budget
from ckm._core.tally import PAIR_BOUND, UNIT
from ckm._util.arrays import Array, ComplexArray, FloatArray, Frozen, IntArray, read_only
from ckm.errors import MismatchError

# Squared length of the rest of a row's contribution, as shares of that of its m pairs: for the
# number of rows, the sums of columns and the sums of their squares. `benchmarks.privacy` shows the
# SSE at a quarter and at four times each.
COUNT_SHARE = 0.04
FIRST_SHARE = 0.04
SECOND_SHARE = 0.02


@dataclass(frozen=True)
class Steps:
    """What one row adds, at most, beside its pairs: whole numbers that depend on m and n alone."""

    count: int
    first: int
    second: int

    @classmethod
    def of(cls, m: int, n: int) -> "Steps":
        """The steps for m frequencies in n columns."""
        length = math.sqrt(m) / UNIT
        column = length / math.sqrt(n) / GRID
        return cls(
            max(1, round(length * math.sqrt(COUNT_SHARE))),
            max(1, round(column * math.sqrt(FIRST_SHARE))),
            max(1, round(column * math.sqrt(SECOND_SHARE))),
        )


def squared_sensitivity(m: int, n: int) -> int:
    """Delta^2: the squared length of the most that one row can add, in units of UNIT^2."""
    steps = Steps.of(m, n)
    return m * PAIR_BOUND + steps.count**2 + n * GRID**2 * (steps.first**2 + steps.second**2)


@dataclass(frozen=True, eq=False)
class Release(Frozen):
    """Noised sums, and what they reveal at most.

    Parameters
    ----------
    sums : int64 array (2, m)
        Sums of cosines and sines in multiples of UNIT, with noise.
    count : int
        Number of rows times `Steps.count`, with noise.
    first, second : int64 arrays (n,)
        Sums of columns and of their squares, times their steps, with noise.
    variance : int
        The variance of the noise on each of these numbers.
    budget : Budget
        Epsilon, delta and rho, and what one unit is.
    max_weight : int
        The public cap on weights; one if there is none.
    """

    sums: Array
    count: int
    first: IntArray
    second: IntArray
    variance: int
    budget: Budget
    max_weight: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", read_only(self.sums, np.int64))
        object.__setattr__(self, "first", read_only(self.first, np.int64))
        object.__setattr__(self, "second", read_only(self.second, np.int64))

    @property
    def m(self) -> int:
        """The number of frequencies."""
        return int(self.sums.shape[1])

    @cached_property
    def steps(self) -> Steps:
        """What one row adds beside its pairs."""
        return Steps.of(self.m, len(self.first))

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a sum of cosines, in rows."""
        return math.sqrt(self.variance) * UNIT

    @property
    def size(self) -> float:
        """The number of rows, or their weight, as far as it is known: at least one."""
        return max(1.0, self.count / self.steps.count)

    @property
    def count_deviation(self) -> float:
        """The standard deviation of the noise on the number of rows."""
        return math.sqrt(self.variance) / self.steps.count

    @property
    def z(self) -> ComplexArray:
        """The sketch with noise, complex (m,)."""
        cosines, sines = self.sums.astype(np.float64) * (UNIT / self.size)
        return np.asarray(cosines - 1j * sines)

    @property
    def feature_variance(self) -> float:
        """E |noise|^2 on one number of `z`."""
        return 2 * (self.deviation / self.size) ** 2

    @property
    def sample_size(self) -> float:
        """The number of unweighted rows whose mean varies as that of the rows, at most.

        The squares of weights up to W add up to at most W times the weights.
        """
        return max(1.0, self.size / self.max_weight)

    def column_means(self) -> tuple[FloatArray, FloatArray]:
        """Means of u and of u^2 from the sums of columns (n,), with the noise that is on them."""
        first = self.first / (self.steps.first * GRID * self.size)
        second = self.second / (self.steps.second * GRID * self.size)
        return np.asarray(first), np.asarray(second)

    @property
    def mean_deviations(self) -> tuple[float, float]:
        """The standard deviations of that noise, on a mean of u and on one of u^2."""
        noise = math.sqrt(self.variance) / (GRID * self.size)
        return noise / self.steps.first, noise / self.steps.second

    def plus(self, other: "Release", budget: Budget) -> "Release":
        """The release of the rows of both, with the budget of both together."""
        if self.sums.shape != other.sums.shape or self.first.shape != other.first.shape:
            raise MismatchError("These releases have different frequencies.")
        return replace(
            self,
            sums=self.sums + other.sums,
            count=self.count + other.count,
            first=self.first + other.first,
            second=self.second + other.second,
            variance=self.variance + other.variance,
            budget=budget,
        )

    def identity(self) -> tuple[object, ...]:
        """What equality of sketches compares."""
        arrays = (self.sums.tobytes(), self.first.tobytes(), self.second.tobytes())
        return (*arrays, self.count, self.variance, self.budget)
