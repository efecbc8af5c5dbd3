"""Ray: datasets, through `map_batches`. Blocks are read, added up and let go as they stream past."""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
import pyarrow as pa
import ray

from ckm._sources.arrow import held
from ckm._sources.base import Chunk
from ckm._sources.columns import ColumnChoice, ColumnRequest, choose, choose_matrix
from ckm._sources.engines.base import (
    FAN_IN,
    Files,
    Job,
    Labeller,
    PartitionedSource,
    PartitionReader,
)
from ckm._util.arrays import Array
from ckm.errors import DataError

LABEL = "cluster"  # the column that labels go to
_BLOCK = "a block"  # Ray does not number them
_NAMED = 64  # rows that a block is told from others by


class RaySource(PartitionedSource):
    """The blocks of a dataset; or `files`, each of which is a block of one row, its number."""

    engine = "Ray"

    def __init__(self, dataset: Any, reader: PartitionReader, files: Files | None = None) -> None:
        super().__init__(reader)
        self._dataset, self._files = dataset, files

    def with_reader(self, reader: PartitionReader) -> Self:
        return type(self)(self._dataset, reader, self._files)

    def _run(self, job: Job, which: Array | None) -> bytes | None:
        """A result for each block, then a tree of tasks that merge `FAN_IN` tables of them: the
        driver asks for its root alone.
        """
        sent = ray.put(job)
        results = _mapped(
            self._narrowed(), _Partition(job, self.reader, self._files)
        ).to_arrow_refs()
        merge = ray.remote(_merge)
        while len(results) > FAN_IN:
            results = [
                merge.remote(sent, *results[low : low + FAN_IN])
                for low in range(0, len(results), FAN_IN)
            ]
        found: bytes | None = (
            ray.get(ray.remote(_finish).remote(sent, *results)) if results else None
        )
        return found

    def label_rows(self, labeller: Labeller) -> Any:
        """The dataset with one more column, `cluster`."""
        return _mapped(self._dataset, _Label(labeller, self.reader))

    def _narrowed(self) -> Any:
        """The dataset with the columns that are used, so that a reader need not read the others."""
        return (
            self._dataset
            if self.reader.choice is None or self._files
            else self._dataset.select_columns(self.reader.choice.all)
        )


def open_data(data: Any, request: ColumnRequest) -> RaySource:
    """The rows of a dataset: its columns of numbers, or one column of tensors."""
    schema = data.schema()
    if schema is None:
        raise DataError("The Ray dataset has no columns; give it at least one.")
    fields = pa.schema(
        [(name, _arrow_type(kind)) for name, kind in zip(schema.names, schema.types, strict=True)]
    )
    matrix = choose_matrix(
        request, held(fields), [field.name for field in fields if _width(field.type)]
    )
    if matrix is not None:
        return RaySource(
            data,
            PartitionReader(
                _width(fields.field(matrix).type),
                ColumnChoice([matrix], request.weight),
                matrix=True,
            ),
        )
    choice = choose(request, held(fields), "the Ray dataset")
    return RaySource(data, PartitionReader(len(choice.names), choice))


def open_files(paths: Sequence[str], reader: PartitionReader, address: str | None) -> RaySource:
    """Files that the workers can read, each of them a block; `address` is the cluster's, None for a
    new one on this machine (or the one that the environment variable RAY_ADDRESS names).
    """
    if not ray.is_initialized():
        # Without an address Ray would look for a cluster that was started here, and wait for it
        # even where it is gone.
        ray.init(address=address or os.environ.get("RAY_ADDRESS", "local"), log_to_driver=False)
    return RaySource(
        ray.data.range(len(paths), override_num_blocks=len(paths)), reader, Files(tuple(paths))
    )


def _arrow_type(kind: Any) -> Any:
    """The type of a column; blocks of pandas tell it in NumPy's terms, or in their own."""
    if isinstance(kind, pa.DataType):
        return kind
    try:
        return pa.from_numpy_dtype(np.dtype(kind))
    except (TypeError, pa.ArrowNotImplementedError):
        return kind.to_arrow() if hasattr(kind, "to_arrow") else pa.string()


def _width(kind: Any) -> int:
    """How many numbers each cell holds where all hold as many; 0 for other columns."""
    shape = getattr(kind, "shape", None)
    if shape is not None and len(shape) == 1:
        return int(shape[0])
    return int(kind.list_size) if pa.types.is_fixed_size_list(kind) else 0


def _mapped(dataset: Any, function: Callable[[Any], Any]) -> Any:
    return dataset.map_batches(function, batch_size=None, batch_format="pyarrow")


# What follows runs on workers.


@dataclass(frozen=True)
class _Partition:
    """Makes a table of one result from the table of a block."""

    job: Job
    reader: PartitionReader
    files: Files | None

    def __call__(self, block: Any) -> Any:
        batches: Iterable[Any] = (
            [block] if self.files is None else self.files.named(block.column("id").to_pylist())
        )
        number, chunks = _numbered(self.reader.chunks(_BLOCK, batches))
        return pa.table(
            {"part": pa.array([self.job.of_partition(number, chunks)], pa.large_binary())}
        )


def _numbered(chunks: Iterator[Chunk]) -> tuple[int, Iterator[Chunk]]:
    """A block's number, made from its first rows: the same whenever and wherever it is computed."""
    first = next(chunks, None)
    if first is None:
        return 0, iter(())
    return zlib.crc32(np.ascontiguousarray(first.rows[:_NAMED]).tobytes()) + (
        len(first.rows) << 32
    ), chain([first], chunks)


@dataclass(frozen=True)
class _Label:
    """Adds the column of labels to a block."""

    labeller: Labeller
    reader: PartitionReader

    def __call__(self, block: Any) -> Any:
        return block.append_column(
            LABEL, pa.array(self.labeller(self.reader.chunks(_BLOCK, [block])), pa.int32())
        )


def _merge(job: Job, *tables: Any) -> Any:
    # Ray's empty ones have no columns
    parts = [
        part for table in tables if table.num_rows for part in table.column("part").to_pylist()
    ]
    return pa.table({"part": pa.array([job.merge(parts)] if parts else [], pa.large_binary())})


def _finish(job: Job, *tables: Any) -> bytes | None:
    merged = _merge(job, *tables).column("part").to_pylist()
    return job.finish(merged[0]) if merged else None
