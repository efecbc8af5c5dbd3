"""Wide rows on the CPU: their projections, the cells of these, and sums over their own columns.

A block of rows is visited twice, once for its projections and once for the sums, so that nothing
but the projections is kept of it in between.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ckm._core.cells import Anchors, Cells, Design
from ckm._core.projection import Projection
from ckm._core.tally import ColumnSums
from ckm._kernels.cpu.cells import tally_cells
from ckm._kernels.cpu.projecting import Projector
from ckm._util.arrays import Array, FloatArray, LabelArray, read_only_view
from ckm._util.jit import entry, leaf
from ckm._util.sparse import SparseRows

# Whole numbers that int64 can add up for a block of rows, and what it holds in all.
_MAX_FAST = 2.0**46
_MAX_TOTAL = 2.0**63
# Numbers of all arrays of `WideSums` together, where one does not have more: 320 MB.
_MAX_SHARED = 40_000_000

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


class _Slot:
    """An array of sums, and a bound of its numbers."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.array: Array = np.zeros(shape, np.int64)
        self.bound = 0.0

    def has_room(self, n_rows: int) -> bool:
        """Whether int64 holds the sums once so many rows are added."""
        return self.bound + n_rows * _MAX_FAST <= _MAX_TOTAL


class WideSums:
    """Sums (s, n) of the unweighted rows of each cell, added up in place in a few arrays, one for
    each thread if they are small.

    A block may have fewer numbers than there are sums, so that an array for each block would take
    more time and memory than its rows. Whole numbers have the same sum in any order.
    """

    def __init__(self, anchors: Anchors) -> None:
        self._shape = (len(anchors), len(anchors.wide_steps))
        most = max(1, _MAX_SHARED // max(1, self._shape[0] * self._shape[1]))
        self._permits = threading.Semaphore(most)
        self._free = list[_Slot]()

    @contextmanager
    def borrowed(self) -> Iterator[_Slot]:
        """An array that no other thread adds to meanwhile; waits if all are in use."""
        with self._permits:
            try:
                slot = self._free.pop()
            except IndexError:
                slot = _Slot(self._shape)
            try:
                yield slot
            finally:
                self._free.append(slot)

    def added_to(self, cells: Cells) -> Cells:
        """The cells with all sums, which are empty after that."""
        while len(self._free) > 1 and self._free[0].bound + self._free[-1].bound <= _MAX_TOTAL:
            # In place: they may be most of the memory in use.
            last = self._free.pop()
            self._free[0].array += last.array
            self._free[0].bound += last.bound
        while self._free:
            cells = cells.plus_wide(self._free.pop().array)
        return cells


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
    if cells is None or cells.anchors.wide_exponents is None:
        return Reduced(y, cells, _sum_columns(projection, rows, weights))
    wide, columns = _add_up(projection, cells.anchors, rows, weights, labels, sums)
    return Reduced(y, cells if wide is None else cells.plus_wide(wide), columns)


def projector_for(projection: Projection) -> Projector:
    """A projector; that of this thread's last call, if it fits."""
    last: Projector | None = getattr(_last, "projector", None)
    if last is None or last.projection is not projection:
        last = _last.projector = Projector(projection)
    return last


def _add_up(
    projection: Projection,
    anchors: Anchors,
    rows: Any,
    weights: FloatArray | None,
    labels: LabelArray,
    sums: WideSums | None,
) -> tuple[Array | None, ColumnSums]:
    """Sums (s, n) of the rows of each cell, None if they were added to `sums`; and those over all
    rows.
    """
    if sums is not None and weights is None:
        with sums.borrowed() as slot:
            if slot.has_room(len(labels)):
                added = _add_to(slot.array, projection, anchors, rows, None, labels)
                slot.bound += len(labels) * added.largest
                return added.beyond, added.columns
    kind = np.int64 if weights is None else np.float64
    own = np.zeros((len(anchors), projection.n), kind)
    added = _add_to(own, projection, anchors, rows, weights, labels)
    return (own if added.beyond is None else own + added.beyond), added.columns


class _Added(NamedTuple):
    """What was added to wide sums: the sums over all columns, the largest number, and the sums of
    rows beyond int64, which were left out.
    """

    columns: ColumnSums
    largest: float
    beyond: Array | None


def _add_to(
    wide: Array,
    projection: Projection,
    anchors: Anchors,
    rows: Any,
    weights: FloatArray | None,
    labels: LabelArray,
) -> _Added:
    """Add rows to the sums (s, n) of their cells."""
    far = np.zeros(len(labels), np.int64)
    largest = np.zeros(1)
    scales = 1 / anchors.wide_steps
    is_weighted = weights is not None
    beta = np.ascontiguousarray(weights, np.float64) if is_weighted else _NO_WEIGHTS
    if isinstance(rows, SparseRows):
        table = np.zeros((projection.n, 4))
        table[:, 2] = scales
        add_sparse = _add_weighted_sparse_rows if is_weighted else _add_sparse_rows
        n_far = add_sparse(*_sparse_arrays(rows), labels, beta, wide, table, far, largest)
        first, second = table[:, 0], table[:, 1]
    else:
        first = np.zeros(projection.n)
        second = np.zeros(projection.n)
        flat = read_only_view(np.ascontiguousarray(rows).reshape(-1))
        origin = _NO_ORIGIN if projection.origin is None else projection.origin
        x = np.empty(projection.n, np.float32)
        totals = (read_only_view(scales), labels, beta, wide, first, second, far, largest)
        add = _add_weighted_rows if is_weighted else _add_rows
        n_far = add(flat, origin, x, *totals)
    beyond = None
    if n_far:
        which = far[:n_far]
        beyond = _exact_sums(projection, anchors, rows[which], labels[which])
    return _Added(ColumnSums(first, second), float(largest[0]), beyond)


def _sparse_arrays(rows: SparseRows) -> tuple[Array, Array, Array]:
    return read_only_view(rows.values), read_only_view(rows.columns), read_only_view(rows.starts)


def _exact_sums(projection: Projection, anchors: Anchors, rows: Any, labels: LabelArray) -> Array:
    """The sums of rows of any size, in Python's integers."""
    x = projection.centred(np.asarray(rows)).astype(np.float32).astype(np.float64)
    numbers = np.frompyfunc(int, 1, 1)(np.rint(x / anchors.wide_steps))
    total = np.zeros((len(anchors), projection.n), object)
    np.add.at(total, labels, numbers)
    return total


def _sum_columns(projection: Projection, rows: Any, weights: FloatArray | None) -> ColumnSums:
    """Sums over the columns of rows of which no cell keeps wide sums."""
    first = np.zeros(projection.n)
    second = np.zeros(projection.n)
    beta = np.ones(len(rows)) if weights is None else np.ascontiguousarray(weights, np.float64)
    if isinstance(rows, SparseRows):
        _sum_sparse_rows(*_sparse_arrays(rows), beta, first, second)
    else:
        flat = read_only_view(np.ascontiguousarray(rows).reshape(-1))
        origin = _NO_ORIGIN if projection.origin is None else projection.origin
        _sum_rows(flat, origin, np.empty(projection.n, np.float32), beta, first, second)
    return ColumnSums(first, second)


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
    rows, origin, x, scales, labels, beta, wide, first, second, far, largest
):
    """Add rows to the sums of their cells, and to those over all rows. Returns how many were left
    out of the former because their numbers are too large; `far` tells which.
    """
    n = len(x)
    n_far = 0
    for r in range(len(labels)):
        _centre(rows[r * n : r * n + n], origin, x)
        longest = 0.0
        for c in range(n):
            wide_x = np.float64(x[c])
            first[c] += wide_x
            second[c] += wide_x * wide_x
            number = abs(wide_x * scales[c])
            longest = number if number > longest else longest
        if longest >= _MAX_FAST:
            far[n_far] = r
            n_far += 1
            continue
        largest[0] = max(largest[0], longest)
        sums = wide[labels[r]]
        for c in range(n):
            sums[c] += np.int64(np.rint(np.float64(x[c]) * scales[c]))
    return n_far


