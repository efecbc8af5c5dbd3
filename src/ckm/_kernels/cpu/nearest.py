"""The innermost loops of looking for the nearest centroid, written as LLVM vectors that run along
rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16  # float32 numbers a vector; on narrower machines LLVM splits it
PANEL = 64  # rows that meet all centroids together
TILE = 6  # centroids that share the loads of rows

_I32, _I64, _F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()
_FLOATS, _INTS = ir.VectorType(_F32, LANES), ir.VectorType(_I32, LANES)

# To a type checker an intrinsic is a function of its arguments alone.
_intrinsic: Callable[[Any], Any] = intrinsic


@_intrinsic
def turn_panel(context: Any, rows: Any, n: Any, x: Any) -> Any:
    """x[:n] = the transpose of PANEL rows of n numbers, for float32 arrays (PANEL n + LANES,) and
    (a multiple of LANES, PANEL).
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, x = _arrays(context, builder, signature, args, (0, 2))
        n, width = args[1], builder.extract_value(x.shape, 0)
        with _loop(builder, _index(PANEL), LANES) as (r, _), _loop(builder, width, LANES) as (d, _):
            lines = [
                _load(builder, rows.data, builder.add(builder.mul(builder.add(r, _index(i)), n), d))
                for i in range(LANES)
            ]
            for i, line in enumerate(_transposed(builder, lines)):
                _store(
                    builder,
                    line,
                    x.data,
                    builder.add(builder.mul(builder.add(d, _index(i)), _index(PANEL)), r),
                )
        return context.get_dummy_value()

    return types.void(rows, types.int64, x), generate


@_intrinsic
def score_panel(
    context: Any, x: Any, centroids: Any, halves: Any, best: Any, second: Any, which: Any
) -> Any:
    """For each row the smallest and second smallest of the scores halves[k] + centroids[k] . x[:,
    r], and the k of the smallest.

    float32 arrays x (at least n, PANEL), centroids (a multiple of TILE, n), halves, best and second
    (PANEL,), int32 array which (PANEL,). The last three hold what was found before. NaN is never
    smaller.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, centroids, halves, best, second, which = _arrays(context, builder, signature, args)
        count, n = (builder.extract_value(centroids.shape, axis) for axis in range(2))
        # vectors of rows, so that TILE * group sums fit in registers
        group = 4 if "+avx512f" in context.codegen().magic_tuple()[2] else 1
        fma = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * 3), f"llvm.fma.v{LANES}f32"
        )
        with (
            _loop(builder, count, TILE) as (k, _),
            _loop(builder, _index(PANEL), LANES * group) as (r, _),
        ):
            rows = [builder.add(r, _index(LANES * g)) for g in range(group)]
            numbers = [builder.add(k, _index(t)) for t in range(TILE)]
            lines = [builder.gep(centroids.data, [builder.mul(number, n)]) for number in numbers]
            sums = [[cgutils.alloca_once(builder, _FLOATS) for _ in rows] for _ in numbers]
            for t, number in enumerate(numbers):
                start = _splat(builder, builder.load(builder.gep(halves.data, [number])))
                for g in range(group):
                    builder.store(start, sums[t][g])
            with _loop(builder, n, 1) as (d, _):
                base = builder.mul(d, _index(PANEL))
                values = [_load(builder, x.data, builder.add(base, row)) for row in rows]
                for t, line in enumerate(lines):
                    c = _splat(builder, builder.load(builder.gep(line, [d])))
                    for g, value in enumerate(values):
                        builder.store(
                            builder.call(fma, [c, value, builder.load(sums[t][g])]), sums[t][g]
                        )
            for g, row in enumerate(rows):
                scores = [builder.load(sums[t][g]) for t in range(TILE)]
                _keep_smallest(builder, scores, numbers, best.data, second.data, which.data, row)
        return context.get_dummy_value()

    return types.void(x, centroids, halves, best, second, which), generate


def _keep_smallest(
    builder: Any,
    scores: list[Any],
    numbers: list[Any],
    best: Any,
    second: Any,
    which: Any,
    row: Any,
) -> None:
    low, next_low, owner = (
        _load(builder, best, row),
        _load(builder, second, row),
        _load(builder, which, row, _INTS),
    )
    for score, number in zip(scores, numbers, strict=True):
        better = builder.fcmp_ordered("<", score, low)
        loser = builder.select(better, low, score)
        next_low = builder.select(builder.fcmp_ordered("<", loser, next_low), loser, next_low)
        low = builder.select(better, score, low)
        owner = builder.select(better, _splat(builder, builder.trunc(number, _I32)), owner)
    for vector, place in ((low, best), (next_low, second), (owner, which)):
        _store(builder, vector, place, row)


def _arrays(
    context: Any, builder: Any, signature: Any, args: Any, which: Sequence[int] = range(6)
) -> list[Any]:
    return [context.make_array(signature.args[i])(context, builder, args[i]) for i in which]


def _index(value: int) -> ir.Constant:
    return ir.Constant(_I64, value)


def _loop(builder: Any, stop: Any, step: int) -> Any:
    return cgutils.for_range_slice(builder, _index(0), stop, _index(step))


def _load(builder: Any, pointer: Any, place: Any, kind: ir.VectorType = _FLOATS) -> Any:
    vector = builder.load(builder.bitcast(builder.gep(pointer, [place]), kind.as_pointer()))
    vector.align = 4  # arrays are aligned to their numbers, not to vectors
    return vector


def _store(builder: Any, vector: Any, pointer: Any, place: Any) -> None:
    builder.store(
        vector, builder.bitcast(builder.gep(pointer, [place]), vector.type.as_pointer())
    ).align = 4


def _splat(builder: Any, scalar: Any) -> Any:
    """One number in every lane."""
    undefined = ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(_INTS, [0] * LANES))


def _transposed(builder: Any, lines: list[Any]) -> list[Any]:
    """The columns of LANES vectors: blocks of 1, 2, 4 .. lanes change places across the diagonal."""
    lines, block = list(lines), 1
    while block < LANES:
        low = ir.Constant(_INTS, [i if not i & block else i - block + LANES for i in range(LANES)])
        high = ir.Constant(_INTS, [i + block if not i & block else i + LANES for i in range(LANES)])
        for i in range(LANES):
            if not i & block:
                a, b = lines[i], lines[i + block]
                lines[i], lines[i + block] = (
                    builder.shuffle_vector(a, b, low),
                    builder.shuffle_vector(a, b, high),
                )
        block *= 2
    return lines
