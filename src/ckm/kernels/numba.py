"""The compiled kernel: the specified arithmetic of `arithmetic.py`, fused and vectorised, with exact sums.

Rows are taken 256 at a time and transposed, so that inner loops run along rows; four frequencies share each load. Integer sums of
256 rows fit in int32. Short blocks are padded with rows at the origin, whose contribution is known and taken off again, so that every
row goes through the same vector code. Each leaf works on one-dimensional slices: that is the shape LLVM vectorises.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from ckm.errors import NonFiniteError
from ckm.frequencies import Frequencies
from ckm.kernels.arithmetic import COSINE, ONE, SINE, THREE_BITS
from ckm.readonly import Array
from ckm.tally import Tally, second_moment_shape

BLOCK = 256  # rows a block: 256 * 2**22 still fits in int32
TILE = 4  # frequencies a sweep

C1, C2, C3, C4, C5, C6 = COSINE
S0, S1, S2, S3, S4, S5, S6 = SINE
THREE, FOUR = np.float32(3), np.float32(4)
# 256 bit patterns of 3, wrapped to int32 as the sums are.
BLOCK_OF_THREES = int(np.uint32(BLOCK * THREE_BITS % 2**32).astype(np.int32))

_compiled = njit(nogil=True, cache=True, error_model="numpy")


def tally(frequencies: Frequencies, rows: Array, weights: Array | None = None) -> Tally:
    """The tally of `rows`; integer sums when they are unweighted."""
    m, n = frequencies.m, frequencies.n
    full = len(second_moment_shape(m, n)) == 2
    sums = np.zeros((2, m), np.int64 if weights is None else np.float64)
    bounds = np.stack([np.full(n, np.inf), np.full(n, -np.inf)])
    first, second = np.zeros(n), np.zeros((n, n) if full else (1, n))
    beta = np.empty(0) if weights is None else weights
    sweep = _sweep if weights is None else _sweep_weighted
    bad = sweep(frequencies.turns, frequencies.origin, rows, beta, sums, bounds, first, second)
    if bad >= 0:
        row, column = divmod(int(bad), n)
        raise NonFiniteError(row, column, float(rows[row, column]))
    if full:
        second = np.tril(second) + np.tril(second, -1).T
    weight = float(len(rows)) if weights is None else float(weights.sum())
    return Tally(sums, weight, len(rows), bounds[0], bounds[1], first, second if full else second[0])


@intrinsic
def _fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c rounded once: an explicit fma, since LLVM promises no fusion otherwise."""
    return types.float32(types.float32, types.float32, types.float32), lambda _, builder, __, args: builder.fma(*args)


@intrinsic
def _bits(context: Any, value: Any) -> Any:
    """The bit pattern of a float32."""
    return types.int32(types.float32), lambda _, builder, __, args: builder.bitcast(args[0], ir.IntType(32))


@_compiled
def _sweep(turns, origin, rows, beta, sums, bounds, first, second):  # type: ignore[no-untyped-def]
    """Add every row to the sums; returns the flat position of the first value that is not finite in float32, or -1."""
    m, n = turns.shape
    x, p = np.zeros((n, BLOCK), np.float32), np.empty((TILE, BLOCK), np.float32)
    for start in range(0, len(rows), BLOCK):
        stop = min(start + BLOCK, len(rows))
        bad = _load(rows, start, stop, origin, beta, x, bounds, first, second)
        if bad >= 0:
            return bad
        padding = BLOCK - (stop - start)
        for j in range(0, m, TILE):
            _phases(turns, j, x, p)
            for i in range(min(TILE, m - j)):
                c, s = _wave(p[i])
                sums[0, j + i] += c - padding * ONE
                sums[1, j + i] += s
    return -1


