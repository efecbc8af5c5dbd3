"""What a source of rows is: it yields chunks in bounded memory, and each chunk knows its place."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ckm._core.categories import Categories
from ckm._sources.sampling import (
    as_sampled,
    draw_rows,
    pair_weights,
    wrong_number_of_weights,
)
from ckm._sources.settings import DEFAULT_SETTINGS, ReadSettings
from ckm._util.arrays import Array, BoolArray, FloatArray, IntArray
from ckm._util.checks import first_nonfinite
from ckm._util.sparse import SparseRows, as_sparse
from ckm._util.stores import FilePath
from ckm.errors import DataError, NonFiniteError

_KIND_NAMES = {
    "U": "text",
    "S": "text",
    "O": "Python objects",
    "c": "complex numbers",
    "M": "dates",
}


class Place(NamedTuple):
    """A place in a source from which reading can continue.

    Parameters
    ----------
    part : int
        The number of the part, such as a file.
    row : int
        How many rows of the part come before.
    byte : int
        How many bytes of the part come before, if rows are found by bytes.
    """

    part: int = 0
    row: int = 0
    byte: int = 0


BEGINNING = Place()


class Chunk(NamedTuple):
    """Consecutive rows of one part of a source, with their weights.

    Parameters
    ----------
    rows : array (b, n)
        Integers or floats, or `SparseRows` if the source stays sparse.
    weights : float64 array (b,) or None
        The weight of each row, if they have weights.
    start, after : Place
        The places of the first row and of the next chunk.
    name : str or None
        The name of the part, if it has one.
    numbers : int64 array (b,) or None
        The number of each row in its part, if rows in between were left out.
    """

    rows: Any
    weights: FloatArray | None = None
    start: Place = BEGINNING
    after: Place = BEGINNING
    name: str | None = None
    numbers: IntArray | None = None

    def row_numbers(self) -> IntArray:
        """The number of each row in its part."""
        if self.numbers is not None:
            return self.numbers
        return np.arange(self.start.row, self.start.row + len(self.rows))

    def where(self, kept: BoolArray) -> "Chunk":
        """The chunk of the rows for which the mask `kept` is true."""
        weights = None if self.weights is None else self.weights[kept]
        return self._replace(
            rows=self.rows[kept], weights=weights, numbers=self.row_numbers()[kept]
        )

    def without_rows_before(self, row: int) -> "Chunk | None":
        """The chunk from row number `row` of its part on; None if all its rows come before."""
        behind = row - self.start.row
        if behind <= 0:
            return self
        if behind >= len(self.rows):
            return None
        later = self.where(np.arange(len(self.rows)) >= behind)
        return later._replace(start=self.start._replace(row=row))

    def rows_with_weight(self) -> tuple[Array, FloatArray | None]:
        """Rows and weights, without rows of weight zero."""
        if self.weights is None:
            return self.rows, None
        return self.rows[self.weights > 0], self.weights[self.weights > 0]

    def require_finite(
        self,
        columns: tuple[str, ...] | None,
        *,
        values: Array | None = None,
        ignore_weightless: bool = False,
    ) -> None:
        """Raise `NonFiniteError` for the first missing or infinite value.

        `columns` are names for the error. `values` (b, n), computed from the rows, are checked in
        their place. With `ignore_weightless`, rows of weight zero may hold anything.
        """
        if values is None:
            is_sparse = isinstance(self.rows, SparseRows)
            values = self.rows if is_sparse else np.asarray(self.rows, np.float64)
        numbers = np.arange(len(values))
        if ignore_weightless and self.weights is not None:
            numbers = np.flatnonzero(self.weights > 0)
            values = values[numbers]
        place = first_nonfinite(values)
        if place is not None:
            row = int(numbers[place[0]])
            value = np.asarray(self.rows[row : row + 1])[0, place[1]]
            error = NonFiniteError(0, place[1], float(value))
            raise self.locate_error(error, row, columns)

    def locate_error(
        self, error: NonFiniteError, row: int, columns: tuple[str, ...] | None
    ) -> NonFiniteError:
        """Return `error`, found in row number `row` of the chunk, with its place in the source."""
        return error.placed(int(self.row_numbers()[row]), columns, self.name)


class Source(ABC):
    """Rows of one width, in chunks.

    A subclass sets the first three attributes (and others if their defaults are wrong), yields
    chunks, and overrides `sample_rows` if it need not read everything for it.

    Attributes
    ----------
    columns : tuple of str or None
        The names of the columns, if they have names.
    n_features : int
        The number of columns.
    n_rows, n_bytes : int or None
        The number of rows, and of bytes to read, if known without reading.
    parts : tuple of str
        The names of the parts, such as files, to which `Place.part` refers. Empty for a single
        part without a name.
    files : tuple of RemoteFile or path
        The files of the parts, if some of them are not on this machine.
    is_rereadable : bool
        Whether `chunks` can be called more than once.
    can_prefetch : bool
        Whether another thread may read ahead.
    is_sparse : bool
        Whether chunks have `ckm._util.sparse.SparseRows`: after `stay_sparse`.
    device : torch.device or None
        The GPU that rows are on, as `ckm._util.device.DeviceRows`; None for NumPy arrays.
    settings : ReadSettings
        How much is read at a time.
    user_cap : int or None
        How many rows of one user there are at most, if they are capped.
    categories : tuple of Category
        How the last columns were coded, if they stand for categories.
    """

    columns: tuple[str, ...] | None
    n_features: int
    n_rows: int | None
    n_bytes: int | None = None
    parts: tuple[str, ...] = ()
    files: tuple[FilePath, ...] = ()
    is_rereadable: bool = True
    can_prefetch: bool = True
    is_sparse: bool = False
    device: Any = None
    settings: ReadSettings = DEFAULT_SETTINGS
    user_cap: int | None = None
    categories: Categories = ()
    _preferred_rows: int | None = None

    @property
    def is_on_gpu(self) -> bool:
        """Whether the rows are on a GPU."""
        return self.device is not None

    @property
    def chunk_rows(self) -> int:
        """The number of rows of a chunk."""
        return self._preferred_rows or self.settings.rows_per_chunk(self.n_features)

    def prefer_chunk_rows(self, rows: int) -> None:
        """Ask for chunks of `rows` rows; sources that would have to copy for it ignore it."""
        self._preferred_rows = rows

    def stay_sparse(self) -> bool:
        """Ask for sparse rows as they are, in chunks of so many numbers rather than rows.

        Called before the first chunk or sample is asked for. Sources whose rows are dense return
        False, and nothing changes.
        """
        return False

    @abstractmethod
    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        """Yield every row from `start` on, once, in order.

        Parameters
        ----------
        start : Place
            Where to begin: the `after` of an earlier chunk.

        Yields
        ------
        Chunk
            About `settings.chunk_bytes` of rows.
        """

    def table_batches(self) -> Iterator[Any] | None:
        """All columns of a table, those that hold no numbers included, as Arrow record batches or
        tables in order; None if the source is no table, or cannot give them.
        """
        return None

    def first_rows(self, size: int) -> Any:
        """The first rows, at most `size` of them, if they can be read without being used up."""
        if not self.is_rereadable:
            return None
        first = next(iter(self.chunks()), None)
        return None if first is None else first.rows[:size]

    def sample(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Draw rows from all over the source, as float64.

        Parameters
        ----------
        size : int
            The number of rows to draw.
        rng : numpy.random.Generator
            Decides which.
        weights : float64 array (N,), optional
            A weight for each row. Rows of weight zero are never drawn.

        Returns
        -------
        rows : float64 array (s, n)
            s = `size`, or all rows if there are fewer.
        weights : float64 array (s,)
            One each if fewer rows than all were drawn, since weights decided which.
        """
        rows, drawn = self.sample_rows(size, rng, weights)
        return np.asarray(rows, np.float64), drawn

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        """Draw the rows of `sample`, in the precision of the data: float32 stays float32.

        This implementation reads the source once.

        Returns
        -------
        rows : float32 or float64 array (s, n), or SparseRows
            Sparse if the source stays sparse.
        weights : float64 array (s,)
            As in `sample`.
        """
        return self._draw(pair_weights(self.chunks(), weights), size, rng)

    def _draw(
        self, chunks: Iterable[Chunk], size: int, rng: np.random.Generator
    ) -> tuple[Any, FloatArray]:
        """Draw `size` rows of some chunks of this source."""
        rows, weights = draw_rows(chunks, size, self.n_features, rng)
        return as_sparse(rows) if self.is_sparse else rows, weights


