"""`Centroids`: one value for everything that labels rows or measures their distances (equation 1).

It holds the units that distances are measured in and the names of the columns. The rows may be in
memory, in files, on a GPU, or with an engine such as Dask, whose workers get the same value.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ckm._core.preparation import Preparation, categories_of, prepared
from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.search import MISSING_LABEL, CpuSearch, NearestSearch, search_for
from ckm._sources import Chunk, ColumnRequest, Source, open_source
from ckm._sources.adapters import (
    divide_by_units,
    in_preparation,
    in_units,
    prepare_chunks,
)
from ckm._sources.blocks import Block, split_blocks
from ckm._sources.engines.base import Job, Labeller, PartitionedSource
from ckm._sources.prefetch import read
from ckm._util.arrays import Array, FloatArray, IntArray, LabelArray, read_only
from ckm._util.checks import EUCLIDEAN, check_nan_policy
from ckm._util.parallel import thread_count
from ckm._util.progress import OnRows, ignore
from ckm.errors import MismatchError


class Labelling(NamedTuple):
    """A summary of the labels of all rows.

    Parameters
    ----------
    counts : int array (K,)
        The number of rows of each cluster.
    mass : array (K,)
        Their total weight: their number, where rows have no weights.
    sse : array (K,)
        Their squared distances to the centroid, weighted and summed.
    missing : int
        The number of rows with missing values, which belong to no cluster.
    """

    counts: IntArray
    mass: FloatArray
    sse: FloatArray
    missing: int = 0

    @classmethod
    def of(cls, sums: FloatArray) -> "Labelling":
        """The summary that `_sum_block` adds up: sums (3, 1 + K)."""
        counts, mass, sse = sums[:, 1:]
        return cls(counts.astype(np.int64), mass, sse, int(sums[0, 0]))


@dataclass(frozen=True, eq=False)
class Centroids:
    """K centroids, with the units and the metric of distances and the names of the columns.

    The methods take `nan`, "error" or "drop" (rows with missing values get the label -1 and belong
    to no cluster), and `n_jobs`, a number of threads (None: every core), which changes no result.
    Sparse rows stay sparse, which changes no label.

    Parameters
    ----------
    values : float array (K, n)
        The centroids, in the data's own units.
    units : float array (n,), optional
        Rows and centroids are divided by these before distances are measured.
    columns : tuple of str, optional
        The names of the columns, by which `open` finds them in data that names its own.
    metric : {"euclidean", "cosine"}
        With "cosine", rows are divided by their lengths before distances are measured; centroids
        are as they are.
    preparation : Preparation, optional
        What is done to the columns of rows and centroids before anything else.

    Examples
    --------
    >>> import numpy as np
    >>> from ckm._sources import open_source
    >>> rows = open_source(np.array([[0.0, 0.0], [1.0, 9.0]]))
    >>> labels, sse = Centroids(np.array([[1.0, 8.0], [0.0, 0.0]])).assign(rows)
    >>> labels, sse
    (array([1, 0], dtype=int32), 1.0)
    """

    values: FloatArray
    units: FloatArray | None = None
    columns: tuple[str, ...] | None = None
    metric: str = EUCLIDEAN
    preparation: Preparation | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values, np.float64))
        if self.units is not None:
            object.__setattr__(self, "units", read_only(self.units, np.float64))

    def __reduce__(self) -> tuple[Any, ...]:
        return Centroids, (self.values, self.units, self.columns, self.metric, self.preparation)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def index(self) -> CentroidIndex:
        """The centroids in the units of distances, prepared for the search."""
        return CentroidIndex(self.measured_values)

    @property
    def measured_values(self) -> FloatArray:
        """The centroids as distances are measured: prepared, and in the units of distances."""
        values: FloatArray = prepared(self.values, self.preparation)
        return values if self.units is None else values / self.units

    def measured(self, source: Source) -> Source:
        """The rows as distances are measured, up to the metric."""
        return in_units(in_preparation(source, self.preparation), self.units)

    def open(self, data: Any, name: str = "this solution", data_name: str = "The data") -> Source:
        """Open the columns of `data` that the centroids were made from, in any order.

        Errors call the centroids `name` and the data `data_name`.
        """
        coded = categories_of(self.preparation)
        n = self.values.shape[1]
        request = ColumnRequest(
            like=self.columns or (), like_name=name, categories=coded, like_features=n
        )
        source = open_source(data, request)
        if source.n_features != n:
            raise MismatchError(
                f"{data_name} has {source.n_features} columns where {name} has {n}; "
                "give the data it was made for."
            )
        return source

    def label(self, source: Source, *, nan: str = "error", n_jobs: int | None = None) -> Any:
        """The label of each row: the number of its nearest centroid, the first of equals.

        An int32 array; a tensor for data on a GPU; a collection of the engine's own for its data.
        """
        if isinstance(source, PartitionedSource):
            return source.label_rows(self._labeller(source, nan))
        return self._search(source, nan, n_jobs).label(self.measured(source))

    def assign(
        self, source: Source, *, nan: str = "error", n_jobs: int | None = None
    ) -> tuple[Any, float]:
        """The label of each row, and SSE = sum_l beta_l min_k |x_l - c_k|^2."""
        return self._search(source, nan, n_jobs).assign(self.measured(source))

    def sse(self, source: Source, *, nan: str = "error", n_jobs: int | None = None) -> float:
        """The SSE alone."""
        if isinstance(source, PartitionedSource):
            return float(self.summarise(source, nan=nan).sse.sum())
        return self.assign(source, nan=nan, n_jobs=n_jobs)[1]

    def distances(
        self, source: Source, *, n_jobs: int | None = None, dtype: Any = np.float64
    ) -> Any:
        """Euclidean distances (N, K) from every row to every centroid."""
        search = self._search(source, "error", n_jobs)
        return search.distances(self.measured(source), dtype)

    def summarise(
        self,
        source: Source,
        *,
        nan: str = "error",
        n_jobs: int | None = None,
        on_labels: Callable[[LabelArray], None] | None = None,
        on_rows: OnRows = ignore,
    ) -> Labelling:
        """Label every row and summarise the clusters, in bounded memory.

        `on_labels` is called with the labels in order, block by block; not for an engine's data.
        """
        if isinstance(source, PartitionedSource) and on_labels is None:
            summary: Labelling = source.run(_SummaryJob(self._labeller(source, nan)))
            return summary
        source.stay_sparse()
        search = CpuSearch(self.index, thread_count(n_jobs), check_nan_policy(nan), self.metric)
        sums = np.zeros((3, 1 + len(self)))
        with closing(read(self.measured(source))) as chunks:
            blocks = search.blocks(search.split(chunks), source.columns)
            for block, labels, squares in blocks:
                sums += _sum_block(block, labels, squares, len(self))
                if on_labels is not None:
                    on_labels(labels)
                on_rows(len(labels), block.n_bytes)
        return Labelling.of(sums)

    def _search(self, source: Source, nan: str, n_jobs: int | None) -> NearestSearch:
        source.stay_sparse()
        n_threads = thread_count(n_jobs)
        return search_for(source, self.index, n_threads, check_nan_policy(nan), self.metric)

    def _labeller(self, source: Source, nan: str) -> "_PartitionLabeller":
        return _PartitionLabeller(self, source.columns, check_nan_policy(nan))


@dataclass(frozen=True)
class _PartitionLabeller(Labeller):
    """Labels the rows of one partition, on a worker of an engine."""

    centroids: Centroids
    columns: tuple[str, ...] | None
    nan: str

    def __call__(self, chunks: Iterator[Chunk]) -> LabelArray:
        parts = [labels for _, labels, _ in self.blocks(chunks)]
        return np.concatenate([np.empty(0, np.int32), *parts])

    def blocks(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Block, LabelArray, FloatArray]]:
        """(block, labels, squared distances) of each block in order."""
        units = self.centroids.units
        chunks = prepare_chunks(chunks, self.centroids.preparation)
        if units is not None:
            chunks = divide_by_units(chunks, units)
        search = CpuSearch(self.centroids.index, nan=self.nan, metric=self.centroids.metric)
        return search.blocks(split_blocks(chunks), self.columns)


@dataclass(frozen=True)
class _SummaryJob(Job):
    """Adds up the sums (3, 1 + K) of `Labelling`, on the workers of an engine."""

    labeller: _PartitionLabeller

    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> FloatArray:
        """The sums over one partition."""
        K = len(self.labeller.centroids)
        sums = np.zeros((3, 1 + K))
        for block, labels, squares in self.labeller.blocks(chunks):
            sums += _sum_block(block, labels, squares, K)
        return sums

    def merge(self, parts: Sequence[FloatArray]) -> FloatArray:
        """The sums over several partitions."""
        total: FloatArray = np.sum(parts, axis=0)
        return total

    def finish(self, merged: FloatArray) -> Labelling:
        """The summary of all partitions."""
        return Labelling.of(merged)


def _sum_block(block: Block, labels: LabelArray, squares: Array, K: int) -> FloatArray:
    """Sums (3, 1 + K) per label: rows, weight, weighted squared distances. Column 0 is for rows
    without a label.
    """
    column = np.subtract(labels, MISSING_LABEL, dtype=np.intp)
    weighted = squares if block.weights is None else block.weights * squares
    sums = [
        np.bincount(column, values, minlength=1 + K) for values in (None, block.weights, weighted)
    ]
    return np.array(sums, np.float64)
