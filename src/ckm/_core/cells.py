"""Cells: how many rows are nearest to each of some anchors, their sum, and their squared lengths.

A sketch says what is true of all rows, wherever they lie; cells say where they lie. Both are sums
over rows, so cells are added, subtracted and scaled as sketches are. Anchors belong to the design
of a sketch, as frequencies do.

The arithmetic is specified, so that cells are bit-identical for any order, split, merge, number of
threads, engine and device. For a row, with x = float32(float64(row) - origin):

    s_k = h_k,  then  s_k = fma(b_kd, x_d, s_k)  for d = 0 .. n-1              float32
        b_k = -a_k u^2 and h_k = |a_k u|^2 / 2, both rounded once, where u is the metric times a
        power of two that makes lengths about one, so that nothing overflows
    k = the first anchor with the smallest s_k (NaN is never smaller), which is the nearest one
    q_d = rint(x_d 2**e_d)                                                     a whole number
    r = 0,  then  r = r + v v  with  v = x_d metric_d,  for d = 0 .. n-1       float64
    q = rint(r 2**g)                                                           a whole number

and the cell k counts the row and adds q_d and q. Whole numbers have any size: int64 while they fit,
Python's integers beyond. Rows with weights add weight times these numbers in float64.

Of wide rows, all this is about their projections (`ckm._core.projection`), and a cell may also add
rint(x_c 2**w_c) for each of their own columns c, so that centroids are known in all columns.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.whole_numbers import INT64_MAX, add, bound, shortest, subtract
from ckm._util.arrays import (
    Array,
    Float32Array,
    FloatArray,
    Frozen,
    IntArray,
    LabelArray,
    read_only,
)
from ckm.errors import MismatchError

# Bits of a column's standard deviation in `exponents`, and of the total variance in
# `square_exponent`: fine enough that rounding does not show in the variance of tight cells, coarse
# enough that int64 holds the sums over 2**31 rows.
DEVIATION_BITS = 28
VARIANCE_BITS = 32
# Powers of two beyond which float64 products of rows in float32 would overflow or vanish.
MAX_EXPONENT = 300

# What subtraction may leave of float64 sums, relative to what was there.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Anchors(Frozen):
    """Points that rows are assigned to, and the grids on which sums over rows are whole numbers.

    Parameters
    ----------
    values : float32 array (s, n)
        The points, relative to the origin of the frequencies.
    metric : float64 array (n,)
        What columns are multiplied by before distances are measured.
    exponents : int64 array (n,)
        The columns of sums are multiples of 2**-exponents.
    square_exponent : int
        Sums of squared lengths are multiples of 2**-square_exponent.
    spread : float
        The mean squared distance to the nearest anchor in the sample that they were chosen on.
    wide_exponents : int64 array (w,), optional
        For rows that are projected, whose sums are also kept in their own w columns: those are
        multiples of 2**-wide_exponents.
    """

    values: Float32Array
    metric: FloatArray
    exponents: IntArray
    square_exponent: int
    spread: float
    wide_exponents: IntArray | None = None

    def __post_init__(self) -> None:
        if self.wide_exponents is not None:
            object.__setattr__(self, "wide_exponents", read_only(self.wide_exponents, np.int64))
        object.__setattr__(self, "values", read_only(self.values, np.float32))
        object.__setattr__(self, "metric", read_only(self.metric, np.float64))
        object.__setattr__(self, "exponents", read_only(self.exponents, np.int64))

    @classmethod
    def on_grids(
        cls, values: Array, metric: FloatArray, deviations: FloatArray, spread: float
    ) -> "Anchors":
        """Anchors with grids for rows whose columns have these standard deviations (n,)."""
        exponents = grid_exponents(deviations)
        total = float(((deviations * metric) ** 2).sum())
        square = VARIANCE_BITS - _exponent_of(total)
        return cls(values, metric, exponents, square, spread)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n(self) -> int:
        """The number of columns."""
        return int(self.values.shape[1])

    @cached_property
    def steps(self) -> FloatArray:
        """2**-exponents, float64 (n,)."""
        return read_only(np.ldexp(1.0, -self.exponents))

    @cached_property
    def wide_steps(self) -> FloatArray:
        """2**-wide_exponents, float64 (w,); none if no wide sums are kept."""
        exponents = np.empty(0, np.int64) if self.wide_exponents is None else self.wide_exponents
        return read_only(np.ldexp(1.0, -exponents))

    @cached_property
    def square_step(self) -> float:
        """2**-square_exponent."""
        return math.ldexp(1.0, -self.square_exponent)

    @cached_property
    def coefficients(self) -> Float32Array:
        """b_k of the specification, float32 (s, n)."""
        return read_only(-(self.values.astype(np.float64) * self.unit_metric**2), np.float32)

    @cached_property
    def unit_metric(self) -> FloatArray:
        """The metric times a power of two: a standard deviation of all columns is about one."""
        exponent = VARIANCE_BITS - self.square_exponent
        return np.ldexp(self.metric, -(exponent // 2))

    @cached_property
    def halves(self) -> Float32Array:
        """h_k of the specification, float32 (s,). Columns are added in order."""
        total = np.zeros(len(self))
        for d in range(self.n):
            total += (self.values[:, d].astype(np.float64) * self.unit_metric[d]) ** 2
        return read_only(total / 2, np.float32)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything but the spread: 64 hexadecimal digits."""
        digest = hashlib.sha256(f"ckm anchors {len(self)} {self.n}\n".encode())
        digest.update(self.values.astype("<f4").tobytes())
        digest.update(self.metric.astype("<f8").tobytes())
        digest.update(np.append(self.exponents, self.square_exponent).astype("<i8").tobytes())
        if self.wide_exponents is not None:
            digest.update(self.wide_exponents.astype("<i8").tobytes())
        return digest.hexdigest()

    def quantise(self, x: Float32Array) -> tuple[FloatArray, FloatArray]:
        """q_d (b, n) and q (b,) of the specification, for x (b, n): whole numbers as float64."""
        wide = x.astype(np.float64)
        squares = np.zeros(len(x))
        for d in range(self.n):
            v = wide[:, d] * self.metric[d]
            squares += v * v
        return np.rint(wide / self.steps), np.rint(squares / self.square_step)


