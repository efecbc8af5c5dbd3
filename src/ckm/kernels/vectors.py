"""The innermost loops of the numba kernel, written as LLVM vectors.

LLVM's own vectoriser keeps to 256-bit registers and spills between loops; spelled out as vectors the same arithmetic runs about twice as
fast. Each function here is an intrinsic on contiguous arrays whose last axis is one block of `BLOCK` rows; nothing is checked.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ckm.kernels.arithmetic import COSINE, SINE, THREE_BITS

BLOCK = 256  # rows a block: sums of 256 integers below 2**22 fit in int32
TILE = 4  # frequencies that share the loads of a sweep
GROUP = 4  # vectors of rows that share a frequency's coordinates: TILE * GROUP accumulators hide the latency of fma
LANES = 16  # float32 numbers a vector; on narrower machines LLVM splits it

# To a type checker an intrinsic is a function of its array arguments alone.
_intrinsic: Callable[[Any], Any] = intrinsic

_I32, _I64, _F32, _F64 = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
_FLOATS, _INTS, _DOUBLES = (ir.VectorType(kind, LANES) for kind in (_F32, _I32, _F64))


def _constant(kind: ir.VectorType, value: Any) -> ir.Constant:
    return ir.Constant(kind, [value] * LANES)


def _float(value: Any) -> ir.Constant:
    return _constant(_FLOATS, float(np.float32(value)))


def _call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """Call an LLVM intrinsic such as llvm.fma on vectors."""
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [a.type for a in args]), name)
    return builder.call(function, args)


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return _call(builder, f"llvm.fma.v{LANES}f{32 if c.type == _FLOATS else 64}", c.type, a, b, c)


def _data(context: Any, builder: Any, signature: Any, args: Any) -> list[Any]:
    """The data pointers of array arguments."""
    return [context.make_array(kind)(context, builder, value).data for kind, value in zip(signature.args, args, strict=True)]


def _load(builder: Any, pointer: Any, index: Any, kind: ir.VectorType) -> Any:
    vector = builder.load(builder.bitcast(builder.gep(pointer, [index]), kind.as_pointer()))
    vector.align = 4 if kind.element == _F32 else 8  # arrays are aligned to their numbers, not to vectors
    return vector


def _splat(builder: Any, pointer: Any, index: Any) -> Any:
    """One float32 in every lane."""
    undefined = ir.Constant(_FLOATS, ir.Undefined)
    one = builder.insert_element(undefined, builder.load(builder.gep(pointer, [index])), ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, undefined, _constant(_INTS, 0))


def _wave(builder: Any, p: Any) -> tuple[Any, Any]:
    """Bit patterns of 3 + cos and 3 + sin of phases p in turns: see `arithmetic.py`."""
    r = builder.fsub(p, _call(builder, f"llvm.rint.v{LANES}f32", _FLOATS, p))
    q = builder.fmul(r, r)
    cosine, sine = _float(COSINE[-1]), _float(SINE[-1])
    for coefficient in (*COSINE[-2::-1], 4):
        cosine = _fma(builder, cosine, q, _float(coefficient))
    for coefficient in SINE[-2::-1]:
        sine = _fma(builder, sine, q, _float(coefficient))
    sine = _fma(builder, sine, r, _float(3))
    return builder.bitcast(cosine, _INTS), builder.bitcast(sine, _INTS)


def _sweep_tile(builder: Any, turns: Any, x: Any, n: Any, add: Callable[[int, Any, Any], None]) -> None:
    """For each vector of rows and each of TILE frequencies: phase, cosine, sine, and add(frequency, first row, bit patterns)."""
    index = _I64
    starts = [builder.gep(turns, [builder.mul(n, ir.Constant(index, f))]) for f in range(TILE)]
    phases = [[cgutils.alloca_once(builder, _FLOATS) for _ in range(GROUP)] for _ in range(TILE)]
    with cgutils.for_range_slice(builder, ir.Constant(index, 0), ir.Constant(index, BLOCK), ir.Constant(index, LANES * GROUP)) as (row, _):
        rows = [builder.add(row, ir.Constant(index, LANES * g)) for g in range(GROUP)]
        first = [_load(builder, x, r, _FLOATS) for r in rows]
        for f in range(TILE):
            t = _splat(builder, starts[f], ir.Constant(index, 0))
            for g in range(GROUP):
                builder.store(builder.fmul(t, first[g]), phases[f][g])
        with cgutils.for_range_slice(builder, ir.Constant(index, 1), n, ir.Constant(index, 1)) as (d, _):
            base = builder.mul(d, ir.Constant(index, BLOCK))
            values = [_load(builder, x, builder.add(base, r), _FLOATS) for r in rows]
            for f in range(TILE):
                t = _splat(builder, starts[f], d)
                for g in range(GROUP):
                    builder.store(_fma(builder, t, values[g], builder.load(phases[f][g])), phases[f][g])
        for f in range(TILE):
            for g in range(GROUP):
                cosine, sine = _wave(builder, builder.load(phases[f][g]))
                add(2 * f, rows[g], cosine)
                add(2 * f + 1, rows[g], sine)


@_intrinsic
def sum_tile(context: Any, turns: Any, x: Any, out: Any) -> Any:
    """out[2f], out[2f+1] = wrapped int32 sums of the bit patterns of 3 + cos and 3 + sin; turns (TILE, n), x (n, BLOCK), out (2 TILE,)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        n = builder.extract_value(context.make_array(signature.args[1])(context, builder, args[1]).shape, 0)
        turns, x, out = _data(context, builder, signature, args)
        sums = [cgutils.alloca_once_value(builder, _constant(_INTS, 0)) for _ in range(2 * TILE)]

        def add(i: int, row: Any, bits: Any) -> None:
            builder.store(builder.add(builder.load(sums[i]), bits), sums[i])

        _sweep_tile(builder, turns, x, n, add)
        for i, total in enumerate(sums):
            reduced = _call(builder, f"llvm.vector.reduce.add.v{LANES}i32", _I32, builder.load(total))
            builder.store(reduced, builder.gep(out, [ir.Constant(_I64, i)]))
        return context.get_dummy_value()

    return types.void(turns, x, out), generate


