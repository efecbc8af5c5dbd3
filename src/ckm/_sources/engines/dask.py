"""Dask: arrays, data frames and bags of batches, on any scheduler."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Self

import dask
import numpy as np

from ckm._sources.base import require_numeric, require_table
from ckm._sources.column_request import ColumnRequest
from ckm._sources.engines.base import (
    FAN_IN,
    Description,
    Job,
    Labeller,
    PartitionedSource,
    PartitionReader,
    describe,
)
from ckm._sources.engines.losses import NO_WORKERS_SECONDS, POLL_SECONDS, Patience, lost_workers
from ckm._sources.paths import import_optional
from ckm._sources.settings import ReadSettings
from ckm._util.arrays import IntArray, LabelArray
from ckm.errors import DataError


class DaskSource(PartitionedSource):
    """Partitions that are delayed values: arrays, data frames, or lists of batches."""

    engine = "Dask"

    def __init__(
        self,
        partitions: Sequence[Any],
        reader: PartitionReader,
        lengths: Sequence[int] | None = None,
        parts: tuple[str, ...] = (),
    ) -> None:
        super().__init__(reader, None if lengths is None else sum(lengths))
        self.parts = parts
        self._partitions = partitions
        self._lengths = lengths
        self.n_partitions = len(partitions)

    def with_reader(self, reader: PartitionReader) -> Self:
        lengths = None if reader.drop_missing else self._lengths
        return type(self)(self._partitions, reader, lengths, self.parts)

    def tasks_at_a_time(self) -> int:
        client = _client()
        if client is None:
            return int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)
        return max(1, int(sum(client.nthreads().values())))

    def _run(self, job: Job, which: IntArray | None) -> Any:
        """Build a tree of tasks, each merging `FAN_IN` results; the driver gets its root alone."""
        numbers = range(len(self._partitions)) if which is None else which
        sent = dask.delayed(job, traverse=False)
        of_partition = dask.delayed(_of_partition)
        merge = dask.delayed(_merge)
        level = [
            of_partition(sent, self.reader, int(number), self._partitions[number])
            for number in numbers
        ]
        while len(level) > 1:
            level = [merge(sent, level[low : low + FAN_IN]) for low in range(0, len(level), FAN_IN)]
        return None if not level else _compute(dask.delayed(_finish)(sent, level[0]))

    def label_rows(self, labeller: Labeller) -> Any:
        """Return a dask array of labels with the chunks of the rows.

        Lengths of chunks that only Dask knows are nan.
        """
        import dask.array as da

        if not self._partitions:
            return da.empty((0,), dtype=np.int32)
        sent = dask.delayed(labeller, traverse=False)
        label = dask.delayed(_label)
        lengths = [np.nan] * len(self._partitions) if self._lengths is None else self._lengths
        arrays = [
            da.from_delayed(label(sent, self.reader, number, partition), (length,), np.int32)
            for number, (partition, length) in enumerate(
                zip(self._partitions, lengths, strict=True)
            )
        ]
        return da.concatenate(arrays, allow_unknown_chunksizes=True)


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> DaskSource:
    """Open a dask array, data frame, or bag of batches."""
    kind = next(base.__name__ for base in type(data).__mro__ if base.__name__ in _OPENERS)
    return _OPENERS[kind](data, request)


def open_files(paths: Sequence[str], reader: PartitionReader, address: str | None) -> DaskSource:
    """Open files that the workers can read, each of them a partition.

    `address` is the scheduler's; None for the threads of this process.
    """
    if address is not None:
        install = "pip install 'compressive-kmeans[dask]'"
        distributed = import_optional("distributed", "files by a Dask cluster", install)
        # A new client becomes the scheduler in use.
        distributed.Client(address)
    partitions = [dask.delayed([path], traverse=False) for path in paths]
    return DaskSource(partitions, reader, parts=tuple(paths))


def _open_array(array: Any, request: ColumnRequest) -> DaskSource:
    require_table(array.shape, "The dask array")
    require_numeric(array.dtype, "The dask array")
    request.refuse_names("A dask array")
    if len(array.chunks[1]) > 1:
        array = array.rechunk({1: -1})
    lengths = None if np.isnan(array.chunks[0]).any() else list(array.chunks[0])
    return DaskSource(list(array.to_delayed()[:, 0]), PartitionReader(array.shape[1]), lengths)


def _open_frame(frame: Any, request: ColumnRequest) -> DaskSource:
    from dask.dataframe.utils import make_meta

    from ckm._sources.frames import as_frame, choose_columns

    empty = as_frame(make_meta(frame))
    assert empty is not None
    choice = choose_columns(empty, request)
    if choice.width == 0:
        raise DataError(
            f"Column {choice.names[0]!r} of the Dask data frame holds lists of any length; give "
            f"lists of a fixed size, or a dask array."
        )
    return DaskSource(frame[choice.all].to_delayed(), PartitionReader(choice.n_features, choice))


def _open_bag(bag: Any, request: ColumnRequest) -> DaskSource:
    """Open a bag; a worker describes the columns of the first partition that has a batch."""
    partitions = bag.to_delayed()
    for partition in partitions:
        found = _compute(dask.delayed(_describe)(partition, request))
        if found is not None:
            found.emit_warnings()
            return DaskSource(partitions, found.reader)
    raise DataError(
        "The bag has no batch, so its columns are not known; give at least one (it may have no "
        "rows)."
    )


_OPENERS = {"Array": _open_array, "DataFrame": _open_frame, "Bag": _open_bag}


def _client() -> Any:
    """The client of the cluster in use; None for the threads or processes of this machine."""
    client = getattr(dask.base.get_scheduler(), "__self__", None)
    return client if hasattr(client, "scheduler_info") else None


def _compute(value: Any) -> Any:
    """Compute a delayed value with the scheduler in use.

    Raises `EngineError` if a cluster loses its workers; Dask would wait for others forever.
    """
    client = _client()
    if client is None:
        return dask.compute(value)[0]
    from distributed import CancelledError, KilledWorker, scheduler
    from distributed.comm import CommClosedError

    future = client.compute(value)
    try:
        _wait(client, future)
        return future.result()
    # The second is what schedulers raise that have such a limit of their own.
    except (KilledWorker, getattr(scheduler, "NoWorkerError", KilledWorker)) as error:
        raise lost_workers("Dask", str(error)) from None
    except (CancelledError, CommClosedError) as error:
        reason = f"the scheduler is gone, or dropped the work ({error})"
        raise lost_workers("Dask", reason) from None
    finally:
        # What still runs, after an error here, is not needed.
        future.release()


def _wait(client: Any, future: Any) -> None:
    """Wait until the future is done, or failed; raises if workers are gone for too long."""
    from distributed import wait

    setting = dask.config.get("distributed.scheduler.no-workers-timeout", None)
    limit = NO_WORKERS_SECONDS if setting is None else dask.utils.parse_timedelta(setting)
    patience = Patience("Dask", bool(client.scheduler_info()["workers"]), limit)
    while True:
        with suppress(TimeoutError):
            wait(future, timeout=POLL_SECONDS)
            return
        patience.look(bool(client.scheduler_info()["workers"]))


# The functions below run on workers.


def _batches(partition: Any) -> Iterable[Any]:
    """The batches of a partition: an array or a data frame is one."""
    return [partition] if hasattr(partition, "shape") else partition


def _describe(partition: Any, request: ColumnRequest) -> Description | None:
    return describe(_batches(partition), request)


def _of_partition(job: Job, reader: PartitionReader, number: int, partition: Any) -> Any:
    return job.of_partition(number, reader.chunks(f"partition {number}", _batches(partition)))


def _merge(job: Job, parts: Sequence[Any]) -> Any:
    return job.merge(parts)


def _finish(job: Job, merged: Any) -> Any:
    return job.finish(merged)


def _label(labeller: Labeller, reader: PartitionReader, number: int, partition: Any) -> LabelArray:
    return labeller(reader.chunks(f"partition {number}", _batches(partition)))
