"""Rows that come one batch after another, from the beginning: once only, or again each time they
are asked for.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ckm._sources.base import (
    BEGINNING,
    Chunk,
    Place,
    Source,
    draw_sample,
    pair_weights,
    rows_per_chunk,
)
from ckm._util.arrays import Array
from ckm._util.warn import warn_user
from ckm.errors import DataError, HeadWarning

HEAD_BYTES = 32 * 2**20  # of rows that a pilot is drawn from where they can be read once only


class Batch(NamedTuple):
    """Some rows and, where a column holds them, their weights."""

    rows: Array
    weights: Array | None = None


class StreamSource(Source):
    """Batches from `begin()`, which is called for each pass. Where they come `once`, their head is
    kept for the pilot.
    """

    def __init__(
        self,
        begin: Callable[[], Iterator[Batch]],
        n_features: int,
        columns: tuple[str, ...] | None = None,
        *,
        once: bool,
        name: str | None = None,
        n_rows: int | None = None,
        can_prefetch: bool = False,
    ) -> None:
        self.columns, self.n_features, self.n_rows, self.can_prefetch = (
            columns,
            n_features,
            n_rows,
            can_prefetch,
        )
        self.is_rereadable = not once
        self.parts = () if name is None else (name,)
        self._begin, self._name = begin, name
        self._head, self._rest = list[Chunk](), None if not once else self._numbered()
        self._complete = self._warned = self._spent = False

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for chunk in self._numbered() if self._rest is None else self._once():
            behind = start.row - chunk.start.row
            if behind <= 0:
                yield chunk
            elif behind < len(chunk.rows):
                yield chunk.where(np.arange(len(chunk.rows)) >= behind)._replace(start=start)

    def sample(
        self, size: int, rng: np.random.Generator, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """By reading everything; of what can be read once, its head."""
        if self._rest is None:
            return super().sample(size, rng, weights)
        self._fill_head(size)
        rows = sum(len(chunk.rows) for chunk in self._head)
        if not self._complete and not self._warned:
            self._warned = True
            warn_user(
                f"This data can be read once only, so the scale and the origin come from its first {rows:,} rows: the others should look "
                f"like them. Shuffle it, give what can be read again, or an earlier sketch's frequencies: ckm.sketch(..., like=).",
                HeadWarning,
            )
        head = None if weights is None else weights[:rows] if not self._complete else weights
        return draw_sample(pair_weights(self._head, head), size, self.n_features, rng)

    def _fill_head(self, size: int) -> None:
        assert self._rest is not None
        rows = sum(len(chunk.rows) for chunk in self._head)
        while not self._complete and (rows < size or rows * 8 * self.n_features < HEAD_BYTES):
            chunk = next(self._rest, None)
            self._complete = chunk is None
            if chunk is not None:
                self._head.append(chunk)
                rows += len(chunk.rows)

    def _once(self) -> Iterator[Chunk]:
        assert self._rest is not None
        if self._spent:
            raise DataError(
                "This data can be read once only, and has been; give something that can be read again (a file, a list of batches, "
                "or a function that returns them)."
            )
        self._spent = True
        while self._head:
            yield self._head.pop(0)  # and let it go
        yield from self._rest

    def _numbered(self) -> Iterator[Chunk]:
        """Batches with their places, cut where they are large."""
        row, step = 0, self._step or rows_per_chunk(self.n_features)
        for batch in self._begin():
            for low in range(0, len(batch.rows), step):
                part = slice(low, low + step)
                rows, weights = (
                    batch.rows[part],
                    None if batch.weights is None else batch.weights[part],
                )
                yield Chunk(rows, weights, Place(row=row), Place(row=row + len(rows)), self._name)
                row += len(rows)
