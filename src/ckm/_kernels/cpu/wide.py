"""Wide rows on the CPU: their projections, the cells of these, and sums over their own columns.

A block of rows is visited twice, once for its projections and once for the sums, so that nothing
but the projections is kept of it in between.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ckm._core.cells import Anchors, Cells, Design
from ckm._core.column_sums import ColumnSums
from ckm._core.projection import Projection
from ckm._kernels.cpu.cells import tally_cells
from ckm._kernels.cpu.projecting import Projector
from ckm._util.arrays import Array, FloatArray, IntArray, LabelArray, read_only_view
from ckm._util.jit import entry, leaf
from ckm._util.sparse import SparseRows

# Whole numbers that int64 can add up for a block of rows, and what it holds in all.
_MAX_FAST = 2.0**46
_MAX_TOTAL = 2.0**63
# A number that rounds what is added to it, and its bits.
_ROUNDER = 1.5 * 2.0**52
_ROUNDER_BITS = np.float64(_ROUNDER).view(np.int64)
# Groups of cells that threads add to one at a time.
_GROUPS = 16

_NO_WEIGHTS = np.empty(0)
_NO_ORIGIN = np.empty(0)

_last = threading.local()  # what each thread prepared for its last call


class Reduced(NamedTuple):
    """A block of wide rows as the other kernels see it, and what only the rows themselves tell.

    Parameters
    ----------
    rows : float32 array (b, d)
        The projections of the rows.
    cells : Cells or None
        Their cells, if there are anchors.
    columns : ColumnSums
        Sums over the columns of the rows.
    """

    rows: Any
    cells: Cells | None
    columns: ColumnSums


class WideSums:
    """Sums (s, n) of the unweighted rows of each cell, added up in place in one array.

    A block may have fewer numbers than there are sums, so that an array for each block would take
    more time and memory than its rows. Cells are in groups, each with a lock, so that threads add
    to different groups at a time. Whole numbers have the same sum in any order.
    """

    def __init__(self, anchors: Anchors) -> None:
        self._shape = (len(anchors), len(anchors.wide_steps))
        self._array: Array | None = None
        self._bound = 0.0
        self._changing = threading.Lock()
        self._locks = [threading.Lock() for _ in range(_GROUPS)]

    def reserve(self, bound: float) -> Array | None:
        """The array, if int64 holds its numbers once others of this size are added to them."""
        with self._changing:
            if self._bound + bound > _MAX_TOTAL:
                return None
            self._bound += bound
            if self._array is None:
                self._array = np.zeros(self._shape, np.int64)
            return self._array

    def for_each_group(self, cells: LabelArray, add: Callable[[slice], object]) -> None:
        """Call `add` with the part of sorted cells that is in each group, while no other thread
        adds to it.
        """
        edges = np.arange(_GROUPS + 1) * self._shape[0] // _GROUPS
        ends = np.searchsorted(cells, edges)
        waiting = [group for group in range(_GROUPS) if ends[group] < ends[group + 1]]
        while waiting:
            # Another thread is at most at one of them: wait only if nothing else is left to do.
            free = (group for group in waiting if self._locks[group].acquire(blocking=False))
            group = next(free, None)
            if group is None:
                group = waiting[0]
                self._locks[group].acquire()
            try:
                add(slice(ends[group], ends[group + 1]))
            finally:
                self._locks[group].release()
            waiting.remove(group)

    def added_to(self, cells: Cells) -> Cells:
        """The cells with all sums."""
        return cells if self._array is None else cells.plus_wide(self._array)


def reduce_rows(
    design: Design, rows: Any, weights: FloatArray | None = None, sums: WideSums | None = None
) -> Reduced:
    """Project wide rows, dense or sparse, and add up what their projections do not hold.

    Wide sums of unweighted rows are added to `sums`, if given, and are then no part of the cells.
    """
    frequencies, anchors = design
    projection = frequencies.projection
    assert projection is not None
    y = projector_for(projection)(rows)
    if isinstance(rows, SparseRows) and projection.origin is not None:
        rows = np.asarray(rows)
    cells = None
    labels = np.zeros(len(y), np.int32)
    if anchors is not None:
        cells = tally_cells(anchors, frequencies.origin, y, weights, labels)
    columns, peaks = _sum_columns(projection, rows, weights)
    if cells is None or cells.anchors.wide_exponents is None:
        return Reduced(y, cells, columns)
    by_cell = _ByCell.of(projection, cells.anchors, rows, weights, labels)
    if weights is None:
        wide = by_cell.add_whole(peaks, sums)
    else:
        wide = by_cell.add(by_cell.zeros(np.float64), by_cell.order)
    return Reduced(y, cells if wide is None else cells.plus_wide(wide), columns)


def projector_for(projection: Projection) -> Projector:
    """A projector; that of this thread's last call, if it fits."""
    last: Projector | None = getattr(_last, "projector", None)
    if last is None or last.projection is not projection:
        last = _last.projector = Projector(projection)
    return last


