"""Sources around sources: weights given beside the rows, rows with missing values left out, columns
in other units.
"""

from collections.abc import Iterator

import numpy as np

from ckm._sources.base import BEGINNING, Chunk, Place, Source, draw_sample, pair_weights
from ckm._util.arrays import Array
from ckm.errors import NonFiniteError, ParameterError

_TRIES = 3


class _Around(Source):
    """Everything as in the source inside."""

    def __init__(self, source: Source) -> None:
        self.inside = source
        self.columns, self.n_features, self.n_rows, self.n_bytes = (
            source.columns,
            source.n_features,
            source.n_rows,
            source.n_bytes,
        )
        self.parts, self.is_rereadable, self.can_prefetch = (
            source.parts,
            source.is_rereadable,
            source.can_prefetch,
        )
        self.device = source.device

    def prefer_chunk_rows(self, rows: int) -> None:
        self.inside.prefer_chunk_rows(rows)


class Weighted(_Around):
    """The rows of a source with a weight for each, in order."""

    def __init__(self, source: Source, weights: Array) -> None:
        super().__init__(source)
        self._weights = weights

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        if start.part:
            raise ParameterError(
                "Reading cannot go on in the middle of files whose weights are given beside them; use weight_column=."
            )
        return pair_weights(self.inside.chunks(start), self._weights, start.row)

    def sample(
        self, size: int, rng: np.random.Generator, weights: Array | None = None
    ) -> tuple[Array, Array]:
        return self.inside.sample(size, rng, self._weights)


class WithoutMissing(_Around):
    """The rows of a source but those with a missing value (NaN, null), or a missing weight.
    `n_rows` is then an upper bound.

    `dropped` and `seen` count rows of the latest pass, and `first` is the place of the first one
    dropped.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.dropped, self.seen, self.first = 0, 0, ""

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        self.dropped, self.seen, self.first = 0, 0, ""
        for chunk in self.inside.chunks(start):
            self.seen += len(chunk.rows)
            kept = ~_missing(chunk)
            if kept.all():
                yield chunk
                continue
            if not self.dropped:
                self.first = self._place(chunk, int(np.argmin(kept)))
            self.dropped += int(len(kept) - kept.sum())
            yield chunk.where(kept)

    def sample(
        self, size: int, rng: np.random.Generator, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """Rows that are not missing; where most are, more are drawn to find some."""
        for attempt in range(_TRIES):
            drawn = size * 8**attempt
            rows, beta = self.inside.sample(drawn, rng, weights)
            kept = ~np.isnan(rows).any(axis=1) & ~np.isnan(beta)
            if kept.sum() >= size / 2 or len(rows) < drawn:
                break
        return draw_sample([Chunk(rows[kept], beta[kept])], size, self.n_features, rng)

    def _place(self, chunk: Chunk, row: int) -> str:
        missing = (
            np.isnan(chunk.rows[row])
            if chunk.rows.dtype.kind == "f"
            else np.zeros(self.n_features, bool)
        )
        if not missing.any():
            return f"the weight of row {chunk.row_numbers()[row]}"
        place = chunk.locate_error(
            NonFiniteError(0, int(np.argmax(missing)), np.nan), row, self.columns
        ).place()
        return place[:1].lower() + place[1:]


class InUnits(_Around):
    """The rows of a source with each column divided by its unit."""

    def __init__(self, source: Source, units: Array) -> None:
        super().__init__(source)
        self._units = units

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        return (
            chunk._replace(rows=chunk.rows / self._units) for chunk in self.inside.chunks(start)
        )


def in_units(source: Source, units: Array | None) -> Source:
    """The source, with its columns in these units where there are some."""
    return source if units is None else InUnits(source, units)


def _missing(chunk: Chunk) -> Array:
    """Which rows lack a value or their weight."""
    missing = np.zeros(len(chunk.rows), bool)
    if chunk.rows.dtype.kind == "f":
        missing |= np.isnan(chunk.rows).any(axis=1)
    if chunk.weights is not None:
        missing |= np.isnan(chunk.weights)
    return missing
