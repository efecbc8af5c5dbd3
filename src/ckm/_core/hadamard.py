"""Structured frequencies: rows of products of Walsh-Hadamard matrices and random signs.

A fast transform multiplies by them in O(log p) operations per frequency instead of n.

H is the (p, p) Hadamard matrix in natural order, p a power of two. D_r is a diagonal of signs times
2^-h, so that H D_r is close to a rotation. Each block of p frequencies is the rows of one matrix

    B = H D_3 H D_2 H D_1,   cut off after n columns,   omega_j = 2 pi t_j B_j

All blocks share D_1 (which is divided by the units of the columns, if they have units); D_2 and D_3
are drawn for each block. Three rounds make directions that are practically uniform. Within a block
they are orthogonal if n = p. `ckm._kernels.spec` specifies how the products are rounded.
"""

import numpy as np
from scipy.linalg import hadamard

from ckm._util.arrays import Array, Float32Array, FloatArray, SignArray

ROUNDS = 3  # diagonals per block

# The shortest transform. Shorter ones have few directions: for p = n = 2 there are four, and the
# SSE is a sixth larger.
SMALLEST_LENGTH = 64

# Rows that are cut off after n columns may be short or zero. Shorter ones than this share of their
# average length are treated as that long, so that no frequency is scaled up without bound.
SHORTEST_ROW_RATIO = 0.25


def padded_length(n: int) -> int:
    """The length p of the transform: a power of two, at least n and `SMALLEST_LENGTH`."""
    return max(SMALLEST_LENGTH, 1 << (n - 1).bit_length())


def shrinkage(p: int) -> float:
    """2^-h with h = log2(p) / 2, rounded up: signs times this keep numbers from growing."""
    return 2.0 ** -(p.bit_length() // 2)


def draw_signs(rng: np.random.Generator, m: int, n: int) -> SignArray:
    """Signs for m frequencies (1 + 2 blocks, p): D_1, then D_2 and D_3 of each block."""
    signs: SignArray = 1 - 2 * rng.integers(2, size=signs_shape(m, n), dtype=np.int8)
    return signs


def signs_shape(m: int, n: int) -> tuple[int, int]:
    """(1 + 2 blocks, p): the shape of the signs of m frequencies in dimension n."""
    p = padded_length(n)
    return 1 + (ROUNDS - 1) * -(-m // p), p


def row_length(n: int, whole: bool = False) -> float:
    """The root mean square length of a row of B after n columns, or the length of a whole row."""
    p = padded_length(n)
    return float((shrinkage(p) * np.sqrt(p)) ** ROUNDS * (1 if whole else np.sqrt(n / p)))


def row_lengths(signs: SignArray, m: int, n: int) -> FloatArray:
    """The lengths (m,) of the first m rows of all blocks after n columns.

    They are at least `SHORTEST_ROW_RATIO` of the average.
    """
    p = signs.shape[1]
    average = row_length(n)
    if n == p:
        return np.full(m, average)
    D = factors(signs)
    parts = []
    for j in range(0, m, p):
        block = D[[0, 1 + 2 * (j // p), 2 + 2 * (j // p)]]
        parts.append(np.linalg.norm(rows(block, min(p, m - j), n), axis=1))
    lengths: FloatArray = np.maximum(np.concatenate(parts), SHORTEST_ROW_RATIO * average)
    return lengths


def factors(signs: SignArray, units: FloatArray | None = None) -> Float32Array:
    """The diagonals (1 + 2 blocks, p): signs times 2^-h, the first divided by the units (n,)."""
    D = signs * np.float32(shrinkage(signs.shape[1]))
    if units is not None:
        with np.errstate(over="ignore"):
            D[0, : len(units)] = D[0, : len(units)] / units
    return D


def rows(D: Array, m: int, n: int) -> FloatArray:
    """The first m rows (m, n) of all blocks, for the `factors` D (1 + 2 blocks, p)."""
    p = D.shape[1]
    H = hadamard(p, np.float64)
    shared, *own = D.astype(np.float64)
    # The entries are integers of at most 2^52 times a power of two: only products with units are
    # rounded.
    blocks = []
    for j in range(0, m, p):
        second, third = own[2 * (j // p) : 2 * (j // p) + 2]
        product = _times_hadamard(_times_hadamard(H[: m - j] * third) * second)
        blocks.append(product[:, :n] * shared[:n])
    return np.concatenate(blocks)


def _times_hadamard(x: FloatArray) -> FloatArray:
    """x H for the rows of x (count, p), as two products with smaller Hadamard matrices."""
    count, p = x.shape
    a = 1 << (p.bit_length() // 2)
    right = x.reshape(count, a, p // a) @ hadamard(p // a, np.float64)
    y: FloatArray = hadamard(a, np.float64) @ right
    return y.reshape(count, p)