class _ByCell(NamedTuple):
    """Rows in the order of their cells, whose sums then stay in the cache; those of one cell in the
    order that they came in.
    """

    projection: Projection
    anchors: Anchors
    rows: Any
    labels: LabelArray
    order: IntArray
    scales: FloatArray
    weights: FloatArray
    arrays: tuple[Array, ...]  # the rows, and buffers

    @classmethod
    def of(
        cls,
        projection: Projection,
        anchors: Anchors,
        rows: Any,
        weights: FloatArray | None,
        labels: LabelArray,
    ) -> "_ByCell":
        order = np.argsort(labels, kind="stable")
        scales = read_only_view(1 / anchors.wide_steps)
        beta = _NO_WEIGHTS if weights is None else np.ascontiguousarray(weights, np.float64)
        arrays: tuple[Array, ...]
        if isinstance(rows, SparseRows):
            arrays = _sparse_arrays(rows)
        else:
            arrays = _dense_arrays(projection, rows)
        return cls(projection, anchors, rows, labels, order, scales, beta, arrays)

    def zeros(self, kind: type) -> Array:
        """Sums of nothing (s, n)."""
        return np.zeros((len(self.anchors), self.projection.n), kind)

    def add(self, wide: Array, order: IntArray) -> Array:
        """Add rows, in this order, to the sums (s, n) of their cells."""
        where = (self.scales, self.labels, order, self.weights, wide)
        if isinstance(self.rows, SparseRows):
            _add_sparse_rows(*self.arrays, *where)
        else:
            numbers = np.empty(self.projection.n)
            _add_rows(*self.arrays, numbers, numbers.view(np.int64), *where)
        return wide

    def add_whole(self, peaks: FloatArray, sums: WideSums | None) -> Array | None:
        """The sums (s, n) of unweighted rows, given the largest |x_c| of each column; what is not
        added to `sums`.
        """
        order = self.order
        beyond = None
        largest = float((peaks * self.scales).max(initial=0.0))
        if largest >= _MAX_FAST:
            is_far = self._row_peaks() >= _MAX_FAST
            order = order[~is_far[order]]
            beyond = self._exact_sums(np.flatnonzero(is_far))
            largest = _MAX_FAST
        shared = None if sums is None else sums.reserve(len(order) * largest)
        if sums is not None and shared is not None:
            cells = self.labels[order]
            sums.for_each_group(cells, lambda part: self.add(shared, order[part]))
            return beyond
        own = self.add(self.zeros(np.int64), order)
        return own if beyond is None else own + beyond

    def _row_peaks(self) -> FloatArray:
        """The largest number of each row."""
        peaks = np.zeros(len(self.labels))
        if isinstance(self.rows, SparseRows):
            nonzeros = self.rows.numbers()
            x = self.rows.values[nonzeros].astype(np.float32).astype(np.float64)
            row = np.repeat(np.arange(len(peaks)), np.diff(self.rows.starts))
            np.maximum.at(peaks, row, np.abs(x) * self.scales[self.rows.columns[nonzeros]])
            return peaks
        for r in range(len(peaks)):
            x = self.projection.centred(self.rows[r]).astype(np.float32).astype(np.float64)
            peaks[r] = (np.abs(x) * self.scales).max()
        return peaks

    def _exact_sums(self, which: IntArray) -> Array:
        """The sums of rows of any size, in Python's integers."""
        rows = np.asarray(self.rows[which])
        x = self.projection.centred(rows).astype(np.float32).astype(np.float64)
        numbers = np.frompyfunc(int, 1, 1)(np.rint(x * self.scales))
        total = self.zeros(object)
        np.add.at(total, self.labels[which], numbers)
        return total


