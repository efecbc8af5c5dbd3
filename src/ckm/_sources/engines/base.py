"""Data that an engine (Dask, Spark, Ray) holds in partitions: work is sent to the rows.

A `Job` says what workers compute; a `PartitionedSource` runs it on its engine. Results are Python
objects, which engines pickle.
"""

import pickle
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Self

from ckm import errors
from ckm._core.preparation import Preparation
from ckm._sources.adapters import WithoutMissing, in_preparation
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.column_request import ColumnChoice, ColumnRequest
from ckm._sources.prefetch import read
from ckm._sources.streaming import Batch, StreamSource
from ckm._util.arrays import IntArray, LabelArray
from ckm._util.warn import warn_user
from ckm.errors import CkmError, DataError

# Results that one task merges: two rounds for 4096 partitions, three for 262 144.
FAN_IN = 64
# The name of the column of labels that engines with tables add.
LABEL = "cluster"


class Job(ABC):
    """What workers compute: a result per partition, merged results, and the final result.

    All three methods run on workers, perhaps more than once, since engines repeat lost tasks: they
    must be pure. A job and its results are pickled; a result is never None.
    """

    @abstractmethod
    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> Any:
        """Compute the result of one partition; no other partition has its `number`."""

    @abstractmethod
    def merge(self, parts: Sequence[Any]) -> Any:
        """Merge results, at least one, that come in any order."""

    def finish(self, merged: Any) -> Any:
        """Compute what is sent to the driver from the merged result of all partitions."""
        return merged


class Labeller(ABC):
    """Labels the rows of a partition on a worker; it is pickled."""

    @abstractmethod
    def __call__(self, chunks: Iterator[Chunk]) -> LabelArray:
        """Compute the labels of all rows, in order."""


@dataclass(frozen=True)
class Failure:
    """The result of a partition that raised `error`."""

    error: CkmError
    partition: int

    @property
    def order(self) -> tuple[int, str, str]:
        """The key by which the same failure is reported whichever worker is first."""
        return self.partition, type(self.error).__name__, str(self.error)


@dataclass(frozen=True)
class GuardedJob(Job):
    """A job whose errors are results.

    Engines would repeat a task that fails each time, and wrap its error in their own traceback.
    """

    inside: Job

    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> Any:
        """The result of the job inside, or a `Failure`."""
        try:
            return self.inside.of_partition(number, chunks)
        except CkmError as error:
            return Failure(error, number)

    def merge(self, parts: Sequence[Any]) -> Any:
        """The merged results, or the failure of the first partition that failed."""
        failures = [part for part in parts if isinstance(part, Failure)]
        if failures:
            return min(failures, key=lambda failure: failure.order)
        return self.inside.merge(parts)

    def finish(self, merged: Any) -> Any:
        """The final result, or a `Failure`."""
        if isinstance(merged, Failure):
            return merged
        try:
            return self.inside.finish(merged)
        except CkmError as error:
            return Failure(error, 0)


def to_bytes(result: Any) -> bytes:
    """Pickle a result, for engines whose intermediate results are tables with a binary column."""
    return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)


def from_bytes(data: bytes) -> Any:
    """Unpickle what a worker of this job pickled with `to_bytes`."""
    return pickle.loads(data)


@dataclass(frozen=True)
class PartitionReader:
    """How a worker turns what its engine passes to it into rows.

    Parameters
    ----------
    n_features : int
        The number of columns to cluster.
    choice : ColumnChoice or None
        The columns of a table; None for arrays.
    is_matrix : bool
        Whether the one chosen column holds a whole row in each cell.
    drop_missing : bool
        Whether rows with missing values are left out.
    preparation : Preparation or None
        What is done to columns.
    """

    n_features: int
    choice: ColumnChoice | None = None
    is_matrix: bool = False
    drop_missing: bool = False
    preparation: Preparation | None = None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns, if they have names."""
        return None if self.choice is None or self.is_matrix else self.choice.columns

    def record(self) -> dict[str, Any]:
        """The options of `ckm.sketch` that this stands for, as a checkpoint holds them."""
        return {
            "columns": None if self.columns is None else list(self.columns),
            "weight_column": None if self.choice is None else self.choice.weight,
            "nan": "drop" if self.drop_missing else "error",
        }

    def chunks(self, name: str, batches: Iterable[Any]) -> Iterator[Chunk]:
        """Read one partition, which errors call `name`.

        Its batches are arrays, data frames, Arrow batches, rows with weights, or names of files.
        """
        nonempty = (batch for batch in batches if _length(batch))
        first = next(nonempty, None)
        if first is None:
            return
        source = self._open(first, chain([first], nonempty), name)
        if source.n_features != self.n_features:
            raise DataError(
                f"{name} has {source.n_features} columns where {self.n_features} are expected; "
                f"give partitions of one width."
            )
        complete = WithoutMissing(source) if self.drop_missing else source
        for chunk in read(in_preparation(complete, self.preparation)):
            yield chunk._replace(name=chunk.name or name)

    def _open(self, first: Any, batches: Iterator[Any], name: str) -> Source:
        """Open the batches of a partition, which are of the kind of `first`."""
        if isinstance(first, Batch):
            return StreamSource(lambda: batches, first.rows.shape[1], self.columns, once=True)
        if self.choice is None:
            return _open_batches(batches, first, ColumnRequest())
        if hasattr(first, "schema") and hasattr(first, "num_rows"):
            from ckm._sources.arrow import batches_of, matrix_batches

            convert = matrix_batches if self.is_matrix else batches_of
            converted = partial(convert, batches, self.choice, name)
            return StreamSource(converted, self.n_features, self.columns, once=True)
        request = ColumnRequest(self.choice.names, self.choice.weight)
        return _open_batches(batches, first, request)


class Files(NamedTuple):
    """Files that every worker can read; the engine's rows are their numbers."""

    paths: tuple[str, ...]

    def with_numbers(self, numbers: Iterable[int]) -> list[str]:
        """The files with these numbers."""
        return [self.paths[number] for number in numbers]


