"""Packing: rows of any strides become groups of `ROWS` rows, transposed, relative to the origin and
in float32; their bounds and moments are computed on the way.

Rows of few columns are transposed first, so that vectors run along rows and no lane is wasted
(`absorb_columns`). Of many columns, `HALF` columns of `LANES` rows are taken at a time, vectors run
along columns, and only the rounded numbers are transposed (`absorb_rows`). Rows whose numbers lie
side by side are read in place; others are first copied to a buffer that stays in the first-level
cache. float32 and float64 numbers are distinguished by their size when the code runs: a kernel for
each type would take twice as long to compile.
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
    as_pointer,
    concatenate,
    element,
    i64,
    intrinsic,
    length,
    load,
    load_splat,
    loop,
    out_of_line,
    smaller,
    store,
    transpose,
)
from ckm._kernels.cpu.moments import centre_and_note, load_half
from ckm._kernels.cpu.phases import ROWS

SQUARE = 4  # side of the squares, in numbers, that `turn` transposes

_INTEGER = types.int64


def _for_either_type(builder: Any, itemsize: Any, write: Callable[[Any], None]) -> None:
    """Code for float64 numbers and code for float32 numbers, chosen by their size."""
    with builder.if_else(builder.icmp_signed("==", itemsize, i64(8))) as (then, otherwise):
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
    """Copy `width` columns of ROWS rows, number by number, from one address to another.

    Strides are in bytes. Rows after `last` are copies of row `last`.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, by_row, by_column, last, width, target, to_row, to_column, itemsize = args

        def write(kind: Any) -> None:
            with (
                loop(builder, i64(0), i64(ROWS)) as (r, _),
                loop(builder, i64(0), width) as (k, _),
            ):
                row = builder.add(source, builder.mul(smaller(builder, r, last), by_row))
                number = builder.load(
                    as_pointer(builder, builder.add(row, builder.mul(k, by_column)), kind)
                )
                number.align = 1
                place = builder.add(
                    builder.add(target, builder.mul(r, to_row)), builder.mul(k, to_column)
                )
                builder.store(number, as_pointer(builder, place, kind))

        _for_either_type(builder, itemsize, write)
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
    """Transpose `lines` lines of `width` numbers from one address to another.

    Strides, from line to line, are in bytes. Lines are rounded up to whole vectors, the width to a
    multiple of SQUARE. Lines after `last` are copies of line `last`.
    """

    def body(context: Any, builder: Any, *args: Any) -> None:
        source, by_line, last, lines, width, target, by_column, itemsize = args

        def at(address: Any, stride: Any, line: Any, place: Any, kind: Any) -> Any:
            offset = builder.add(builder.mul(line, stride), builder.mul(place, itemsize))
            return as_pointer(builder, builder.add(address, offset), kind)

        def write(number: Any) -> None:
            lanes = LANES if number == F32 else HALF
            with (
                loop(builder, i64(0), lines, lanes) as (r, _),
                loop(builder, i64(0), width, SQUARE) as (c, _),
            ):
                present = [smaller(builder, builder.add(r, i64(i)), last) for i in range(lanes)]
                pieces = [
                    load(
                        builder,
                        at(source, by_line, line, c, number),
                        i64(0),
                        ir.VectorType(number, SQUARE),
                    )
                    for line in present
                ]
                # Vector i holds lines i, i + SQUARE, i + 2 SQUARE, ..: so each vector holds one
                # line of several squares, which are transposed side by side in few shuffles.
                vectors = [concatenate(builder, pieces[i::SQUARE]) for i in range(SQUARE)]
                for i, column in enumerate(transpose(builder, vectors)):
                    store(
                        builder,
                        column,
                        at(target, by_column, builder.add(c, i64(i)), r, number),
                        i64(0),
                    )

        _for_either_type(builder, itemsize, write)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out_of_line(builder, "turn", args, partial(body, context))
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

    The rows y start at `address`, `by_row` bytes apart; `width` columns are taken, rounded up to a
    multiple of HALF. Shapes: w (groups, ROWS), x (.., ROWS), written from `line` on, and state (5,
    n'), with n' a multiple of HALF, its first row the origin. `equal`: all weights are one.
    """

    def body(builder: Any, *args: Any) -> None:
        address, by_row, itemsize, equal, width, weights_, state_, wide, x_ = args

        def write(number: Any, weighted: bool) -> None:
            # All columns of LANES rows, then the next rows: so each cache line is read in one go.
            with (
                loop(builder, i64(0), i64(ROWS), LANES) as (r, _),
                loop(builder, i64(0), width, HALF) as (c, _),
            ):
                places = [
                    builder.gep(state_, [builder.add(builder.mul(wide, i64(i)), c)])
                    for i in range(5)
                ]
                origin, *totals = (load(builder, place, i64(0), HALF_DOUBLES) for place in places)
                start = builder.add(
                    builder.add(address, builder.mul(r, by_row)), builder.mul(c, itemsize)
                )
                rows = [
                    as_pointer(builder, builder.add(start, builder.mul(by_row, i64(i))), number)
                    for i in range(LANES)
                ]
                ys = [load_half(builder, row, i64(0)) for row in rows]
                weights = [
                    load_splat(builder, weights_, builder.add(r, i64(i)), HALF)
                    for i in range(LANES)
                ]
                vs, totals = centre_and_note(
                    builder, origin, totals, ys, weights if weighted else []
                )
                for place, total in zip(places[1:], totals, strict=True):
                    store(builder, total, place, i64(0))
                narrow = [builder.fptrunc(v, HALF_FLOATS) for v in vs]
                pairs = [concatenate(builder, narrow[i::HALF]) for i in range(HALF)]
                for i, values in enumerate(transpose(builder, pairs)):
                    store(
                        builder,
                        values,
                        x_,
                        builder.add(builder.mul(builder.add(c, i64(i)), i64(ROWS)), r),
                    )

        _for_every_case(builder, itemsize, equal, write)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, by_row, itemsize, w_, g, equal, d, width, state_, x_, line = args
        at = partial(element, context, builder)
        wide = length(context, builder, state, state_, 1)
        weights = at(w, w_, g, i64(0))
        column = at(state, state_, i64(0), d)
        packed = at(x, x_, line, i64(0))
        values = [address, by_row, itemsize, equal, width, weights, column, wide, packed]
        out_of_line(builder, "absorb_rows", values, body)
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
    notes (n, 4, HALF), one of each per lane. The columns y may lie in the memory of v or x.
    """

    def body(builder: Any, *args: Any) -> None:
        source, by_column, itemsize, equal, keep, n, weights_, origins, notes_, v_, x_ = args
        steps = [i64(r) for r in range(0, ROWS, HALF)]

        def write(number: Any, weighted: bool) -> None:
            with loop(builder, i64(0), n) as (d, _):
                column = as_pointer(builder, builder.add(source, builder.mul(d, by_column)), number)
                place = builder.gep(notes_, [builder.mul(d, i64(4 * HALF))])
                v_line = builder.gep(v_, [builder.mul(d, i64(ROWS))])
                x_line = builder.gep(x_, [builder.mul(d, i64(ROWS))])
                origin = load_splat(builder, origins, d, HALF)
                totals = [load(builder, place, i64(i * HALF), HALF_DOUBLES) for i in range(4)]
                ys = [load_half(builder, column, r) for r in steps]
                weights = [load(builder, weights_, r, HALF_DOUBLES) for r in steps]
                vs, totals = centre_and_note(
                    builder, origin, totals, ys, weights if weighted else []
                )
                for i, total in enumerate(totals):
                    store(builder, total, place, i64(i * HALF))
                for r, values in zip(steps, vs, strict=True):
                    store(builder, builder.fptrunc(values, HALF_FLOATS), x_line, r)
                with builder.if_then(keep):
                    for r, values in zip(steps, vs, strict=True):
                        store(builder, values, v_line, r)

        _for_every_case(builder, itemsize, equal, write)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, by_column, itemsize, w_, g, equal, state_, notes_, keep, v_, x_, line = args
        at = partial(element, context, builder)
        n = length(context, builder, notes, notes_, 0)
        places = (
            at(w, w_, g, i64(0)),
            at(state, state_),
            at(notes, notes_),
            at(v, v_),
            at(x, x_, line, i64(0)),
        )
        out_of_line(
            builder, "absorb_columns", [source, by_column, itemsize, equal, keep, n, *places], body
        )
        return context.get_dummy_value()

    j = _INTEGER
    return types.void(j, j, j, w, j, types.boolean, state, notes, types.boolean, v, x, j), generate


def _for_every_case(builder: Any, itemsize: Any, equal: Any, write: Callable[..., None]) -> None:
    """Code for each type of numbers, weighted and unweighted, chosen when it runs."""
    with builder.if_else(equal) as (then, otherwise):
        with then:
            _for_either_type(builder, itemsize, partial(write, weighted=False))
        with otherwise:
            _for_either_type(builder, itemsize, partial(write, weighted=True))
