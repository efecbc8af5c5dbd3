"""What a source of rows is: something that yields chunks in bounded memory, as often as it is asked."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np

from ckm.errors import DataError
from ckm.pool import Pool
from ckm.readonly import Array

CHUNK_BYTES = 32 * 2**20


class Source(ABC):
    """Rows of one width, in chunks.

    A subclass sets the three attributes, yields float or integer arrays (b, n) from `chunks`, and overrides `sample` where it can do
    better than read everything.
    """

    columns: tuple[str, ...] | None
    n_features: int
    n_rows: int | None

    @abstractmethod
    def chunks(self) -> Iterator[Array]:
        """Every row once, in order, in pieces of about `CHUNK_BYTES`."""

    def sample(self, size: int, rng: np.random.Generator, weights: Array | None = None) -> tuple[Array, Array]:
        """At most `size` rows spread over the whole source, with their weights; all of them when there are no more.

        Rows of weight zero are never drawn. This way reads the source once.
        """
        pool = Pool.empty(size, self.n_features)
        for rows, part in with_weights(self.chunks(), weights):
            if part is not None:
                rows, part = rows[part > 0], part[part > 0]
            pool = pool + Pool.draw(rng, rows, part, size)
        return pool.rows, pool.weights if pool.complete else np.ones(len(pool))


class RandomAccessSource(Source):
    """A source that can fetch any of its rows."""

    n_rows: int

    @abstractmethod
    def take(self, indices: Array) -> Array:
        """The rows at `indices`, which are sorted, as float64."""

    def sample(self, size: int, rng: np.random.Generator, weights: Array | None = None) -> tuple[Array, Array]:
        if weights is None:
            drawn = np.sort(rng.choice(self.n_rows, min(size, self.n_rows), replace=False, shuffle=False))
            return self.take(drawn), np.ones(len(drawn))
        candidates = np.flatnonzero(weights)
        if len(candidates) <= size:
            return self.take(candidates), weights[candidates]
        keys = rng.standard_exponential(len(candidates)) / weights[candidates]  # as a pool draws
        return self.take(np.sort(candidates[np.argpartition(keys, size)[:size]])), np.ones(size)


def with_weights(chunks: Iterable[Array], weights: Array | None) -> Iterator[tuple[Array, Array | None]]:
    """Each chunk with the weights of its rows; there must be as many weights as rows."""
    start = 0
    for rows in chunks:
        part = None if weights is None else weights[start : start + len(rows)]
        start += len(rows)
        if part is not None and len(part) < len(rows):
            break
        yield rows, part
    if weights is not None and start != len(weights):
        seen = f"more than {len(weights)}" if start > len(weights) else str(start)
        raise DataError(f"sample_weight has shape {weights.shape} for {seen} rows; give one weight for each row.")


def rows_per_chunk(n_features: int) -> int:
    """How many float64 rows make a chunk."""
    return max(1024, CHUNK_BYTES // (8 * n_features))


def require_table(shape: tuple[int, ...], name: str) -> None:
    """Refuse anything but two dimensions with at least one column."""
    if len(shape) != 2:
        remedy = "X.reshape(-1, 1) makes one column of it, X.reshape(1, -1) one row" if len(shape) == 1 else "X.reshape(len(X), -1) does it"
        raise DataError(f"{name} has shape {tuple(shape)}, {len(shape)}-D; rows and columns make a table of two dimensions: {remedy}.")
    if shape[1] == 0:
        raise DataError(f"{name} has no columns (shape {tuple(shape)}); give it at least one.")


def require_numeric(dtype: np.dtype, where: str) -> None:
    """Refuse text, objects, dates and complex numbers."""
    if dtype.kind not in "biuf":
        kind = {"U": "text", "S": "text", "O": "Python objects", "c": "complex numbers", "M": "dates"}.get(dtype.kind, str(dtype))
        raise DataError(f"{where} holds {kind}, not real numbers; convert it, or leave it out with columns=[...].")
