"""Cells on the CPU: the specified arithmetic of `ckm._core.cells`, rows along the lanes of vectors.

Rows are taken `PANEL` at a time: transposed, compared with all anchors (of thousands, with those
near them: `groups`), then added to their cells one by one. Sums of one call are int64. The few
outliers whose numbers are too large for that are added in Python's integers.
"""

import threading
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from ckm._core.cells import Anchors, Cells
from ckm._kernels.cpu.groups import MAX_VISITED, Groups, nearest_in_groups
from ckm._kernels.cpu.llvm import (
    FLOATS,
    HALF,
    HALF_DOUBLES,
    HALF_FLOATS,
    HALF_LONGS,
    LANES,
    call,
    data_pointers,
    i64,
    intrinsic,
    length,
    load,
    loop,
    store,
    variable,
)
from ckm._kernels.cpu.nearest import PANEL, TILE, nearest_panel, transpose_panel
from ckm._util.arrays import (
    Float32Array,
    FloatArray,
    LabelArray,
    RowsArray,
    aligned,
    read_only_view,
)
from ckm._util.jit import entry, leaf

# Rows of one call, at most, and the whole numbers that int64 can add up for so many of them.
_MAX_ROWS = 2**14
_MAX_FAST = 2.0**48

_NO_WEIGHTS = np.empty(0)

_last = threading.local()  # what each thread prepared for its last call


def tally_cells(
    anchors: Anchors,
    origin: FloatArray,
    rows: RowsArray,
    weights: FloatArray | None = None,
    labels: LabelArray | None = None,
) -> Cells:
    """The cells of finite rows; whole numbers when they are unweighted. The number of the cell of
    each row is written to `labels`, if given. Wide sums are left to `ckm._kernels.cpu.wide`.
    """
    if labels is None:
        labels = np.empty(len(rows), np.int32)
    total = None
    for start in range(0, max(1, len(rows)), _MAX_ROWS):
        part = slice(start, start + _MAX_ROWS)
        beta = None if weights is None else weights[part]
        cells = _tally_block(anchors, origin, rows[part], beta, labels[part])
        total = cells if total is None else total + cells
    assert total is not None
    return total


def _tally_block(
    anchors: Anchors,
    origin: FloatArray,
    rows: RowsArray,
    weights: FloatArray | None,
    labels: LabelArray,
) -> Cells:
    """The cells of at most `_MAX_ROWS` rows."""
    s = len(anchors)
    kind = np.int64 if weights is None else np.float64
    mass = np.zeros(s, kind)
    # `_add_row` adds zeros to up to `HALF` numbers beyond the end
    sums = np.zeros(s * anchors.n + HALF, kind)[:-HALF].reshape(s, anchors.n)
    squares = np.zeros(s, kind)
    far = np.empty(len(rows), np.int64)
    count = _add_rows(
        read_only_view(np.ascontiguousarray(rows).reshape(-1)),
        *_prepared_for(anchors, origin),
        _NO_WEIGHTS if weights is None else np.ascontiguousarray(weights, np.float64),
        labels,
        far,
        mass,
        sums,
        squares,
    )
    cells = Cells(anchors, mass, sums, squares)
    if not count:
        return cells
    which = far[:count]
    x = np.subtract(rows[which], origin, dtype=np.float64).astype(np.float32)
    return cells + _add_exactly(anchors, x, labels[which])


def nearest_anchors(anchors: Anchors, origin: FloatArray, rows: RowsArray) -> LabelArray:
    """The number of the nearest anchor of each row, which is finite (int32)."""
    labels = np.empty(len(rows), np.int32)
    flat = read_only_view(np.ascontiguousarray(rows).reshape(-1))
    _label_rows(flat, *_prepared_for(anchors, origin), labels)
    return labels


def _prepared_for(anchors: Anchors, origin: FloatArray) -> tuple[tuple[Any, ...], ...]:
    """`_Prepared`, `_Panel` and `Groups` as plain tuples; those of this thread's last call, if they
    fit.
    """
    last = getattr(_last, "call", None)
    if last is None or last[0] is not anchors or last[1] is not origin:
        parts = _Prepared.of(anchors, origin), _Panel.of(anchors.n), Groups.of(anchors)
        last = _last.call = (anchors, origin, tuple(map(tuple, parts)))
    prepared: tuple[tuple[Any, ...], ...] = last[2]
    return prepared


