"""The kernels' arithmetic as plain `@njit` loops: rivals of the generated vectors.

They are what a good user of numba would write: blocks of rows transposed, so that inner loops run
along rows; small leaves on one-dimensional slices, which LLVM vectorises; four frequencies (or
centroids) times four columns per sweep, so that each load feeds several multiply-adds. The sums are
bit-identical to those of `ckm` (`tests/kernels/test_plain_loops.py`). Bounds and moments, which
`ckm` computes in the same pass, are left out.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

import ckm
from ckm._core.hadamard import ROUNDS, padded_length
from ckm._kernels.spec import COSINE, ONE, SINE, THREE_BITS

ROWS = 256  # rows per block: sums of their integers, each at most 2**22, fit int32
THREE_BITS_32 = np.int32(THREE_BITS)
C0, C1, C2, C3, C4, C5 = COSINE
S0, S1, S2, S3, S4, S5, S6 = SINE
THREE = np.float32(3)
FOUR = np.float32(4)

_leaf = njit(nogil=True, error_model="numpy", forceinline=True)
_entry = njit(nogil=True, error_model="numpy", cache=True)


@intrinsic
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once, of float32 numbers."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), generate


@intrinsic
def bits(context: Any, a: Any) -> Any:
    """The bit pattern of a float32 number as an integer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), generate


@_leaf
def _start(p, t, x):  # type: ignore[no-untyped-def]
    for i in range(ROWS):
        p[i] = t * x[i]


@_leaf
def _extend(p, t, x):  # type: ignore[no-untyped-def]
    for i in range(ROWS):
        p[i] = fma(t, x[i], p[i])


@_leaf
def _extend_four(p0, p1, p2, p3, x0, x1, x2, x3, t):  # type: ignore[no-untyped-def]
    """Four columns of four frequencies, whose turns are t (4, 4)."""
    for i in range(ROWS):
        a = x0[i]
        b = x1[i]
        c = x2[i]
        d = x3[i]
        p0[i] = fma(t[0, 3], d, fma(t[0, 2], c, fma(t[0, 1], b, fma(t[0, 0], a, p0[i]))))
        p1[i] = fma(t[1, 3], d, fma(t[1, 2], c, fma(t[1, 1], b, fma(t[1, 0], a, p1[i]))))
        p2[i] = fma(t[2, 3], d, fma(t[2, 2], c, fma(t[2, 1], b, fma(t[2, 0], a, p2[i]))))
        p3[i] = fma(t[3, 3], d, fma(t[3, 2], c, fma(t[3, 1], b, fma(t[3, 0], a, p3[i]))))


@_leaf
def _cosines(p):  # type: ignore[no-untyped-def]
    """The sum of the cosines of these phases, as integers in units of 2**-22."""
    total = np.int32(0)
    for i in range(ROWS):
        r = p[i] - np.rint(p[i])
        q = r * r
        c = fma(fma(fma(C5, q, C4), q, C3), q, C2)
        c = fma(fma(fma(c, q, C1), q, C0), q, FOUR)
        total = np.int32(total + (bits(c) - THREE_BITS_32))
    return total


@_leaf
def _sines(p):  # type: ignore[no-untyped-def]
    """The sum of the sines, likewise."""
    total = np.int32(0)
    for i in range(ROWS):
        r = p[i] - np.rint(p[i])
        q = r * r
        s = fma(fma(fma(fma(S6, q, S5), q, S4), q, S3), q, S2)
        s = fma(fma(fma(s, q, S1), q, S0), r, THREE)
        total = np.int32(total + (bits(s) - THREE_BITS_32))
    return total


@_leaf
def _pack(rows, start, size, origin, x):  # type: ignore[no-untyped-def]
    """Some rows relative to the origin in float32, transposed and filled up with zeros."""
    for d in range(rows.shape[1]):
        for r in range(size):
            x[d, r] = np.float32(np.float64(rows[start + r, d]) - origin[d])
        for r in range(size, ROWS):
            x[d, r] = np.float32(0)


@_entry
def _sum_dense(rows, turns, origin, x, p, sums):  # type: ignore[no-untyped-def]
    """Add all rows to int64 sums (2, m'); turns (m', n) with m' a multiple of four."""
    m, n = turns.shape
    for start in range(0, len(rows), ROWS):
        _pack(rows, start, min(ROWS, len(rows) - start), origin, x)
        for j in range(0, m, 4):
            for f in range(4):
                _start(p[f], turns[j + f, 0], x[0])
            d = 1
            while d + 4 <= n:
                _extend_four(
                    p[0], p[1], p[2], p[3], x[d], x[d + 1], x[d + 2], x[d + 3],
                    turns[j : j + 4, d : d + 4],
                )  # fmt: skip
                d += 4
            while d < n:
                for f in range(4):
                    _extend(p[f], turns[j + f, d], x[d])
                d += 1
            for f in range(4):
                sums[0, j + f] += _cosines(p[f])
                sums[1, j + f] += _sines(p[f])


