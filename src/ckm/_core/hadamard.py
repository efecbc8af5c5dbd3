"""Structured frequencies: rows of products of Walsh-Hadamard matrices and random signs, which a
fast transform multiplies by.

H is the (p, p) Hadamard matrix in its natural order, p a power of two; D_r is a diagonal of signs,
times 2^-h so that H D_r is close to a rotation. Every p frequencies are the rows of one matrix

    B = H D_3 H D_2 H D_1,   cut off after n columns,   omega_j = 2 pi t_j B_j

where D_1 is shared by all blocks (and divided by the units of the columns, where they have some),
and D_2 and D_3 are each block's own. Three rounds make directions that are uniform for all that one
can tell; within a block they are orthogonal where n = p. `ckm._kernels.spec` says how the products
are rounded.
"""

import numpy as np
from scipy.linalg import hadamard

from ckm._util.arrays import Array

ROUNDS = 3
# the shortest transform: shorter ones have few directions (for p = n = 2 there are four, at the
# cost of a sixth of SSE)
SMALLEST = 64

_SHORT = 0.25  # of the average length of rows: in few dimensions some are zero


def padded(n: int) -> int:
    """The length p of the transform: the next power of two from n on, and at least `SMALLEST`."""
    return max(SMALLEST, 1 << (n - 1).bit_length())


def shrinkage(p: int) -> float:
    """2^-h with h = log2(p) / 2, rounded up: what a sign is multiplied by, so that numbers do not
    grow from round to round.
    """
    return 2.0 ** -(p.bit_length() // 2)


def draw_signs(rng: np.random.Generator, m: int, n: int) -> Array:
    """Signs for m frequencies, int8 (1 + 2 blocks, p): D_1, then D_2 and D_3 of each block."""
    signs: Array = 1 - 2 * rng.integers(2, size=signs_shape(m, n), dtype=np.int8)
    return signs


def signs_shape(m: int, n: int) -> tuple[int, int]:
    """(1 + 2 blocks, p)."""
    p = padded(n)
    return 1 + (ROUNDS - 1) * -(-m // p), p


def row_length(n: int, whole: bool = False) -> float:
    """The length of a row of B, cut off after n columns unless whole: what is left is the square
    root of n/p of it, on average.
    """
    p = padded(n)
    return float((shrinkage(p) * np.sqrt(p)) ** ROUNDS * (1 if whole else np.sqrt(n / p)))


def row_lengths(signs: Array, m: int, n: int) -> Array:
    """The length of each of the first m rows of all blocks, cut off after n columns (m,); those
    that are next to nothing count as short.
    """
    p, average = signs.shape[1], row_length(n)
    if n == p:
        return np.full(m, average)
    D, parts = factors(signs), []
    for j in range(0, m, p):
        own = D[[0, 1 + 2 * (j // p), 2 + 2 * (j // p)]]
        parts.append(np.linalg.norm(rows(own, min(p, m - j), n), axis=1))
    lengths: Array = np.maximum(np.concatenate(parts), _SHORT * average)
    return lengths


def factors(signs: Array, units: Array | None = None) -> Array:
    """The diagonals, float32 (1 + 2 blocks, p): signs times 2^-h; the first also divided by the
    units of the columns.
    """
    D = signs * np.float32(shrinkage(signs.shape[1]))
    if units is not None:
        with np.errstate(over="ignore"):
            D[0, : len(units)] = D[0, : len(units)] / units
    return D


def rows(D: Array, m: int, n: int) -> Array:
    """The first m rows of all blocks that these `factors` make, float64 (m, n)."""
    p = D.shape[1]
    H, (shared, *own) = hadamard(p, np.float64), D.astype(np.float64)
    # Whole numbers of at most 2^52 times a power of two: nothing is rounded but the products with
    # units.
    blocks = [
        _times_h(_times_h(H[: m - j] * own[2 * (j // p) + 1]) * own[2 * (j // p)])[:, :n]
        * shared[:n]
        for j in range(0, m, p)
    ]
    return np.concatenate(blocks)


def _times_h(x: Array) -> Array:
    """x H for the rows of x (count, p), as two products with small Hadamard matrices."""
    count, p = x.shape
    a = 1 << (p.bit_length() // 2)
    y: Array = hadamard(a, np.float64) @ (
        x.reshape(count, a, p // a) @ hadamard(p // a, np.float64)
    )
    return y.reshape(count, p)
