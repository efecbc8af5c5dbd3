"""Rows into vectors: tiles of LANES rows and LANES columns, transposed in registers, with their bounds and moments noted on the way."""

from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types

from ckm.kernels.butterflies import splat, store
from ckm.kernels.vectors import _DOUBLES, _F32, _FLOATS, _I32, _I64, LANES, _call, _constant, _fma, _intrinsic, _load


@_intrinsic
def take_tile(
    context: Any, rows: Any, r: Any, c: Any, origin: Any, d: Any, weights: Any, g: Any, notes: Any, v: Any, e: Any, x: Any, i: Any
) -> Any:
    """Read the tile rows[r:, c:]; returns whether all of it is finite in float32.

    rows are float32 or float64, origin[d:] and weights[g] float64 (LANES,). Written: notes[:, d:], float64 (4, LANES), which holds for each
    column the smallest, the largest, and the sums of weight (row - origin) and weight (row - origin)^2; v[:, e:], float64 (LANES, LANES),
    row - origin; and x[i:], float32 (LANES, LANES), the same in float32 and transposed.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, origin, weights, notes, v, x = (_array(context, builder, signature, args, at) for at in (0, 3, 5, 7, 8, 10))
        (_, r, c, _, d, _, g, _, _, e, _, i), tile = args, []
        centre = _read(builder, origin, [d], _DOUBLES)
        low, high, first, second = (_read(builder, notes, [_at(k), d], _DOUBLES) for k in range(4))
        kind, doubt = _FLOATS if signature.args[0].dtype == types.float32 else _DOUBLES, _constant(_FLOATS, 0.0)
        for k in range(LANES):
            y = _read(builder, rows, [builder.add(r, _at(k)), c], kind)
            y = builder.fpext(y, _DOUBLES) if kind == _FLOATS else y
            low = builder.select(builder.fcmp_ordered("<", y, low), y, low)
            high = builder.select(builder.fcmp_ordered(">", y, high), y, high)
            centred = builder.fsub(y, centre)
            _write(builder, centred, v, [_at(k), e])
            weighted = builder.fmul(splat(builder, _place(builder, weights, [g, _at(k)]), _at(0)), centred)
            first, second = builder.fadd(first, weighted), _fma(builder, weighted, centred, second)
            tile.append(builder.fptrunc(centred, _FLOATS))
            doubt = _fma(builder, tile[-1], _constant(_FLOATS, 0.0), doubt)  # zero, unless something is not finite
        for k, note in enumerate((low, high, first, second)):
            _write(builder, note, notes, [_at(k), d])
        for k, column in enumerate(_transposed(builder, tile)):
            _write(builder, column, x, [builder.add(i, _at(k)), _at(0)])
        total = _call(builder, f"llvm.vector.reduce.fadd.v{LANES}f32", _F32, ir.Constant(_F32, 0.0), doubt)
        return builder.fcmp_ordered("==", total, ir.Constant(_F32, 0.0))

    j = types.int64
    return types.boolean(rows, j, j, origin, j, weights, j, notes, v, j, x, j), generate


def _transposed(builder: Any, tile: list[Any]) -> list[Any]:
    """Swap ever smaller off-diagonal blocks."""
    tile, block = list(tile), LANES // 2
    while block:
        lanes = range(LANES)
        upper = ir.Constant(ir.VectorType(_I32, LANES), [i if not i & block else LANES + i - block for i in lanes])
        lower = ir.Constant(ir.VectorType(_I32, LANES), [i + block if not i & block else LANES + i for i in lanes])
        for i in lanes:
            if not i & block:
                a, b = tile[i], tile[i + block]
                tile[i], tile[i + block] = builder.shuffle_vector(a, b, upper), builder.shuffle_vector(a, b, lower)
        block //= 2
    return tile


def _at(value: int) -> ir.Constant:
    return ir.Constant(_I64, value)


def _array(context: Any, builder: Any, signature: Any, args: Any, i: int) -> Any:
    return context.make_array(signature.args[i])(context, builder, args[i])


def _place(builder: Any, array: Any, index: list[Any]) -> Any:
    """A pointer to one of the array's numbers, whatever its strides."""
    strides = [builder.extract_value(array.strides, axis) for axis in range(len(index))]
    offset = reduce(builder.add, (builder.mul(i, stride) for i, stride in zip(index, strides, strict=True)))
    start = builder.bitcast(array.data, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(start, [offset]), array.data.type)


def _read(builder: Any, array: Any, index: list[Any], kind: ir.VectorType) -> Any:
    return _load(builder, _place(builder, array, index), _at(0), kind)


def _write(builder: Any, vector: Any, array: Any, index: list[Any]) -> None:
    store(builder, vector, _place(builder, array, index), _at(0))
