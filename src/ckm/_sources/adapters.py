"""Sources around sources: weights given beside the rows, rows with missing values left out, columns
in other units, rows of unit length.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ckm._core.preparation import Preparation, prepared
from ckm._messages import Argument
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.sampling import pair_weights
from ckm._sources.unit_rows import unit_rows
from ckm._util.arrays import BoolArray, FloatArray, IntArray
from ckm._util.checks import COSINE
from ckm._util.sparse import SparseRows
from ckm.errors import NonFiniteError, ParameterError

# Each attempt to sample rows without missing values draws eight times as many as the one before.
_SAMPLE_ATTEMPTS = 3
_SAMPLE_GROWTH = 8


class Adapter(Source):
    """A source with the attributes of the source inside."""

    def __init__(self, source: Source) -> None:
        self.inside = source
        self.columns = source.columns
        self.n_features = source.n_features
        self.n_rows = source.n_rows
        self.n_bytes = source.n_bytes
        self.parts = source.parts
        self.files = source.files
        self.is_rereadable = source.is_rereadable
        self.can_prefetch = source.can_prefetch
        self.device = source.device
        self.settings = source.settings
        self.is_sparse = source.is_sparse
        self.categories = source.categories

    def first_rows(self, size: int) -> Any:
        return self.inside.first_rows(size)

    def prefer_chunk_rows(self, rows: int) -> None:
        self.inside.prefer_chunk_rows(rows)

    def stay_sparse(self) -> bool:
        self.is_sparse = self.inside.stay_sparse()
        return self.is_sparse

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        return self.inside.sample_rows(size, rng, weights)


class Weighted(Adapter):
    """The rows of a source with a weight for each, in order."""

    def __init__(self, source: Source, weights: FloatArray) -> None:
        super().__init__(source)
        self._weights = weights

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        if start.part:
            raise ParameterError(
                "Reading cannot continue in the middle of files whose weights are given beside "
                "them; use ",
                Argument("weight_column", ...),
                ".",
            )
        return pair_weights(self.inside.chunks(start), self._weights, start.row)

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        return self.inside.sample_rows(size, rng, self._weights)


class WithoutMissing(Adapter):
    """The rows of a source without those with a missing value (NaN, null) or a missing weight.

    `n_rows` is then an upper bound.

    Attributes
    ----------
    first : str
        The place of the first row of the latest pass that was left out, for messages; empty if
        there is none.
    """

    first: str = ""

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        self.first = ""
        for chunk in self.inside.chunks(start):
            kept = ~_is_missing(chunk)
            if kept.all():
                yield chunk
                continue
            if not self.first:
                self.first = self._describe_place(chunk, int(np.argmin(kept)))
            yield chunk.where(kept)

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        """Draw rows without missing values; more of them if most have some."""
        for attempt in range(_SAMPLE_ATTEMPTS):
            drawn = size * _SAMPLE_GROWTH**attempt
            rows, beta = self.inside.sample_rows(drawn, rng, weights)
            kept = ~_is_missing(Chunk(rows, beta))
            if kept.sum() >= size / 2 or len(rows) < drawn:
                break
        return self._draw([Chunk(rows[kept], beta[kept])], size, rng)

    def _describe_place(self, chunk: Chunk, row: int) -> str:
        """Describe the first missing value of a row, for the middle of a sentence."""
        is_float = chunk.rows.dtype.kind == "f"
        values = np.asarray(chunk.rows[row : row + 1])[0]
        missing = np.isnan(values) if is_float else np.zeros(self.n_features, bool)
        if not missing.any():
            return f"the weight of row {chunk.row_numbers()[row]}"
        error = NonFiniteError(0, int(np.argmax(missing)), np.nan)
        place = chunk.locate_error(error, row, self.columns).place()
        return place[:1].lower() + place[1:]


class SomeColumns(Adapter):
    """The rows of a source without some of its columns.

    Parameters
    ----------
    source : Source
        The rows, whose columns have names.
    kept : int64 array (j,)
        The numbers of the columns that are left.
    """

    def __init__(self, source: Source, kept: IntArray) -> None:
        super().__init__(source)
        self._kept = kept
        self.n_features = len(kept)
        if source.columns is not None:
            self.columns = tuple(source.columns[j] for j in kept)

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for chunk in self.inside.chunks(start):
            yield chunk._replace(rows=chunk.rows[:, self._kept])

    def first_rows(self, size: int) -> Any:
        rows = self.inside.first_rows(size)
        return None if rows is None else rows[:, self._kept]

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        rows, drawn = self.inside.sample_rows(size, rng, weights)
        return rows[:, self._kept], drawn


class InUnits(Adapter):
    """The rows of a source with each column divided by its unit."""

    def __init__(self, source: Source, units: FloatArray) -> None:
        super().__init__(source)
        self._units = units

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        return divide_by_units(self.inside.chunks(start), self._units)

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        rows, drawn = self.inside.sample_rows(size, rng, weights)
        return rows / self._units, drawn


class Prepared(Adapter):
    """The rows of a source with their columns prepared (`ckm._core.preparation`)."""

    def __init__(self, source: Source, preparation: Preparation) -> None:
        super().__init__(source)
        self._preparation = preparation
        self.is_sparse = False

    def stay_sparse(self) -> bool:
        return False

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        return prepare_chunks(self.inside.chunks(start), self._preparation)

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        rows, drawn = self.inside.sample_rows(size, rng, weights)
        return self._preparation.apply(rows), drawn

    def first_rows(self, size: int) -> Any:
        rows = self.inside.first_rows(size)
        return None if rows is None else self._preparation.apply(rows)


def in_preparation(source: Source, preparation: Preparation | None) -> Source:
    """Return the source with its columns prepared; the source itself if nothing changes."""
    if preparation is None or not preparation.changes_rows:
        return source
    return Prepared(source, preparation)


def prepare_chunks(chunks: Iterable[Chunk], preparation: Preparation | None) -> Iterator[Chunk]:
    """Yield chunks with their rows prepared."""
    return (chunk._replace(rows=prepared(chunk.rows, preparation)) for chunk in chunks)


class Imputed(Adapter):
    """The rows of a source with a value for each missing one.

    Parameters
    ----------
    source : Source
        The rows.
    values : float64 array (n,)
        What stands for missing values of each column.

    Attributes
    ----------
    rows, values_filled : int
        How many rows of the latest pass lacked values, and how many values.
    """

    rows: int = 0
    values_filled: int = 0

    def __init__(self, source: Source, values: FloatArray) -> None:
        super().__init__(source)
        self._values = values

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        self.rows = 0
        self.values_filled = 0
        for chunk in self.inside.chunks(start):
            rows = np.asarray(chunk.rows)
            missing = np.isnan(rows) if rows.dtype.kind == "f" else np.zeros(rows.shape, bool)
            if not missing.any():
                yield chunk
                continue
            self.rows += int(missing.any(axis=1).sum())
            self.values_filled += int(missing.sum())
            yield chunk._replace(rows=np.where(missing, self._values, rows))

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        rows, drawn = self.inside.sample_rows(size, rng, weights)
        return np.where(np.isnan(rows), self._values, rows), drawn


def in_units(source: Source, units: FloatArray | None) -> Source:
    """Return the source with its columns in these units; the source itself if they are None."""
    return source if units is None else InUnits(source, units)


def divide_by_units(chunks: Iterable[Chunk], units: FloatArray) -> Iterator[Chunk]:
    """Divide each column by its unit."""
    return (chunk._replace(rows=chunk.rows / units) for chunk in chunks)


class UnitRows(Adapter):
    """The rows of a source, each divided by its length (`ckm._sources.unit_rows`)."""

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        return measured_chunks(self.inside.chunks(start), COSINE)

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        rows, drawn = self.inside.sample_rows(size, rng, weights)
        return unit_rows(rows), drawn


def in_metric(source: Source, metric: str) -> Source:
    """Return the source with its rows as a metric measures them: unit rows for "cosine"."""
    return UnitRows(source) if metric == COSINE else source


def measured_chunks(chunks: Iterable[Chunk], metric: str) -> Iterator[Chunk]:
    """Yield chunks with their rows as a metric measures them."""
    return (chunk._replace(rows=measured_rows(chunk.rows, metric)) for chunk in chunks)


def measured_rows(rows: Any, metric: str) -> Any:
    """Return rows as a metric measures them: divided by their lengths for "cosine"."""
    return unit_rows(rows) if metric == COSINE else rows


def _is_missing(chunk: Chunk) -> BoolArray:
    """Which rows lack a value or their weight."""
    missing = np.zeros(len(chunk.rows), bool)
    if isinstance(chunk.rows, SparseRows):
        missing |= chunk.rows.any_where(np.isnan(chunk.rows.values[chunk.rows.numbers()]))
    elif chunk.rows.dtype.kind == "f":
        missing |= np.isnan(chunk.rows).any(axis=1)
    if chunk.weights is not None:
        missing |= np.isnan(chunk.weights)
    return missing
