"""Wide rows on the CPU: their projections, the cells of these, and sums over their own columns.

A block of rows is visited twice, once for its projections and once for the sums, so that nothing
but the projections is kept of it in between.
"""

import threading
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
    """Sums (s, n) of the unweighted rows of each cell, added up in place, in one array per thread.

    A block may have fewer numbers than there are sums, so that an array for each block would take
    more time and memory than its rows. Whole numbers have the same sum in any order.
    """

    def __init__(self, anchors: Anchors) -> None:
        self._shape = (len(anchors), len(anchors.wide_steps))
        self._own = threading.local()
        self._arrays = list[Array]()

    def array_for(self, n_rows: int) -> Array | None:
        """The array of this thread, for the numbers of so many rows; None if int64 might overflow.

        `note` then tells how large they were.
        """
        own = self._own
        if not hasattr(own, "array"):
            own.array = np.zeros(self._shape, np.int64)
            own.bound = 0.0
            self._arrays.append(own.array)
        return own.array if own.bound + n_rows * _MAX_FAST <= _MAX_TOTAL else None

    def note(self, n_rows: int, largest: float) -> None:
        """Note that so many rows, with numbers up to `largest`, were added in this thread."""
        self._own.bound += n_rows * largest

    def added_to(self, cells: Cells) -> Cells:
        """The cells with the sums of all threads, which are empty after that."""
        for array in self._arrays:
            cells = cells.plus_wide(array)
        self._arrays.clear()
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
    shared = None if sums is None or weights is not None else sums.array_for(len(labels))
    wide = shared
    if wide is None:
        kind = np.int64 if weights is None else np.float64
        wide = np.zeros((len(anchors), projection.n), kind)
    first = np.zeros(projection.n)
    second = np.zeros(projection.n)
    far = np.zeros(len(labels), np.int64)
    largest = np.zeros(1)
    scales = read_only_view(1 / anchors.wide_steps)
    beta = _NO_WEIGHTS if weights is None else np.ascontiguousarray(weights, np.float64)
    totals = (scales, labels, beta, wide, first, second, far, largest)
    n_far = _visit(projection, rows, *totals)
    if sums is not None and shared is not None:
        sums.note(len(labels), float(largest[0]))
    columns = ColumnSums(first, second)
    if n_far:
        which = far[:n_far]
        apart = None if shared is not None else wide
        return _add_exactly(projection, anchors, rows[which], labels[which], apart), columns
    return (None if shared is not None else wide), columns


def _visit(projection: Projection, rows: Any, *totals: Array) -> int:
    """Add rows to all totals; the number of those left out of the wide sums as too large."""
    is_weighted = len(totals[2]) > 0
    if isinstance(rows, SparseRows):
        add_sparse = _add_weighted_sparse_rows if is_weighted else _add_sparse_rows
        return int(add_sparse(*_sparse_arrays(rows), *totals))
    flat = read_only_view(np.ascontiguousarray(rows).reshape(-1))
    origin = _NO_ORIGIN if projection.origin is None else projection.origin
    x = np.empty(projection.n, np.float32)
    add = _add_weighted_rows if is_weighted else _add_rows
    return int(add(flat, origin, x, *totals))


def _sparse_arrays(rows: SparseRows) -> tuple[Array, Array, Array]:
    return read_only_view(rows.values), read_only_view(rows.columns), read_only_view(rows.starts)


def _add_exactly(
    projection: Projection, anchors: Anchors, rows: Any, labels: LabelArray, wide: Array | None
) -> Array:
    """The sums together with rows of any size, in Python's integers."""
    x = projection.centred(np.asarray(rows)).astype(np.float32).astype(np.float64)
    numbers = np.frompyfunc(int, 1, 1)(np.rint(x / anchors.wide_steps))
    if wide is None:
        wide = np.zeros((len(anchors), projection.n), np.int64)
    total = wide.astype(object)
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
    values, columns, starts, scales, labels, beta, wide, first, second, far, largest
):
    n_far = 0
    for r in range(len(labels)):
        longest = 0.0
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            wide_x = np.float64(np.float32(values[i]))
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
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            sums[c] += np.int64(np.rint(np.float64(np.float32(values[i])) * scales[c]))
    return n_far


@entry
def _add_weighted_sparse_rows(  # type: ignore[no-untyped-def]
    values, columns, starts, scales, labels, beta, wide, first, second, far, largest
):
    for r in range(len(labels)):
        sums = wide[labels[r]]
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            wide_x = np.float64(np.float32(values[i]))
            first[c] += beta[r] * wide_x
            second[c] += beta[r] * wide_x * wide_x
            sums[c] += beta[r] * np.rint(wide_x * scales[c])
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
