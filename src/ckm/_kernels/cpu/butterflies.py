"""The innermost loops for structured frequencies, written as LLVM vectors that run along LANES
rows.

A Walsh-Hadamard transform of p numbers is log2(p) sweeps of a + b, a - b. A *pass* does three or
four of them in registers, on 8 or 16 vectors that lie `stride` apart. As in `vectors.py`, each
function is an intrinsic on contiguous arrays, and nothing is checked. Arrays come whole, with the
row to begin at: a slice would cost more than some of these loops. Sketches transform float32 rows,
decoders float64 atoms.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from ckm._kernels.cpu import llvm as word
from ckm._kernels.cpu.llvm import (
    DOUBLES,
    FLOATS,
    I32,
    INTS,
    LANES,
    call,
    every,
    fma,
    index,
    intrinsic,
    load,
    loop,
    spread,
    store,
)
from ckm._kernels.cpu.phases import waves
from ckm._kernels.spec import THREE_BITS

_INT = types.int64


def _scaled_pass(sweeps: int) -> Any:
    @intrinsic
    def scaled_pass(
        context: Any,
        source: Any,
        s: Any,
        factors: Any,
        d: Any,
        target: Any,
        t: Any,
        size: Any,
        stride: Any,
    ) -> Any:
        """target[t + i] = source[s + i] factors[d + i] for i < size, then the sweeps; source and
        target (.., LANES).
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source, factors, target = _data(context, builder, signature, args, 0, 2, 4)
            kind = _kind(signature.args[0])
            for places in _groups(builder, args[6], args[7], 2**sweeps):
                values = [
                    load(builder, source, _row(builder, builder.add(args[1], i)), kind)
                    for i in places
                ]
                multipliers = [spread(builder, factors, builder.add(args[3], i)) for i in places]
                values = [
                    builder.fmul(a, value) for a, value in zip(multipliers, values, strict=True)
                ]
                for i, value in zip(places, _butterflies(builder, values), strict=True):
                    store(builder, value, target, _row(builder, builder.add(args[5], i)))
            return context.get_dummy_value()

        return types.void(source, _INT, factors, _INT, target, _INT, _INT, _INT), generate

    return scaled_pass


def _plain_pass(sweeps: int) -> Any:
    @intrinsic
    def plain_pass(context: Any, work: Any, w: Any, size: Any, stride: Any) -> Any:
        """The sweeps on work[w : w + size], in place."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            (work,) = _data(context, builder, signature, args, 0)
            for places in _groups(builder, args[2], args[3], 2**sweeps):
                rows = [_row(builder, builder.add(args[1], i)) for i in places]
                values = [load(builder, work, row, _kind(signature.args[0])) for row in rows]
                for row, value in zip(rows, _butterflies(builder, values), strict=True):
                    store(builder, value, work, row)
            return context.get_dummy_value()

        return types.void(work, _INT, _INT, _INT), generate

    return plain_pass


def _sum_pass(sweeps: int) -> Any:
    @intrinsic
    def sum_pass(context: Any, work: Any, w: Any, turns: Any, j: Any, sums: Any, count: Any) -> Any:
        """The last sweeps, of stride 1, on work[w : w + count]; then the phases, with turns[j : j +
        count], and sums[2 (w + i)], sums[2 (w + i) + 1] += bit patterns of 3 + cos and 3 + sin. The
        count is rounded up to whole groups.
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            work, turns, sums = _data(context, builder, signature, args, 0, 2, 4)

            def add(row: Any, bits: Any) -> None:
                store(builder, builder.add(load(builder, sums, row, INTS), bits), sums, row)

            _finish(context, builder, 2**sweeps, (work, args[1]), (turns, args[3]), args[5], add)
            return context.get_dummy_value()

        return types.void(work, _INT, turns, _INT, sums, _INT), generate

    return sum_pass


