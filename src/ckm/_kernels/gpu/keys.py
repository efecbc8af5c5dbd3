"""Triton kernel: the keys by which rows on a GPU are sampled for a pool."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["count", "factor"])
def weigh_keys(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, origin, scales, weights, factor, count, keys, odds, n,
    R: tl.constexpr, D: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """odds = weight (1/2 + factor sum_d (scale (row - origin))^2) of R rows, in float32; keys are
    divided by them.
    """
    l = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    total = tl.zeros([R], tl.float32)
    for start in range(0, n, D):
        d = start + tl.arange(0, D)
        there = (l < count)[:, None] & (d < n)[None, :]
        y = tl.load(
            rows + l[:, None] * by_row + d[None, :].to(tl.int64) * by_column, mask=there, other=0.0
        )
        o = tl.load(origin + d, mask=d < n, other=0.0)[None, :]
        scale = tl.load(scales + d, mask=d < n, other=0.0)[None, :]
        v = tl.where(there, (y - o).to(tl.float32) * scale, 0.0)
        total += tl.sum(v * v, axis=1)
    own = 0.5 + factor * total
    if WEIGHTED:
        own = own * tl.load(weights + l, mask=l < count, other=1.0)
    tl.store(odds + l, own, mask=l < count)
    tl.store(keys + l, tl.load(keys + l, mask=l < count, other=0.0) / own, mask=l < count)
