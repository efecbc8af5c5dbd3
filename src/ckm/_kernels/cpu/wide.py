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

# Whole numbers that int64 can add up for a block of at most 2**16 rows.
MAX_ROWS = 2**16
_MAX_FAST = 2.0**46

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


def reduce_rows(design: Design, rows: Any, weights: FloatArray | None = None) -> Reduced:
    """Project wide rows, dense or sparse, and add up what their projections do not hold."""
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
    wide, columns = _add_up(projection, cells.anchors, rows, weights, labels)
    whole = Cells(cells.anchors, cells.mass, cells.sums, cells.squares, wide)
    return Reduced(y, whole, columns)


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
) -> tuple[Array, ColumnSums]:
    """Sums (s, n) of the rows of each cell, and over all rows."""
    n = projection.n
    wide: Array = np.zeros((len(anchors), n), np.int64 if weights is None else np.float64)
    second = np.zeros(n)
    far = np.zeros(len(labels), np.int64)
    scales = read_only_view(1 / anchors.wide_steps)
    beta = _NO_WEIGHTS if weights is None else np.ascontiguousarray(weights, np.float64)
    count = 0
    for start in range(0, len(labels), MAX_ROWS):
        part = slice(start, start + MAX_ROWS)
        own = beta[part]
        found = far[count:]
        n_far = _visit(projection, rows[part], scales, labels[part], own, wide, second, found)
        far[count : count + n_far] += start
        count += n_far
    if count:
        wide = _add_exactly(projection, anchors, rows[far[:count]], labels[far[:count]], wide)
    first = wide.sum(axis=0).astype(np.float64) * anchors.wide_steps
    return wide, ColumnSums(first, second)


def _visit(
    projection: Projection,
    rows: Any,
    scales: FloatArray,
    labels: LabelArray,
    beta: FloatArray,
    wide: Array,
    second: FloatArray,
    far: Array,
) -> int:
    """Add rows to the sums of their cells; the number of those left out as too large."""
    if isinstance(rows, SparseRows):
        numbers = _sparse_arrays(rows)
        add_sparse = _add_weighted_sparse_rows if len(beta) else _add_sparse_rows
        return int(add_sparse(*numbers, scales, labels, beta, wide, second, far))
    flat = read_only_view(np.ascontiguousarray(rows).reshape(-1))
    origin = _NO_ORIGIN if projection.origin is None else projection.origin
    x = np.empty(projection.n, np.float32)
    add = _add_weighted_rows if len(beta) else _add_rows
    return int(add(flat, origin, x, scales, labels, beta, wide, second, far))


def _sparse_arrays(rows: SparseRows) -> tuple[Array, Array, Array]:
    return read_only_view(rows.values), read_only_view(rows.columns), read_only_view(rows.starts)


def _add_exactly(
    projection: Projection, anchors: Anchors, rows: Any, labels: LabelArray, wide: Array
) -> Array:
    """The sums together with rows of any size, in Python's integers."""
    x = projection.centred(np.asarray(rows)).astype(np.float32).astype(np.float64)
    numbers = np.frompyfunc(int, 1, 1)(np.rint(x / anchors.wide_steps))
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
def _add_rows(rows, origin, x, scales, labels, beta, wide, second, far):  # type: ignore[no-untyped-def]
    """Add rows to the sums of their cells and to the squares. Returns how many were left out of the
    sums because their numbers are too large; `far` tells which.
    """
    n = len(x)
    n_far = 0
    for r in range(len(labels)):
        _centre(rows[r * n : r * n + n], origin, x)
        largest = 0.0
        for c in range(n):
            wide_x = np.float64(x[c])
            second[c] += wide_x * wide_x
            number = abs(wide_x * scales[c])
            largest = number if number > largest else largest
        if largest >= _MAX_FAST:
            far[n_far] = r
            n_far += 1
            continue
        sums = wide[labels[r]]
        for c in range(n):
            sums[c] += np.int64(np.rint(np.float64(x[c]) * scales[c]))
    return n_far


@entry
def _add_weighted_rows(rows, origin, x, scales, labels, beta, wide, second, far):  # type: ignore[no-untyped-def]
    n = len(x)
    for r in range(len(labels)):
        _centre(rows[r * n : r * n + n], origin, x)
        sums = wide[labels[r]]
        for c in range(n):
            wide_x = np.float64(x[c])
            second[c] += beta[r] * wide_x * wide_x
            sums[c] += beta[r] * np.rint(wide_x * scales[c])
    return 0


@entry
def _add_sparse_rows(values, columns, starts, scales, labels, beta, wide, second, far):  # type: ignore[no-untyped-def]
    n_far = 0
    for r in range(len(labels)):
        largest = 0.0
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            wide_x = np.float64(np.float32(values[i]))
            second[c] += wide_x * wide_x
            number = abs(wide_x * scales[c])
            largest = number if number > largest else largest
        if largest >= _MAX_FAST:
            far[n_far] = r
            n_far += 1
            continue
        sums = wide[labels[r]]
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            sums[c] += np.int64(np.rint(np.float64(np.float32(values[i])) * scales[c]))
    return n_far


@entry
def _add_weighted_sparse_rows(  # type: ignore[no-untyped-def]
    values, columns, starts, scales, labels, beta, wide, second, far
):
    for r in range(len(labels)):
        sums = wide[labels[r]]
        for i in range(starts[r], starts[r + 1]):
            c = columns[i]
            wide_x = np.float64(np.float32(values[i]))
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
