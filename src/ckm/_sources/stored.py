"""Arrays on disk (`.npy`, HDF5, Zarr), one after another, read a slice at a time."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ckm._sources.base import BEGINNING, Chunk, Place, Source, require_numeric, require_table
from ckm._sources.failures import is_failed_request, unreadable
from ckm._sources.sampling import pick_parts
from ckm._sources.settings import ReadSettings
from ckm._util.address import is_address
from ckm._util.arrays import Array, FloatArray, IntArray
from ckm._util.stores import FilePath, require_unchanged
from ckm.errors import DataError, InputFileError

# The rows that a sample may read are cut into this many runs.
_SAMPLED_RUNS = 256


class Stored(Protocol):
    """A two-dimensional array of which rows can be fetched."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers."""

    def __getitem__(self, rows: slice, /) -> Array: ...


class Part(NamedTuple):
    """An array, its name and its bytes.

    `together` is the number of rows that are stored together; 1 if rows can be read from anywhere
    at no extra cost. `file` is the file it is in, unless it was opened elsewhere.
    """

    array: Stored
    name: str
    n_bytes: int
    together: int = 1
    file: FilePath | None = None


class _Run(NamedTuple):
    """Rows `low` to `high` of an array."""

    part: int
    low: int
    high: int


class StoredSource(Source):
    """Rows of arrays of the same width.

    A chunk is in memory at a time, or the rows that are stored together.
    """

    n_rows: int

    def __init__(self, parts: Sequence[Part], settings: ReadSettings) -> None:
        width = parts[0].array.shape[1:]
        for part in parts:
            require_table(part.array.shape, part.name)
            require_numeric(part.array.dtype, part.name)
            if part.array.shape[1:] != width:
                raise DataError(
                    f"{part.name} has {part.array.shape[1]} columns where {parts[0].name} has "
                    f"{width[0]}; give arrays of one width."
                )
        self.settings = settings
        self._parts = parts
        self.columns = None
        self.n_features = width[0]
        self.n_rows = sum(part.array.shape[0] for part in parts)
        self.n_bytes = sum(part.n_bytes for part in parts)
        self.parts = tuple(part.name for part in parts)

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        step = self.settings.rows_per_chunk(self.n_features)
        for i in range(start.part, len(self._parts)):
            first = start.row if i == start.part else 0
            starts = self._starts(i, step)
            for low in starts[first // starts.step :]:
                run = self._run(i, low, starts)
                if run.high > first:
                    yield self._fetch(run._replace(low=max(low, first)))
            file = self._parts[i].file
            if file is not None:
                require_unchanged(file)

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        """Draw rows from runs of rows all over the arrays."""
        if weights is not None:
            return super().sample_rows(size, rng, weights)
        n = self.n_features
        step = max(1, self.settings.rows_to_sample(size, n) // _SAMPLED_RUNS)
        ends = np.cumsum([len(self._starts(i, step)) for i in range(len(self._parts))])
        picked = pick_parts(int(ends[-1]), self.n_rows, size, n, rng, self.settings)
        return self._draw(map(self._fetch, self._runs(picked, ends, step)), size, rng)

    def _runs(self, numbers: IntArray, ends: IntArray, step: int) -> Iterator[_Run]:
        """Yield the runs with these numbers, counted over all arrays."""
        for number in numbers:
            i = int(np.searchsorted(ends, number, side="right"))
            starts = self._starts(i, step)
            yield self._run(i, starts[int(number - ends[i])], starts)

    def _starts(self, i: int, step: int) -> range:
        """Where runs of about `step` rows of an array begin: where stored pieces do."""
        part = self._parts[i]
        return range(0, part.array.shape[0], max(part.together, step - step % part.together))

    def _run(self, i: int, low: int, starts: range) -> _Run:
        return _Run(i, low, min(low + starts.step, starts.stop))

    def _fetch(self, run: _Run) -> Chunk:
        """Read the rows of a run."""
        part = self._parts[run.part]
        try:
            rows = np.asarray(part.array[run.low : run.high])
        except InputFileError:
            raise
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            if is_failed_request(error) and is_address(part.name):
                raise unreadable(error, part.name) from None
            raise InputFileError(
                f"Cannot read rows {run.low} to {run.high} of {part.name}: {error}; check the file."
            ) from error
        if len(rows) != run.high - run.low:
            raise InputFileError(
                f"{part.name} ends after {run.low + len(rows)} of {part.array.shape[0]} rows; it "
                f"was cut while it was read."
            )
        return Chunk(rows, None, Place(run.part, run.low), Place(run.part, run.high), part.name)


def pick_inner(
    path: FilePath, inner: str | None, found: Sequence[str], tables: Sequence[str], what: str
) -> str:
    """Pick an array inside a file: the one called `inner`, otherwise the only table of numbers.

    `found` are all arrays, `tables` those that are tables of numbers, and `what` is the format's
    word for an array.
    """
    if inner is not None:
        if inner.strip("/") not in found:
            raise InputFileError(
                f"{path} has no {what} {inner.strip('/')!r}; it has {', '.join(found) or 'none'}."
            )
        return inner.strip("/")
    if len(tables) == 1:
        return tables[0]
    there = f"no {what} that is a table of numbers"
    if tables:
        there = f"{what}s that are tables of numbers: {', '.join(tables)}"
    example = tables[0] if tables else "name"
    raise InputFileError(f"{path} has {there}; name one, as {path}::{example}.")


def is_table_of_numbers(array: Stored) -> bool:
    """Whether an array has two dimensions and holds numbers."""
    return len(array.shape) == 2 and array.dtype.kind in "biuf"
