"""Rows of any strides become groups of `ROWS` rows, transposed, relative to the origin and in
float32; bounds and moments on the way.

Few columns are transposed first, so that vectors run along rows and none of their lanes is wasted.
Of many columns, `HALF` of `LANES` rows are taken at a time, vectors run along columns, and only the
rounded numbers are transposed. Rows whose numbers lie side by side are read where they are; others
are first copied to memory that stays in the nearest cache. float32 and float64 numbers are told
apart by their size, while running: two kinds of compiled kernels would take twice as long to
compile.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types

from ckm._kernels.cpu.llvm import (
    F32,
    F64,
    HALF,
    HALF_DOUBLES,
    HALF_FLOATS,
    LANES,
    apart,
    at_address,
    element,
    fma,
    index,
    intrinsic,
    joined,
    length,
    load,
    loop,
    no_more,
    spread,
    store,
    transposed,
)
from ckm._kernels.cpu.phases import ROWS

SQUARE = 4  # columns that change places with rows at once

_INTEGER = types.int64


def _either(builder: Any, itemsize: Any, write: Callable[[Any], None]) -> None:
    """Code for float64 numbers, and for float32 numbers, of which the right one runs."""
    with builder.if_else(builder.icmp_signed("==", itemsize, index(8))) as (then, otherwise):
        with then:
            write(F64)
        with otherwise:
            write(F32)


@intrinsic
def copy(
    context: Any,
    source: Any,
    by_row: Any,
    by_column: Any,
    last: Any,
    width: Any,
    target: Any,
    to_row: Any,
    to_column: Any,
    itemsize: Any,
) -> Any:
    """Copy `width` columns of ROWS rows, number by number, between addresses where rows and columns
    lie so many bytes apart.

    Row `last` stands in for those after it.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, by_row, by_column, last, width, target, to_row, to_column, itemsize = args

        def write(kind: Any) -> None:
            with (
                loop(builder, index(0), index(ROWS)) as (r, _),
                loop(builder, index(0), width) as (k, _),
            ):
                row = builder.add(source, builder.mul(no_more(builder, r, last), by_row))
                number = builder.load(
                    at_address(builder, builder.add(row, builder.mul(k, by_column)), kind)
                )
                number.align = 1
                place = builder.add(
                    builder.add(target, builder.mul(r, to_row)), builder.mul(k, to_column)
                )
                builder.store(number, at_address(builder, place, kind))

        _either(builder, itemsize, write)
        return context.get_dummy_value()

    return types.void(*[_INTEGER] * 9), generate


@intrinsic
def turn(
    context: Any,
    source: Any,
    by_line: Any,
    last: Any,
    lines: Any,
    width: Any,
    target: Any,
    by_column: Any,
    itemsize: Any,
) -> Any:
    """Transpose so many lines of `width` numbers from one address to another, their lines so many
    bytes apart.

    Lines are rounded up to whole vectors, the width to a multiple of SQUARE. Line `last` stands in
    for those after it.
    """

    def body(context: Any, builder: Any, *args: Any) -> None:
        source, by_line, last, lines, width, target, by_column, itemsize = args

        def at(address: Any, stride: Any, line: Any, place: Any, kind: Any) -> Any:
            offset = builder.add(builder.mul(line, stride), builder.mul(place, itemsize))
            return at_address(builder, builder.add(address, offset), kind)

        def write(number: Any) -> None:
            lanes = LANES if number == F32 else HALF
            with (
                loop(builder, index(0), lines, lanes) as (r, _),
                loop(builder, index(0), width, SQUARE) as (c, _),
            ):
                present = [no_more(builder, builder.add(r, index(i)), last) for i in range(lanes)]
                pieces = [
                    load(
                        builder,
                        at(source, by_line, line, c, number),
                        index(0),
                        ir.VectorType(number, SQUARE),
                    )
                    for line in present
                ]
                # Every SQUAREth line in one vector: so squares side by side in vectors are
                # transposed, which takes the fewest steps.
                vectors = [joined(builder, pieces[i::SQUARE]) for i in range(SQUARE)]
                for i, column in enumerate(transposed(builder, vectors)):
                    store(
                        builder,
                        column,
                        at(target, by_column, builder.add(c, index(i)), r, number),
                        index(0),
                    )

        _either(builder, itemsize, write)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        apart(builder, "turn", args, partial(body, context))
        return context.get_dummy_value()

    return types.void(*[_INTEGER] * 8), generate