@entry
def _add_weighted_rows(  # type: ignore[no-untyped-def]
    rows, origin, x, scales, labels, beta, wide, first, second, far, largest
):
    n = len(x)
    for r in range(len(labels)):
        _centre(rows[r * n : r * n + n], origin, x)
        sums = wide[labels[r]]
        for c in range(n):
            wide_x = np.float64(x[c])
            first[c] += beta[r] * wide_x
            second[c] += beta[r] * wide_x * wide_x
            sums[c] += beta[r] * np.rint(wide_x * scales[c])
    return 0


@entry
def _add_sparse_rows(  # type: ignore[no-untyped-def]
    values, columns, starts, labels, beta, wide, table, far, largest
):
    """The same for sparse rows. `table` (n, 4) holds the first sum, the second and the scale of a
    column side by side: memory sets the pace, one line of it per nonzero.
    """
    n_far = 0
    for r in range(len(labels)):
        sums = wide[labels[r]]
        longest = 0.0
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            wide_x = np.float64(np.float32(values[i]))
            table[c, 0] += wide_x
            table[c, 1] += wide_x * wide_x
            number = np.rint(wide_x * table[c, 2])
            longest = max(longest, abs(number))
            sums[c] += np.int64(number) if abs(number) < _MAX_FAST else 0
        if longest < _MAX_FAST:
            largest[0] = max(largest[0], longest)
            continue
        far[n_far] = r
        n_far += 1
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            number = np.rint(np.float64(np.float32(values[i])) * table[c, 2])
            sums[c] -= np.int64(number) if abs(number) < _MAX_FAST else 0
    return n_far


@entry
def _add_weighted_sparse_rows(  # type: ignore[no-untyped-def]
    values, columns, starts, labels, beta, wide, table, far, largest
):
    for r in range(len(labels)):
        sums = wide[labels[r]]
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            wide_x = np.float64(np.float32(values[i]))
            table[c, 0] += beta[r] * wide_x
            table[c, 1] += beta[r] * wide_x * wide_x
            sums[c] += beta[r] * np.rint(wide_x * table[c, 2])
    return 0


@entry
def _sum_rows(rows, origin, x, beta, first, second):  # type: ignore[no-untyped-def]
    n = len(x)
    for r in range(len(beta)):
        _centre(rows[r * n : r * n + n], origin, x)
        for c in range(n):
            wide_x = np.float64(x[c])
            first[c] += beta[r] * wide_x
            second[c] += beta[r] * wide_x * wide_x


@entry
def _sum_sparse_rows(values, columns, starts, beta, first, second):  # type: ignore[no-untyped-def]
    for r in range(len(beta)):
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            wide_x = np.float64(np.float32(values[i]))
            first[c] += beta[r] * wide_x
            second[c] += beta[r] * wide_x * wide_x
