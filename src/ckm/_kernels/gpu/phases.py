"""Triton kernels: the specified arithmetic of `ckm._kernels.spec` on a GPU.

Rows are first centred and cast, and their bounds and moments computed: x (groups, n', R) float32,
each group R rows, transposed. Then each program sums some groups for F frequencies of turns (tiles,
n', F). With few columns, lanes run along frequencies and a thread takes all rows of a group, so
that sums stay within a thread until the end and the numbers of x are loaded once for many
frequencies; multiply-adds are written out, and the compiler may fuse no others. With more columns,
the compiler multiplies by way of shared memory.

Bit patterns are summed in int32, over at most `HELD_ROWS` rows, and then in int64: the order of
programs and of atomic additions changes no bit.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from ckm._kernels import spec

STEP = tl.constexpr(16)  # columns per step, if they are not all unrolled
TOP = 2.0**14  # the largest number that is split into two float16 numbers
HELD_ROWS = 256  # rows whose bit patterns fit an int32 sum; exact kernels take a multiple of them

_COSINE = tl.constexpr(tuple(map(float, spec.COSINE)))
_SINE = tl.constexpr(tuple(map(float, spec.SINE)))
_THREE = tl.constexpr(spec.THREE_BITS)


@triton.jit
def _wave(p):  # type: ignore[no-untyped-def]
    """Bit patterns of 3 + cos and 3 + sin of phases p in turns."""
    r = p - libdevice.rint(p)
    q = r * r
    cosine = tl.fma(q, _COSINE[5], _COSINE[4])
    sine = tl.fma(q, _SINE[6], _SINE[5])
    for i in tl.static_range(4):
        cosine = tl.fma(cosine, q, _COSINE[3 - i])
        sine = tl.fma(sine, q, _SINE[4 - i])
    cosine = tl.fma(cosine, q, 4.0)
    sine = tl.fma(sine, q, _SINE[0])
    return cosine.to(tl.int32, bitcast=True), tl.fma(sine, r, 3.0).to(tl.int32, bitcast=True)


@triton.jit
def _without_threes(sums, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sums of bit patterns of 3 + c over ROWS rows, as sums of c in int64. The int32 sums have
    wrapped; less ROWS times the pattern of 3, they fit.
    """
    threes: tl.constexpr = (_THREE * ROWS + 2**31) % 2**32 - 2**31
    return (sums - threes).to(tl.int64)


@triton.jit
def _waves_of_rows(  # type: ignore[no-untyped-def]
    p, weights, l, ROWS: tl.constexpr, AXIS: tl.constexpr, WEIGHTED: tl.constexpr
):
    """Cosines and sines of phases, summed over the rows l, which run along this axis."""
    a, b = _wave(p)
    if WEIGHTED:
        w = tl.expand_dims(tl.load(weights + l), 1 - AXIS)
        return tl.sum(w * (a - _THREE).to(tl.float64), axis=AXIS), tl.sum(
            w * (b - _THREE).to(tl.float64), axis=AXIS
        )
    else:
        return _without_threes(tl.sum(a, axis=AXIS), ROWS), _without_threes(
            tl.sum(b, axis=AXIS), ROWS
        )