@intrinsic
def absorb_rows(
    context: Any,
    address: Any,
    by_row: Any,
    itemsize: Any,
    w: Any,
    g: Any,
    equal: Any,
    d: Any,
    width: Any,
    state: Any,
    x: Any,
    line: Any,
) -> Any:
    """Columns of a group, from d on: x = float32(v), transposed, with v = y - origin; bounds of y
    and sums of w v and w v^2 into state.

    The rows y start at `address`, `by_row` bytes apart; `width` columns are taken, and more up to a
    multiple of HALF. Shapes: w (groups, ROWS), x (.., ROWS), written from `line` on, and state (5,
    n'), with n' a multiple of HALF, its first row the origin. Where every weight is one, say so by
    `equal`.
    """

    def body(builder: Any, *args: Any) -> None:
        address, by_row, itemsize, equal, width, weights_, state_, wide, x_ = args

        def write(number: Any, weighted: bool) -> None:
            # A few rows from end to end, then the next: so each line of the cache is read at once.
            with (
                loop(builder, index(0), index(ROWS), LANES) as (r, _),
                loop(builder, index(0), width, HALF) as (c, _),
            ):
                places = [
                    builder.gep(state_, [builder.add(builder.mul(wide, index(i)), c)])
                    for i in range(5)
                ]
                origin, *totals = (load(builder, place, index(0), HALF_DOUBLES) for place in places)
                start = builder.add(
                    builder.add(address, builder.mul(r, by_row)), builder.mul(c, itemsize)
                )
                rows = [
                    at_address(builder, builder.add(start, builder.mul(by_row, index(i))), number)
                    for i in range(LANES)
                ]
                ys = [_numbers(builder, row, index(0)) for row in rows]
                weights = [
                    spread(builder, weights_, builder.add(r, index(i)), HALF) for i in range(LANES)
                ]
                vs, totals = _noted(builder, origin, totals, ys, weights if weighted else [])
                for place, total in zip(places[1:], totals, strict=True):
                    store(builder, total, place, index(0))
                narrow = [builder.fptrunc(v, HALF_FLOATS) for v in vs]
                pairs = [joined(builder, narrow[i::HALF]) for i in range(HALF)]
                for i, values in enumerate(transposed(builder, pairs)):
                    store(
                        builder,
                        values,
                        x_,
                        builder.add(builder.mul(builder.add(c, index(i)), index(ROWS)), r),
                    )

        _whichever(builder, itemsize, equal, write)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, by_row, itemsize, w_, g, equal, d, width, state_, x_, line = args
        at, wide = partial(element, context, builder), length(context, builder, state, state_, 1)
        weights_, state_, x_ = (
            at(w, w_, g, index(0)),
            at(state, state_, index(0), d),
            at(x, x_, line, index(0)),
        )
        apart(
            builder,
            "absorb_rows",
            [address, by_row, itemsize, equal, width, weights_, state_, wide, x_],
            body,
        )
        return context.get_dummy_value()

    j = _INTEGER
    return types.void(j, j, j, w, j, types.boolean, j, j, state, x, j), generate


@intrinsic
def absorb_columns(
    context: Any,
    source: Any,
    by_column: Any,
    itemsize: Any,
    w: Any,
    g: Any,
    equal: Any,
    state: Any,
    notes: Any,
    keep: Any,
    v: Any,
    x: Any,
    line: Any,
) -> Any:
    """All columns of a group, which start at `source`, `by_column` bytes apart, with ROWS numbers y
    side by side.

    As `absorb_rows`; also v, of shape (n, ROWS), is written if `keep`; and bounds and sums go into
    notes (n, 4, HALF), by lanes. Columns y may be in the place of v or x.
    """

    def body(builder: Any, *args: Any) -> None:
        source, by_column, itemsize, equal, keep, n, weights_, origins, notes_, v_, x_ = args
        steps = [index(r) for r in range(0, ROWS, HALF)]

        def write(number: Any, weighted: bool) -> None:
            with loop(builder, index(0), n) as (d, _):
                column = at_address(builder, builder.add(source, builder.mul(d, by_column)), number)
                place = builder.gep(notes_, [builder.mul(d, index(4 * HALF))])
                v_line, x_line = (
                    builder.gep(lines, [builder.mul(d, index(ROWS))]) for lines in (v_, x_)
                )
                origin = spread(builder, origins, d, HALF)
                totals = [load(builder, place, index(i * HALF), HALF_DOUBLES) for i in range(4)]
                ys = [_numbers(builder, column, r) for r in steps]
                weights = [load(builder, weights_, r, HALF_DOUBLES) for r in steps]
                vs, totals = _noted(builder, origin, totals, ys, weights if weighted else [])
                for i, total in enumerate(totals):
                    store(builder, total, place, index(i * HALF))
                for r, values in zip(steps, vs, strict=True):
                    store(builder, builder.fptrunc(values, HALF_FLOATS), x_line, r)
                with builder.if_then(keep):
                    for r, values in zip(steps, vs, strict=True):
                        store(builder, values, v_line, r)

        _whichever(builder, itemsize, equal, write)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, by_column, itemsize, w_, g, equal, state_, notes_, keep, v_, x_, line = args
        at, n = partial(element, context, builder), length(context, builder, notes, notes_, 0)
        places = (
            at(w, w_, g, index(0)),
            at(state, state_),
            at(notes, notes_),
            at(v, v_),
            at(x, x_, line, index(0)),
        )
        apart(
            builder, "absorb_columns", [source, by_column, itemsize, equal, keep, n, *places], body
        )
        return context.get_dummy_value()

    j = _INTEGER
    return types.void(j, j, j, w, j, types.boolean, state, notes, types.boolean, v, x, j), generate