class Description(NamedTuple):
    """How to read partitions, as a worker found out, and the warnings it raised on the way."""

    reader: PartitionReader
    warnings: list[tuple[str, str]]

    def emit_warnings(self) -> None:
        """Raise the worker's warnings again in this process."""
        for category, text in self.warnings:
            warn_user(text, getattr(errors, category))


def describe(batches: Iterable[Any], request: ColumnRequest) -> Description | None:
    """Find out on a worker what columns its batches have; None if there is no batch."""
    is_batch = (batch for batch in batches if not isinstance(batch, (list, tuple)) or batch)
    first = next(is_batch, None)
    if first is None:
        return None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source = _open_batches(iter([first]), first, request)
    ours = [
        (type(found.message).__name__, found.message.args[0])
        for found in caught
        if isinstance(found.message, Warning) and type(found.message).__module__ == errors.__name__
    ]
    choice = None
    if source.columns is not None:
        choice = ColumnChoice(list(source.columns), request.weight)
    return Description(PartitionReader(source.n_features, choice), ours)


def _open_batches(batches: Iterator[Any], first: Any, request: ColumnRequest) -> Source:
    """Open batches, or names of files, which are of the kind of `first`."""
    from ckm._sources import open_source

    return open_source(list(batches) if isinstance(first, str) else batches, request)


def _length(batch: Any) -> int:
    """The number of rows of a batch; of a file name, any positive number."""
    if isinstance(batch, Batch):
        return len(batch.rows)
    return int(batch.shape[0]) if hasattr(batch, "shape") else len(batch)


class PartitionedSource(Source):
    """Rows that stay with an engine, which runs jobs on them and labels them.

    Parameters
    ----------
    reader : PartitionReader
        How workers read partitions.
    n_rows : int or None
        The number of rows, if known without reading.

    Attributes
    ----------
    engine : str
        The name of the engine, for messages.
    n_partitions : int or None
        The number of partitions; None if only the engine knows.
    """

    engine: str
    n_partitions: int | None = None
    can_prefetch = False

    def __init__(self, reader: PartitionReader, n_rows: int | None = None) -> None:
        self.reader = reader
        self.n_features = reader.n_features
        self.columns = reader.columns
        self.n_rows = n_rows

    @abstractmethod
    def with_reader(self, reader: PartitionReader) -> Self:
        """Return the same rows, read in another way."""

    @abstractmethod
    def tasks_at_a_time(self) -> int:
        """How many tasks the workers run at a time, as far as the engine says now."""

    @abstractmethod
    def label_rows(self, labeller: Labeller) -> Any:
        """Return a collection of the engine with the label of each row, computed by workers."""

    @abstractmethod
    def _run(self, job: Job, which: IntArray | None) -> Any:
        """Compute the final result of all partitions, or of those with the numbers `which`.

        None if there are no partitions.
        """

    def run(self, job: Job, which: IntArray | None = None) -> Any:
        """Run a job on the workers.

        Parameters
        ----------
        job : Job
            What to compute.
        which : int64 array, optional
            The numbers of the partitions to use. By default all.

        Returns
        -------
        object
            What `job.finish` returns; for no partition at all, as for one without rows.

        Raises
        ------
        CkmError
            The error of the first partition that failed.
        EngineError
            If the engine lost workers and gave up.
        """
        guarded = GuardedJob(job)
        result = self._run(guarded, which)
        if result is None:
            result = guarded.finish(guarded.merge([guarded.of_partition(0, iter(()))]))
        if isinstance(result, Failure):
            raise result.error
        return result

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        """Refuse, since it would move every row to this process."""
        raise DataError(
            f"These rows stay with {self.engine}, which can sketch, fit, predict and score them; "
            f"for anything else bring them here first, or write them to files."
        )


class EngineTable(PartitionedSource):
    """A table of an engine; or `files`, each of which is a partition of one row, its number."""

    def __init__(self, data: Any, reader: PartitionReader, files: Files | None = None) -> None:
        super().__init__(reader)
        self._data = data
        self._files = files
        self.parts = () if files is None else files.paths

    def with_reader(self, reader: PartitionReader) -> Self:
        return type(self)(self._data, reader, self._files)

    @abstractmethod
    def _select(self, names: Sequence[str]) -> Any:
        """The table with these columns alone."""

    def _used_columns(self) -> Any:
        """The table without columns that are not used, so that none of them is read."""
        if self.reader.choice is None or self._files:
            return self._data
        return self._select(self.reader.choice.all)
