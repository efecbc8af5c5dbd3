"""The compiled kernel: the specified arithmetic of `arithmetic.py`, fused and vectorised, with exact sums.

Rows are taken `BLOCK` at a time and transposed, so that vectors run along rows. Integer sums over one block fit in int32 and go into int64
totals. Short blocks are padded with rows at the origin, whose contribution is known and taken off again, so that every row goes through
the same vector code.
"""

from typing import Any

import numpy as np
from numba import njit

from ckm.errors import NonFiniteError
from ckm.frequencies import Frequencies
from ckm.kernels import structured
from ckm.kernels.arithmetic import ONE, THREE_BITS
from ckm.kernels.vectors import BLOCK, TILE, dot, extent, sum_tile, weigh_tile
from ckm.readonly import Array
from ckm.tally import Tally, second_moment_shape

# BLOCK bit patterns of 3, wrapped to int32 as the sums are.
_BLOCK_OF_THREES = int(np.uint32(BLOCK * THREE_BITS % 2**32).astype(np.int32))

_compiled = njit(nogil=True, cache=True, error_model="numpy")


def tally(frequencies: Frequencies, rows: Array, weights: Array | None = None) -> Tally:
    """The tally of `rows`; integer sums when they are unweighted."""
    if frequencies.signs is not None:
        return structured.tally(frequencies, rows, weights)
    m, n = frequencies.m, frequencies.n
    full = len(second_moment_shape(m, n)) == 2
    sums = np.zeros((2, m), np.int64 if weights is None else np.float64)
    bounds = np.stack([np.full(n, np.inf), np.full(n, -np.inf)])
    first, second = np.zeros(n), np.zeros((n, n) if full else (1, n))
    beta = np.empty(0) if weights is None else np.ascontiguousarray(weights, np.float64)
    turns = np.concatenate([frequencies.turns, np.zeros((-m % TILE, n), np.float32)])
    sweep = _sweep if weights is None else _sweep_weighted
    scratch = _aligned((n, BLOCK), np.float32)
    bad = sweep(turns, frequencies.origin, rows, beta, scratch, sums, bounds, first, second)
    if bad >= 0:
        row, column = divmod(int(bad), n)
        raise NonFiniteError(row, column, float(rows[row, column]))
    if full:
        second = np.tril(second) + np.tril(second, -1).T
    weight = float(len(rows)) if weights is None else float(beta.sum())
    return Tally(sums, weight, len(rows), bounds[0], bounds[1], first, second if full else second[0])


def _aligned(shape: tuple[int, int], dtype: Any) -> Array:
    """An array that starts on a cache line, so that no vector straddles two."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    aligned: Array = raw[start : start + size].view(dtype).reshape(shape)
    return aligned


@_compiled
def _sweep(turns, origin, rows, beta, x, sums, bounds, first, second):  # type: ignore[no-untyped-def]
    """Add every row to the sums; returns the flat position of the first value that is not finite in float32, or -1."""
    m, n = sums.shape[1], len(origin)
    y, v = np.empty((n, BLOCK)), np.empty((n, BLOCK))
    w, out = np.ones(BLOCK), np.empty(2 * TILE, np.int32)
    for start in range(0, len(rows), BLOCK):
        stop = min(start + BLOCK, len(rows))
        bad = _load(rows, start, stop, origin, y, v, x)
        if bad >= 0:
            return bad
        _add_moments(y, v, w, bounds, first, second)
        padding = (BLOCK - (stop - start)) * ONE
        for j in range(0, m, TILE):
            sum_tile(turns[j : j + TILE], x, out)
            for f in range(min(TILE, m - j)):
                sums[0, j + f] += np.int64(np.int32(out[2 * f] - _BLOCK_OF_THREES)) - padding
                sums[1, j + f] += np.int64(np.int32(out[2 * f + 1] - _BLOCK_OF_THREES))
    return -1


@_compiled
def _sweep_weighted(turns, origin, rows, beta, x, sums, bounds, first, second):  # type: ignore[no-untyped-def]
    """As `_sweep`, with weight times the same integers in float64: exact for whole-number weights."""
    m, n = sums.shape[1], len(origin)
    y, v = np.empty((n, BLOCK)), np.empty((n, BLOCK))
    w, out = np.zeros(BLOCK), np.empty(2 * TILE)
    for start in range(0, len(rows), BLOCK):
        stop = min(start + BLOCK, len(rows))
        bad = _load(rows, start, stop, origin, y, v, x)
        if bad >= 0:
            return bad
        w[: stop - start] = beta[start:stop]
        w[stop - start :] = 0.0
        _add_moments(y, v, w, bounds, first, second)
        for j in range(0, m, TILE):
            weigh_tile(turns[j : j + TILE], x, w, out)
            for f in range(min(TILE, m - j)):
                sums[0, j + f] += out[2 * f]
                sums[1, j + f] += out[2 * f + 1]
    return -1


@_compiled
def _load(rows, start, stop, origin, y, v, x):  # type: ignore[no-untyped-def]
    """Transpose rows[start:stop] into y, y - origin into v, and that in float32 into x; pad with the last row, and with zeros."""
    n, size = len(origin), stop - start
    for r in range(size):
        for d in range(n):
            y[d, r] = rows[start + r, d]
    unfinite = 0
    for d in range(n):
        a, b, c, o = y[d], v[d], x[d], origin[d]
        a[size:] = a[size - 1]
        for r in range(BLOCK):
            b[r] = a[r] - o
            c[r] = np.float32(b[r])
            unfinite += not np.isfinite(c[r])
        b[size:] = 0.0
        c[size:] = np.float32(0)
    if unfinite:
        for r in range(size):
            for d in range(n):
                if not np.isfinite(x[d, r]):
                    return (start + r) * n + d
    return -1


@_compiled
def _add_moments(y, v, w, bounds, first, second):  # type: ignore[no-untyped-def]
    """Bounds of y; first and second moments of v with weights w (the lower triangle, or the diagonal in the only row of `second`)."""
    n = len(first)
    full, weighted = len(second) == n, np.empty(BLOCK)
    for d in range(n):
        low, high = extent(y[d])
        bounds[0, d], bounds[1, d] = min(bounds[0, d], low), max(bounds[1, d], high)
        weighted[:] = w * v[d]
        first[d] += dot(w, v[d])
        if full:
            for e in range(d + 1):
                second[d, e] += dot(weighted, v[e])
        else:
            second[0, d] += dot(weighted, v[d])