def _add_exactly(anchors: Anchors, x: Float32Array, labels: LabelArray) -> Cells:
    """The cells of rows (b, n) of any size, in Python's integers."""
    to_integers = np.frompyfunc(int, 1, 1)
    numbers, lengths = map(to_integers, anchors.quantise(x))
    s = len(anchors)
    sums = np.zeros((s, anchors.n), object)
    squares = np.zeros(s, object)
    np.add.at(sums, labels, numbers)
    np.add.at(squares, labels, lengths)
    return Cells(anchors, np.bincount(labels, minlength=s), sums, squares)


class _Prepared(NamedTuple):
    """Anchors in the form in which rows are compared with them: padded to whole tiles."""

    origin: FloatArray  # (PANEL n,): the origin, repeated for every row of a panel
    coefficients: Float32Array  # (s + padding, n)
    halves: Float32Array  # (s + padding,); infinite where there is no anchor
    scales: FloatArray  # (n + padding,): 2**exponents; zero for the padding, to a multiple of HALF
    limits: Float32Array  # (PANEL n,): values whose numbers int64 can add up, repeated for each row
    metric: FloatArray  # (n,)
    square_scale: float

    @classmethod
    def of(cls, anchors: Anchors, origin: FloatArray) -> "_Prepared":
        s = len(anchors)
        coefficients = aligned((s + -s % TILE, anchors.n), np.float32)
        coefficients[:s] = anchors.coefficients
        coefficients[s:] = 0
        halves = np.full(len(coefficients), np.inf, np.float32)
        halves[:s] = anchors.halves
        scales = aligned((anchors.n + -anchors.n % HALF,), np.float64)
        scales[: anchors.n] = 1 / anchors.steps
        scales[anchors.n :] = 0
        return cls(
            np.tile(origin, PANEL),
            coefficients,
            halves,
            read_only_view(scales),
            np.tile(np.float32(_MAX_FAST * anchors.steps), PANEL),
            read_only_view(anchors.metric),
            1 / anchors.square_step,
        )


class _Panel(NamedTuple):
    """Buffers for `PANEL` rows."""

    x: Float32Array  # (PANEL n + LANES,): the rows relative to the origin
    transposed: Float32Array  # (n + padding, PANEL)
    best: Float32Array  # (PANEL,): the smallest score
    which: LabelArray  # (PANEL,): its anchor
    lengths: FloatArray  # (PANEL,): squared lengths as whole numbers

    @classmethod
    def of(cls, n: int) -> "_Panel":
        x = aligned((PANEL * n + LANES,), np.float32)
        x[:] = 0  # the first panel may have few rows
        transposed = aligned((n + -n % LANES, PANEL), np.float32)
        best = aligned((PANEL,), np.float32)
        lengths = aligned((PANEL,), np.float64)
        return cls(x, transposed, best, np.empty(PANEL, np.int32), lengths)


@entry
def _add_rows(  # type: ignore[no-untyped-def]
    rows, prepared, panel, groups, beta, labels, far, mass, sums, squares
):
    """Add rows to their cells. Returns the number of rows that were left out because their numbers
    may be too large; `far` tells which.
    """
    _, _, _, scales, limits, metric, square_scale = prepared
    x, transposed, _, which, lengths = panel
    n = len(metric)
    n_far = 0
    in_groups = len(groups[0]) > 0
    for start in range(0, len(labels), PANEL):
        size = min(PANEL, len(labels) - start)
        in_groups = _find_nearest(rows, start, size, prepared, panel, groups, in_groups)
        _measure(transposed, metric, square_scale, lengths)
        # Of a panel with a number that is too large, all rows are left out.
        is_small = not len(beta) and _are_below(x, limits)
        for r in range(size):
            k = np.uint64(which[r])  # as an index it needs no check for a sign
            labels[start + r] = k
            if len(beta):
                mass[k] += beta[start + r]
                squares[k] += beta[start + r] * lengths[r]
                _add_weighted_row(x[r * n : r * n + n], scales, beta[start + r], sums[k])
            elif is_small and lengths[r] < _MAX_FAST:
                mass[k] += 1
                squares[k] += np.int64(lengths[r])
                _add_row(x, r, scales, sums, k)
            else:
                far[n_far] = start + r
                n_far += 1
    return n_far


