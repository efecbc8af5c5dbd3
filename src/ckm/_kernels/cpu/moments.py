"""Bounds and moments of rows, computed while they are packed, as LLVM vectors."""

from functools import partial
from typing import Any

from numba import types

from ckm._kernels.cpu.llvm import (
    F64,
    HALF,
    HALF_DOUBLES,
    HALF_FLOATS,
    element,
    fma,
    i64,
    intrinsic,
    length,
    load,
    loop,
    store,
)
from ckm._kernels.cpu.phases import ROWS


def load_half(builder: Any, pointer: Any, place: Any) -> Any:
    """HALF float32 or float64 numbers, as the pointer says."""
    return load(
        builder, pointer, place, HALF_DOUBLES if pointer.type.pointee == F64 else HALF_FLOATS
    )


def widen(builder: Any, values: Any) -> Any:
    """HALF float32 or float64 numbers as float64."""
    return values if values.type == HALF_DOUBLES else builder.fpext(values, HALF_DOUBLES)


def centre_and_note(
    builder: Any, origin: Any, totals: list[Any], ys: list[Any], weights: list[Any]
) -> tuple[list[Any], list[Any]]:
    """v = y - origin, and the totals with these rows: smallest y, largest y, sums of w v, w v^2.

    These rows are summed first and then added to the totals: the fewer numbers are added one after
    another, the smaller the rounding error. Bounds are taken before y is widened to float64, which
    takes twice as many registers.
    """
    low, high, first_total, second_total = totals
    lowest = ys[0]
    highest = ys[0]
    for y in ys[1:]:
        lowest = _smaller(builder, y, lowest)
        highest = _larger(builder, y, highest)
    vs = [builder.fsub(widen(builder, y), origin) for y in ys]
    weighted = [builder.fmul(v, w) for v, w in zip(vs, weights, strict=True)] if weights else vs
    first = weighted[0]
    second = builder.fmul(weighted[0], vs[0])
    for u, v in zip(weighted[1:], vs[1:], strict=True):
        first = builder.fadd(first, u)
        second = fma(builder, u, v, second)
    noted = [
        _smaller(builder, widen(builder, lowest), low),
        _larger(builder, widen(builder, highest), high),
        builder.fadd(first_total, first),
        builder.fadd(second_total, second),
    ]
    return vs, noted


def _smaller(builder: Any, y: Any, best: Any) -> Any:
    """The smaller of y and best in each lane; best if either is NaN."""
    return builder.select(builder.fcmp_ordered("<", y, best), y, best)


def _larger(builder: Any, y: Any, best: Any) -> Any:
    """The larger of y and best in each lane; best if either is NaN."""
    return builder.select(builder.fcmp_ordered(">", y, best), y, best)


@intrinsic
def add_products(context: Any, v: Any, w: Any, g: Any, products: Any) -> Any:
    """products[d, e] += w v[d] v[e] by lanes, for e < d: v (>= n, ROWS), products (n, n, HALF),
    with the weights w[g].
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v_, w_, g, products_ = args
        at = partial(element, context, builder)
        steps = range(0, ROWS, HALF)
        weights = at(w, w_, g, i64(0))
        start = at(v, v_, i64(0), i64(0))
        with loop(builder, i64(1), length(context, builder, products, products_, 0)) as (d, _):
            own = at(v, v_, d, i64(0))
            out = at(products, products_, d, i64(0), i64(0))
            # w v[d] stays in registers and meets every column before d
            weighted = [
                builder.fmul(
                    load(builder, own, i64(k), HALF_DOUBLES),
                    load(builder, weights, i64(k), HALF_DOUBLES),
                )
                for k in steps
            ]
            with loop(builder, i64(0), d) as (e, _):
                line = builder.mul(e, i64(ROWS))
                place = builder.mul(e, i64(HALF))
                total = load(builder, out, place, HALF_DOUBLES)
                for k, value in zip(steps, weighted, strict=True):
                    other = load(builder, start, builder.add(line, i64(k)), HALF_DOUBLES)
                    total = fma(builder, value, other, total)
                store(builder, total, out, place)
        return context.get_dummy_value()

    return types.void(v, w, types.int64, products), generate
