"""Nearest centroids, distances and SSE (equation 1), block by block and in threads."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ckm.errors import MismatchError, NonFiniteError
from ckm.progress import OnRows, ignore
from ckm.readonly import Array
from ckm.runners.local import Block, as_floats, blocks_of, ordered_map
from ckm.sources import Source
from ckm.sources.arrays import ArraySource
from ckm.sources.reading import read

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


def assign(X: Array | Source, centroids: Array, sample_weight: Array | None = None, n_threads: int = 1) -> tuple[Array, float]:
    """Each row's nearest centroid (the first of several), and SSE = sum_l beta_l min_k |x_l - c_k|^2."""
    source = X if isinstance(X, Source) else ArraySource(X, weights=sample_weight)
    labels, sse = [np.empty(0, np.int32)], 0.0
    with closing(read(source)) as chunks:
        for block, part, squares in assign_blocks(blocks_of(chunks), centroids, n_threads, source.columns):
            labels.append(part)
            sse += float(squares.sum() if block.weights is None else block.weights @ squares)
    return np.concatenate(labels), sse


def distances(X: Array | Source, centroids: Array, n_threads: int = 1, dtype: Any = np.float64) -> Array:
    """Euclidean distances from every row to every centroid (N, K)."""
    source = X if isinstance(X, Source) else ArraySource(X)
    transposed = np.ascontiguousarray(centroids.T, np.float64)

    def work(block: Block) -> Array:
        part = np.empty((len(block.rows), len(centroids)), dtype)
        _distances(_of_width(block.rows, len(transposed)), transposed, part)
        return part

    with closing(read(source)) as chunks:
        parts = [part for _, part in ordered_map(work, blocks_of(chunks), n_threads)]
    return np.concatenate([np.empty((0, len(centroids)), dtype), *parts])


class Labelling(NamedTuple):
    """What labelling found, for each cluster: rows, their weight (their number, where they have none), their squared distances summed."""

    counts: Array
    mass: Array
    sse: Array


def label_rows(
    source: Source, centroids: Array, *, n_threads: int = 1, on_labels: Callable[[Array], None] | None = None, on_rows: OnRows = ignore
) -> Labelling:
    """Give every row of `source` to its nearest centroid; `on_labels` gets the labels in order, block by block."""
    K = len(centroids)
    counts, mass, sse = np.zeros(K, np.int64), np.zeros(K), np.zeros(K)
    with closing(read(source)) as chunks:
        for block, labels, squares in assign_blocks(blocks_of(chunks), centroids, n_threads, source.columns):
            counts += np.bincount(labels, minlength=K)
            mass += np.bincount(labels, block.weights, minlength=K)
            sse += np.bincount(labels, squares if block.weights is None else block.weights * squares, minlength=K)
            if on_labels is not None:
                on_labels(labels)
            on_rows(len(labels), block.n_bytes)
    return Labelling(counts, mass, sse)


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
