"""Labels and SSE of rows that stay with an engine, computed by its workers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ckm.assignment import Labelling, assign_blocks
from ckm.readonly import Array
from ckm.runners.local import Block, blocks_of
from ckm.sources import Chunk
from ckm.sources.partitioned import Job, Labeller, PartitionedSource


@dataclass(frozen=True)
class NearestCentroid(Labeller):
    """Gives each row to its nearest centroid; rows are divided by `units` first, where there are some, as the centroids were."""

    centroids: Array
    units: Array | None = None
    columns: tuple[str, ...] | None = None

    def __call__(self, chunks: Iterator[Chunk]) -> Array:
        return np.concatenate([np.empty(0, np.int32), *(labels for _, labels, _ in self.blocks(chunks))])

    def blocks(self, chunks: Iterator[Chunk]) -> Iterator[tuple[Block, Array, Array]]:
        """(block, labels, squared distances), block by block."""
        measured = chunks if self.units is None else (chunk._replace(rows=chunk.rows / self.units) for chunk in chunks)
        return assign_blocks(blocks_of(measured), self.centroids, 1, self.columns)


@dataclass(frozen=True)
class MeasureJob(Job):
    """The rows, their weight and their SSE, for each cluster: three numbers each."""

    nearest: NearestCentroid

    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> bytes:
        """What one partition adds."""
        K = len(self.nearest.centroids)
        found = np.zeros((3, K))
        for block, labels, squares in self.nearest.blocks(chunks):
            beta = np.ones(len(labels)) if block.weights is None else block.weights
            found += [np.bincount(labels, values, minlength=K) for values in (np.ones(len(labels)), beta, beta * squares)]
        return b"=" + found.tobytes()

    def merge(self, parts: Sequence[bytes]) -> bytes:
        """What several add."""
        found: Array = np.sum([np.frombuffer(part[1:]) for part in parts], axis=0)
        return b"=" + found.tobytes()


def measure_partitions(source: PartitionedSource, nearest: NearestCentroid) -> Labelling:
    """Rows, weight and SSE of each cluster, from one more pass by the engine."""
    counts, mass, sse = np.frombuffer(source.run(MeasureJob(nearest))[1:]).reshape(3, -1)
    return Labelling(counts.astype(np.int64), mass, sse)
