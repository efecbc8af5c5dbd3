"""Rows that an engine (Dask, Spark, Ray) holds in partitions: work goes to the rows, and little
comes back.
"""

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, NoReturn, Self

from ckm import errors
from ckm._sources.adapters import WithoutMissing
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.columns import ColumnChoice, ColumnRequest
from ckm._sources.prefetch import read
from ckm._sources.streaming import Batch, StreamSource
from ckm._util.arrays import Array
from ckm._util.warn import warn_user
from ckm.errors import CkmError, DataError, NonFiniteError

FAN_IN = 64  # results that one task merges: two rounds for 4096 partitions, three for 262 144
_FAILED = b"!"  # what the bytes of a failure begin with; those of a result must not


class Job(ABC):
    """What a worker does with each partition, how results, which are bytes, are merged, and what is
    made of the last.

    All three run on workers, perhaps more than once, since engines run lost tasks again: they must
    be pure. A job travels, so it can be pickled.
    """

    @abstractmethod
    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> bytes:
        """The result of one partition; its number is its own."""

    @abstractmethod
    def merge(self, parts: Sequence[bytes]) -> bytes:
        """One result of several, at least one, in whatever order they come."""

    def finish(self, merged: bytes) -> bytes:
        """What is sent to the one who asks, made of the result of all partitions."""
        return merged


@dataclass(frozen=True)
class PartitionReader:
    """How a worker turns what its engine hands it into rows: the columns of a table (None for
    arrays), and whether incomplete rows go.

    Where `matrix` is true, the one column that is chosen holds a whole row in each cell.
    """

    n_features: int
    choice: ColumnChoice | None = None
    matrix: bool = False
    drop_missing: bool = False

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns, where they have some."""
        return None if self.choice is None or self.matrix else self.choice.columns

    def chunks(self, name: str, batches: Iterable[Any]) -> Iterator[Chunk]:
        """The rows of one partition, whose `name` errors give: arrays, data frames, Arrow batches,
        rows with weights, or names of files.
        """
        full = (batch for batch in batches if _length(batch))
        first = next(full, None)
        if first is None:
            return
        source = self._open(first, chain([first], full), name)
        if source.n_features != self.n_features:
            raise DataError(
                f"{name} has {source.n_features} columns where {self.n_features} are expected; give partitions of one width."
            )
        for chunk in read(WithoutMissing(source) if self.drop_missing else source):
            yield chunk._replace(name=chunk.name or name)

    def _open(self, first: Any, batches: Iterator[Any], name: str) -> Source:
        if isinstance(first, Batch):
            return StreamSource(lambda: batches, first.rows.shape[1], self.columns, once=True)
        if self.choice is not None and hasattr(first, "schema") and hasattr(first, "num_rows"):
            from ckm._sources.arrow import batches_of, matrix_batches

            made = partial(
                matrix_batches if self.matrix else batches_of, batches, self.choice, name
            )
            return StreamSource(made, self.n_features, self.columns, once=True)
        return _opened(
            batches,
            first,
            ColumnRequest()
            if self.choice is None
            else ColumnRequest(self.choice.names, self.choice.weight),
        )


class Files(NamedTuple):
    """Files that every worker can read, where an engine's rows are their numbers."""

    paths: tuple[str, ...]

    def named(self, numbers: Iterable[int]) -> list[str]:
        """The files with these numbers."""
        return [self.paths[number] for number in numbers]


class Description(NamedTuple):
    """How to open partitions, as the first that has something found out, and what there was to say
    about it.
    """

    reader: PartitionReader
    said: list[tuple[str, str]]

    def told(self) -> PartitionReader:
        """The reader, once its warnings are given."""
        for category, sentence in self.said:
            warn_user(sentence, getattr(errors, category))
        return self.reader


