"""Rows of any strides become groups of `ROWS` rows, transposed, relative to the origin and in float32; bounds and moments on the way.

A group is taken `LANES` columns at a time. Rows whose numbers lie side by side are read where they are; others are first copied to a patch
of ROWS lines of LANES numbers, which stays in the nearest cache. Both float32 and float64 numbers are told apart by their size, while
running: two kinds of compiled kernels would take twice as long to compile.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import types

from ckm.kernels.vectors import ROWS
from ckm.kernels.vocabulary import (
    F32,
    F64,
    FLOATS,
    HALF,
    HALF_DOUBLES,
    HALF_FLOATS,
    at_address,
    element,
    every,
    fma,
    index,
    intrinsic,
    length,
    load,
    loop,
    no_more,
    splat,
    store,
    transposed,
    variable,
)

_INTEGER = types.int64


def _either(builder: Any, itemsize: Any, write: Callable[[Any], None]) -> None:
    """Code for float64 numbers, and for float32 numbers, of which the right one runs."""
    with builder.if_else(builder.icmp_signed("==", itemsize, index(8))) as (then, otherwise):
        with then:
            write(F64)
        with otherwise:
            write(F32)


@intrinsic
def copy_number(context: Any, source: Any, target: Any, itemsize: Any) -> Any:
    """Copy one number from one address to another."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, target, itemsize = args

        def write(kind: Any) -> None:
            number = builder.load(at_address(builder, source, kind))
            number.align = 1
            builder.store(number, at_address(builder, target, kind))

        _either(builder, itemsize, write)
        return context.get_dummy_value()

    return types.void(_INTEGER, _INTEGER, _INTEGER), generate


@intrinsic
def turn(context: Any, source: Any, by_line: Any, last: Any, lines: Any, width: Any, target: Any, by_column: Any, itemsize: Any) -> Any:
    """Transpose so many lines of `width` numbers from one address to another, their lines so many bytes apart.

    Both are rounded up to whole vectors. Line `last` stands in for those after it.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, by_line, last, lines, width, target, by_column, itemsize = args

        def at(address: Any, stride: Any, line: Any, place: Any, kind: Any) -> Any:
            offset = builder.add(builder.mul(line, stride), builder.mul(place, itemsize))
            return at_address(builder, builder.add(address, offset), kind)

        def write(number: Any) -> None:
            kind = FLOATS if number == F32 else HALF_DOUBLES
            with loop(builder, index(0), width, kind.count) as (c, _), loop(builder, index(0), lines, kind.count) as (r, _):
                present = [no_more(builder, builder.add(r, index(i)), last) for i in range(kind.count)]
                square = [load(builder, at(source, by_line, line, c, number), index(0), kind) for line in present]
                for i, column in enumerate(transposed(builder, square)):
                    store(builder, column, at(target, by_column, builder.add(c, index(i)), r, number), index(0))

        _either(builder, itemsize, write)
        return context.get_dummy_value()

    return types.void(*[_INTEGER] * 8), generate


@intrinsic
def absorb(
    context: Any, address: Any, stride: Any, itemsize: Any, w: Any, g: Any, equal: Any, d: Any, state: Any, v: Any, keep: Any, x: Any
) -> Any:
    """HALF columns of a group, from d on: v = y - origin, x = float32(v); the bounds of y and the sums of w v and w v^2 go into state.

    The rows y start at `address`, `stride` bytes apart. Shapes: w (groups, ROWS), x and v (ROWS, LANES), state (5, n'), with n' a multiple
    of LANES, its first row the origin. Where every weight is one, say so by `equal`. Unless `keep` is 1, v is not kept.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, stride, itemsize, w_, g, equal, d, state_, v_, keep, x_ = args
        at = partial(element, context, builder)
        places, half = [at(state, state_, index(i), d) for i in range(5)], builder.and_(d, index(HALF))
        origin, low, high, *sums = (load(builder, place, index(0), HALF_DOUBLES) for place in places)
        # Sums of a group, before they are added to the sums of all: the fewer numbers in a row, the less is rounded off.
        totals = [variable(builder, value) for value in (low, high, *[every(HALF_DOUBLES, 0.0)] * 2)]

        def write(number: Any, weighted: bool) -> None:
            with loop(builder, index(0), index(ROWS)) as (r, _):
                y = load(builder, at_address(builder, builder.add(address, builder.mul(r, stride)), number), index(0), _half(number))
                y = y if number == F64 else builder.fpext(y, HALF_DOUBLES)
                centred = builder.fsub(y, origin)
                weight = splat(builder, builder.load(at(w, w_, g, r)), HALF) if weighted else None
                _note(builder, totals, y, centred, weight)
                store(builder, centred, at(v, v_, builder.mul(r, keep), half), index(0))
                store(builder, builder.fptrunc(centred, HALF_FLOATS), at(x, x_, r, half), index(0))

        with builder.if_else(equal) as (then, otherwise):
            with then:
                _either(builder, itemsize, partial(write, weighted=False))
            with otherwise:
                _either(builder, itemsize, partial(write, weighted=True))
        low, high, *more = (builder.load(total) for total in totals)
        ends = low, high, *(builder.fadd(a, b) for a, b in zip(sums, more, strict=True))
        for place, end in zip(places[1:], ends, strict=True):
            store(builder, end, place, index(0))
        return context.get_dummy_value()

    return types.void(_INTEGER, _INTEGER, _INTEGER, w, _INTEGER, types.boolean, _INTEGER, state, v, _INTEGER, x), generate


def _half(number: Any) -> Any:
    return HALF_FLOATS if number == F32 else HALF_DOUBLES


def _note(builder: Any, totals: list[Any], y: Any, centred: Any, weight: Any) -> None:
    """Smallest and largest y, sums of w v and w v^2."""
    low, high, first, second = totals
    for sign, best in (("<", low), (">", high)):
        so_far = builder.load(best)
        builder.store(builder.select(builder.fcmp_ordered(sign, y, so_far), y, so_far), best)
    weighted = centred if weight is None else builder.fmul(centred, weight)
    builder.store(builder.fadd(builder.load(first), weighted), first)
    builder.store(fma(builder, weighted, centred, builder.load(second)), second)


@intrinsic
def add_products(context: Any, v: Any, w: Any, g: Any, products: Any) -> Any:
    """products[d, e] += w v[d] v[e] by lanes, for e < d: v (>= n, ROWS), products (n, n, HALF), with the weights w[g]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v_, w_, g, products_ = args
        at, steps = partial(element, context, builder), range(0, ROWS, HALF)
        weights, start = at(w, w_, g, index(0)), at(v, v_, index(0), index(0))
        with loop(builder, index(1), length(context, builder, products, products_, 0)) as (d, _):
            own, out = at(v, v_, d, index(0)), at(products, products_, d, index(0), index(0))
            halves = [[load(builder, line, index(k), HALF_DOUBLES) for k in steps] for line in (own, weights)]
            weighted = [builder.fmul(value, weight) for value, weight in zip(*halves, strict=True)]
            with loop(builder, index(0), d) as (e, _):
                line, place = builder.mul(e, index(ROWS)), builder.mul(e, index(HALF))
                total = load(builder, out, place, HALF_DOUBLES)
                for k, value in zip(steps, weighted, strict=True):
                    total = fma(builder, value, load(builder, start, builder.add(line, index(k)), HALF_DOUBLES), total)
                store(builder, total, out, place)
        return context.get_dummy_value()

    return types.void(v, w, _INTEGER, products), generate
