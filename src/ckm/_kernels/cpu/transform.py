"""The fast Walsh-Hadamard transform of LANES rows at a time, for structured frequencies.

A transform of p numbers is log2(p) *sweeps*: for stride = p/2, p/4, .. 1 each pair of numbers a, b
that lie `stride` apart becomes a + b, a - b. Vectors run along LANES rows, so number i of all rows
is one vector, and no sweep needs a shuffle. Each sweep by itself would read and write all numbers;
a *pass* does three or four of them in registers, on the 8 or 16 vectors that lie `stride` apart.

The passes are intrinsics, generated as LLVM vectors for three and for four sweeps. Arrays are
passed whole, with the row to start at: a slice would cost more than some of these loops. Sketches
transform float32 rows, decoders float64 atoms.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ckm._kernels.cpu.llvm import (
    DOUBLES,
    FLOATS,
    I32,
    INTS,
    LANES,
    call,
    constant,
    data_pointers,
    fma,
    i64,
    intrinsic,
    load,
    load_splat,
    loop,
    store,
    sum_lanes,
)
from ckm._kernels.cpu.phases import waves
from ckm._kernels.spec import THREE_BITS
from ckm._util.arrays import Array
from ckm._util.jit import entry, inlined

_FIRST_LEVEL_BYTES = 2**15  # bytes above which LANES transforms exceed the first-level cache

_INT = types.int64


# The passes, as LLVM vectors


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
            source, factors, target = data_pointers(context, builder, signature, args, 0, 2, 4)
            kind = _kind(signature.args[0])
            for places in _groups(builder, args[6], args[7], 2**sweeps):
                values = [
                    load(builder, source, _row(builder, builder.add(args[1], i)), kind)
                    for i in places
                ]
                multipliers = [
                    load_splat(builder, factors, builder.add(args[3], i)) for i in places
                ]
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
            (work,) = data_pointers(context, builder, signature, args, 0)
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
            work, turns, sums = data_pointers(context, builder, signature, args, 0, 2, 4)

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
            work, turns, sums, weights = data_pointers(
                context, builder, signature, args, 0, 2, 4, 6
            )
            beta = load(builder, weights, _row(builder, args[7]), DOUBLES)

            def add(row: Any, bits: Any) -> None:
                value = builder.sitofp(builder.sub(bits, constant(INTS, THREE_BITS)), DOUBLES)
                store(
                    builder, fma(builder, beta, value, load(builder, sums, row, DOUBLES)), sums, row
                )

            _finish(context, builder, 2**sweeps, (work, args[1]), (turns, args[3]), args[5], add)
            return context.get_dummy_value()

        return types.void(work, _INT, turns, _INT, sums, _INT, weights, _INT), generate

    return weigh_pass


scaled_pass_3 = _scaled_pass(3)
scaled_pass_4 = _scaled_pass(4)
plain_pass_3 = _plain_pass(3)
plain_pass_4 = _plain_pass(4)
sum_pass_3 = _sum_pass(3)
sum_pass_4 = _sum_pass(4)
weigh_pass_3 = _weigh_pass(3)
weigh_pass_4 = _weigh_pass(4)


@intrinsic
def add_lanes(context: Any, sums: Any, row: Any) -> Any:
    """The sum of the LANES numbers in a row: of int32 numbers wrapped to int32, of float64 numbers
    in order.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (sums,) = data_pointers(context, builder, signature, args, 0)
        whole = signature.return_type == types.int32
        vector = load(builder, sums, _row(builder, args[1]), INTS if whole else DOUBLES)
        if whole:
            return call(builder, f"llvm.vector.reduce.add.v{LANES}i32", I32, vector)
        return sum_lanes(builder, vector)

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
    """Sweeps, phases, cosines and sines of `count` numbers, without touching memory in between.

    `work` and `turns` are pointers, each with the place to start at; add(row, bits) adds the bit
    patterns of 3 + cos and 3 + sin to a row of the sums.
    """
    for places in _groups(builder, count, i64(1), group):
        numbers = [builder.add(work[1], i) for i in places]
        values = [load(builder, work[0], _row(builder, i), FLOATS) for i in numbers]
        for place, number, value in zip(
            places, numbers, _butterflies(builder, values), strict=True
        ):
            turn = load_splat(builder, turns[0], builder.add(turns[1], place))
            ((cosine, sine),) = waves(context, builder, [builder.fmul(turn, value)])
            twice = builder.mul(number, i64(2))
            add(_row(builder, twice), cosine)
            add(_row(builder, builder.add(twice, i64(1))), sine)


def _groups(builder: Any, size: Any, stride: Any, group: int) -> Any:
    """A loop over all groups of `group` numbers below `size` that lie `stride` apart.

    Yields once, the places of a group: `for places in _groups(..)` writes the body of the loop.
    """
    with (
        loop(builder, i64(0), size, builder.mul(stride, i64(group))) as (start, _),
        loop(builder, i64(0), stride) as (step, _),
    ):
        first = builder.add(start, step)
        yield [builder.add(first, builder.mul(stride, i64(i))) for i in range(group)]


def _butterflies(builder: Any, values: list[Any]) -> list[Any]:
    """Sweeps over these vectors, from those farthest apart to neighbours."""
    values = list(values)
    half = len(values) // 2
    while half:
        for i in range(len(values)):
            if not i & half:
                a = values[i]
                b = values[i + half]
                values[i] = builder.fadd(a, b)
                values[i + half] = builder.fsub(a, b)
        half //= 2
    return values


def _kind(array: Any) -> ir.VectorType:
    """The type of vectors that an array (.., LANES) consists of."""
    return FLOATS if array.dtype == types.float32 else DOUBLES


def _row(builder: Any, i: Any) -> Any:
    """Where row i of an array (.., LANES) starts."""
    return builder.mul(i, i64(LANES))


# The transform


def passes_of(p: int) -> Array:
    """How many sweeps each pass does: three or four.

    Passes of four come last, where the stride is small: 16 vectors that lie a large power of two
    apart would fall into the same set of the cache and evict each other.
    """
    sweeps = p.bit_length() - 1
    return np.array([3] * (sweeps // 3 - sweeps % 3) + [4] * (sweeps % 3))


@inlined
def transform(source, s, factors, d, target, t, p, passes):  # type: ignore[no-untyped-def]
    """target[t : t + p] = H diag(factors[d : d + p]) source[s : s + p], for arrays (.., LANES) of
    float32 or float64.
    """
    size = first_pass(source, s, factors, d, target, t, p, passes)
    for start in range(t, t + p, size):
        later_passes(target, start, size, p, passes, len(passes))


@entry
def first_pass(source, s, factors, d, target, t, p, passes):  # type: ignore[no-untyped-def]
    """The factors and the first pass, from source[s :] to target[t :].

    Returns how many numbers the later passes should take at a time to stay in the cache: after the
    first pass, stretches of `stride` numbers are independent of each other.
    """
    stride = p >> passes[0]
    if passes[0] == 4:
        scaled_pass_4(source, s, factors, d, target, t, p, stride)
    else:
        scaled_pass_3(source, s, factors, d, target, t, p, stride)
    return stride if p * target.shape[1] * target.itemsize > _FIRST_LEVEL_BYTES else p


@entry
def later_passes(work, w, size, p, passes, end):  # type: ignore[no-untyped-def]
    """All passes but the first, and but those from the `end`-th on, over work[w : w + size]."""
    stride = p >> passes[0]
    for i in range(1, end):
        stride >>= passes[i]
        if passes[i] == 4:
            plain_pass_4(work, w, size, stride)
        else:
            plain_pass_3(work, w, size, stride)
