"""Centroids prepared for a fast and exact search of the nearest one, on CPUs and GPUs.

A row x is nearest to the centroid with the smallest score

    s(c) = |c|^2 / 2 - x.c,    since |x - c|^2 / 2 = |x|^2 / 2 + s(c).

Scores are products of matrices, and float32 computes them about twice as fast as float64. To lose
nothing by that, rows and centroids are taken relative to the middle of the centroids, scaled to
about unit length, and the rounding error of a score is bounded: where the smallest score beats the
second smallest by more than the bound, its centroid is the nearest one. The few other rows are
decided by squared distances in float64, added up in the order of the columns. So labels are those
of distances in float64, wherever the data lies and whatever its units, and a row that is equally
near to several centroids goes to the first of them.

Sparse rows are compared by their nonzeros alone, with scores in float64 and a bound of their own
(`SparseCentroids`). The rows that are left are decided by the same sums, so that labels do not
depend on whether rows are sparse.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ckm._kernels.cpu.llvm import HALF
from ckm._kernels.cpu.nearest import PANEL, TILE
from ckm._util.arrays import Array, Float32Array, FloatArray, LabelArray

# Least length of the repeated origin: a loop along it then fills several vectors.
MIN_ORIGIN_LENGTH = 64
# Beyond these, float32 scores are not used: squares of longer centroids may overflow float64, the
# error bound does not hold for more columns, and rows in float32 cannot be scaled by more.
MAX_CENTROID_LENGTH = 1e130
MAX_COLUMNS = 2**16
MAX_FLOAT32_FACTOR = 2.0**60


class PreparedCentroids(NamedTuple):
    """Centroids in the form in which rows of one dtype are compared with them.

    Parameters
    ----------
    centroids : float64 array (K, n)
        The distinct centroids.
    transposed : float64 array (n, K)
        Their transpose.
    labels : int32 array (K,)
        The number of each among all centroids.
    origin : array (n times a power of two,), of the rows' dtype
        What scores are relative to, repeated: a loop along it is long enough for vectors.
    factor : number of the rows' dtype
        A power of two that scales centroids to about unit length.
    negatives : float32 array (K + padding, n)
        Minus the centroids, relative to the origin and times the factor.
    half_norms : float32 array (K + padding,)
        Half their squared lengths; infinite where there is no centroid.
    bounds : float64 array (6,)
        What decides whether rounding may have chosen a wrong centroid, see `_error_bounds`.
    """

    centroids: FloatArray
    transposed: FloatArray
    labels: LabelArray
    origin: Array
    factor: Any
    negatives: Float32Array
    half_norms: Float32Array
    bounds: FloatArray

    @classmethod
    def of(cls, centroids: Array, dtype: Any) -> "PreparedCentroids":
        """Prepare centroids (K, n) for rows of `dtype`, which is np.float32 or np.float64."""
        C, labels = _distinct(np.ascontiguousarray(centroids, np.float64))
        n = C.shape[1]
        with np.errstate(over="ignore"):
            origin = (C.min(axis=0) / 2 + C.max(axis=0) / 2).astype(dtype)
        radius = np.abs(C - origin).max() * np.sqrt(n)
        factor = 1.0
        if 0 < radius < np.inf:
            factor = 2.0 ** -np.clip(np.ceil(np.log2(radius)), -1000, 1000)
        is_bounded = radius < MAX_CENTROID_LENGTH and n < MAX_COLUMNS
        if dtype is not np.float64:
            is_bounded = is_bounded and 1 / MAX_FLOAT32_FACTOR < factor < MAX_FLOAT32_FACTOR
        scaled = (C - origin) * factor
        squares = (scaled**2).sum(axis=1)
        padded = len(C) + -len(C) % TILE
        negatives = np.zeros((padded, n), np.float32)
        negatives[: len(C)] = -scaled
        half_norms = np.full(padded, np.inf, np.float32)
        half_norms[: len(C)] = squares / 2
        # An infinite length puts every row in doubt, so that float64 decides all of them.
        length = float(np.sqrt(squares.max())) if is_bounded else np.inf
        return cls(
            C,
            np.ascontiguousarray(C.T),
            labels,
            _repeat(origin),
            dtype(factor if is_bounded else 1),
            negatives,
            half_norms,
            _error_bounds(n, length),
        )


class SparseCentroids(NamedTuple):
    """Centroids in the form in which sparse rows are compared with them.

    Scores are not relative to the middle of the centroids, which would fill the zeros of rows. They
    are not slower in float64 either: memory sets the pace, one line of `table` per nonzero.

    Parameters
    ----------
    centroids : float64 array (K, n)
        The centroids.
    table : float64 array (n, K + padding)
        Their transpose, padded to whole vectors.
    labels : int32 array (K,)
        The number of each among all centroids.
    half_norms : float64 array (K + padding,)
        Half their squared lengths.
    bounds : float64 array (3,)
        (length, a, tiny): a row is decided by its scores where the two smallest differ by more than
        a (|x| + length)^2 + tiny. `length` is that of the longest centroid. A score is off by at
        most u (n + 3) (|x| |c| + |c|^2 / 2) and a squared distance by (n + 2) u times itself, with
        u = 2^-53; both together, for two centroids, by less than 3 u (n + 3) (|x| + length)^2. The
        factor 4 in a leaves a margin for rounding in the bound itself, `tiny` for underflow.
    """

    centroids: FloatArray
    table: FloatArray
    labels: LabelArray
    half_norms: FloatArray
    bounds: FloatArray

    @classmethod
    def of(cls, centroids: FloatArray, labels: LabelArray) -> "SparseCentroids":
        """Prepare centroids (K, n), which have these numbers."""
        K, n = centroids.shape
        table = np.zeros((n, K + -K % HALF))
        table[:, :K] = centroids.T
        half_norms = np.zeros(table.shape[1])
        with np.errstate(over="ignore"):
            half_norms[:K] = (centroids**2).sum(axis=1) / 2
        length = float(np.sqrt(2 * half_norms.max()))
        bounds = np.array([length, 4 * 2.0**-53 * (n + 3), 1e-300 * n])
        return cls(centroids, table, labels, half_norms, bounds)


@dataclass(frozen=True, eq=False)
class CentroidIndex:
    """Centroids (K, n), prepared for rows in float32 or float64, or for sparse rows, when the first
    such rows come.
    """

    centroids: Array

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.centroids.shape[1])

    def prepared_for(self, dtype: Any) -> PreparedCentroids:
        """The centroids for rows of `dtype`, float32 or float64."""
        return self._for_float64 if dtype == np.float64 else self._for_float32

    @cached_property
    def for_sparse_rows(self) -> SparseCentroids:
        """The distinct centroids for sparse rows."""
        return SparseCentroids.of(*_distinct(np.ascontiguousarray(self.centroids, np.float64)))

    @cached_property
    def _for_float32(self) -> PreparedCentroids:
        return PreparedCentroids.of(self.centroids, np.float32)

    @cached_property
    def _for_float64(self) -> PreparedCentroids:
        return PreparedCentroids.of(self.centroids, np.float64)


def _distinct(C: FloatArray) -> tuple[FloatArray, LabelArray]:
    """The distinct centroids and their numbers: of equal ones, only the first is ever nearest."""
    # Equal centroids have equal products with anything, so that these mostly tell them apart.
    with np.errstate(over="ignore", invalid="ignore"):
        products = np.sort(C @ np.cos(np.arange(C.shape[1])))
    if (products[1:] > products[:-1]).all():
        return C, np.arange(len(C), dtype=np.int32)
    first: dict[bytes, int] = {}
    for k, c in enumerate(C):
        first.setdefault(c.tobytes(), k)
    labels = np.fromiter(first.values(), np.int32)
    return np.ascontiguousarray(C[labels]), labels


def _error_bounds(n: int, length: float) -> FloatArray:
    """Constants of the error bound: (length, a, b, tiny, slack, max_square).

    With u = 2^-24, a score of the row x is off by at most u (n + 3) (|x| |c| + |c|^2 / 2), and a
    squared distance in float64 by at most (n + 2) 2^-53 times itself. A row is decided by its
    scores where |x|^2 < max_square and, with reach = slack |x| + length, the two smallest scores
    differ by more than reach (a + b reach) + tiny. `length` is that of the longest centroid. The
    factors 2.1, 1.1 and 1.01 and the term `tiny` leave a margin for underflow and for rounding in
    |x| and in the comparison itself.
    """
    tiny = 1e-33 * n
    a = 2.1 * 2.0**-24 * (n + 3) * length + tiny
    b = 1.1 * 2.0**-53 * (n + 3)
    slack = 1.01
    max_square = 1e37
    return np.array([length, a, b, tiny, slack, max_square])


def _repeat(origin: Array) -> Array:
    """The origin, repeated a power of two times."""
    times = 1
    while times < PANEL and times * len(origin) < MIN_ORIGIN_LENGTH:
        times *= 2
    return np.tile(origin, times)
