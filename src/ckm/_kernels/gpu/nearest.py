"""Triton kernels: the nearest of K centroids to rows on a GPU."""

import triton
import triton.language as tl


@triton.jit
def _scores(v, scaled, k, d, width, score):  # type: ignore[no-untyped-def]
    """score + v times the d-th column of the scaled centroids (columns, width): lanes run along
    rows, and a thread holds every k.
    """
    c = tl.load(scaled + d * width + k)
    return tl.fma(
        tl.broadcast_to(c[:, None], score.shape), tl.broadcast_to(v[None, :], score.shape), score
    )


@triton.jit
def _compare(  # type: ignore[no-untyped-def]
    score, block, best, second, which, K: tl.constexpr, AXIS: tl.constexpr
):
    """The two smallest scores so far, and the centroid of the smallest."""
    least, place = tl.min(score, axis=AXIS, return_indices=True)
    same = tl.expand_dims(tl.arange(0, K), 1 - AXIS) == tl.expand_dims(place, AXIS)
    other = tl.min(tl.where(same, float("inf"), score), axis=AXIS)
    second = tl.minimum(tl.maximum(best, least), tl.minimum(second, other))
    return tl.minimum(best, least), second, tl.where(least < best, block * K + place, which)


@triton.jit
def _is_sure(norm, best, second, bounds):  # type: ignore[no-untyped-def]
    """Whether the smallest score is certain: `ckm._kmeans.nearest` has the same test on the CPU."""
    length = tl.load(bounds)
    a = tl.load(bounds + 1)
    b = tl.load(bounds + 2)
    reach = tl.load(bounds + 4) * tl.sqrt(norm.to(tl.float64)) + length
    return (
        second.to(tl.float64) - best.to(tl.float64) > reach * (a + b * reach) + tl.load(bounds + 3)
    ) & (norm < tl.load(bounds + 5))


@triton.jit
def _decide(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, l, doubt, centroids, distinct, R: tl.constexpr, N: tl.constexpr
):
    """The nearest centroid and its squared distance in float64, infinite if none is finite.

    Distances are summed in the order of the columns, as on the CPU, so that rows halfway between
    two centroids get the same label.
    """
    least = tl.full([R], float("inf"), tl.float64)
    which = tl.zeros([R], tl.int32)
    for k in range(distinct):
        squares = tl.zeros([R], tl.float64)
        for d in range(N):
            y = tl.load(rows + l * by_row + d * by_column, mask=doubt, other=0.0).to(tl.float64)
            gap = y - tl.load(centroids + k * N + d)
            squares += gap * gap
        which = tl.where(squares < least, k, which)
        least = tl.where(squares < least, squares, least)
    return which, least


