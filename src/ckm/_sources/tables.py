"""Table files in which some rows are stored together: the row groups of Parquet, the record batches
of Arrow.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ckm._sources.arrow import ERRORS, to_batch, unreadable
from ckm._sources.base import (
    BEGINNING,
    Chunk,
    Place,
    Source,
    draw_sample,
    pick_parts,
    rows_per_chunk,
)
from ckm._sources.columns import ColumnChoice
from ckm._util.arrays import Array


class TableFile(ABC):
    """One file: its path, and how many rows each of its groups has."""

    path: Path
    group_rows: list[int]

    @abstractmethod
    def read(self, groups: Sequence[int], columns: list[str], size: int) -> Iterator[Any]:
        """Record batches of about `size` rows from these groups, in order."""


class TableSource(Source):
    """Files with the same numeric columns, read one batch at a time."""

    def __init__(self, files: Sequence[TableFile], choice: ColumnChoice) -> None:
        self._files, self._choice = files, choice
        self.columns = choice.columns
        self.n_features = len(choice.names)
        self.n_rows = sum(sum(file.group_rows) for file in files)
        self.n_bytes = sum(file.path.stat().st_size for file in files)
        self.parts = tuple(str(file.path) for file in files)

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for i in range(start.part, len(self._files)):
            ends = np.cumsum(self._files[i].group_rows)
            before = start.row if i == start.part else 0
            first = int(np.searchsorted(ends, before, side="right"))
            row = int(ends[first - 1]) if first else 0
            for chunk in self._read(i, range(first, len(ends)), row):
                behind = before - chunk.start.row
                if behind <= 0:
                    yield chunk
                elif behind < len(chunk.rows):
                    yield chunk.where(np.arange(len(chunk.rows)) >= behind)._replace(
                        start=Place(i, before)
                    )

    def sample(
        self, size: int, rng: np.random.Generator, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """From some groups, spread over all files."""
        if weights is not None:
            return super().sample(size, rng, weights)
        groups = [
            (i, group)
            for i, file in enumerate(self._files)
            for group in range(len(file.group_rows))
        ]
        picked = pick_parts(len(groups), self.n_rows or 0, size, self.n_features, rng)
        by_file: dict[int, list[int]] = {}
        for i, group in (groups[number] for number in picked):
            by_file.setdefault(i, []).append(group)
        chunks = (chunk for i, some in by_file.items() for chunk in self._read(i, some, 0))
        return draw_sample(chunks, size, self.n_features, rng)

    def _read(self, i: int, groups: Sequence[int], row: int) -> Iterator[Chunk]:
        """Chunks of these groups of file number `i`, of which the first row is number `row`."""
        file, step = self._files[i], rows_per_chunk(self.n_features)
        try:
            for batch in file.read(groups, self._choice.all, step):
                for low in range(0, batch.num_rows, step):
                    rows, weights = to_batch(
                        batch.slice(low, step), self._choice, str(file.path), row
                    )
                    yield Chunk(
                        rows, weights, Place(i, row), Place(i, row + len(rows)), str(file.path)
                    )
                    row += len(rows)
        except ERRORS as error:
            raise unreadable(error, str(file.path)) from error
