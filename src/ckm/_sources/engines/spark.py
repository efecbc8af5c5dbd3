"""Spark: data frames, classic and Connect, through `mapInArrow`; one result a partition, and labels
as a column.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

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
_PART = "part binary"
# tasks that merge in the first round, where Spark does not tell how many results there are
_UNCOUNTED = 8


class SparkSource(PartitionedSource):
    """The partitions of a data frame; or `files`, each of which is a partition of one row, its
    number.
    """

    engine = "Spark"

    def __init__(self, frame: Any, reader: PartitionReader, files: Files | None = None) -> None:
        super().__init__(reader)
        self._frame, self._files = frame, files

    def with_reader(self, reader: PartitionReader) -> Self:
        return type(self)(self._frame, reader, self._files)

    @cached_property
    def n_partitions(self) -> int | None:  # type: ignore[override]
        """How many there are, which Connect does not tell."""
        return int(self._frame.rdd.getNumPartitions()) if hasattr(self._frame, "_jdf") else None

    def _run(self, job: Job, which: Array | None) -> bytes | None:
        """One result a partition, which later stages merge, `FAN_IN` or so a task: the driver
        collects the last alone.
        """
        reader, files, choice = (
            self.reader,
            self._files,
            None if which is None else frozenset(map(int, which)),
        )

        def each(batches: Iterator[Any]) -> Iterator[Any]:
            number = _number()
            if choice is None or number in choice:
                data = batches if files is None else files.named(_numbers(batches))
                yield _table(job.of_partition(number, reader.chunks(f"partition {number}", data)))

        def merge(batches: Iterator[Any]) -> Iterator[Any]:
            parts = _parts(batches)
            if parts:
                yield _table(job.merge(parts))

        def finish(batches: Iterator[Any]) -> Iterator[Any]:
            parts = _parts(batches)
            if parts:
                yield _table(job.finish(job.merge(parts)))

        results = self._columns().mapInArrow(each, _PART)
        for width in _widths(self.n_partitions):
            results = results.repartition(width).mapInArrow(merge, _PART)
        rows = results.repartition(1).mapInArrow(finish, _PART).collect()
        return bytes(rows[0]["part"]) if rows else None

    def label_rows(self, labeller: Labeller) -> Any:
        """The data frame with one more column, `cluster`."""
        reader, choice = self.reader, self.reader.choice
        assert choice is not None

        def label(*columns: pa.Array) -> pa.Array:  # Spark reads these types
            batch = pa.RecordBatch.from_arrays(list(columns), choice.names)
            return pa.array(labeller(reader.chunks("a batch", [batch])), pa.int32())

        names = (_column(self._frame, name) for name in choice.names)
        return self._frame.withColumn(LABEL, F.arrow_udf(label, T.IntegerType())(*names))

    def _columns(self) -> Any:
        """The columns that are used: readers need not read the others."""
        choice = self.reader.choice
        return (
            self._frame
            if choice is None or self._files
            else self._frame.select(*(_column(self._frame, name) for name in choice.all))
        )


def open_data(data: Any, request: ColumnRequest) -> SparkSource:
    """The rows of a data frame: its columns of numbers, or one column of vectors or arrays."""
    frame = data.to_spark() if hasattr(type(data), "to_spark") else data  # pandas on Spark
    fields = frame.schema.fields
    present = [(field.name, _words(field.dataType)) for field in fields]
    matrix = choose_matrix(
        request, present, [field.name for field in fields if _is_matrix(field.dataType)]
    )
    if matrix is None:
        choice = choose(request, present, "the Spark data frame")
        return SparkSource(frame, PartitionReader(len(choice.names), choice))
    first = frame.select(F.size(_column(frame, matrix)).alias("width")).head(1)
    if not first or first[0]["width"] < 1:
        raise DataError(
            f"Column {matrix!r} has no first row to tell its width from; give the data frame some rows, or plain columns."
        )
    return SparkSource(
        frame,
        PartitionReader(
            int(first[0]["width"]), ColumnChoice([matrix], request.weight), matrix=True
        ),
    )


def open_files(paths: Sequence[str], reader: PartitionReader, address: str | None) -> SparkSource:
    """Files that the workers can read, each of them a partition; `address` is the master's, or a
    Connect server's (sc://...).
    """
    if address is None or address.startswith("local"):
        # Spark would take the first python3 it finds
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    if address is not None:
        builder = (
            builder.remote(address) if address.startswith("sc://") else builder.master(address)
        )
    session = builder.getOrCreate()
    return SparkSource(session.range(0, len(paths), 1, len(paths)), reader, Files(tuple(paths)))


def _widths(partitions: int | None) -> list[int]:
    """How many results each round of merging leaves, but for the last; where partitions are not
    counted, as for many.
    """
    if partitions is None:
        return [_UNCOUNTED]
    widths = list[int]()
    while partitions > FAN_IN:
        partitions = -(-partitions // FAN_IN)
        widths.append(partitions)
    return widths


def _column(frame: Any, name: str) -> Any:
    """A column, whatever its name; vectors become arrays, which Arrow knows."""
    column = frame["`" + name.replace("`", "``") + "`"]
    if not _is_vector(frame.schema[name].dataType):
        return column
    from pyspark.ml.functions import vector_to_array

    return vector_to_array(column).alias(name)


def _words(kind: Any) -> str | None:
    if isinstance(kind, (T.NumericType, T.BooleanType)):
        return None
    return (
        "text"
        if isinstance(kind, T.StringType)
        else "vectors"
        if _is_vector(kind)
        else kind.simpleString()
    )


def _is_vector(kind: Any) -> bool:
    return type(kind).__name__ == "VectorUDT"


def _is_matrix(kind: Any) -> bool:
    return _is_vector(kind) or (
        isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.NumericType)
    )


# What follows runs on workers.


def _number() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _numbers(batches: Iterable[Any]) -> Iterator[int]:
    return (number for batch in batches for number in batch.column("id").to_pylist())


def _table(part: bytes) -> Any:
    return pa.RecordBatch.from_pydict({"part": pa.array([part], pa.binary())})


def _parts(batches: Iterable[Any]) -> list[bytes]:
    return [part for batch in batches for part in batch.column("part").to_pylist()]