@triton.jit
def _labelled(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, l, there, sure, which, squares, centroids, distinct, names, weights,
    labels,
    R: tl.constexpr, N: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Decide rows in doubt, and write labels; returns squared distances times weights."""
    doubt = there & (sure == 0)
    if tl.max(doubt.to(tl.int32), axis=0) > 0:
        other, least = _decide(rows, by_row, by_column, l, doubt, centroids, distinct, R, N)
        which = tl.where(doubt, other, which)
        squares = tl.where(doubt, least, squares)
        sure = sure | (doubt & (least < float("inf")))
    tl.store(labels + l, tl.where(sure, tl.load(names + which, mask=sure, other=0), -1), mask=there)
    if WEIGHTED:
        squares = squares * tl.load(weights + l, mask=there, other=0.0)
    return squares


@triton.jit(do_not_specialize=["count", "blocks", "distinct"])
def nearest_in_few_columns(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, origin, factor, scaled, halves, bounds, blocks, columns, centroids,
    distinct, names, weights, labels, parts, count,
    N: tl.constexpr, R: tl.constexpr, T: tl.constexpr, K: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Labels of T tiles of R rows, and the sum of their squared distances; -1 and infinity for a
    row without finite distances.

    A thread compares its row with K centroids at a time, so that the smallest scores are found
    within the thread.
    """
    scale = tl.load(factor)
    width = blocks * K
    total = tl.zeros([R], tl.float64)
    for tile in range(T):
        l = (tl.program_id(0) * T + tile).to(tl.int64) * R + tl.arange(0, R)
        there = l < count
        at = rows + l * by_row
        best = tl.full([R], float("inf"), tl.float32)
        second = tl.full([R], float("inf"), tl.float32)
        which = tl.zeros([R], tl.int32)
        norm = tl.zeros([R], tl.float32)
        for block in range(blocks):
            k = block * K + tl.arange(0, K)
            score = tl.broadcast_to(tl.load(halves + k)[:, None], [K, R])
            norm = tl.zeros([R], tl.float32)
            for d in tl.static_range(N):
                y = tl.load(at + d * by_column, mask=there, other=0.0)
                v = ((y - tl.load(origin + d)) * scale).to(tl.float32)
                norm += v * v
                score = _scores(v, scaled, k, d, width, score)
            best, second, which = _compare(score, block, best, second, which, K, 0)
        sure = _is_sure(norm, best, second, bounds) & there
        squares = tl.zeros([R], tl.float64)
        for d in tl.static_range(N):
            y = tl.load(at + d * by_column, mask=sure, other=0.0)
            gap = y.to(tl.float64) - tl.load(centroids + which * N + d, mask=sure, other=0.0)
            squares += gap * gap
        total += _labelled(
            rows, by_row, by_column, l, there, sure, which, squares, centroids, distinct, names,
            weights, labels, R, N, WEIGHTED,
        )  # fmt: skip
    tl.store(parts + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def _tile(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, l, there, start, N: tl.constexpr
):
    """Sixteen columns of some rows, zero after the last row and column."""
    d = start + tl.arange(0, 16)
    mask = there[:, None] & (d < N)[None, :]
    return (
        d,
        mask,
        tl.load(
            rows + l[:, None] * by_row + d[None, :].to(tl.int64) * by_column, mask=mask, other=0.0
        ),
    )


@triton.jit(do_not_specialize=["count", "blocks", "distinct"])
def nearest_in_many_columns(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, origin, factor, scaled, halves, bounds, blocks, columns, centroids,
    distinct, names, weights, labels, parts, count,
    N: tl.constexpr, R: tl.constexpr, T: tl.constexpr, K: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """The same for any number of columns, by way of shared memory."""
    scale = tl.load(factor)
    width = blocks * K
    total = tl.zeros([R], tl.float64)
    for tile in range(T):
        l = (tl.program_id(0) * T + tile).to(tl.int64) * R + tl.arange(0, R)
        there = l < count
        best = tl.full([R], float("inf"), tl.float32)
        second = tl.full([R], float("inf"), tl.float32)
        which = tl.zeros([R], tl.int32)
        norm = tl.zeros([R], tl.float32)
        for block in range(blocks):
            k = block * K + tl.arange(0, K)
            score = tl.broadcast_to(tl.load(halves + k)[None, :], [R, K])
            norm = tl.zeros([R], tl.float32)
            for start in range(0, columns, 16):
                d, mask, y = _tile(rows, by_row, by_column, l, there, start, N)
                o = tl.load(origin + d, mask=d < N, other=0.0)
                v = tl.where(mask, (y - o[None, :]) * scale, 0.0).to(tl.float32)
                norm += tl.sum(v * v, axis=1)
                score = tl.dot(
                    v,
                    tl.load(scaled + d[:, None] * width + k[None, :]),
                    score,
                    input_precision="ieee",
                )
            best, second, which = _compare(score, block, best, second, which, K, 1)
        sure = _is_sure(norm, best, second, bounds) & there
        squares = tl.zeros([R], tl.float64)
        for start in range(0, columns, 16):
            d, mask, y = _tile(rows, by_row, by_column, l, sure, start, N)
            gap = y.to(tl.float64) - tl.load(
                centroids + which[:, None] * N + d[None, :], mask=mask, other=0.0
            )
            squares += tl.sum(gap * gap, axis=1)
        total += _labelled(
            rows, by_row, by_column, l, there, sure, which, squares, centroids, distinct, names,
            weights, labels, R, N, WEIGHTED,
        )  # fmt: skip
    tl.store(parts + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit(do_not_specialize=["count", "blocks"])
def nearest_to_short_rows(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, factor, high, low, halves, bounds, blocks, centroids, names, weights,
    labels, parts, count, n,
    R: tl.constexpr, C: tl.constexpr, K: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Labels of R rows in half precision, by products on the matrix units; -1 for rows in doubt,
    and the sum of the squared distances of the others.

    The matrix units lose none of the bits of rows. Centroids (blocks K, n) are the sum of `high`,
    of as many bits as they take, and `low`. The units truncate when they add, so that they add C
    columns only.
    """
    l = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    there = l < count
    scale = tl.load(factor)
    best = tl.full([R], float("inf"), tl.float32)
    second = tl.full([R], float("inf"), tl.float32)
    which = tl.zeros([R], tl.int32)
    norm = tl.zeros([R], tl.float32)
    for block in range(blocks):
        k = block * K + tl.arange(0, K)
        product = tl.zeros([R, K], tl.float32)
        norm = tl.zeros([R], tl.float32)
        for start in range(0, n, C):
            c = start + tl.arange(0, C)
            mask = there[:, None] & (c < n)[None, :]
            at = l[:, None] * by_row + c[None, :].to(tl.int64) * by_column
            x = tl.load(rows + at, mask=mask, other=0.0).to(tl.float32)
            norm += tl.sum(x * x, axis=1)
            place = k[None, :].to(tl.int64) * n + c[:, None]
            q = tl.load(low + place, mask=(c < n)[:, None], other=0.0)
            p = tl.load(high + place, mask=(c < n)[:, None], other=0.0)
            part = tl.dot(x, q, input_precision="tf32")
            product += tl.dot(x, p, part, input_precision="tf32")
        score = tl.load(halves + k)[None, :] + scale * product
        # a row with NaN is in doubt, with any centroid
        score = tl.where(score == score, score, float("inf"))
        best, second, which = _compare(score, block, best, second, which, K, 1)
    sure = _is_sure(scale * scale * norm, best, second, bounds) & there
    squares = tl.zeros([R], tl.float64)
    for start in range(0, n, C):
        c = start + tl.arange(0, C)
        mask = sure[:, None] & (c < n)[None, :]
        at = l[:, None] * by_row + c[None, :].to(tl.int64) * by_column
        x = tl.load(rows + at, mask=mask, other=0.0).to(tl.float64)
        gap = x - tl.load(centroids + which[:, None] * n + c[None, :], mask=mask, other=0.0)
        squares += tl.sum(gap * gap, axis=1)
    tl.store(labels + l, tl.where(sure, tl.load(names + which, mask=sure, other=0), -1), mask=there)
    if WEIGHTED:
        squares = squares * tl.load(weights + l, mask=there, other=0.0)
    tl.store(parts + tl.program_id(0), tl.sum(squares, axis=0))


@triton.jit(do_not_specialize=["count", "distinct"])
def decide_rows(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, chosen, count, transposed, distinct, names, labels, least_squares, n,
    R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Labels and squared distances in float64 of the chosen rows; infinite if none is finite.

    Distances are summed in the order of the columns, as on the CPU, so that rows halfway between
    two centroids get the same label. Centroids are transposed, (n, distinct).
    """
    i = tl.program_id(0) * R + tl.arange(0, R)
    there = i < count
    l = tl.load(chosen + i, mask=there, other=0)
    least = tl.full([R], float("inf"), tl.float64)
    which = tl.zeros([R], tl.int32)
    for start in range(0, distinct, K):
        k = start + tl.arange(0, K)
        squares = tl.zeros([R, K], tl.float64)
        for d in range(n):
            x = tl.load(rows + l * by_row + d * by_column, mask=there, other=0.0).to(tl.float64)
            c = tl.load(transposed + d * distinct + k, mask=k < distinct, other=0.0)
            gap = x[:, None] - c[None, :]
            squares += gap * gap
        is_finite = (squares == squares) & (k < distinct)[None, :]
        own, place = tl.min(tl.where(is_finite, squares, float("inf")), axis=1, return_indices=True)
        which = tl.where(own < least, start + place, which)
        least = tl.minimum(least, own)
    tl.store(labels + l, tl.load(names + which, mask=there, other=0), mask=there)
    tl.store(least_squares + i, least, mask=there)