def _whichever(builder: Any, itemsize: Any, equal: Any, write: Callable[..., None]) -> None:
    """Code for every type of numbers, weighted and not."""
    with builder.if_else(equal) as (then, otherwise):
        with then:
            _either(builder, itemsize, partial(write, weighted=False))
        with otherwise:
            _either(builder, itemsize, partial(write, weighted=True))


def _numbers(builder: Any, pointer: Any, place: Any) -> Any:
    """HALF numbers of either type."""
    return load(
        builder, pointer, place, HALF_DOUBLES if pointer.type.pointee == F64 else HALF_FLOATS
    )


def _doubles(builder: Any, values: Any) -> Any:
    """HALF numbers of either type as float64."""
    return values if values.type == HALF_DOUBLES else builder.fpext(values, HALF_DOUBLES)


def _noted(
    builder: Any, origin: Any, totals: list[Any], ys: list[Any], weights: list[Any]
) -> tuple[list[Any], list[Any]]:
    """v = y - origin; and smallest and largest y, sums of w v and w v^2, added to `totals`.

    Sums of these rows come first: the fewer numbers in a row, the less is rounded off. Bounds are
    taken of y as it is, before it takes up the registers of float64 numbers.
    """
    low, high, *sums = totals
    lowest = highest = ys[0]
    for y in ys[1:]:
        lowest, highest = _smaller(builder, y, lowest), _larger(builder, y, highest)
    vs = [builder.fsub(_doubles(builder, y), origin) for y in ys]
    weighted = [builder.fmul(v, w) for v, w in zip(vs, weights, strict=True)] if weights else vs
    first, second = weighted[0], builder.fmul(weighted[0], vs[0])
    for u, v in zip(weighted[1:], vs[1:], strict=True):
        first, second = builder.fadd(first, u), fma(builder, u, v, second)
    bounds = (
        _smaller(builder, _doubles(builder, lowest), low),
        _larger(builder, _doubles(builder, highest), high),
    )
    return vs, [
        *bounds,
        *(builder.fadd(total, more) for total, more in zip(sums, (first, second), strict=True)),
    ]


def _smaller(builder: Any, y: Any, best: Any) -> Any:
    """The smaller numbers of two vectors; those of `best` where there are NaNs."""
    return builder.select(builder.fcmp_ordered("<", y, best), y, best)


def _larger(builder: Any, y: Any, best: Any) -> Any:
    """The larger numbers, likewise."""
    return builder.select(builder.fcmp_ordered(">", y, best), y, best)


@intrinsic
def add_products(context: Any, v: Any, w: Any, g: Any, products: Any) -> Any:
    """products[d, e] += w v[d] v[e] by lanes, for e < d: v (>= n, ROWS), products (n, n, HALF),
    with the weights w[g].
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v_, w_, g, products_ = args
        at, steps = partial(element, context, builder), range(0, ROWS, HALF)
        weights, start = at(w, w_, g, index(0)), at(v, v_, index(0), index(0))
        with loop(builder, index(1), length(context, builder, products, products_, 0)) as (d, _):
            own, out = at(v, v_, d, index(0)), at(products, products_, d, index(0), index(0))
            halves = [
                [load(builder, line, index(k), HALF_DOUBLES) for k in steps]
                for line in (own, weights)
            ]
            weighted = [builder.fmul(value, weight) for value, weight in zip(*halves, strict=True)]
            with loop(builder, index(0), d) as (e, _):
                line, place = builder.mul(e, index(ROWS)), builder.mul(e, index(HALF))
                total = load(builder, out, place, HALF_DOUBLES)
                for k, value in zip(steps, weighted, strict=True):
                    total = fma(
                        builder,
                        value,
                        load(builder, start, builder.add(line, index(k)), HALF_DOUBLES),
                        total,
                    )
                store(builder, total, out, place)
        return context.get_dummy_value()

    return types.void(v, w, _INTEGER, products), generate