@_intrinsic
def weigh_tile(context: Any, turns: Any, x: Any, weights: Any, out: Any) -> Any:
    """As `sum_tile`, with float64 sums of weight times the cosine and sine as integers, in a fixed order."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        n = builder.extract_value(context.make_array(signature.args[1])(context, builder, args[1]).shape, 0)
        turns, x, weights, out = _data(context, builder, signature, args)
        sums = [cgutils.alloca_once_value(builder, _constant(_DOUBLES, 0.0)) for _ in range(2 * TILE)]

        def add(i: int, row: Any, bits: Any) -> None:
            value = builder.sitofp(builder.sub(bits, _constant(_INTS, THREE_BITS)), _DOUBLES)
            beta = _load(builder, weights, row, _DOUBLES)
            builder.store(_fma(builder, beta, value, builder.load(sums[i])), sums[i])

        _sweep_tile(builder, turns, x, n, add)
        for i, total in enumerate(sums):
            builder.store(_add_lanes(builder, builder.load(total)), builder.gep(out, [ir.Constant(_I64, i)]))
        return context.get_dummy_value()

    return types.void(turns, x, weights, out), generate


@_intrinsic
def dot(context: Any, a: Any, b: Any) -> Any:
    """Sum of a[r] b[r] over one block of float64 numbers, in a fixed order."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, b = _data(context, builder, signature, args)
        total = cgutils.alloca_once_value(builder, _constant(_DOUBLES, 0.0))
        with cgutils.for_range_slice(builder, ir.Constant(_I64, 0), ir.Constant(_I64, BLOCK), ir.Constant(_I64, LANES)) as (r, _):
            product = _fma(builder, _load(builder, a, r, _DOUBLES), _load(builder, b, r, _DOUBLES), builder.load(total))
            builder.store(product, total)
        return _add_lanes(builder, builder.load(total))

    return types.float64(a, b), generate


@_intrinsic
def extent(context: Any, a: Any) -> Any:
    """(smallest, largest) of one block of finite float64 numbers."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (a,) = _data(context, builder, signature, args)
        start = _load(builder, a, ir.Constant(_I64, 0), _DOUBLES)
        low, high = (cgutils.alloca_once_value(builder, start) for _ in range(2))
        with cgutils.for_range_slice(builder, ir.Constant(_I64, LANES), ir.Constant(_I64, BLOCK), ir.Constant(_I64, LANES)) as (r, _):
            values = _load(builder, a, r, _DOUBLES)
            for sign, best in (("<", low), (">", high)):
                so_far = builder.load(best)
                builder.store(builder.select(builder.fcmp_ordered(sign, values, so_far), values, so_far), best)
        names = (f"llvm.vector.reduce.fmin.v{LANES}f64", f"llvm.vector.reduce.fmax.v{LANES}f64")
        ends = [_call(builder, name, _F64, builder.load(best)) for name, best in zip(names, (low, high), strict=True)]
        return context.make_tuple(builder, signature.return_type, ends)

    return types.UniTuple(types.float64, 2)(a), generate


def _add_lanes(builder: Any, vector: Any) -> Any:
    """The lanes of a vector of float64, added in order."""
    return _call(builder, f"llvm.vector.reduce.fadd.v{LANES}f64", _F64, ir.Constant(_F64, 0.0), vector)