class RandomAccessSource(Source):
    """A source in memory that can fetch any of its rows.

    `weights` are those of its rows, if a column holds them.
    """

    n_rows: int
    weights: FloatArray | None = None

    @abstractmethod
    def rows(self, which: IntArray | slice) -> Array:
        """Fetch some rows: a slice, or those at sorted indices."""

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        step = self.chunk_rows
        for low in range(start.row, self.n_rows, step):
            high = min(low + step, self.n_rows)
            beta = None if self.weights is None else self.weights[low:high]
            yield Chunk(self.rows(slice(low, high)), beta, Place(row=low), Place(row=high))

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        drawn, drawn_weights = self._draw_numbers(size, rng, weights)
        return as_sampled(self.rows(drawn)), drawn_weights

    def _draw_numbers(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None
    ) -> tuple[IntArray, FloatArray]:
        """The numbers of `size` rows, in increasing order, and the weights of the sample."""
        weights = self.weights if weights is None else weights
        if weights is None:
            n_drawn = min(size, self.n_rows)
            drawn = np.sort(rng.choice(self.n_rows, n_drawn, replace=False, shuffle=False))
            return drawn, np.ones(len(drawn))
        if len(weights) != self.n_rows:
            raise wrong_number_of_weights(weights, str(self.n_rows))
        candidates = np.flatnonzero(weights)
        if len(candidates) <= size:
            return candidates, weights[candidates]
        # Keys as in a pool: the smallest ones are a sample with probabilities that follow weights.
        keys = rng.standard_exponential(len(candidates)) / weights[candidates]
        return np.sort(candidates[np.argpartition(keys, size)[:size]]), np.ones(size)


def require_table(shape: tuple[int, ...], name: str) -> None:
    """Raise `DataError` unless `shape` has two dimensions and at least one column."""
    if len(shape) != 2:
        remedy = "X.reshape(len(X), -1) does it"
        if len(shape) == 1:
            remedy = "X.reshape(-1, 1) makes one column of it, X.reshape(1, -1) one row"
        raise DataError(
            f"{name} has shape {tuple(shape)}, {len(shape)}-D; rows and columns make a table of "
            f"two dimensions: {remedy}."
        )
    if shape[1] == 0:
        raise DataError(f"{name} has no columns (shape {tuple(shape)}); give it at least one.")


def require_numeric(dtype: np.dtype, where: str) -> None:
    """Raise `DataError` for text, objects, dates and complex numbers."""
    if dtype.kind not in "biuf":
        kind = _KIND_NAMES.get(dtype.kind, str(dtype))
        raise DataError(
            f"{where} holds {kind}, not real numbers; convert it first, for example with "
            "X.astype(float)."
        )