@dataclass(frozen=True, eq=False)
class Cells(Frozen):
    """Sums over the rows that are nearest to each of s anchors.

    The arrays hold whole numbers, int64 or Python's integers, or, if rows have weights, float64.

    Parameters
    ----------
    anchors : Anchors
        The anchors.
    mass : array (s,)
        The number of rows of each cell, or their total weight.
    sums : array (s, n)
        Sums of weight times (row - origin), in multiples of the anchors' `steps`.
    squares : array (s,)
        Sums of weight times the squared length of (row - origin) in the metric, in multiples of the
        anchors' `square_step`.
    wide : array (s, w), optional
        For rows that are projected, sums of weight times (row - origin) in their own columns, in
        multiples of the anchors' `wide_steps`. None within a pass that adds them up elsewhere.
    """

    anchors: Anchors
    mass: Array
    sums: Array
    squares: Array
    wide: Array | None = None

    def __post_init__(self) -> None:
        for name in ("mass", "sums", "squares", "wide"):
            if getattr(self, name) is None:
                continue
            array = shortest(np.asarray(getattr(self, name)))
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def empty(cls, anchors: Anchors) -> "Cells":
        """The cells of zero rows: the exact identity of `+`."""
        s = len(anchors)
        zeros = [np.zeros(s, np.int64), np.zeros((s, anchors.n), np.int64), np.zeros(s, np.int64)]
        if anchors.wide_exponents is not None:
            zeros.append(np.zeros((s, len(anchors.wide_exponents)), np.int64))
        return cls(anchors, *zeros)

    @property
    def exact(self) -> bool:
        """Whether the sums are whole numbers: identical for any order, split and merge of rows."""
        return self.mass.dtype.kind != "f"

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Mass, sums, squares, and wide sums if there are some."""
        narrow = (self.mass, self.sums, self.squares)
        return narrow if self.wide is None else (*narrow, self.wide)

    def __add__(self, other: "Cells") -> "Cells":
        if not isinstance(other, Cells):
            return NotImplemented
        self.require_same_anchors(other)
        if (self.wide is None) != (other.wide is None):
            # Within a pass: the sums of one are elsewhere.
            wide = other.wide if self.wide is None else self.wide
            assert wide is not None
            return (self.without_wide() + other.without_wide()).plus_wide(wide)
        total = Cells(
            self.anchors, *map(add, self.arrays, other.arrays, self._bounds, other._bounds)
        )
        # So that the next addition need not look for the largest numbers again.
        bounds = [a + b for a, b in zip(self._bounds, other._bounds, strict=True)]
        if max(bounds) <= INT64_MAX:
            total.__dict__["_bounds"] = bounds
        return total

    @cached_property
    def _bounds(self) -> list[int]:
        """At least the largest absolute value of each array of whole numbers."""
        return [0 if array.dtype.kind == "f" else bound(array) for array in self.arrays]

    def __sub__(self, other: "Cells") -> "Cells":
        """The cells without rows that were added before."""
        if not isinstance(other, Cells):
            return NotImplemented
        self.require_same_anchors(other)
        mass, *sums = map(subtract, self.arrays, other.arrays)
        if mass.dtype.kind == "f":
            # Rounding may leave next to nothing of what was added, of either sign.
            is_left = mass > np.abs(self.mass) * _ROUNDING
            mass = np.where(is_left, mass, 0.0)
            sums = [np.where(is_left if a.ndim == 1 else is_left[:, None], a, 0.0) for a in sums]
        elif (mass < 0).any():
            raise MismatchError(
                "These rows were not all in the sketch: subtract only rows that were added before."
            )
        return Cells(self.anchors, mass, *sums)

    def without_wide(self) -> "Cells":
        """The same cells without sums in all columns."""
        return Cells(self.anchors, self.mass, self.sums, self.squares)

    def plus_wide(self, sums: Array) -> "Cells":
        """The same cells with these sums in all columns added to their own."""
        own = self.wide
        total = sums if own is None else add(own, sums, bound(own), bound(sums))
        return Cells(self.anchors, self.mass, self.sums, self.squares, total)

    def scaled(self, factor: float) -> "Cells":
        """The same rows with their weights times `factor`."""
        if factor == 1:
            return self
        return Cells(self.anchors, *(factor * array.astype(np.float64) for array in self.arrays))

    def require_same_anchors(self, other: "Cells") -> None:
        """Raise `MismatchError` unless the other cells are of the same anchors."""
        if self.anchors.fingerprint != other.anchors.fingerprint:
            raise MismatchError(
                f"These sketches have cells around different anchors "
                f"({self.anchors.fingerprint[:8]}... and {other.anchors.fingerprint[:8]}...); "
                "sketch one like the other, or both without cells."
            )

    def statistics(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mass (c,), means (c, n) relative to the origin, and variances (c,) of the cells that have
        rows. The variance is that of all columns together, in the metric.
        """
        has_rows = self.mass > 0
        mass = self.mass[has_rows].astype(np.float64)
        means = self.sums[has_rows].astype(np.float64) / mass[:, None] * self.anchors.steps
        lengths = self.squares[has_rows].astype(np.float64) / mass * self.anchors.square_step
        variances = lengths - ((means * self.anchors.metric) ** 2).sum(axis=1)
        return mass, means, np.maximum(variances, 0.0)

    def wide_sums(self, owners: LabelArray, count: int) -> FloatArray:
        """The sums (count, w) over the rows of some cells each, relative to the origin of the
        projection, in the columns of the data. `owners` are the sums that the cells with rows
        belong to.
        """
        assert self.wide is not None
        totals = np.zeros((count, self.wide.shape[1]))
        # One cell at a time: there may be too many columns for a second array of all cells.
        for cell, owner in zip(np.flatnonzero(self.mass > 0), owners, strict=True):
            totals[owner] += self.wide[cell].astype(np.float64)
        totals *= self.anchors.wide_steps
        return totals

    def identity(self) -> tuple[object, ...]:
        """What equality of sketches compares."""
        numbers = []
        for array in self.arrays:
            is_large = array.dtype.kind == "O"
            numbers += [array.dtype.kind, str(array.tolist()) if is_large else array.tobytes()]
        return self.anchors.fingerprint, *numbers


class Design(NamedTuple):
    """What determines the sums over given rows: what `like=` passes on.

    Parameters
    ----------
    frequencies : Frequencies
        The frequencies, with their origin and units.
    anchors : Anchors or None
        None if no cells are kept.
    """

    frequencies: Frequencies
    anchors: Anchors | None = None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of frequencies and anchors; that of the frequencies if there are no anchors."""
        own = self.frequencies.fingerprint
        if self.anchors is None:
            return own
        return hashlib.sha256(f"{own} {self.anchors.fingerprint}".encode()).hexdigest()


def grid_exponents(deviations: FloatArray) -> IntArray:
    """The exponents of the grids of columns with these standard deviations."""
    exponents = np.where(deviations > 0, np.frexp(deviations)[1], 0)
    return np.asarray(DEVIATION_BITS - exponents.clip(-MAX_EXPONENT, MAX_EXPONENT), np.int64)


def _exponent_of(value: float) -> int:
    """The smallest power of two above `value`, as an exponent; zero for a value of zero."""
    exponent = math.frexp(value)[1] if value > 0 else 0
    return max(-MAX_EXPONENT, min(MAX_EXPONENT, exponent))
