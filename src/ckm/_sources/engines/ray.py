"""Ray: datasets, through `map_batches`. Blocks are read, added up and released as they stream."""

import os
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import ray

from ckm._sources.arrow import describe_schema
from ckm._sources.base import Chunk
from ckm._sources.column_request import ColumnChoice, ColumnRequest
from ckm._sources.columns import choose, choose_matrix
from ckm._sources.engines.base import (
    FAN_IN,
    LABEL,
    EngineTable,
    Files,
    Job,
    Labeller,
    PartitionReader,
    from_bytes,
    to_bytes,
)
from ckm._sources.engines.losses import NO_WORKERS_SECONDS, POLL_SECONDS, Patience, lost_workers
from ckm._sources.settings import ReadSettings
from ckm._util.arrays import IntArray
from ckm.errors import CkmError, DataError

_BLOCK = "a block"  # the name of each block in errors, since Ray does not number them
_HASHED_ROWS = 64  # rows from which the number of a block is made
# What Ray raises once it does not repeat tasks any more, or not even its own processes are left.
_LOSSES = (
    ray.exceptions.LocalRayletDiedError,
    ray.exceptions.NodeDiedError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.OutOfMemoryError,
    ray.exceptions.RaySystemError,
    ray.exceptions.WorkerCrashedError,
)


class RaySource(EngineTable):
    """The blocks of a dataset; or `files`, each of which is a block of one row, its number."""

    engine = "Ray"

    def __init__(self, data: Any, reader: PartitionReader, files: Files | None = None) -> None:
        super().__init__(data, reader, files)
        self.n_partitions = None if files is None else len(files.paths)

    def tasks_at_a_time(self) -> int:
        return max(1, int(ray.cluster_resources().get("CPU", 0)))

    def _run(self, job: Job, which: IntArray | None) -> Any:
        """Compute a result per block, then build a tree of tasks that merge `FAN_IN` tables each.

        The driver gets the root of the tree alone. `which` is for files: blocks of other data have
        no numbers, and all of them are used.
        """
        table = self._used_columns()
        if self._files is not None and which is not None:
            table = _numbers(map(int, which))
        return _watch(lambda: self._compute(table, job))

    def _compute(self, table: Any, job: Job) -> Any:
        sent = ray.put(job)
        partition = _Partition(job, self.reader, self._files)
        results = _map_blocks(table, partition).to_arrow_refs()
        merge = ray.remote(_merge)
        while len(results) > FAN_IN:
            results = [
                merge.remote(sent, *results[low : low + FAN_IN])
                for low in range(0, len(results), FAN_IN)
            ]
        return ray.get(ray.remote(_finish).remote(sent, *results)) if results else None

    def label_rows(self, labeller: Labeller) -> Any:
        """Return the dataset with one more column, `cluster`."""
        return _map_blocks(self._data, _Label(labeller, self.reader))

    def _select(self, names: Sequence[str]) -> Any:
        return self._data.select_columns(list(names))


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> RaySource:
    """Open a dataset: its columns of numbers, or one column of tensors."""
    schema = data.schema()
    if schema is None:
        raise DataError("The Ray dataset has no columns; give it at least one.")
    fields = pa.schema(
        [(name, _arrow_type(kind)) for name, kind in zip(schema.names, schema.types, strict=True)]
    )
    present = describe_schema(fields)
    tensors = [field.name for field in fields if _width(field.type)]
    matrix = choose_matrix(request, present, tensors)
    if matrix is not None:
        width = _width(fields.field(matrix).type)
        choice = ColumnChoice([matrix], request.weight)
        return RaySource(data, PartitionReader(width, choice, is_matrix=True))
    choice = choose(request, present, "the Ray dataset")
    if choice.width is not None:
        name = choice.names[0]
        first = data.select_columns([name]).take(1)
        width = choice.width or max((len(row[name]) for row in first), default=0)
        return RaySource(data, PartitionReader(width, choice, is_matrix=True))
    return RaySource(data, PartitionReader(len(choice.names), choice))


def open_files(paths: Sequence[str], reader: PartitionReader, address: str | None) -> RaySource:
    """Open files that the workers can read, each of them a block.

    `address` is the cluster's; None for the one that the environment variable RAY_ADDRESS names, or
    a new one on this machine.
    """
    if not ray.is_initialized():
        # Without an address Ray would look for a cluster that was started here, and wait for it
        # even if it is gone.
        ray.init(address=address or os.environ.get("RAY_ADDRESS", "local"), log_to_driver=False)
    numbers = ray.data.range(len(paths), override_num_blocks=len(paths))
    return RaySource(numbers, reader, Files(tuple(paths)))