# `padded` is specialised: as it is a multiple of 16, a thread can store four rows at once.
@triton.jit(do_not_specialize=["count", "per"])
def note_rows(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, origin, weights, count, per, x, padded, n, notes,
    N: tl.constexpr, WIDE: tl.constexpr, T: tl.constexpr, R: tl.constexpr,
    WEIGHTED: tl.constexpr, FULL: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """Bounds and moments of `per` tiles of T rows and WIDE of the N columns; if KEEP, also the
    centred rows in x (padded / R, n, R), zero after the last row and column.

    notes is (programs, 4, n''), n'' a multiple of WIDE: smallest, minus the largest, sums of w v
    and of w v^2, with v = row - origin. If FULL, n'' is WIDE, and WIDE more rows hold the sums of
    w v v^T.
    """
    d = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    known = d < N
    o = tl.load(origin + d, mask=known, other=0.0)
    kind: tl.constexpr = rows.dtype.element_ty
    low = tl.full([T, WIDE], float("inf"), kind)
    high = tl.full([T, WIDE], float("-inf"), kind)
    first = tl.zeros([T, WIDE], tl.float64)
    second = tl.zeros([T, WIDE], tl.float64)
    pairs = tl.zeros([WIDE, WIDE], tl.float64)
    l = (tl.program_id(0) * per).to(tl.int64) * T + tl.arange(0, T)
    there = (l < count)[:, None] & known[None, :]
    at = rows + l[:, None] * by_row + d[None, :].to(tl.int64) * by_column
    y = tl.load(at, mask=there, other=0.0)
    for _ in range(per):
        at += tl.full([], T, tl.int64) * by_row
        soon = (l + T < count)[:, None] & known[None, :]
        # the rows of the next tile are loaded while these are processed
        following = tl.load(at, mask=soon, other=0.0)
        low = tl.where(there & (y < low), y, low)
        high = tl.where(there & (y > high), y, high)
        v = tl.where(there, y.to(tl.float64) - o[None, :], 0.0)
        weighted = v
        if WEIGHTED:
            weighted = v * tl.load(weights + l, mask=l < count, other=0.0)[:, None]
        first += weighted
        second = tl.fma(weighted, v, second)
        if FULL:
            pairs = tl.dot(tl.trans(weighted), v, pairs, out_dtype=tl.float64)
        if KEEP:
            place = (l // R)[:, None] * (n * R) + d[None, :] * R + (l % R)[:, None]
            tl.store(x + place, v.to(tl.float32), mask=(d < n)[None, :] & (l < padded)[:, None])
        l = l + T
        there = soon
        y = following
    width = tl.num_programs(1) * WIDE
    out = notes + tl.program_id(0) * (4 + WIDE if FULL else 4) * width + d
    tl.store(out, tl.min(low, axis=0).to(tl.float64))
    tl.store(out + width, -tl.max(high, axis=0).to(tl.float64))
    tl.store(out + 2 * width, tl.sum(first, axis=0))
    tl.store(out + 3 * width, tl.sum(second, axis=0))
    if FULL:
        tl.store(out[None, :] + (4 + tl.arange(0, WIDE))[:, None] * WIDE, pairs)


@triton.jit
def _write(  # type: ignore[no-untyped-def]
    cosines, sines, out, width, tile, split, F: tl.constexpr, WEIGHTED: tl.constexpr
):
    """Add the sums of a tile of F frequencies to int64 sums (2, width); or, if WEIGHTED, write this
    split's part of (splits, 2, width).
    """
    place = out + tile * F + tl.arange(0, F)
    if WEIGHTED:
        place += split * 2 * width
        tl.store(place, cosines)
        tl.store(place + width, sines)
    else:
        tl.atomic_add(place, cosines, sem="relaxed")
        tl.atomic_add(place + width, sines, sem="relaxed")


@triton.jit
def _phases(  # type: ignore[no-untyped-def]
    x, turns, N: tl.constexpr, R: tl.constexpr, F: tl.constexpr
):
    """p = t_0 x_0, then p = fma(t_d, x_d, p), of one group, unrolled: the turns of all N columns
    stay in registers.
    """
    p = tl.zeros([R, F], tl.float32)
    l = tl.arange(0, R)
    j = tl.arange(0, F)
    for d in tl.static_range(N):
        t = tl.load(turns + d * F + j)
        v = tl.load(x + d * R + l)
        p = tl.fma(tl.broadcast_to(t[None, :], [R, F]), tl.broadcast_to(v[:, None], [R, F]), p)
    return p


@triton.jit(do_not_specialize=["runs", "per"])
def sum_rows(  # type: ignore[no-untyped-def]
    x, turns, width, out, runs, per, n,
    N: tl.constexpr, R: tl.constexpr, F: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """Add cosines and sines of `per` runs of HELD groups to int64 sums (2, width), for F
    frequencies; x and turns have few columns, N.

    n equals N; passed at run time too, it makes the compiler load more of a group before it is
    needed, which saves a fifth of the time.
    """
    own = turns + tl.program_id(1) * n * F
    start = tl.program_id(0) * per
    cosines = tl.zeros([F], tl.int64)
    sines = tl.zeros([F], tl.int64)
    for run in range(start, min(start + per, runs)):
        cosine = tl.zeros([F], tl.int32)
        sine = tl.zeros([F], tl.int32)
        for tile in range(HELD):
            a, b = _wave(_phases(x + (run * HELD + tile).to(tl.int64) * n * R, own, N, R, F))
            cosine += tl.sum(a, axis=0)
            sine += tl.sum(b, axis=0)
        cosines += _without_threes(cosine, R * HELD)
        sines += _without_threes(sine, R * HELD)
    _write(cosines, sines, out, width, tl.program_id(1), 0, F, False)


@triton.jit(do_not_specialize=["runs", "per"])
def weigh_rows(  # type: ignore[no-untyped-def]
    x, turns, width, weights, out, runs, per, n,
    N: tl.constexpr, R: tl.constexpr, F: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """The same integers times the weights of their rows, in float64; out is (splits, 2, width)."""
    own = turns + tl.program_id(1) * n * F
    start = tl.program_id(0) * per
    cosines = tl.zeros([F], tl.float64)
    sines = tl.zeros([F], tl.float64)
    for run in range(start, min(start + per, runs)):
        for tile in range(HELD):
            group = (run * HELD + tile).to(tl.int64)
            a, b = _waves_of_rows(
                _phases(x + group * n * R, own, N, R, F),
                weights,
                group * R + tl.arange(0, R),
                R,
                0,
                True,
            )
            cosines += a
            sines += b
    _write(cosines, sines, out, width, tl.program_id(1), tl.program_id(0), F, True)


@triton.jit(do_not_specialize=["groups", "per"])
def sum_wide_rows(  # type: ignore[no-untyped-def]
    x, turns, width, weights, out, groups, per, n,
    R: tl.constexpr, F: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """As `sum_rows` or `weigh_rows`, for n columns, a multiple of STEP.

    The compiler's matrix products are the same chain of multiply-adds, which `ExactnessCheck`
    verifies. There is one loop over the columns of all groups, so that those of the next group are
    loaded while one is summed; and programs side by side take the same rows, so that most come from
    the GPU's cache.
    """
    l = tl.arange(0, R)
    j = tl.arange(0, F)
    d = tl.arange(0, STEP)
    start = tl.program_id(1) * per
    steps = n // STEP
    own = turns + tl.program_id(0) * n * F + d[:, None] * F + j[None, :]
    at = x + start.to(tl.int64) * n * R + d[None, :] * R + l[:, None]
    cosines = tl.zeros([F], tl.float64 if WEIGHTED else tl.int64)
    sines = tl.zeros([F], tl.float64 if WEIGHTED else tl.int64)
    p = tl.zeros([R, F], tl.float32)
    step = 0
    group = start
    for _ in range(min(per, groups - start) * steps):
        t = tl.load(own + step * (STEP * F))
        v = tl.load(at)
        p = tl.dot(v, t, p, input_precision="ieee")
        at += STEP * R
        step += 1
        if step == steps:
            a, b = _waves_of_rows(p, weights, group.to(tl.int64) * R + l, R, 0, WEIGHTED)
            cosines += a
            sines += b
            p = tl.zeros([R, F], tl.float32)
            step = 0
            group = group + 1
    _write(cosines, sines, out, width, tl.program_id(0), tl.program_id(1), F, WEIGHTED)


@triton.jit
def _centred(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, origin, factors, l, d, count, n
):
    """(row - origin) times factors, in float32; zero after the last row and column."""
    there = (l < count)[:, None] & (d < n)[None, :]
    y = tl.load(
        rows + l[:, None] * by_row + d[None, :].to(tl.int64) * by_column, mask=there, other=0.0
    ).to(tl.float64)
    v = (y - tl.load(origin + d, mask=d < n, other=0.0)[None, :]).to(tl.float32)
    return tl.where(there, v * tl.load(factors + d, mask=d < n, other=0.0)[None, :], 0.0)


@triton.jit(do_not_specialize=["count"])
def split_rows(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, origin, factors, count, high, low, units, depth, n,
    R: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """high + low = (row - origin) factors 2^e, both float16 (.., depth), zero after the last row
    and column.

    Each row has its own e, which brings its largest number near 2^14, so that an outlier costs
    other rows no precision. units are 2^(-e - 14).
    """
    l = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    most = tl.zeros([R], tl.float32)
    for start in range(0, depth, D):
        v = _centred(rows, by_row, by_column, origin, factors, l, start + tl.arange(0, D), count, n)
        most = tl.maximum(most, tl.max(tl.abs(v), axis=1))
    # The exponents of float32 numbers are bits 23 to 30, plus 127.
    power = tl.minimum(tl.maximum(267 - (most.to(tl.int32, bitcast=True) >> 23), 1), 239)
    scale = (power << 23).to(tl.float32, bitcast=True)
    tl.store(units + l, ((240 - power) << 23).to(tl.float32, bitcast=True))
    for start in range(0, depth, D):
        d = start + tl.arange(0, D)
        v = _centred(rows, by_row, by_column, origin, factors, l, d, count, n) * scale[:, None]
        rough = v.to(tl.float16)
        place = l[:, None] * depth + d[None, :]
        tl.store(high + place, rough)
        tl.store(low + place, (v - rough.to(tl.float32)).to(tl.float16))


@triton.jit
def _add_columns(p, x_high, x_low, t_high, t_low):  # type: ignore[no-untyped-def]
    """p plus the products of some columns, added with rounding: the matrix units truncate their
    sums, which over 256 columns would cost 2e-6.
    """
    a = tl.load(t_high)
    b = tl.load(x_high)
    part = tl.dot(tl.load(t_low), b)
    part = tl.dot(a, tl.load(x_low), part)
    return tl.fma(tl.dot(a, b, part), 1.0, p)


@triton.jit(do_not_specialize=["runs", "per"])
def sum_split(  # type: ignore[no-untyped-def]
    x_high, x_low, t_high, t_low, depth, weights, units, out, width, runs, per,
    R: tl.constexpr, F: tl.constexpr, D: tl.constexpr, DEPTH: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """As `sum_rows` or `weigh_rows`, with phases from the matrix units, D columns at a time: x and
    t (.., depth) are sums of two float16 numbers each, and phases are in the units of their rows. A
    small depth is also passed as DEPTH, and t is then loaded once.
    """
    j = tl.program_id(0) * F + tl.arange(0, F)
    column = tl.arange(0, D)
    start = tl.program_id(1) * per
    cosines = tl.zeros([F], tl.float64 if WEIGHTED else tl.int64)
    sines = tl.zeros([F], tl.float64 if WEIGHTED else tl.int64)
    own = j[:, None] * depth + column[None, :]
    for run in range(start, min(start + per, runs)):
        l = run * R + tl.arange(0, R)
        at = l[None, :].to(tl.int64) * depth + column[:, None]
        unit = tl.load(units + l)
        p = tl.zeros([F, R], tl.float32)
        if DEPTH:
            for d in tl.static_range(0, DEPTH, D):
                p = _add_columns(
                    p, x_high + at + d, x_low + at + d, t_high + own + d, t_low + own + d
                )
        else:
            for d in range(0, depth, D):
                p = _add_columns(
                    p, x_high + at + d, x_low + at + d, t_high + own + d, t_low + own + d
                )
        a, b = _waves_of_rows(p * unit[None, :], weights, l, R, 1, WEIGHTED)
        cosines += a
        sines += b
    _write(cosines, sines, out, width, tl.program_id(0), tl.program_id(1), F, WEIGHTED)
