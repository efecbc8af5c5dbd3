"""Spark: data frames, classic and Connect. `mapInArrow` computes a result per partition, and an
Arrow function the column of labels.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

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
from ckm._sources.engines.losses import lost_workers
from ckm._sources.settings import ReadSettings
from ckm._util.arrays import IntArray
from ckm.errors import DataError

_SCHEMA = "part binary"  # of a table of pickled results
# What Spark's errors say if executors, Python workers or the driver's Java are gone. One class of
# error stands for these and for errors in the code of a task.
_LOSSES = (
    "ExecutorLostFailure",
    "Python worker exited unexpectedly",
    "Master removed our application",
    "SparkContext was shut down",
    "Answer from Java side is empty",
)
# Tasks of the first round of merging if the number of partitions is not known.
_DEFAULT_MERGE_TASKS = 8


class SparkSource(EngineTable):
    """The partitions of a data frame; or `files`, each of which is a partition of one row, its
    number.
    """

    engine = "Spark"

    @cached_property
    def n_partitions(self) -> int | None:  # type: ignore[override]
        """The number of partitions; None for data of Spark Connect, which does not report it."""
        if self._files is not None:
            return len(self._files.paths)
        try:
            return int(self._data.rdd.getNumPartitions())
        except PySparkException:
            return None

    def tasks_at_a_time(self) -> int:
        try:
            return int(self._data.sparkSession.sparkContext.defaultParallelism)
        except PySparkException:
            return FAN_IN  # Spark Connect does not report it

    def _run(self, job: Job, which: IntArray | None) -> Any:
        """Compute a result per partition; later stages merge about `FAN_IN` of them per task.

        The driver collects the last result alone.
        """
        reader = self.reader
        files = self._files
        numbers = None if which is None else frozenset(map(int, which))

        def of_partition(batches: Iterator[Any]) -> Iterator[Any]:
            data: Iterable[Any] = batches
            number = _partition_number()
            if files is not None:
                number = next(_file_numbers(batches))
                data = files.with_numbers([number])
            if numbers is None or number in numbers:
                chunks = reader.chunks(f"partition {number}", data)
                yield _to_table(job.of_partition(number, chunks))

        def merge(batches: Iterator[Any]) -> Iterator[Any]:
            parts = _from_tables(batches)
            if parts:
                yield _to_table(job.merge(parts))

        def finish(batches: Iterator[Any]) -> Iterator[Any]:
            parts = _from_tables(batches)
            if parts:
                yield _to_table(job.finish(job.merge(parts)))

        table, n_partitions = self._partitions_of(numbers)
        results = table.mapInArrow(of_partition, _SCHEMA)
        for width in _merge_widths(n_partitions):
            results = results.repartition(width).mapInArrow(merge, _SCHEMA)
        rows = _collect(results.repartition(1).mapInArrow(finish, _SCHEMA))
        return from_bytes(bytes(rows[0]["part"])) if rows else None

    def _partitions_of(self, numbers: frozenset[int] | None) -> tuple[Any, int | None]:
        """A table whose partitions include those with these numbers, and how many it has."""
        if self._files is None or not numbers:
            return self._used_columns(), self.n_partitions
        low = min(numbers)
        high = max(numbers) + 1
        return self._data.sparkSession.range(low, high, 1, high - low), high - low

    def label_rows(self, labeller: Labeller) -> Any:
        """Return the data frame with one more column, `cluster`."""
        reader = self.reader
        choice = self.reader.choice
        assert choice is not None

        # Spark reads the annotations of this function.
        def label(*columns: pa.Array) -> pa.Array:
            batch = pa.RecordBatch.from_arrays(list(columns), choice.names)
            return pa.array(labeller(reader.chunks("a batch", [batch])), pa.int32())

        columns = (_column(self._data, name) for name in choice.names)
        return self._data.withColumn(LABEL, F.arrow_udf(label, T.IntegerType())(*columns))

    def _select(self, names: Sequence[str]) -> Any:
        return self._data.select(*(_column(self._data, name) for name in names))


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> SparkSource:
    """Open a data frame: its columns of numbers, or one column of vectors or arrays."""
    is_pandas_on_spark = hasattr(type(data), "to_spark")
    frame = data.to_spark() if is_pandas_on_spark else data
    fields = frame.schema.fields
    present = [(field.name, _describe(field.dataType)) for field in fields]
    matrices = [field.name for field in fields if _is_matrix(field.dataType)]
    matrix = choose_matrix(request, present, matrices)
    if matrix is None:
        choice = choose(request, present, "the Spark data frame")
        return SparkSource(frame, PartitionReader(len(choice.names), choice))
    first = frame.select(F.size(_column(frame, matrix)).alias("width")).head(1)
    if not first or first[0]["width"] < 1:
        raise DataError(
            f"Column {matrix!r} has no first row to tell its width from; give the data frame some "
            f"rows, or plain columns."
        )
    choice = ColumnChoice([matrix], request.weight)
    return SparkSource(frame, PartitionReader(int(first[0]["width"]), choice, is_matrix=True))


def open_files(paths: Sequence[str], reader: PartitionReader, address: str | None) -> SparkSource:
    """Open files that the workers can read, each of them a partition.

    `address` is the master's, or that of a Connect server (sc://...).
    """
    if address is None or address.startswith("local"):
        # Spark would take the first python3 on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    if address is not None and address.startswith("sc://"):
        builder = builder.remote(address)
    elif address is not None:
        builder = builder.master(address)
    session = builder.getOrCreate()
    return SparkSource(session.range(0, len(paths), 1, len(paths)), reader, Files(tuple(paths)))


def _merge_widths(partitions: int | None) -> list[int]:
    """How many results each round of merging leaves, without the last round."""
    if partitions is None:
        return [_DEFAULT_MERGE_TASKS]
    widths = list[int]()
    while partitions > FAN_IN:
        partitions = -(-partitions // FAN_IN)
        widths.append(partitions)
    return widths


def _column(frame: Any, name: str) -> Any:
    """A column of any name; vectors become arrays, which Arrow knows."""
    column = frame["`" + name.replace("`", "``") + "`"]
    if not _is_vector(frame.schema[name].dataType):
        return column
    from pyspark.ml.functions import vector_to_array

    return vector_to_array(column).alias(name)


def _describe(kind: Any) -> str | None:
    """Describe what columns of this type hold; None for numbers."""
    if isinstance(kind, (T.NumericType, T.BooleanType)):
        return None
    if isinstance(kind, T.StringType):
        return "text"
    return "vectors" if _is_vector(kind) else kind.simpleString()


def _is_vector(kind: Any) -> bool:
    return type(kind).__name__ == "VectorUDT"


def _is_matrix(kind: Any) -> bool:
    """Whether each cell holds a whole row."""
    return _is_vector(kind) or (
        isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.NumericType)
    )


def _collect(frame: Any) -> Any:
    """Collect the rows of a data frame; raises `EngineError` if Spark gives up on its executors."""
    try:
        return frame.collect()
    except Exception as error:
        lines = str(error).splitlines()
        reason = next((line for line in lines if any(sign in line for sign in _LOSSES)), None)
        if reason is None:
            raise
        raise lost_workers("Spark", reason) from None


# What follows runs on workers.


def _partition_number() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _file_numbers(batches: Iterable[Any]) -> Iterator[int]:
    return (number for batch in batches for number in batch.column("id").to_pylist())


def _to_table(result: Any) -> Any:
    """A record batch with one pickled result."""
    return pa.RecordBatch.from_pydict({"part": pa.array([to_bytes(result)], pa.binary())})


def _from_tables(batches: Iterable[Any]) -> list[Any]:
    """The results in all rows of the record batches."""
    return [from_bytes(part) for batch in batches for part in batch.column("part").to_pylist()]
