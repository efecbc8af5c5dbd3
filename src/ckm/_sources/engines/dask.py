"""Dask: arrays, data frames and bags of batches, on whichever scheduler is in use (threads,
processes, distributed).
"""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import dask
import numpy as np

from ckm._sources.base import require_numeric, require_table
from ckm._sources.columns import ColumnRequest
from ckm._sources.engines.base import (
    FAN_IN,
    Description,
    Job,
    Labeller,
    PartitionedSource,
    PartitionReader,
    describe,
)
from ckm._sources.paths import needed
from ckm._util.arrays import Array
from ckm.errors import DataError


class DaskSource(PartitionedSource):
    """Partitions that are delayed values: arrays, data frames, or lists of batches. Chunks stay
    where they are.
    """

    engine = "Dask"

    def __init__(
        self,
        partitions: Sequence[Any],
        reader: PartitionReader,
        lengths: Sequence[int] | None = None,
    ) -> None:
        super().__init__(reader, None if lengths is None else sum(lengths))
        self._partitions, self._lengths, self.n_partitions = partitions, lengths, len(partitions)

    def with_reader(self, reader: PartitionReader) -> Self:
        return type(self)(self._partitions, reader, None if reader.drop_missing else self._lengths)

    def _run(self, job: Job, which: Array | None) -> bytes | None:
        """A tree of tasks, each merging `FAN_IN` results: the driver asks for its root alone."""
        numbers = range(len(self._partitions)) if which is None else which
        sent, of, merge = (
            dask.delayed(job, traverse=False),
            dask.delayed(_partition),
            dask.delayed(_merge),
        )
        level = [of(sent, self.reader, int(number), self._partitions[number]) for number in numbers]
        while len(level) > 1:
            level = [merge(sent, level[low : low + FAN_IN]) for low in range(0, len(level), FAN_IN)]
        return None if not level else dask.compute(dask.delayed(_finish)(sent, level[0]))[0]

    def label_rows(self, labeller: Labeller) -> Any:
        """A dask array of labels, with the chunks of the rows; their lengths are nan where only
        Dask knows them.
        """
        import dask.array as da

        sent, label = dask.delayed(labeller, traverse=False), dask.delayed(_label)
        lengths = [np.nan] * len(self._partitions) if self._lengths is None else self._lengths
        parts = [
            label(sent, self.reader, number, part) for number, part in enumerate(self._partitions)
        ]
        arrays = [
            da.from_delayed(part, (length,), np.int32)
            for part, length in zip(parts, lengths, strict=True)
        ]
        return (
            da.concatenate(arrays, allow_unknown_chunksizes=True)
            if arrays
            else da.empty((0,), dtype=np.int32)
        )


def open_data(data: Any, request: ColumnRequest) -> DaskSource:
    """The rows of a dask array, data frame, or bag of batches."""
    kind = next(kind.__name__ for kind in type(data).__mro__ if kind.__name__ in _OPENERS)
    return _OPENERS[kind](data, request)


def open_files(paths: Sequence[str], reader: PartitionReader, address: str | None) -> DaskSource:
    """Files that the workers can read, each of them a partition; `address` is the scheduler's, None
    for the threads of this process.
    """
    if address is not None:
        distributed = needed(
            "distributed", "files by a Dask cluster", "pip install 'compressive-kmeans[dask]'"
        )
        distributed.Client(address)  # which becomes the scheduler in use
    return DaskSource([dask.delayed([path], traverse=False) for path in paths], reader)


def _open_array(array: Any, request: ColumnRequest) -> DaskSource:
    require_table(array.shape, "The dask array")
    require_numeric(array.dtype, "The dask array")
    request.refuse_names("A dask array")
    array = array.rechunk({1: -1}) if len(array.chunks[1]) > 1 else array
    lengths = None if np.isnan(array.chunks[0]).any() else list(array.chunks[0])
    return DaskSource(list(array.to_delayed()[:, 0]), PartitionReader(array.shape[1]), lengths)


def _open_frame(frame: Any, request: ColumnRequest) -> DaskSource:
    from ckm._sources.frames import as_frame, choose_columns

    empty = as_frame(frame._meta)
    assert empty is not None
    choice = choose_columns(empty, request)
    return DaskSource(frame[choice.all].to_delayed(), PartitionReader(len(choice.names), choice))


def _open_bag(bag: Any, request: ColumnRequest) -> DaskSource:
    """The first partition that has a batch tells a worker, and the worker tells us, what columns
    there are.
    """
    partitions, ask = bag.to_delayed(), dask.delayed(_describe)
    for partition in partitions:
        found = dask.compute(ask(partition, request))[0]
        if found is not None:
            return DaskSource(partitions, found.told())
    raise DataError(
        "The bag has no batch, so its columns are not known; give at least one (it may have no rows)."
    )


_OPENERS = {"Array": _open_array, "DataFrame": _open_frame, "Bag": _open_bag}


# What follows runs on workers.


def _batches(partition: Any) -> Iterable[Any]:
    """A partition as batches: an array or a data frame is one."""
    return [partition] if hasattr(partition, "shape") else partition


def _describe(partition: Any, request: ColumnRequest) -> Description | None:
    return describe(_batches(partition), request)


def _partition(job: Job, reader: PartitionReader, number: int, partition: Any) -> bytes:
    return job.of_partition(number, reader.chunks(f"partition {number}", _batches(partition)))


def _merge(job: Job, parts: Sequence[bytes]) -> bytes:
    return job.merge(parts)


def _finish(job: Job, merged: bytes) -> bytes:
    return job.finish(merged)


def _label(labeller: Labeller, reader: PartitionReader, number: int, partition: Any) -> Array:
    return labeller(reader.chunks(f"partition {number}", _batches(partition)))