def _dense_arrays(projection: Projection, rows: Array) -> tuple[Array, Array, Array]:
    flat = read_only_view(np.ascontiguousarray(rows).reshape(-1))
    origin = _NO_ORIGIN if projection.origin is None else projection.origin
    return flat, origin, np.empty(projection.n, np.float32)


def _sparse_arrays(rows: SparseRows) -> tuple[Array, Array, Array]:
    return read_only_view(rows.values), read_only_view(rows.columns), read_only_view(rows.starts)


def _sum_columns(
    projection: Projection, rows: Any, weights: FloatArray | None
) -> tuple[ColumnSums, FloatArray]:
    """Sums over the columns of rows, and the largest |x_c| of each."""
    beta = np.ones(len(rows)) if weights is None else np.ascontiguousarray(weights, np.float64)
    if isinstance(rows, SparseRows):
        table = np.zeros((projection.n, 4))
        _sum_sparse_rows(*_sparse_arrays(rows), beta, table)
        return ColumnSums(table[:, 0], table[:, 1]), table[:, 2]
    first, second, peaks = np.zeros((3, projection.n))
    _sum_rows(*_dense_arrays(projection, rows), beta, first, second, peaks)
    return ColumnSums(first, second), peaks


@leaf
def _centre(numbers, origin, x):  # type: ignore[no-untyped-def]
    if len(origin):
        for c in range(len(x)):
            x[c] = np.float32(np.float64(numbers[c]) - origin[c])
    else:
        for c in range(len(x)):
            x[c] = np.float32(numbers[c])


@entry
def _add_rows(  # type: ignore[no-untyped-def]
    rows, origin, x, numbers, bits, scales, labels, order, beta, wide
):
    """Add rows to the sums of their cells. `numbers` and `bits` are the same memory."""
    n = len(x)
    for j in range(len(order)):
        r = order[j]
        _centre(rows[r * n : r * n + n], origin, x)
        sums = wide[labels[r]]
        if len(beta):
            for c in range(n):
                sums[c] += beta[r] * np.rint(np.float64(x[c]) * scales[c])
        else:
            # Few processors turn vectors of float64 into int64. But the last bits of a number plus
            # 1.5 * 2**52 are those of the nearest whole number.
            for c in range(n):
                numbers[c] = np.float64(x[c]) * scales[c] + _ROUNDER
            for c in range(n):
                sums[c] += bits[c] - _ROUNDER_BITS


@entry
def _add_sparse_rows(  # type: ignore[no-untyped-def]
    values, columns, starts, scales, labels, order, beta, wide
):
    for j in range(len(order)):
        r = order[j]
        sums = wide[labels[r]]
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            number = np.rint(np.float64(np.float32(values[i])) * scales[c])
            if len(beta):
                sums[c] += beta[r] * number
            else:
                sums[c] += np.int64(number)


@entry
def _sum_rows(rows, origin, x, beta, first, second, peaks):  # type: ignore[no-untyped-def]
    n = len(x)
    for r in range(len(beta)):
        _centre(rows[r * n : r * n + n], origin, x)
        for c in range(n):
            wide_x = np.float64(x[c])
            first[c] += beta[r] * wide_x
            second[c] += beta[r] * wide_x * wide_x
            peaks[c] = abs(wide_x) if abs(wide_x) > peaks[c] else peaks[c]


@entry
def _sum_sparse_rows(values, columns, starts, beta, table):  # type: ignore[no-untyped-def]
    """`table` (n, 4) holds the first sum, the second and the peak of a column side by side: memory
    sets the pace, one line of it per nonzero.
    """
    for r in range(len(beta)):
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            wide_x = np.float64(np.float32(values[i]))
            table[c, 0] += beta[r] * wide_x
            table[c, 1] += beta[r] * wide_x * wide_x
            table[c, 2] = max(table[c, 2], abs(wide_x))
