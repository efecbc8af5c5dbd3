"""The nearest of K centroids for sparse rows, from their nonzeros alone (see `index` for why labels
are those of dense rows), and their distances.

The squared distance of a row x with nonzeros at J is the sum of (x_j - c_j)^2 over J, and of c_j^2
over all other columns. The latter is |c|^2 less the sum of c_j^2 over J. The difference loses
digits only where c is as good as zero outside J: then, if (x_j - c_j)^2 is small as well, all
columns are added up. The shorter |x|^2 - 2 x.c + |c|^2 is used where every distance is asked for;
it loses digits whenever x is near c.
"""

from typing import NamedTuple

import numpy as np

from ckm._kernels.cpu.sparse import subtract_products
from ckm._kmeans.index import CentroidIndex, SparseCentroids
from ckm._kmeans.nearest import nearest_in_float64
from ckm._util.arrays import Array, FloatArray, LabelArray, aligned
from ckm._util.jit import entry, leaf
from ckm._util.sparse import SparseRows

# A squared distance must be at least (nonzeros + SPARE_TERMS) LOSS times the squares that it is a
# difference of. Its relative error is then below 2^-36 = 1.5e-11: rounding is at most 2^-53 for
# each term, of which |c|^2, added up in pairs, has as many as there are halvings of n.
LOSS = 2.0**-17
SPARE_TERMS = 64


def find_nearest_sparse(
    rows: SparseRows, index: CentroidIndex, labels: LabelArray, squares: FloatArray | None = None
) -> int | None:
    """Write the label of each row (int32) and, if `squares` is given, its squared distance.

    Returns the number of the first row whose distance is not finite, or None if there is none.
    """
    centroids = index.for_sparse_rows
    written = np.empty(0) if squares is None else squares
    buffers = tuple(_Buffers.of(centroids))
    failed = int(_find(*rows.compressed(), tuple(centroids), buffers, labels, written))
    return None if failed < 0 else failed


def sparse_distances(rows: SparseRows, centroids: SparseCentroids, result: Array) -> None:
    """Write the Euclidean distances (b, K) of all rows to all centroids; NaN or infinity where a
    row is not finite or too large.
    """
    squares = np.empty((len(rows), len(centroids.centroids)))
    _fill(*rows.compressed(), tuple(centroids), tuple(_Buffers.of(centroids)), squares)
    with np.errstate(over="ignore", invalid="ignore"):
        result[:] = np.sqrt(squares)


class _Buffers(NamedTuple):
    """Memory for one row.

    Parameters
    ----------
    scores : array (K + padding,)
        Its scores.
    distances : array (K,)
        Its squared distances, where scores do not decide.
    row : array (1, n)
        The row with its zeros; all of it is zero between uses.
    """

    scores: FloatArray
    distances: FloatArray
    row: FloatArray

    @classmethod
    def of(cls, centroids: SparseCentroids) -> "_Buffers":
        """Buffers for rows of the centroids' width."""
        K, n = centroids.centroids.shape
        scores = aligned(centroids.half_norms.shape, np.float64)
        return cls(scores, np.empty(K), np.zeros((1, n)))


@entry
def _find(  # type: ignore[no-untyped-def]
    values, columns, starts, centroids, buffers, labels, squares
):
    C, table, numbers, half_norms, bounds = centroids
    scores, distances, row = buffers
    for r in range(len(labels)):
        low = starts[r]
        high = starts[r + 1]
        _score(values, columns, low, high, table, half_norms, scores)
        k = _certain_nearest(scores, len(C), _square(values, low, high), bounds)
        if k < 0:
            _scatter(values, columns, low, high, row)
            k = nearest_in_float64(row, 0, table, distances)
            _clear(columns, low, high, row)
            if k < 0:
                return r
        labels[r] = numbers[k]
        if len(squares):
            squares[r] = _squared_distance(values, columns, low, high, centroids, k, row)
    return -1


@entry
def _fill(values, columns, starts, centroids, buffers, squares):  # type: ignore[no-untyped-def]
    C, table, _, half_norms, _ = centroids
    scores, _, row = buffers
    for r in range(len(squares)):
        low = starts[r]
        high = starts[r + 1]
        _score(values, columns, low, high, table, half_norms, scores)
        norm = _square(values, low, high)
        # (|x| + |c|)^2, which bounds the error, is at most twice |x|^2 + |c|^2
        loss = 2 * (high - low + SPARE_TERMS) * LOSS
        for k in range(len(C)):
            total = norm + 2 * scores[k]
            if not total >= loss * (norm + 2 * half_norms[k]):
                total = _squared_distance(values, columns, low, high, centroids, k, row)
            squares[r, k] = total


@leaf
def _score(values, columns, low, high, table, half_norms, scores):  # type: ignore[no-untyped-def]
    for k in range(len(scores)):
        scores[k] = half_norms[k]
    subtract_products(values, columns, low, high, table, scores)


@leaf
def _square(values, low, high):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(low, high):
        total += values[j] * values[j]
    return total


@leaf
def _certain_nearest(scores, K, square, bounds):  # type: ignore[no-untyped-def]
    """The centroid with the smallest score; -1 where rounding may have chosen a wrong one, and for
    NaN and infinity.
    """
    nearest = -1
    best = np.inf
    second = np.inf
    for k in range(K):
        score = scores[k]
        if score < best:
            second = best
            best = score
            nearest = k
        elif score < second:
            second = score
    reach = np.sqrt(square) + bounds[0]
    return nearest if second - best > bounds[1] * reach * reach + bounds[2] else -1


@leaf
def _squared_distance(  # type: ignore[no-untyped-def]
    values, columns, low, high, centroids, k, row
):
    """The squared distance of a row to centroid k."""
    C, table, _, half_norms, _ = centroids
    norm = 2 * half_norms[k]
    total = _near_square(values, columns, low, high, table, k, norm)
    if total >= (high - low + SPARE_TERMS) * LOSS * norm:
        return total
    _scatter(values, columns, low, high, row)
    total = _whole_square(row, C, k)
    _clear(columns, low, high, row)
    return total


@leaf
def _near_square(values, columns, low, high, table, k, norm):  # type: ignore[no-untyped-def]
    near = 0.0
    inside = 0.0
    for j in range(low, high):
        c = table[columns[j], k]
        near += (values[j] - c) * (values[j] - c)
        inside += c * c
    return near + (norm - inside)


@leaf
def _whole_square(row, C, k):  # type: ignore[no-untyped-def]
    total = 0.0
    for d in range(C.shape[1]):
        total += (row[0, d] - C[k, d]) * (row[0, d] - C[k, d])
    return total


@leaf
def _scatter(values, columns, low, high, row):  # type: ignore[no-untyped-def]
    for j in range(low, high):
        row[0, columns[j]] = values[j]


@leaf
def _clear(columns, low, high, row):  # type: ignore[no-untyped-def]
    for j in range(low, high):
        row[0, columns[j]] = 0.0