@entry
def _label_rows(rows, prepared, panel, groups, labels):  # type: ignore[no-untyped-def]
    in_groups = len(groups[0]) > 0
    for start in range(0, len(labels), PANEL):
        size = min(PANEL, len(labels) - start)
        in_groups = _find_nearest(rows, start, size, prepared, panel, groups, in_groups)
        for r in range(size):
            labels[start + r] = panel[3][r]


@leaf
def _find_nearest(  # type: ignore[no-untyped-def]
    rows, start, size, prepared, panel, groups, in_groups
):
    """Put rows into the panel, with the anchors nearest to them. Returns whether to search the next
    panel in groups: not if these rows visited many of them.
    """
    origin, coefficients, halves, _, _, metric, _ = prepared
    x, transposed, best, which, _ = panel
    n = len(metric)
    _centre(rows[start * n : (start + size) * n], origin, x)
    transpose_panel(x, n, transposed)
    if in_groups:
        visited = nearest_in_groups(x, size, n, groups, which)
        return visited <= MAX_VISITED * size * len(groups[0])
    for r in range(PANEL):
        best[r] = np.inf
        which[r] = 0
    nearest_panel(transposed, coefficients, halves, best, which)
    return False


@leaf
def _centre(numbers, origin, x):  # type: ignore[no-untyped-def]
    """Flat rows relative to the origin, which is repeated for as many rows."""
    for i in range(len(numbers)):
        x[i] = np.float32(np.float64(numbers[i]) - origin[i])


@leaf
def _measure(transposed, metric, square_scale, lengths):  # type: ignore[no-untyped-def]
    """The squared length of each row of a panel as a whole number."""
    for r in range(PANEL):
        lengths[r] = 0.0
    for d in range(len(metric)):
        for r in range(PANEL):
            v = np.float64(transposed[d, r]) * metric[d]
            lengths[r] += v * v
    for r in range(PANEL):
        lengths[r] = np.rint(lengths[r] * square_scale)


@intrinsic
def _are_below(context: Any, x: Any, limits: Any) -> Any:
    """Whether all values of a panel are below their limits, of which there are whole vectors."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values, bounds = data_pointers(context, builder, signature, args, 0, 1)
        count = length(context, builder, signature.args[1], args[1], 0)
        are_below = variable(builder, ir.Constant(ir.VectorType(ir.IntType(1), LANES), [1] * LANES))
        with loop(builder, i64(0), count, LANES) as (i, _):
            size = call(builder, f"llvm.fabs.v{LANES}f32", FLOATS, load(builder, values, i, FLOATS))
            is_below = builder.fcmp_ordered("<", size, load(builder, bounds, i, FLOATS))
            builder.store(builder.and_(builder.load(are_below), is_below), are_below)
        bits = builder.bitcast(builder.load(are_below), ir.IntType(LANES))
        return builder.icmp_unsigned("==", bits, ir.Constant(bits.type, -1))

    return types.boolean(x, limits), generate


@intrinsic
def _add_row(context: Any, x: Any, r: Any, scales: Any, sums: Any, k: Any) -> Any:
    """sums[k] += rint(row r of x, times scales), as int64, for flat float32 x.

    Whole vectors: what belongs to the next row and cell is multiplied and changed by zero.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, factors, target = data_pointers(context, builder, signature, args, 0, 2, 3)
        n = length(context, builder, signature.args[3], args[3], 1)
        padded = length(context, builder, signature.args[2], args[2], 0)
        source, place = builder.mul(args[1], n), builder.mul(args[4], n)
        with loop(builder, i64(0), padded, HALF) as (d, _):
            row = load(builder, rows, builder.add(source, d), HALF_FLOATS)
            factor = load(builder, factors, d, HALF_DOUBLES)
            product = builder.fmul(builder.fpext(row, HALF_DOUBLES), factor)
            number = call(builder, f"llvm.rint.v{HALF}f64", HALF_DOUBLES, product)
            there = builder.add(place, d)
            old = load(builder, target, there, HALF_LONGS)
            new = builder.add(old, builder.fptosi(number, HALF_LONGS))
            store(builder, new, target, there)
        return context.get_dummy_value()

    return types.void(x, types.int64, scales, sums, types.int64), generate


@leaf
def _add_weighted_row(x, scales, weight, sums):  # type: ignore[no-untyped-def]
    for d in range(len(sums)):
        sums[d] += weight * np.rint(np.float64(x[d]) * scales[d])
