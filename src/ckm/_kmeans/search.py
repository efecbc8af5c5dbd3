"""Passes over all rows of a source: labels, squared distances and SSE (equation 1).

`NearestSearch` is the interface, with one implementation for rows on the CPU (here: block by block,
in threads) and one for rows on a GPU (`nearest_gpu`). `search_for` chooses between them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ckm._kmeans.index import CentroidIndex, SparseCentroids
from ckm._kmeans.nearest import find_nearest
from ckm._kmeans.nearest_sparse import find_nearest_sparse, sparse_distances
from ckm._messages import Argument
from ckm._sources import Chunk, Source
from ckm._sources.adapters import measured_rows
from ckm._sources.blocks import Block, as_floats, split_blocks
from ckm._sources.prefetch import read
from ckm._sources.settings import BLOCK_ROWS
from ckm._util.arrays import Array, BoolArray, FloatArray, LabelArray
from ckm._util.checks import EUCLIDEAN
from ckm._util.jit import entry
from ckm._util.parallel import ordered_map
from ckm._util.sparse import SparseRows
from ckm.errors import MismatchError, NonFiniteError, ParameterError

# Coordinates of all centroids, K n, above which a block of the usual size is worth a task. Below,
# a task takes several blocks, because threads would spend their time on handing over tasks.
MIN_COORDINATES_PER_TASK = 512
MAX_BLOCKS_PER_TASK = 8
# The label of a row with a missing value under nan="drop": the other labels keep their places.
MISSING_LABEL = -1


class NearestSearch(ABC):
    """Labels, SSE and distances for all rows of a source, on one kind of device."""

    @abstractmethod
    def label(self, source: Source) -> Any:
        """The label (int32) of each row: the number of its nearest centroid, the first if equal."""

    @abstractmethod
    def assign(self, source: Source) -> tuple[Any, float]:
        """The label of each row, and SSE = sum_l beta_l min_k |x_l - c_k|^2."""

    @abstractmethod
    def distances(self, source: Source, dtype: Any) -> Any:
        """Euclidean distances (N, K) from every row to every centroid."""


def search_for(
    source: Source, index: CentroidIndex, n_threads: int, nan: str, metric: str = EUCLIDEAN
) -> NearestSearch:
    """The search for rows that are where those of `source` are.

    `nan` is "error" or, on the CPU, "drop": rows with missing values get the label -1. `metric` is
    "euclidean", or "cosine" for distances from rows divided by their lengths.
    """
    if not source.is_on_gpu:
        return CpuSearch(index, n_threads, nan, metric)
    if nan == "drop":
        raise ParameterError(
            "Data on a GPU is labelled in place, with ",
            Argument("nan", "error"),
            " only; drop rows with missing values first.",
        )
    from ckm._kmeans.nearest_gpu import GpuSearch

    return GpuSearch(index, metric=metric)


@dataclass(frozen=True)
class CpuSearch(NearestSearch):
    """Searches block by block, in threads. Results do not depend on the number of threads."""

    index: CentroidIndex
    n_threads: int = 1
    nan: str = "error"
    metric: str = EUCLIDEAN

    def label(self, source: Source) -> LabelArray:
        """The label of each row. Distances are not computed where scores decide."""

        def work(block: Block) -> LabelArray:
            labels = np.empty(len(block.rows), np.int32)
            measured = self._measured(block)
            _search_block(measured, self.index, labels, None, source.columns, self.nan)
            return labels

        with closing(read(source)) as chunks:
            results = ordered_map(work, self.split(chunks), self.n_threads)
            return _concatenate((labels for _, labels in results), source.n_rows)

    def assign(self, source: Source) -> tuple[LabelArray, float]:
        """The label of each row, and the SSE."""
        sse = list[float]()

        def label_blocks(chunks: Iterable[Chunk]) -> Iterator[LabelArray]:
            for block, labels, squares in self.blocks(self.split(chunks), source.columns):
                weights = block.weights
                sse.append(float(squares.sum() if weights is None else weights @ squares))
                yield labels

        with closing(read(source)) as chunks:
            return _concatenate(label_blocks(chunks), source.n_rows), sum(sse)

    def distances(self, source: Source, dtype: Any) -> Array:
        """Euclidean distances (N, K) from every row to every centroid."""
        n = self.index.n_features
        K = len(self.index.centroids)
        distances = _Distances(self.index.centroids)

        def work(block: Block) -> Array:
            rows = _checked_rows(self._measured(block).rows, n)
            part = np.empty((len(rows), K), dtype)
            distances.fill(rows, part)
            finite = np.isfinite(part[:, 0])
            if not finite.all():
                row = int(np.argmin(finite))
                raise block.locate_error(no_distance(row, _row(rows, row)), source.columns)
            return part

        with closing(read(source)) as chunks:
            parts = [part for _, part in ordered_map(work, self.split(chunks), self.n_threads)]
        return np.concatenate([np.empty((0, K), dtype), *parts])

    def split(self, chunks: Iterable[Chunk]) -> Iterator[Block]:
        """Split chunks into blocks: larger ones where a row is compared with few numbers."""
        ratio = MIN_COORDINATES_PER_TASK // max(1, self.index.centroids.size)
        size = BLOCK_ROWS * max(1, min(MAX_BLOCKS_PER_TASK, ratio))
        return split_blocks(chunks, size=size)

    def blocks(
        self, blocks: Iterable[Block], columns: tuple[str, ...] | None
    ) -> Iterator[tuple[Block, LabelArray, FloatArray]]:
        """(block, labels, squared distances) of each block in order; `columns` name errors."""

        def work(block: Block) -> tuple[LabelArray, FloatArray]:
            return search_block(self._measured(block), self.index, columns, self.nan)

        for block, (labels, squares) in ordered_map(work, blocks, self.n_threads):
            yield block, labels, squares

    def _measured(self, block: Block) -> Block:
        """A block with its rows as the metric measures them."""
        return block._replace(rows=measured_rows(block.rows, self.metric))


def search_block(
    block: Block, index: CentroidIndex, columns: tuple[str, ...] | None, nan: str = "error"
) -> tuple[LabelArray, FloatArray]:
    """The label and the squared distance of each row of one block."""
    labels = np.empty(len(block.rows), np.int32)
    squares = np.empty(len(block.rows))
    _search_block(block, index, labels, squares, columns, nan)
    return labels, squares


def no_distance(row: int, values: Array) -> NonFiniteError:
    """The error for a row that has no finite distance: it names the value that is to blame, which
    is the first that is not finite, else the largest.
    """
    values = np.asarray(values, np.float64)
    column = int(np.argmax(np.where(np.isfinite(values), np.abs(values), np.inf)))
    return NonFiniteError(row, column, float(values[column]))


def check_width(n_columns: int, n_features: int) -> None:
    """Raise `MismatchError` unless rows are as wide as centroids: compiled code does not check."""
    if n_columns != n_features:
        raise MismatchError(
            f"The rows have {n_columns} columns where the centroids have {n_features}; "
            "give the columns they were made from."
        )


def _search_block(
    block: Block,
    index: CentroidIndex,
    labels: LabelArray,
    squares: FloatArray | None,
    columns: tuple[str, ...] | None,
    nan: str,
) -> None:
    """Write labels and squared distances of a block, or raise `NonFiniteError`."""
    rows = _checked_rows(block.rows, index.n_features)
    find = find_nearest_sparse if isinstance(rows, SparseRows) else find_nearest
    failed = find(rows, index, labels, squares)
    if failed is not None and nan == "drop":
        filled, missing = _fill_missing(rows)
        failed = find(filled, index, labels, squares)
        labels[missing] = MISSING_LABEL
        if squares is not None:
            squares[missing] = 0.0
    if failed is not None:
        raise block.locate_error(no_distance(failed, _row(rows, failed)), columns)


def _checked_rows(rows: Any, n_features: int) -> Any:
    """Rows as contiguous floats, or as sparse rows, of the centroids' width."""
    check_width(rows.shape[1], n_features)
    return rows if isinstance(rows, SparseRows) else as_floats(rows)