def dense_sums(frequencies: ckm.Frequencies, rows: np.ndarray) -> np.ndarray:
    """The sums (2, m) of `Sketch.tally`, by plain loops."""
    m, n = frequencies.m, frequencies.n
    turns = np.zeros((m + -m % 4, n), np.float32)
    turns[:m] = frequencies.turns
    sums = np.zeros((2, len(turns)), np.int64)
    x = np.empty((n, ROWS), np.float32)
    _sum_dense(rows, turns, frequencies.origin, x, np.empty((4, ROWS), np.float32), sums)
    sums[0] -= -len(rows) % ROWS * ONE
    return sums[:, :m]


@_leaf
def _four_sweeps(a, b, c, d):  # type: ignore[no-untyped-def]
    """Two sweeps of a Walsh-Hadamard transform over four numbers of each row, in place."""
    for i in range(ROWS):
        e = a[i] + c[i]
        f = b[i] + d[i]
        g = a[i] - c[i]
        h = b[i] - d[i]
        a[i] = e + f
        b[i] = e - f
        c[i] = g + h
        d[i] = g - h


@_leaf
def _two_sweeps(a, b):  # type: ignore[no-untyped-def]
    for i in range(ROWS):
        a[i], b[i] = a[i] + b[i], a[i] - b[i]


@_leaf
def _transform(source, factors, u):  # type: ignore[no-untyped-def]
    """u = H diag(factors) source, for (p, ROWS)."""
    p = len(u)
    for i in range(p):
        for r in range(ROWS):
            u[i, r] = factors[i] * source[i, r]
    stride = p // 2
    while stride >= 2:
        half = stride // 2
        for start in range(0, p, 2 * stride):
            for i in range(start, start + half):
                _four_sweeps(u[i], u[i + half], u[i + stride], u[i + stride + half])
        stride //= 4
    if stride == 1:
        for i in range(0, p, 2):
            _two_sweeps(u[i], u[i + 1])


@_entry
def _sum_structured(rows, factors, turns, origin, x, first, u, phases, sums):  # type: ignore[no-untyped-def]
    m = sums.shape[1]
    n, p = rows.shape[1], len(u)
    for start in range(0, len(rows), ROWS):
        _pack(rows, start, min(ROWS, len(rows) - start), origin, x)
        for d in range(n, p):
            for r in range(ROWS):
                x[d, r] = np.float32(0)
        _transform(x, factors[0], first)
        for block in range((m + p - 1) // p):
            _transform(first, factors[1 + 2 * block], u)
            _transform(u, factors[2 + 2 * block], u)
            for i in range(min(p, m - block * p)):
                j = block * p + i
                _start(phases, turns[j], u[i])
                sums[0, j] += _cosines(phases)
                sums[1, j] += _sines(phases)


def structured_sums(frequencies: ckm.Frequencies, rows: np.ndarray) -> np.ndarray:
    """The same for structured frequencies."""
    m, p = frequencies.m, padded_length(frequencies.n)
    sums = np.zeros((2, m), np.int64)
    x, first, u = (np.empty((p, ROWS), np.float32) for _ in range(3))
    factors = np.asarray(frequencies.factors, np.float32)
    assert len(factors) % (ROUNDS - 1) == 1
    phases = np.empty(ROWS, np.float32)
    turns, origin = frequencies.turns, frequencies.origin
    _sum_structured(rows, factors, turns, origin, x, first, u, phases, sums)
    sums[0] -= -len(rows) % ROWS * ONE
    return sums


@_leaf
def _fill(p, value):  # type: ignore[no-untyped-def]
    for i in range(len(p)):
        p[i] = value


@_leaf
def _keep_smallest(scores, k, best, second, which):  # type: ignore[no-untyped-def]
    for i in range(ROWS):
        score = scores[i]
        better = score < best[i]
        loser = best[i] if better else score
        second[i] = loser if loser < second[i] else second[i]
        best[i] = score if better else best[i]
        which[i] = np.int32(k) if better else which[i]


@_entry
def score_rows(x, centroids, halves, p, best, second, which):  # type: ignore[no-untyped-def]
    """For each of ROWS rows the two smallest scores halves[k] + centroids[k] . x[:, r], and the k
    of the smallest; float32 x (n, ROWS), centroids (K, n) with K a multiple of four, buffer p (4,
    ROWS).
    """
    K, n = centroids.shape
    _fill(best, np.float32(np.inf))
    _fill(second, np.float32(np.inf))
    for k in range(0, K, 4):
        for f in range(4):
            _fill(p[f], halves[k + f])
        d = 0
        while d + 4 <= n:
            _extend_four(
                p[0], p[1], p[2], p[3], x[d], x[d + 1], x[d + 2], x[d + 3],
                centroids[k : k + 4, d : d + 4],
            )  # fmt: skip
            d += 4
        while d < n:
            for f in range(4):
                _extend(p[f], centroids[k + f, d], x[d])
            d += 1
        for f in range(4):
            _keep_smallest(p[f], k + f, best, second, which)
