"""The innermost loops of the search for the nearest centroid, as LLVM vectors along rows."""

from typing import Any

from numba import types

from ckm._kernels.cpu.llvm import (
    FLOATS,
    I32,
    INTS,
    LANES,
    data_pointers,
    fma,
    has_feature,
    i64,
    intrinsic,
    length,
    load,
    load_splat,
    loop,
    splat,
    store,
    transpose,
    variable,
)

PANEL = 64  # rows that are compared with all centroids together
TILE = 6  # centroids that share the loads of rows: 6 x 4 sums fit 32 registers of 512 bits


@intrinsic
def transpose_panel(context: Any, rows: Any, n: Any, x: Any) -> Any:
    """x[:n] = the transpose of PANEL rows of n numbers, for float32 arrays (PANEL n + LANES,) and
    (a multiple of LANES, PANEL).
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, target = data_pointers(context, builder, signature, args, 0, 2)
        n = args[1]
        width = length(context, builder, signature.args[2], args[2], 0)
        # squares of LANES rows and LANES columns, each transposed in registers
        with (
            loop(builder, i64(0), i64(PANEL), LANES) as (r, _),
            loop(builder, i64(0), width, LANES) as (d, _),
        ):
            rows = [builder.mul(builder.add(r, i64(i)), n) for i in range(LANES)]
            lines = [load(builder, source, builder.add(row, d), FLOATS) for row in rows]
            for i, line in enumerate(transpose(builder, lines)):
                column = builder.mul(builder.add(d, i64(i)), i64(PANEL))
                store(builder, line, target, builder.add(column, r))
        return context.get_dummy_value()

    return types.void(rows, types.int64, x), generate


@intrinsic
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
        pointers = data_pointers(context, builder, signature, args, *range(6))
        _compare_with_all(context, builder, signature, args, pointers, _keep_two_smallest)
        return context.get_dummy_value()

    return types.void(x, centroids, halves, best, second, which), generate


@intrinsic
def nearest_panel(context: Any, x: Any, centroids: Any, halves: Any, best: Any, which: Any) -> Any:
    """The same without the second smallest score, which takes half as long for few columns."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = data_pointers(context, builder, signature, args, *range(5))
        _compare_with_all(context, builder, signature, args, pointers, _keep_smallest)
        return context.get_dummy_value()

    return types.void(x, centroids, halves, best, which), generate


@intrinsic
def score_all(context: Any, x: Any, centroids: Any, halves: Any, scores: Any) -> Any:
    """scores[k, r] = halves[k] + centroids[k] . x[:, r], added in the order of columns, for float32
    arrays x (at least n, PANEL), centroids (a multiple of TILE, n), halves and scores (as many,
    PANEL).
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = data_pointers(context, builder, signature, args, *range(4))
        _compare_with_all(context, builder, signature, args, pointers, _keep_all)
        return context.get_dummy_value()

    return types.void(x, centroids, halves, scores), generate


def _compare_with_all(
    context: Any, builder: Any, signature: Any, args: Any, pointers: list[Any], keep: Any
) -> None:
    """Compute the scores of all rows of a panel, tile by tile, and let `keep` compare them with
    what was found before.
    """
    x, centroids, halves, *found = pointers
    count = length(context, builder, signature.args[1], args[1], 0)
    n = length(context, builder, signature.args[1], args[1], 1)
    # vectors of rows, as many as let all sums of a tile stay in registers
    group = 4 if has_feature(context, "avx512f") else 1
    with (
        loop(builder, i64(0), count, TILE) as (k, _),
        loop(builder, i64(0), i64(PANEL), LANES * group) as (r, _),
    ):
        rows = [builder.add(r, i64(LANES * g)) for g in range(group)]
        numbers = [builder.add(k, i64(t)) for t in range(TILE)]
        lines = [builder.gep(centroids, [builder.mul(number, n)]) for number in numbers]
        starts = [load_splat(builder, halves, number) for number in numbers]
        sums = [[variable(builder, start) for _ in rows] for start in starts]
        # each vector of rows is loaded once per column and serves all centroids of the tile
        with loop(builder, i64(0), n) as (d, _):
            base = builder.mul(d, i64(PANEL))
            values = [load(builder, x, builder.add(base, row), FLOATS) for row in rows]
            for line, own in zip(lines, sums, strict=True):
                c = load_splat(builder, line, d)
                for value, total in zip(values, own, strict=True):
                    builder.store(fma(builder, c, value, builder.load(total)), total)
        for g, row in enumerate(rows):
            scores = [builder.load(own[g]) for own in sums]
            keep(builder, scores, numbers, found, row)


def _keep_all(
    builder: Any, scores: list[Any], numbers: list[Any], found: list[Any], row: Any
) -> None:
    """Write the scores of some centroids."""
    for score, number in zip(scores, numbers, strict=True):
        place = builder.add(builder.mul(number, i64(PANEL)), row)
        store(builder, score, found[0], place)


def _keep_smallest(
    builder: Any, scores: list[Any], numbers: list[Any], found: list[Any], row: Any
) -> None:
    """Compare the scores of some centroids with what was found before: best and which."""
    best, which = found
    low = load(builder, best, row, FLOATS)
    owner = load(builder, which, row, INTS)
    for score, number in zip(scores, numbers, strict=True):
        better = builder.fcmp_ordered("<", score, low)
        low = builder.select(better, score, low)
        owner = builder.select(better, splat(builder, builder.trunc(number, I32)), owner)
    store(builder, low, best, row)
    store(builder, owner, which, row)


def _keep_two_smallest(
    builder: Any, scores: list[Any], numbers: list[Any], found: list[Any], row: Any
) -> None:
    """Compare the scores of some centroids with what was found before: best, second and which."""
    best, second, which = found
    low = load(builder, best, row, FLOATS)
    next_low = load(builder, second, row, FLOATS)
    owner = load(builder, which, row, INTS)
    for score, number in zip(scores, numbers, strict=True):
        better = builder.fcmp_ordered("<", score, low)
        loser = builder.select(better, low, score)
        next_low = builder.select(builder.fcmp_ordered("<", loser, next_low), loser, next_low)
        low = builder.select(better, score, low)
        owner = builder.select(better, splat(builder, builder.trunc(number, I32)), owner)
    store(builder, low, best, row)
    store(builder, next_low, second, row)
    store(builder, owner, which, row)