def _weigh_pass(sweeps: int) -> Any:
    @intrinsic
    def weigh_pass(
        context: Any,
        work: Any,
        w: Any,
        turns: Any,
        j: Any,
        sums: Any,
        count: Any,
        weights: Any,
        g: Any,
    ) -> Any:
        """As `sum_pass`, adding weights[g] times the cosine and sine as integers to float64 sums;
        weights (groups, LANES).
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            work, turns, sums, weights = _data(context, builder, signature, args, 0, 2, 4, 6)
            beta = load(builder, weights, _row(builder, args[7]), DOUBLES)

            def add(row: Any, bits: Any) -> None:
                value = builder.sitofp(builder.sub(bits, every(INTS, THREE_BITS)), DOUBLES)
                store(
                    builder, fma(builder, beta, value, load(builder, sums, row, DOUBLES)), sums, row
                )

            _finish(context, builder, 2**sweeps, (work, args[1]), (turns, args[3]), args[5], add)
            return context.get_dummy_value()

        return types.void(work, _INT, turns, _INT, sums, _INT, weights, _INT), generate

    return weigh_pass


scaled_pass_3, plain_pass_3, sum_pass_3, weigh_pass_3 = (
    make(3) for make in (_scaled_pass, _plain_pass, _sum_pass, _weigh_pass)
)
scaled_pass_4, plain_pass_4, sum_pass_4, weigh_pass_4 = (
    make(4) for make in (_scaled_pass, _plain_pass, _sum_pass, _weigh_pass)
)


@intrinsic
def add_lanes(context: Any, sums: Any, row: Any) -> Any:
    """The sum of the LANES numbers in a row: of int32 numbers wrapped to int32, of float64 numbers
    in order.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (sums,) = _data(context, builder, signature, args, 0)
        whole = signature.return_type == types.int32
        vector = load(builder, sums, _row(builder, args[1]), INTS if whole else DOUBLES)
        return (
            call(builder, f"llvm.vector.reduce.add.v{LANES}i32", I32, vector)
            if whole
            else word.add_lanes(builder, vector)
        )

    return sums.dtype(sums, _INT), generate


def _finish(
    context: Any,
    builder: Any,
    group: int,
    work: Any,
    turns: Any,
    count: Any,
    add: Callable[[Any, Any], None],
) -> None:
    """Sweeps, phases, cosines and sines of `count` numbers; work and turns are pointers with the
    place to begin at.
    """
    for places in _groups(builder, count, index(1), group):
        numbers = [builder.add(work[1], i) for i in places]
        values = [load(builder, work[0], _row(builder, i), FLOATS) for i in numbers]
        for place, number, value in zip(
            places, numbers, _butterflies(builder, values), strict=True
        ):
            turn = spread(builder, turns[0], builder.add(turns[1], place))
            ((cosine, sine),) = waves(context, builder, [builder.fmul(turn, value)])
            twice = builder.mul(number, index(2))
            add(_row(builder, twice), cosine)
            add(_row(builder, builder.add(twice, index(1))), sine)


def _groups(builder: Any, size: Any, stride: Any, group: int) -> Any:
    """The body of a loop over all groups of numbers below `size` that lie `stride` apart: iterate
    over it, once, to write the body.
    """
    with (
        loop(builder, index(0), size, builder.mul(stride, index(group))) as (start, _),
        loop(builder, index(0), stride) as (step, _),
    ):
        first = builder.add(start, step)
        yield [builder.add(first, builder.mul(stride, index(i))) for i in range(group)]


def _butterflies(builder: Any, values: list[Any]) -> list[Any]:
    """Sweeps over these numbers, from those farthest apart to neighbours."""
    values, half = list(values), len(values) // 2
    while half:
        for i in range(len(values)):
            if not i & half:
                a, b = values[i], values[i + half]
                values[i], values[i + half] = builder.fadd(a, b), builder.fsub(a, b)
        half //= 2
    return values


def _kind(array: Any) -> ir.VectorType:
    return FLOATS if array.dtype == types.float32 else DOUBLES


def _row(builder: Any, i: Any) -> Any:
    return builder.mul(i, index(LANES))


def _data(context: Any, builder: Any, signature: Any, args: Any, *which: int) -> list[Any]:
    """The data pointers of those arguments, which are arrays."""
    return [context.make_array(signature.args[i])(context, builder, args[i]).data for i in which]
