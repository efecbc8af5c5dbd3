"""Rows into vectors: tiles of LANES rows and LANES columns, transposed in registers, with their
bounds and moments noted on the way.
"""

from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types

from ckm._kernels.cpu.llvm import (
    BYTE,
    DOUBLES,
    F32,
    FLOATS,
    LANES,
    call,
    every,
    fma,
    index,
    intrinsic,
    load,
    spread,
    store,
    transposed,
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
        rows, origin, weights, notes, v, x = (
            _array(context, builder, signature, args, at) for at in (0, 3, 5, 7, 8, 10)
        )
        (_, r, c, _, d, _, g, _, _, e, _, i), tile = args, []
        centre = _read(builder, origin, [d], DOUBLES)
        low, high, first, second = (_read(builder, notes, [index(k), d], DOUBLES) for k in range(4))
        kind, doubt = (
            FLOATS if signature.args[0].dtype == types.float32 else DOUBLES,
            every(FLOATS, 0.0),
        )
        for k in range(LANES):
            y = _read(builder, rows, [builder.add(r, index(k)), c], kind)
            y = builder.fpext(y, DOUBLES) if kind == FLOATS else y
            low = builder.select(builder.fcmp_ordered("<", y, low), y, low)
            high = builder.select(builder.fcmp_ordered(">", y, high), y, high)
            centred = builder.fsub(y, centre)
            _write(builder, centred, v, [index(k), e])
            weighted = builder.fmul(
                spread(builder, _place(builder, weights, [g, index(k)]), index(0)), centred
            )
            first, second = builder.fadd(first, weighted), fma(builder, weighted, centred, second)
            tile.append(builder.fptrunc(centred, FLOATS))
            # zero, unless something is not finite
            doubt = fma(builder, tile[-1], every(FLOATS, 0.0), doubt)
        for k, note in enumerate((low, high, first, second)):
            _write(builder, note, notes, [index(k), d])
        for k, column in enumerate(transposed(builder, tile)):
            _write(builder, column, x, [builder.add(i, index(k)), index(0)])
        total = call(
            builder, f"llvm.vector.reduce.fadd.v{LANES}f32", F32, ir.Constant(F32, 0.0), doubt
        )
        return builder.fcmp_ordered("==", total, ir.Constant(F32, 0.0))

    j = types.int64
    return types.boolean(rows, j, j, origin, j, weights, j, notes, v, j, x, j), generate


def _array(context: Any, builder: Any, signature: Any, args: Any, i: int) -> Any:
    return context.make_array(signature.args[i])(context, builder, args[i])


def _place(builder: Any, array: Any, where: list[Any]) -> Any:
    """A pointer to one of the array's numbers, whatever its strides."""
    strides = [builder.extract_value(array.strides, axis) for axis in range(len(where))]
    offset = reduce(
        builder.add, (builder.mul(i, stride) for i, stride in zip(where, strides, strict=True))
    )
    start = builder.bitcast(array.data, BYTE.as_pointer())
    return builder.bitcast(builder.gep(start, [offset]), array.data.type)


def _read(builder: Any, array: Any, where: list[Any], kind: ir.VectorType) -> Any:
    return load(builder, _place(builder, array, where), index(0), kind)


def _write(builder: Any, vector: Any, array: Any, where: list[Any]) -> None:
    store(builder, vector, _place(builder, array, where), index(0))
