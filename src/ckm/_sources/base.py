"""What a source of rows is: something that yields chunks in bounded memory, and says where each of
them stands.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ckm._core.pool import Pool
from ckm._util.arrays import Array
from ckm.errors import DataError, NonFiniteError

CHUNK_BYTES = 8 * 2**20
_BLOCK = 2**14
_SAMPLED_BYTES = 32 * 2**20  # of rows, that a pilot may look at before it looks at parts only
_SAMPLED_PARTS = 16  # at least, however large they are


class Place(NamedTuple):
    """Where reading can go on: the number of the part (a file), how many rows of it come before,
    and its bytes where rows need them.
    """

    part: int = 0
    row: int = 0
    byte: int = 0


BEGINNING = Place()


class Chunk(NamedTuple):
    """Rows that follow each other in one part of a source, with their weights.

    `start` is the place of the first row and `after` that of the next chunk. `name` is the part's
    (None where it has none), and `numbers` the number of each row in it, where some between them
    were left out.
    """

    rows: Array
    weights: Array | None = None
    start: Place = BEGINNING
    after: Place = BEGINNING
    name: str | None = None
    numbers: Array | None = None

    def row_numbers(self) -> Array:
        """The number of each row in its part."""
        return (
            np.arange(self.start.row, self.start.row + len(self.rows))
            if self.numbers is None
            else self.numbers
        )

    def where(self, kept: Array) -> "Chunk":
        """The rows where `kept` (a mask) is true."""
        weights = None if self.weights is None else self.weights[kept]
        return self._replace(
            rows=self.rows[kept], weights=weights, numbers=self.row_numbers()[kept]
        )

    def rows_with_weight(self) -> tuple[Array, Array | None]:
        """Rows and weights, without those of weight zero."""
        if self.weights is None:
            return self.rows, None
        return self.rows[self.weights > 0], self.weights[self.weights > 0]

    def require_finite(self, columns: tuple[str, ...] | None) -> None:
        """Refuse missing and infinite values, naming the first place."""
        bad = np.argwhere(~np.isfinite(np.asarray(self.rows, np.float64)))
        if len(bad):
            row, column = map(int, bad[0])
            raise self.locate_error(
                NonFiniteError(0, column, float(self.rows[row, column])), row, columns
            )

    def locate_error(
        self, error: NonFiniteError, row: int, columns: tuple[str, ...] | None
    ) -> NonFiniteError:
        """`error`, found in row number `row` of the chunk, with its place in the source."""
        return error.placed(int(self.row_numbers()[row]), columns, self.name)


class Source(ABC):
    """Rows of one width, in chunks.

    A subclass sets the first three attributes (and the others, where their defaults are wrong),
    yields chunks of float or integer rows (b, n), and overrides `sample` where it can do better
    than read everything.

    Parameters
    ----------
    columns : tuple of str or None
        The names of the columns, where they have some.
    n_features : int
        How many there are.
    n_rows, n_bytes : int or None
        The number of rows, and of bytes to be read, where they are known without reading.
    parts : tuple of str
        The names of the parts, to which `Place.part` refers: files, for instance. Empty where there
        is one, without a name.
    is_rereadable : bool
        Whether `chunks` can be called more than once.
    can_prefetch : bool
        Whether another thread may read.
    device : torch.device or None
        The card that rows are on (`ckm._util.device.DeviceRows`), where they are not arrays.
    """

    columns: tuple[str, ...] | None
    n_features: int
    n_rows: int | None
    n_bytes: int | None = None
    parts: tuple[str, ...] = ()
    is_rereadable: bool = True
    can_prefetch: bool = True
    device: Any = None
    _step: int | None = None

    @property
    def is_on_gpu(self) -> bool:
        """Whether rows are on a card."""
        return self.device is not None

    def prefer_chunk_rows(self, rows: int) -> None:
        """Give chunks of so many rows, where that costs no copy."""
        self._step = rows

    @abstractmethod
    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        """Every row from `start` on, once, in order, in pieces of about `CHUNK_BYTES`."""

    def sample(
        self, size: int, rng: np.random.Generator, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """At most `size` rows spread over the whole source, with their weights; all of them when
        there are no more.

        Rows of weight zero are never drawn. This way reads the source once.
        """
        return draw_sample(pair_weights(self.chunks(), weights), size, self.n_features, rng)


class RandomAccessSource(Source):
    """A source in memory, that can fetch any of its rows. `weights` belong to its rows where a
    column holds them.
    """

    n_rows: int
    weights: Array | None = None

    @abstractmethod
    def rows(self, which: Array | slice) -> Array:
        """Some rows: a slice of them, or those at sorted indices."""

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        step = self._step or rows_per_chunk(self.n_features)
        for low in range(start.row, self.n_rows, step):
            high = min(low + step, self.n_rows)
            beta = None if self.weights is None else self.weights[low:high]
            yield Chunk(self.rows(slice(low, high)), beta, Place(row=low), Place(row=high))

    def sample(
        self, size: int, rng: np.random.Generator, weights: Array | None = None
    ) -> tuple[Array, Array]:
        weights = self.weights if weights is None else weights
        if weights is None:
            drawn = np.sort(
                rng.choice(self.n_rows, min(size, self.n_rows), replace=False, shuffle=False)
            )
            return np.asarray(self.rows(drawn), np.float64), np.ones(len(drawn))
        if len(weights) != self.n_rows:
            raise _wrong_number(weights, str(self.n_rows))
        candidates = np.flatnonzero(weights)
        if len(candidates) <= size:
            return np.asarray(self.rows(candidates), np.float64), weights[candidates]
        keys = rng.standard_exponential(len(candidates)) / weights[candidates]  # as a pool draws
        drawn = np.sort(candidates[np.argpartition(keys, size)[:size]])
        return np.asarray(self.rows(drawn), np.float64), np.ones(size)


def draw_sample(
    chunks: Iterable[Chunk], size: int, n_features: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """At most `size` of all the rows, by their weights; the weights are one where they have decided
    who is in.
    """
    pool = Pool.empty(size, n_features)
    for chunk in chunks:
        rows, beta = chunk.rows_with_weight()
        keys = rng.standard_exponential(len(rows)) / (1.0 if beta is None else beta)
        # Most rows are too late: only those are sorted, and copied, that may still get in.
        early = np.flatnonzero(keys < (pool.keys[-1] if len(pool) == size else np.inf))
        early = early if len(early) <= size else early[np.argpartition(keys[early], size)[:size]]
        weights = np.ones(len(early)) if beta is None else beta[early]
        pool = pool + Pool(rows[early], weights, weights, keys[early], size, len(rows))
    return pool.rows, pool.weights if pool.is_complete else np.ones(len(pool))


def pair_weights(chunks: Iterable[Chunk], weights: Array | None, row: int = 0) -> Iterator[Chunk]:
    """The chunks with the weights of their rows, of which the first is number `row`; there must be
    as many weights as rows.
    """
    if weights is None:
        yield from chunks
        return
    for chunk in chunks:
        part = weights[row : row + len(chunk.rows)]
        row += len(chunk.rows)
        if len(part) < len(chunk.rows):
            raise _wrong_number(weights, f"more than {len(weights)}")
        yield chunk._replace(weights=part)
    if row != len(weights):
        raise _wrong_number(weights, str(row))


def _wrong_number(weights: Array, rows: str) -> DataError:
    return DataError(
        f"sample_weight has shape {weights.shape} for {rows} rows; give one weight for each row."
    )


def pick_parts(
    count: int, rows: int, size: int, n_features: int, rng: np.random.Generator
) -> Array:
    """Which of `count` parts with `rows` rows in all a sample of `size` should read: some from
    everywhere, at random.

    All of them, where the rows are few; else enough to hold several times the sample, and at least
    sixteen: whole parts, so that rows sorted within each do no harm, from as many stretches, so
    that rows sorted over all of them do little.
    """
    n_picked = max(_SAMPLED_PARTS, -(-rows_to_sample(size, n_features) * count // max(rows, 1)))
    return pick_evenly(count, n_picked, rng)


def rows_to_sample(size: int, n_features: int) -> int:
    """How many rows are enough to look at for a sample of `size`."""
    return max(4 * size, _SAMPLED_BYTES // (8 * n_features))


def pick_evenly(count: int, n_picked: int, rng: np.random.Generator) -> Array:
    """`n_picked` of the numbers below `count`, one at random from each of as many equal stretches;
    all of them where they are fewer.
    """
    if n_picked >= count:
        return np.arange(count)
    edges = np.arange(n_picked + 1) * count // n_picked
    return rng.integers(edges[:-1], edges[1:])


def rows_per_chunk(n_features: int) -> int:
    """How many float64 rows make a chunk: where they are many, a whole number of the blocks that
    kernels take.
    """
    rows = CHUNK_BYTES // (8 * n_features)
    return max(256, rows - rows % _BLOCK if rows > _BLOCK else rows)


def require_table(shape: tuple[int, ...], name: str) -> None:
    """Refuse anything but two dimensions with at least one column."""
    if len(shape) != 2:
        remedy = (
            "X.reshape(-1, 1) makes one column of it, X.reshape(1, -1) one row"
            if len(shape) == 1
            else "X.reshape(len(X), -1) does it"
        )
        raise DataError(
            f"{name} has shape {tuple(shape)}, {len(shape)}-D; rows and columns make a table of two dimensions: {remedy}."
        )
    if shape[1] == 0:
        raise DataError(f"{name} has no columns (shape {tuple(shape)}); give it at least one.")


def require_numeric(dtype: np.dtype, where: str) -> None:
    """Refuse text, objects, dates and complex numbers."""
    if dtype.kind not in "biuf":
        kind = {
            "U": "text",
            "S": "text",
            "O": "Python objects",
            "c": "complex numbers",
            "M": "dates",
        }.get(dtype.kind, str(dtype))
        raise DataError(
            f"{where} holds {kind}, not real numbers; convert it first: X.astype(float), perhaps."
        )
