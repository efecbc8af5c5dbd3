"""Triton kernels for wide rows on a GPU: projections and nearest anchors on the matrix units, and
sums over the rows of each cell.
"""

import triton
import triton.language as tl


@triton.jit
def _load_tile(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, l, there, c, n, origin, CENTRED: tl.constexpr
):
    """Some columns of some rows, relative to the origin, in float32; zero after the last."""
    mask = there[:, None] & (c < n)[None, :]
    at = l[:, None] * by_row + c[None, :].to(tl.int64) * by_column
    x = tl.load(rows + at, mask=mask, other=0.0)
    if CENTRED:
        x = x.to(tl.float64) - tl.load(origin + c, mask=c < n, other=0.0)[None, :]
    return x.to(tl.float32)


@triton.jit(do_not_specialize=["count"])
def project_rows(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, count, origin, high, low, n, y, d,
    CENTRED: tl.constexpr, SHORT: tl.constexpr, R: tl.constexpr, C: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """y (count, d) = (rows - origin) P^T, added up in float32.

    P (d + padding, n) is the sum of `high`, which the matrix units take as it is, and `low`. SHORT
    says that rows have no more bits than the matrix units take; else rows are split as well. The
    units truncate when they add, so that they add C columns only.
    """
    l = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    there = l < count
    j = tl.program_id(1) * D + tl.arange(0, D)
    total = tl.zeros([R, D], tl.float32)
    for start in range(0, n, C):
        c = start + tl.arange(0, C)
        x = _load_tile(rows, by_row, by_column, l, there, c, n, origin, CENTRED)
        at = j[None, :].to(tl.int64) * n + c[:, None]
        p = tl.load(high + at, mask=(c < n)[:, None], other=0.0)
        q = tl.load(low + at, mask=(c < n)[:, None], other=0.0)
        if SHORT:
            product = tl.dot(x, q, input_precision="tf32")
            total += tl.dot(x, p, product, input_precision="tf32")
        else:
            total += tl.dot(x, p + q, input_precision="tf32x3")
    inside = there[:, None] & (j < d)[None, :]
    tl.store(y + l[:, None] * d + j[None, :], total, mask=inside)


@triton.jit(do_not_specialize=["count", "blocks"])
def nearest_anchors(  # type: ignore[no-untyped-def]
    v, count, anchors, halves, blocks, cells,
    DEPTH: tl.constexpr, D: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """The anchor nearest to each row: the smallest of |a|^2 / 2 - v.a.

    v (count, DEPTH) and anchors (blocks K, DEPTH) are float16, padded with zeros.
    """
    l = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    there = l < count
    best = tl.full([R], float("inf"), tl.float32)
    which = tl.zeros([R], tl.int32)
    for block in range(blocks):
        k = block * K + tl.arange(0, K)
        product = tl.zeros([R, K], tl.float32)
        for start in tl.static_range(0, DEPTH, D):
            c = start + tl.arange(0, D)
            x = tl.load(v + l[:, None] * DEPTH + c[None, :], mask=there[:, None], other=0.0)
            a = tl.load(anchors + k[None, :] * DEPTH + c[:, None])
            product = tl.dot(x, a, product)
        score = tl.load(halves + k)[None, :] - product
        least, place = tl.min(score, axis=1, return_indices=True)
        which = tl.where(least < best, block * K + place, which)
        best = tl.minimum(best, least)
    tl.store(cells + l, which, mask=there)


@triton.jit
def sum_pieces(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, origin, weights, order, low, high, parts, n,
    CENTRED: tl.constexpr, WEIGHTED: tl.constexpr, T: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Sums of w x and w x^2 over the rows low .. high of an order: parts (pieces, 2, n), float64.

    A program has one piece and some of the columns.
    """
    piece = tl.program_id(0)
    c = tl.program_id(1) * C + tl.arange(0, C)
    first = tl.zeros([T, C], tl.float64)
    second = tl.zeros([T, C], tl.float64)
    end = tl.load(high + piece)
    for start in range(tl.load(low + piece), end, T):
        i = start + tl.arange(0, T)
        there = i < end
        l = tl.load(order + i, mask=there, other=0).to(tl.int64)
        x = _load_tile(rows, by_row, by_column, l, there, c, n, origin, CENTRED)
        x = tl.where(there[:, None], x, 0.0).to(tl.float64)
        wx = x * tl.load(weights + l, mask=there, other=0.0)[:, None] if WEIGHTED else x
        first += wx
        second += wx * x
    at = parts + piece.to(tl.int64) * 2 * n + c
    tl.store(at, tl.sum(first, axis=0), mask=c < n)
    tl.store(at + n, tl.sum(second, axis=0), mask=c < n)


@triton.jit
def join_pieces(  # type: ignore[no-untyped-def]
    parts, ends, sums, n, C: tl.constexpr
):
    """sums (s, n): those of the pieces of each cell, in order. A program has one cell and some of
    the columns; the pieces of cell k end before piece ends[k + 1], and begin at ends[k].
    """
    cell = tl.program_id(0)
    c = tl.program_id(1) * C + tl.arange(0, C)
    total = tl.zeros([C], tl.float64)
    for piece in range(tl.load(ends + cell), tl.load(ends + cell + 1)):
        total += tl.load(parts + piece * n + c, mask=c < n, other=0.0)
    tl.store(sums + cell.to(tl.int64) * n + c, total, mask=c < n)
