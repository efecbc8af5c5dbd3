"""Nearest centroids, distances and SSE (equation 1), block by block and in threads."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numba import njit

from ckm.errors import MismatchError, NonFiniteError
from ckm.readonly import Array
from ckm.runners.local import Block, as_floats, blocks_of, ordered_map
from ckm.sources.arrays import ArraySource

_compiled = njit(nogil=True, cache=True, error_model="numpy")


def assign_blocks(
    blocks: Iterable[Block], centroids: Array, n_threads: int = 1, columns: tuple[str, ...] | None = None
) -> Iterator[tuple[Block, Array, Array]]:
    """(block, labels, squared distances) for each block in order: the streaming form. `columns` are named in errors."""
    transposed = np.ascontiguousarray(centroids.T, np.float64)
    for block, (labels, squares) in ordered_map(lambda block: nearest(block, transposed, columns), blocks, n_threads):
        yield block, labels, squares


def nearest(block: Block, transposed: Array, columns: tuple[str, ...] | None = None) -> tuple[Array, Array]:
    """Each row's nearest centroid and squared distance to it, for one block; `transposed` is C^T (n, K) in contiguous float64."""
    rows = _of_width(block.rows, len(transposed))
    labels, squares = np.empty(len(rows), np.int32), np.empty(len(rows))
    _nearest(rows, transposed, labels, squares)
    if not np.isfinite(squares).all():
        raise block.located(_first_bad(block, squares), columns)
    return labels, squares


def assign(X: Array, centroids: Array, sample_weight: Array | None = None, n_threads: int = 1) -> tuple[Array, float]:
    """Each row's nearest centroid (the first of several), and SSE = sum_l beta_l min_k |x_l - c_k|^2."""
    labels, sse = np.empty(len(X), np.int32), 0.0
    for block, part, squares in assign_blocks(_blocks(X, sample_weight), centroids, n_threads):
        labels[block.start : block.start + len(part)] = part
        sse += float(squares.sum() if block.weights is None else block.weights @ squares)
    return labels, sse


def distances(X: Array, centroids: Array, n_threads: int = 1, dtype: Any = np.float64) -> Array:
    """Euclidean distances from every row to every centroid (N, K)."""
    transposed = np.ascontiguousarray(centroids.T, np.float64)
    result = np.empty((len(X), len(centroids)), dtype)

    def work(block: Block) -> None:
        _distances(_of_width(block.rows, len(transposed)), transposed, result[block.start : block.start + len(block.rows)])

    for _ in ordered_map(work, _blocks(X), n_threads):
        pass
    return result


def _of_width(rows: Array, n: int) -> Array:
    """Float rows, known to be as wide as the centroids: compiled code does not look."""
    if rows.shape[1] != n:
        raise MismatchError(f"The rows have {rows.shape[1]} columns where the centroids have {n}; give the columns they were made from.")
    return as_floats(rows)


def _first_bad(block: Block, squares: Array) -> NonFiniteError:
    """The value that made a distance NaN or infinite, and its place in the block."""
    row = int(np.argmin(np.isfinite(squares)))
    values = np.asarray(block.rows[row], np.float64)
    column = int(np.argmax(np.where(np.isfinite(values), np.abs(values), np.inf)))
    return NonFiniteError(row, column, float(values[column]))


def _blocks(X: Array, weights: Array | None = None) -> Iterator[Block]:
    return blocks_of(ArraySource(X, weights=weights).chunks())


@_compiled
def _squares(rows, r, transposed, squares):  # type: ignore[no-untyped-def]
    """Squared distances from row r to every centroid; the inner loop runs along centroids, which vectorises."""
    squares[:] = 0.0
    for d in range(rows.shape[1]):
        x = np.float64(rows[r, d])
        c = transposed[d]
        for k in range(len(squares)):
            squares[k] += (x - c[k]) * (x - c[k])


@_compiled
def _nearest(rows, transposed, labels, minima):  # type: ignore[no-untyped-def]
    squares = np.empty(transposed.shape[1])
    for r in range(len(rows)):
        _squares(rows, r, transposed, squares)
        best = 0
        for k in range(1, len(squares)):
            if squares[k] < squares[best]:
                best = k
        labels[r], minima[r] = best, squares[best]


@_compiled
def _distances(rows, transposed, result):  # type: ignore[no-untyped-def]
    squares = np.empty(transposed.shape[1])
    for r in range(len(rows)):
        _squares(rows, r, transposed, squares)
        for k in range(len(squares)):
            result[r, k] = np.sqrt(squares[k])