def _numbers(numbers: Iterable[int]) -> Any:
    """A dataset of blocks of one number each, made here: for a few of them."""
    rows = [{"id": number} for number in numbers]
    return ray.data.from_items(rows, override_num_blocks=len(rows))


def _watch(compute: Callable[[], Any]) -> Any:
    """Run `compute` in a thread, and raise `EngineError` if the cluster loses its nodes meanwhile.

    Ray waits for other nodes forever, and cannot be told to stop; the thread is left to it.
    """
    done = Future[Any]()

    def work() -> None:
        try:
            done.set_result(compute())
        except BaseException as error:
            done.set_exception(error)

    patience = Patience("Ray", _has_nodes(), NO_WORKERS_SECONDS)
    threading.Thread(target=work, daemon=True).start()
    while not wait([done], POLL_SECONDS).done:
        patience.look(_has_nodes())
    try:
        return done.result()
    except _LOSSES as error:
        raise lost_workers("Ray", str(error)) from None


def _has_nodes() -> bool:
    """Whether any node can run tasks."""
    return bool(ray.cluster_resources().get("CPU", 0) > 0)


def _arrow_type(kind: Any) -> Any:
    """The Arrow type of a column; blocks of pandas report NumPy's types, or their own."""
    if isinstance(kind, pa.DataType):
        return kind
    try:
        return pa.from_numpy_dtype(np.dtype(kind))
    except (TypeError, pa.ArrowNotImplementedError):
        return kind.to_arrow() if hasattr(kind, "to_arrow") else pa.string()


def _width(kind: Any) -> int:
    """How many numbers each cell of a column of this type holds; 0 if that is not fixed."""
    shape = getattr(kind, "shape", None)
    if shape is not None and len(shape) == 1:
        return int(shape[0])
    return int(kind.list_size) if pa.types.is_fixed_size_list(kind) else 0


def _map_blocks(dataset: Any, function: Callable[[Any], Any]) -> Any:
    return dataset.map_batches(function, batch_size=None, batch_format="pyarrow")


# What follows runs on workers.


@dataclass(frozen=True)
class _Partition:
    """Turns the table of a block into a table with one result."""

    job: Job
    reader: PartitionReader
    files: Files | None

    def __call__(self, block: Any) -> Any:
        if self.files is not None:
            numbers = block.column("id").to_pylist()
            opened = self.reader.chunks(f"partition {numbers[0]}", self.files.with_numbers(numbers))
            return _to_table([self.job.of_partition(numbers[0], opened)])
        # A failure of the first chunk is raised within the job, which turns it into a result.
        chunks = _Started(self.reader.chunks(_BLOCK, [block]))
        return _to_table([self.job.of_partition(chunks.number, chunks)])


class _Started(Iterator[Chunk]):
    """The chunks of a block, with a number made from its first rows.

    The number is the same whenever and wherever it is computed. An error of the first chunk is
    raised by the first call of `next`; the number is then zero.
    """

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self.number = 0
        self._error: CkmError | None = None
        try:
            first = next(chunks, None)
        except CkmError as error:
            first = None
            self._error = error
        self._chunks = chunks if first is None else chain([first], chunks)
        if first is not None:
            checksum = zlib.crc32(np.ascontiguousarray(first.rows[:_HASHED_ROWS]).tobytes())
            self.number = checksum + (len(first.rows) << 32)

    def __next__(self) -> Chunk:
        if self._error is not None:
            raise self._error
        return next(self._chunks)


@dataclass(frozen=True)
class _Label:
    """Adds the column of labels to a block."""

    labeller: Labeller
    reader: PartitionReader

    def __call__(self, block: Any) -> Any:
        labels = self.labeller(self.reader.chunks(_BLOCK, [block]))
        return block.append_column(LABEL, pa.array(labels, pa.int32()))


def _to_table(results: list[Any]) -> Any:
    """A table with a pickled result in each row."""
    return pa.table({"part": pa.array([to_bytes(result) for result in results], pa.large_binary())})


def _merge_tables(job: Job, tables: Sequence[Any]) -> list[Any]:
    """The merged result of all rows of the tables, in a list; an empty list if there is no row."""
    # Ray's empty tables have no columns.
    parts = [
        from_bytes(part)
        for table in tables
        if table.num_rows
        for part in table.column("part").to_pylist()
    ]
    return [job.merge(parts)] if parts else []


def _merge(job: Job, *tables: Any) -> Any:
    return _to_table(_merge_tables(job, tables))


def _finish(job: Job, *tables: Any) -> Any:
    merged = _merge_tables(job, tables)
    return job.finish(merged[0]) if merged else None
