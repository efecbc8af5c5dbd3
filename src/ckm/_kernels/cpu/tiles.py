"""Rows for the structured kernel: tiles of LANES rows and LANES columns, transposed in registers,
with their bounds and moments computed on the way.
"""

from functools import partial
from typing import Any

from llvmlite import ir
from numba import types

from ckm._kernels.cpu.llvm import (
    DOUBLES,
    F32,
    FLOATS,
    LANES,
    call,
    constant,
    element,
    fma,
    i64,
    intrinsic,
    load,
    load_splat,
    store,
    transpose,
)


@intrinsic
def take_tile(
    context: Any,
    rows: Any,
    r: Any,
    c: Any,
    origin: Any,
    d: Any,
    weights: Any,
    g: Any,
    notes: Any,
    v: Any,
    e: Any,
    x: Any,
    i: Any,
) -> Any:
    """Read the tile rows[r:, c:]; returns whether all of it is finite in float32.

    rows are float32 or float64, origin[d:] and weights[g] float64 (LANES,). Written: notes[:, d:],
    float64 (4, LANES), which holds for each column the smallest, the largest, and the sums of
    weight (row - origin) and weight (row - origin)^2; v[:, e:], float64 (LANES, LANES), row -
    origin; and x[i:], float32 (LANES, LANES), the same in float32 and transposed.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows_, r, c, origin_, d, weights_, g, notes_, v_, e, x_, i = args
        at = partial(element, context, builder)
        zero = i64(0)
        kind = FLOATS if rows.dtype == types.float32 else DOUBLES
        centre = load(builder, at(origin, origin_, d), zero, DOUBLES)
        note_places = [at(notes, notes_, i64(k), d) for k in range(4)]
        low, high, first, second = (load(builder, place, zero, DOUBLES) for place in note_places)
        # stays zero unless a number is not finite: NaN and infinity times zero are NaN
        doubt = constant(FLOATS, 0.0)
        tile = []
        for k in range(LANES):
            y = load(builder, at(rows, rows_, builder.add(r, i64(k)), c), zero, kind)
            y = builder.fpext(y, DOUBLES) if kind == FLOATS else y
            low = builder.select(builder.fcmp_ordered("<", y, low), y, low)
            high = builder.select(builder.fcmp_ordered(">", y, high), y, high)
            centred = builder.fsub(y, centre)
            store(builder, centred, at(v, v_, i64(k), e), zero)
            weight = load_splat(builder, at(weights, weights_, g, i64(k)), zero)
            weighted = builder.fmul(weight, centred)
            first = builder.fadd(first, weighted)
            second = fma(builder, weighted, centred, second)
            tile.append(builder.fptrunc(centred, FLOATS))
            doubt = fma(builder, tile[-1], constant(FLOATS, 0.0), doubt)
        for place, note in zip(note_places, (low, high, first, second), strict=True):
            store(builder, note, place, zero)
        for k, column in enumerate(transpose(builder, tile)):
            store(builder, column, at(x, x_, builder.add(i, i64(k)), zero), zero)
        name = f"llvm.vector.reduce.fadd.v{LANES}f32"
        total = call(builder, name, F32, ir.Constant(F32, 0.0), doubt)
        return builder.fcmp_ordered("==", total, ir.Constant(F32, 0.0))

    j = types.int64
    return types.boolean(rows, j, j, origin, j, weights, j, notes, v, j, x, j), generate
