"""Arrays on disk (`.npy`, HDF5, Zarr), one after another, read a slice at a time."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ckm._sources.base import (
    BEGINNING,
    Chunk,
    Place,
    Source,
    draw_sample,
    pick_parts,
    require_numeric,
    require_table,
    rows_per_chunk,
    rows_to_sample,
)
from ckm._util.arrays import Array
from ckm.errors import DataError, InputFileError

_RUNS = 256  # that a sample is cut from


class Stored(Protocol):
    """A two-dimensional array of which rows can be fetched."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    @property
    def dtype(self) -> np.dtype:
        """What it holds."""

    def __getitem__(self, rows: slice, /) -> Array: ...


class Part(NamedTuple):
    """An array, its name, its bytes, and how many of its rows are stored together (1: it makes no
    difference where one begins).
    """

    array: Stored
    name: str
    n_bytes: int
    together: int = 1


class _Run(NamedTuple):
    part: int
    low: int
    high: int


class StoredSource(Source):
    """Rows of one or several arrays of the same width; what is in memory is a chunk at a time, or
    what is stored together.
    """

    n_rows: int

    def __init__(self, parts: Sequence[Part]) -> None:
        for part in parts:
            require_table(part.array.shape, part.name)
            require_numeric(part.array.dtype, part.name)
            if part.array.shape[1] != parts[0].array.shape[1]:
                raise DataError(
                    f"{part.name} has {part.array.shape[1]} columns where {parts[0].name} has {parts[0].array.shape[1]}; "
                    f"give arrays of one width."
                )
        self._parts = parts
        self.columns = None
        self.n_features = parts[0].array.shape[1]
        self.n_rows = sum(part.array.shape[0] for part in parts)
        self.n_bytes = sum(part.n_bytes for part in parts)
        self.parts = tuple(part.name for part in parts)

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        step = rows_per_chunk(self.n_features)
        for i in range(start.part, len(self._parts)):
            first = start.row if i == start.part else 0
            starts = self._starts(i, step)
            for low in starts[first // starts.step :]:
                run = self._run(i, low, starts)
                if run.high > first:
                    yield self._fetch(run._replace(low=max(low, first)))

    def sample(
        self, size: int, rng: np.random.Generator, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """From runs of rows spread over the arrays."""
        if weights is not None:
            return super().sample(size, rng, weights)
        step = max(1, rows_to_sample(size, self.n_features) // _RUNS)
        ends = np.cumsum([len(self._starts(i, step)) for i in range(len(self._parts))])
        picked = pick_parts(int(ends[-1]), self.n_rows, size, self.n_features, rng)
        return draw_sample(
            map(self._fetch, self._picked(picked, ends, step)), size, self.n_features, rng
        )

    def _picked(self, picked: Array, ends: Array, step: int) -> Iterator[_Run]:
        """The runs with these numbers, counted over all arrays."""
        for number in picked:
            i = int(np.searchsorted(ends, number, side="right"))
            starts = self._starts(i, step)
            yield self._run(i, starts[int(number - ends[i])], starts)

    def _starts(self, i: int, step: int) -> range:
        """Where runs of about `step` rows of an array begin, which is where storage does."""
        part = self._parts[i]
        return range(0, part.array.shape[0], max(part.together, step - step % part.together))

    def _run(self, i: int, low: int, starts: range) -> _Run:
        return _Run(i, low, min(low + starts.step, starts.stop))

    def _fetch(self, run: _Run) -> Chunk:
        part = self._parts[run.part]
        try:
            rows = np.asarray(part.array[run.low : run.high])
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise InputFileError(
                f"Cannot read rows {run.low} to {run.high} of {part.name}: {error}; check the file."
            ) from error
        if len(rows) != run.high - run.low:
            raise InputFileError(
                f"{part.name} ends after {run.low + len(rows)} of {part.array.shape[0]} rows; it was cut while it was read."
            )
        return Chunk(rows, None, Place(run.part, run.low), Place(run.part, run.high), part.name)