@_compiled
def _sweep_weighted(turns, origin, rows, beta, sums, bounds, first, second):  # type: ignore[no-untyped-def]
    """As `_sweep`, with weight times the same integers in float64: exact for whole-number weights."""
    m, n = turns.shape
    x, p = np.zeros((n, BLOCK), np.float32), np.empty((TILE, BLOCK), np.float32)
    w, c, s = np.zeros(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for start in range(0, len(rows), BLOCK):
        stop = min(start + BLOCK, len(rows))
        bad = _load(rows, start, stop, origin, beta, x, bounds, first, second)
        if bad >= 0:
            return bad
        w[: stop - start] = beta[start:stop]
        w[stop - start :] = 0.0
        for j in range(0, m, TILE):
            _phases(turns, j, x, p)
            for i in range(min(TILE, m - j)):
                _weighted_wave(p[i], w, c, s)
                sums[0, j + i] += _tree_sum(c)
                sums[1, j + i] += _tree_sum(s)
    return -1


@_compiled
def _load(rows, start, stop, origin, beta, x, bounds, first, second):  # type: ignore[no-untyped-def]
    """Transpose rows[start:stop] - origin into x as float32, zero-padded; update bounds and moments on the way."""
    n = len(origin)
    v = np.empty(n)
    weighted, full = len(beta) > 0, len(second) > 1 or n == 1
    for r in range(stop - start):
        b = beta[start + r] if weighted else 1.0
        for d in range(n):
            value = np.float64(rows[start + r, d])
            v[d] = value - origin[d]
            x[d, r] = np.float32(v[d])
            if not np.isfinite(x[d, r]):
                return (start + r) * n + d
            bounds[0, d] = min(bounds[0, d], value)
            bounds[1, d] = max(bounds[1, d], value)
        for d in range(n):
            first[d] += b * v[d]
            if full:
                for e in range(d + 1):
                    second[d, e] += b * v[d] * v[e]
            else:
                second[0, d] += b * v[d] * v[d]
    x[:, stop - start :] = 0
    return -1


@_compiled
def _phases(turns, j, x, p):  # type: ignore[no-untyped-def]
    """p[i] = phases in turns of frequency j + i (clamped to the last), dimension after dimension."""
    m, n = turns.shape
    a, b, c, d = turns[j], turns[min(j + 1, m - 1)], turns[min(j + 2, m - 1)], turns[min(j + 3, m - 1)]
    _begin(a[0], b[0], c[0], d[0], x[0], p[0], p[1], p[2], p[3])
    k = 1
    while k + 4 <= n:
        _continue4(a[k : k + 4], b[k : k + 4], c[k : k + 4], d[k : k + 4], x[k], x[k + 1], x[k + 2], x[k + 3], p[0], p[1], p[2], p[3])
        k += 4
    while k < n:
        _continue1(a[k], b[k], c[k], d[k], x[k], p[0], p[1], p[2], p[3])
        k += 1


@_compiled
def _begin(a, b, c, d, x, p, q, u, v):  # type: ignore[no-untyped-def]
    for r in range(BLOCK):
        p[r], q[r], u[r], v[r] = a * x[r], b * x[r], c * x[r], d * x[r]


@_compiled
def _continue1(a, b, c, d, x, p, q, u, v):  # type: ignore[no-untyped-def]
    for r in range(BLOCK):
        y = x[r]
        p[r], q[r], u[r], v[r] = _fma(a, y, p[r]), _fma(b, y, q[r]), _fma(c, y, u[r]), _fma(d, y, v[r])


@_compiled
def _continue4(a, b, c, d, x0, x1, x2, x3, p, q, u, v):  # type: ignore[no-untyped-def]
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    c0, c1, c2, c3 = c[0], c[1], c[2], c[3]
    d0, d1, d2, d3 = d[0], d[1], d[2], d[3]
    for r in range(BLOCK):
        y0, y1, y2, y3 = x0[r], x1[r], x2[r], x3[r]
        p[r] = _fma(a3, y3, _fma(a2, y2, _fma(a1, y1, _fma(a0, y0, p[r]))))
        q[r] = _fma(b3, y3, _fma(b2, y2, _fma(b1, y1, _fma(b0, y0, q[r]))))
        u[r] = _fma(c3, y3, _fma(c2, y2, _fma(c1, y1, _fma(c0, y0, u[r]))))
        v[r] = _fma(d3, y3, _fma(d2, y2, _fma(d1, y1, _fma(d0, y0, v[r]))))


@_compiled
def _shifted_cosine(q):  # type: ignore[no-untyped-def]
    return _fma(_fma(_fma(_fma(_fma(_fma(C6, q, C5), q, C4), q, C3), q, C2), q, C1), q, FOUR)


@_compiled
def _shifted_sine(r, q):  # type: ignore[no-untyped-def]
    return _fma(_fma(_fma(_fma(_fma(_fma(_fma(S6, q, S5), q, S4), q, S3), q, S2), q, S1), q, S0), r, THREE)


@_compiled
def _wave(p):  # type: ignore[no-untyped-def]
    """Integer sums of cosine and sine over one block of phases."""
    cosines, sines = np.int32(0), np.int32(0)
    for i in range(BLOCK):
        r = p[i] - np.rint(p[i])
        q = r * r
        cosines = np.int32(cosines + _bits(_shifted_cosine(q)))
        sines = np.int32(sines + _bits(_shifted_sine(r, q)))
    return np.int64(np.int32(cosines - BLOCK_OF_THREES)), np.int64(np.int32(sines - BLOCK_OF_THREES))


@_compiled
def _weighted_wave(p, w, cosines, sines):  # type: ignore[no-untyped-def]
    for i in range(BLOCK):
        r = p[i] - np.rint(p[i])
        q = r * r
        cosines[i] = w[i] * np.float64(np.int32(_bits(_shifted_cosine(q)) - THREE_BITS))
        sines[i] = w[i] * np.float64(np.int32(_bits(_shifted_sine(r, q)) - THREE_BITS))


@_compiled
def _tree_sum(values):  # type: ignore[no-untyped-def]
    """The sum of one block, halving it: a fixed order, and one that vectorises. Overwrites `values`."""
    half = BLOCK // 2
    while half:
        for i in range(half):
            values[i] += values[i + half]
        half //= 2
    return values[0]
