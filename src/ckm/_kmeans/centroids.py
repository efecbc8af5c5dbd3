"""Labels and SSE of any rows, in the units of the centroids: here, or where they stay with an
engine, by its workers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._kmeans.assign import Labelling, assign, assign_blocks, label, sums_of
from ckm._sources import Chunk, ColumnRequest, Source, open_source
from ckm._sources.adapters import in_units
from ckm._sources.blocks import Block, split_blocks
from ckm._sources.engines.base import Job, Labeller, PartitionedSource
from ckm._util.arrays import Array, FloatArray
from ckm._util.checks import check_nan_policy
from ckm._util.parallel import thread_count
from ckm.errors import MismatchError, ParameterError


def open_for(
    data: Any, columns: tuple[str, ...] | None, n: int, made: str, where: str = "The data"
) -> Source:
    """The rows of `data`, with the columns that centroids of dimension n were made from, whatever
    their order.
    """
    source = open_source(data, ColumnRequest(like=columns, made=made))
    if source.n_features != n:
        raise MismatchError(
            f"{where} has {source.n_features} columns where {made} has {n}; give the data it was made for."
        )
    return source


@dataclass(frozen=True)
class Clusters:
    """Centroids in the data's own units, and the units that distances count in, where there are
    some.
    """

    centroids: Array
    units: Array | None = None
    nan: str = "error"
    n_jobs: int | None = None

    @property
    def _measured(self) -> Array:
        return self.centroids if self.units is None else self.centroids / self.units

    def label(self, source: Source) -> Any:
        """Each row's nearest centroid; for a cluster's data a collection of its own, with labels or
        with rows and labels.
        """
        if isinstance(source, PartitionedSource):
            return source.label_rows(self._for_workers(source))
        return label(self._here(source), self._measured, thread_count(self.n_jobs), self.nan)

    def sse(self, source: Source) -> float:
        """The sum of squared distances to the nearest centroid, weighted."""
        if isinstance(source, PartitionedSource):
            return float(measure_partitions(source, self._for_workers(source)).sse.sum())
        return assign(
            self._here(source), self._measured, n_threads=thread_count(self.n_jobs), nan=self.nan
        )[1]

    def _for_workers(self, source: Source) -> "NearestCentroid":
        return NearestCentroid(
            self._measured, self.units, source.columns, check_nan_policy(self.nan)
        )

    def _here(self, source: Source) -> Source:
        if check_nan_policy(self.nan) == "drop" and source.is_on_gpu:
            raise ParameterError(
                "Rows on a card are labelled there, which takes nan='error' only; drop such rows first."
            )
        return in_units(source, self.units)


@dataclass(frozen=True)
class NearestCentroid(Labeller):
    """Gives each row to its nearest centroid; rows are divided by `units` first, where there are
    some, as the centroids were.
    """

    centroids: Array
    units: Array | None = None
    columns: tuple[str, ...] | None = None
    nan: str = "error"

    def __call__(self, chunks: Iterator[Chunk]) -> Array:
        return np.concatenate(
            [np.empty(0, np.int32), *(labels for _, labels, _ in self.blocks(chunks))]
        )

    def blocks(self, chunks: Iterator[Chunk]) -> Iterator[tuple[Block, Array, Array]]:
        """(block, labels, squared distances), block by block."""
        measured = (
            chunks
            if self.units is None
            else (chunk._replace(rows=chunk.rows / self.units) for chunk in chunks)
        )
        return assign_blocks(split_blocks(measured), self.centroids, 1, self.columns, self.nan)


@dataclass(frozen=True)
class MeasureJob(Job):
    """The rows, their weight and their SSE, for each cluster: three numbers each."""

    nearest: NearestCentroid

    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> FloatArray:
        """What one partition adds, of shape (3, 1 + K)."""
        K = len(self.nearest.centroids)
        found = np.zeros((3, 1 + K))
        for block, labels, squares in self.nearest.blocks(chunks):
            found += sums_of(block, labels, squares, K)
        return found

    def merge(self, parts: Sequence[FloatArray]) -> FloatArray:
        """What several add."""
        total: FloatArray = np.sum(parts, axis=0)
        return total


def measure_partitions(source: PartitionedSource, nearest: NearestCentroid) -> Labelling:
    """Rows, weight and SSE of each cluster, from one more pass by the engine."""
    return Labelling.of(source.run(MeasureJob(nearest)))