def _row(rows: Any, row: int) -> Array:
    """The numbers of one row."""
    one: Array = np.asarray(rows[row : row + 1])[0]
    return one


def _fill_missing(rows: Any) -> tuple[Any, BoolArray]:
    """Rows with zeros in place of those with missing values, and which these are."""
    if not isinstance(rows, SparseRows):
        missing: BoolArray = np.asarray(np.isnan(rows).any(axis=1))
        return np.where(missing[:, None], rows.dtype.type(0), rows), missing
    values, columns, starts = rows.compressed()
    missing = rows.any_where(np.isnan(values))
    filled = np.where(missing[rows.owners()], 0.0, values)
    return SparseRows(filled, columns, starts, rows.n), missing


@dataclass(frozen=True)
class _Distances:
    """Distances to centroids (K, n), prepared when the first dense or sparse rows come."""

    centroids: Array

    def fill(self, rows: Any, result: Array) -> None:
        """Write the distances of all rows to all centroids."""
        if isinstance(rows, SparseRows):
            sparse_distances(rows, self._for_sparse, result)
        else:
            _fill_distances(rows, self._transposed, result)

    @cached_property
    def _transposed(self) -> FloatArray:
        return np.ascontiguousarray(self.centroids.T, np.float64)

    @cached_property
    def _for_sparse(self) -> SparseCentroids:
        C = np.ascontiguousarray(self.centroids, np.float64)
        return SparseCentroids.of(C, np.arange(len(C), dtype=np.int32))


def _concatenate(parts: Iterable[LabelArray], max_rows: int | None) -> LabelArray:
    """All labels in one array. Where the number of rows is bounded, they are written in place, so
    that memory never holds them twice.
    """
    if max_rows is None:
        return np.concatenate([np.empty(0, np.int32), *parts])
    labels = np.empty(max_rows, np.int32)
    total = 0
    for part in parts:
        labels[total : total + len(part)] = part
        total += len(part)
    return labels[:total]


@entry
def _fill_distances(rows, transposed, result):  # type: ignore[no-untyped-def]
    """The innermost loop runs along centroids, which vectorises."""
    squares = np.empty(transposed.shape[1])
    for r in range(len(rows)):
        squares[:] = 0.0
        for d in range(rows.shape[1]):
            x = np.float64(rows[r, d])
            c = transposed[d]
            for k in range(len(squares)):
                squares[k] += (x - c[k]) * (x - c[k])
        for k in range(len(squares)):
            result[r, k] = np.sqrt(squares[k])
