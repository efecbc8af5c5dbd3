"""Triton kernel: rows on a GPU, added to their cells by the arithmetic of `ckm._core.cells`."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit(do_not_specialize=["count", "blocks"])
def add_to_cells(  # type: ignore[no-untyped-def]
    x, count, coefficients, halves, blocks, scales, metric, square_scale, limit, mass, squares,
    sums, far, n_far, n,
    R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Add R rows of x (n, count) to the int64 sums of their cells. Rows with numbers from `limit`
    on are counted in `n_far` and marked in `far` instead.

    Lanes run along rows, and a thread holds K anchors: coefficients are (n, blocks K). Whole
    numbers are added by atomic additions, whose order changes no bit. The compiler may fuse no
    multiply-adds but those that are written.
    """
    l = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    there = l < count
    width = blocks * K
    best = tl.full([R], float("inf"), tl.float32)
    which = tl.zeros([R], tl.int32)
    for block in range(blocks):
        k = block * K + tl.arange(0, K)
        score = tl.broadcast_to(tl.load(halves + k)[:, None], [K, R])
        for d in range(n):
            value = tl.load(x + d * count.to(tl.int64) + l, mask=there, other=0.0)
            c = tl.load(coefficients + d * width + k)
            score = tl.fma(
                tl.broadcast_to(c[:, None], [K, R]), tl.broadcast_to(value[None, :], [K, R]), score
            )
        # NaN is never smaller
        score = tl.where(score == score, score, float("inf"))
        least, place = tl.min(score, axis=0, return_indices=True)
        which = tl.where(least < best, block * K + place, which)
        best = tl.minimum(best, least)
    length = tl.zeros([R], tl.float64)
    largest = tl.zeros([R], tl.float64)
    for d in range(n):
        wide = tl.load(x + d * count.to(tl.int64) + l, mask=there, other=0.0).to(tl.float64)
        v = wide * tl.load(metric + d)
        length += v * v
        largest = tl.maximum(largest, tl.abs(wide * tl.load(scales + d)))
    length = libdevice.rint(length * tl.load(square_scale))
    most = tl.load(limit)
    fits = there & (largest < most) & (length < most)
    tl.atomic_add(mass + which, tl.full([R], 1, tl.int64), mask=fits, sem="relaxed")
    tl.atomic_add(squares + which, length.to(tl.int64), mask=fits, sem="relaxed")
    for d in range(n):
        wide = tl.load(x + d * count.to(tl.int64) + l, mask=fits, other=0.0).to(tl.float64)
        number = libdevice.rint(wide * tl.load(scales + d)).to(tl.int64)
        tl.atomic_add(sums + which * n + d, number, mask=fits, sem="relaxed")
    is_far = there & (fits == 0)
    tl.store(far + l, is_far.to(tl.int8), mask=there)
    tl.atomic_add(n_far, tl.sum(is_far.to(tl.int64), axis=0), sem="relaxed")