def describe(batches: Iterable[Any], request: ColumnRequest) -> Description | None:
    """What the columns of some batches are, found by a worker that has them; None where there is no
    batch.
    """
    first = next(
        (batch for batch in batches if not isinstance(batch, (list, tuple)) or batch), None
    )
    if first is None:
        return None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source = _opened(iter([first]), first, request)
    said = [
        (type(w.message).__name__, str(w.message))
        for w in caught
        if type(w.message).__module__ == errors.__name__
    ]
    choice = None if source.columns is None else ColumnChoice(list(source.columns), request.weight)
    return Description(PartitionReader(source.n_features, choice), said)


def _opened(batches: Iterator[Any], first: Any, request: ColumnRequest) -> Source:
    from ckm._sources import open_source

    return open_source(list(batches) if isinstance(first, str) else batches, request)


class PartitionedSource(Source):
    """Rows that stay where an engine holds them. A subclass runs jobs on its engine and labels rows
    there.

    `engine` is its name in sentences, and `n_partitions` is None where only the engine knows.
    """

    engine: str
    reader: PartitionReader
    n_partitions: int | None = None
    can_prefetch = False

    def __init__(self, reader: PartitionReader, n_rows: int | None = None) -> None:
        self.reader, self.n_features, self.columns, self.n_rows = (
            reader,
            reader.n_features,
            reader.columns,
            n_rows,
        )

    @abstractmethod
    def with_reader(self, reader: PartitionReader) -> Self:
        """The same rows, opened in another way."""

    @abstractmethod
    def label_rows(self, labeller: "Labeller") -> Any:
        """A collection of the engine's own with the label of each row, computed where the rows are."""

    @abstractmethod
    def _run(self, job: Job, which: Array | None) -> bytes | None:
        """The merged and finished result of all partitions, or of those that `which` numbers; None
        where there are none.
        """

    def run(self, job: Job, which: Array | None = None) -> bytes:
        """What `job` makes of all partitions, or of some of them."""
        guarded = _Guarded(job)
        result = self._run(guarded, which)
        if result is None:
            result = guarded.finish(guarded.merge([guarded.of_partition(0, iter(()))]))
        if result.startswith(_FAILED):
            _raise(result)
        return result

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        """Refused: it would move every row."""
        raise DataError(
            f"These rows stay with {self.engine}, which can sketch, fit, predict and score them; for anything else bring them here first, "
            f"or write them to files."
        )


class Labeller(ABC):
    """Labels rows where they are; it travels, so it can be pickled."""

    @abstractmethod
    def __call__(self, chunks: Iterator[Chunk]) -> Array:
        """The labels (int32) of all rows, in order."""


class _Guarded(Job):
    """A job whose failures are results too: engines would try again what fails again, and wrap the
    sentence in tracebacks of their own.
    """

    def __init__(self, inside: Job) -> None:
        self._inside = inside

    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> bytes:
        try:
            return self._inside.of_partition(number, chunks)
        except CkmError as error:
            return _failure(error, number)

    def merge(self, parts: Sequence[bytes]) -> bytes:
        failures = [part for part in parts if part.startswith(_FAILED)]
        return min(failures) if failures else self._inside.merge(parts)

    def finish(self, merged: bytes) -> bytes:
        try:
            return merged if merged.startswith(_FAILED) else self._inside.finish(merged)
        except CkmError as error:
            return _failure(error, 0)


def _failure(error: CkmError, number: int) -> bytes:
    """The error as bytes that sort by the number of the partition."""
    arguments = error.__reduce__()[1] if isinstance(error, NonFiniteError) else (str(error),)
    return _FAILED + b"%020d" % number + json.dumps([type(error).__name__, arguments]).encode()


def _raise(failure: bytes) -> NoReturn:
    name, arguments = json.loads(failure[len(_FAILED) + 20 :])
    raise getattr(errors, name)(*arguments)


def _length(batch: Any) -> int:
    if isinstance(batch, Batch):
        return len(batch.rows)
    return int(batch.shape[0]) if hasattr(batch, "shape") else len(batch)
