"""Table files that store rows in groups: the row groups of Parquet, the record batches of Arrow."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ckm._sources.arrow import ERRORS, to_batch
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.column_request import ColumnChoice
from ckm._sources.failures import unreadable
from ckm._sources.sampling import pick_parts
from ckm._sources.settings import ReadSettings
from ckm._sources.sparse import sparse_cuts
from ckm._sources.vectors import UnequalLengthsError, largest_index, with_width
from ckm._util.arrays import FloatArray
from ckm._util.sparse import SparseRows
from ckm._util.stores import FilePath, file_size, require_unchanged

# Sparse rows that are read at a time.
_SPARSE_ROWS = 4096
# Rows that are read at a time to see how long lists are.
_FIRST_LISTS = 64


class TableFile(ABC):
    """One file: its path, its columns, and how many rows each of its groups has."""

    path: FilePath
    present: list[tuple[str, str | None]]
    index: list[str]
    group_rows: list[int]
    width: int = 0  # of sparse rows, if the file says

    @abstractmethod
    def read(self, groups: Sequence[int], columns: list[str], size: int, row: int) -> Iterator[Any]:
        """Yield record batches of about `size` rows from these groups, in order.

        The first row is number `row`. Batches end at the same rows whichever group is the first.
        """


class TableSource(Source):
    """Files with the same numeric columns, read one batch at a time."""

    def __init__(
        self, files: Sequence[TableFile], choice: ColumnChoice, settings: ReadSettings
    ) -> None:
        self.settings = settings
        self._files = files
        if choice.is_sparse:
            choice = choice._replace(width=self._sparse_width(choice))
        elif choice.width == 0:
            choice = with_width(choice, self._lists(choice), str(files[0].path))
        self._choice = choice
        self.columns = choice.columns
        self.n_features = choice.n_features
        self.n_rows = sum(sum(file.group_rows) for file in files)
        self.n_bytes = sum(file_size(file.path) for file in files)
        self.parts = tuple(str(file.path) for file in files)

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for i in range(start.part, len(self._files)):
            first_row = start.row if i == start.part else 0
            ends = np.cumsum(self._files[i].group_rows)
            group = int(np.searchsorted(ends, first_row, side="right"))
            row = int(ends[group - 1]) if group else 0
            for chunk in self._read(i, range(group, len(ends)), row):
                later = chunk.without_rows_before(first_row)
                if later is not None:
                    yield later
            require_unchanged(self._files[i].path)

    def table_batches(self) -> Iterator[Any]:
        for file in self._files:
            names = [name for name, _ in file.present]
            step = self.settings.rows_per_chunk(len(names))
            try:
                yield from file.read(range(len(file.group_rows)), names, step, 0)
            except ERRORS as error:
                raise unreadable(error, str(file.path)) from error

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        """Draw rows from some groups, picked from all files."""
        if weights is not None:
            return super().sample_rows(size, rng, weights)
        groups = [
            (i, group)
            for i, file in enumerate(self._files)
            for group in range(len(file.group_rows))
        ]
        n_rows = self.n_rows or 0
        picked = pick_parts(len(groups), n_rows, size, self.n_features, rng, self.settings)
        by_file: dict[int, list[int]] = {}
        for i, group in (groups[number] for number in picked):
            by_file.setdefault(i, []).append(group)
        chunks = (chunk for i, some in by_file.items() for chunk in self._read(i, some, 0))
        try:
            return self._draw(chunks, size, rng)
        except UnequalLengthsError:
            # Reading all of them says where the first such list is.
            for _ in self.chunks():
                pass
            raise

    def stay_sparse(self) -> bool:
        self.is_sparse = self._choice.is_sparse
        return self.is_sparse

    def _sparse_width(self, choice: ColumnChoice) -> int:
        """The number of columns of sparse rows: as the files say, or one more than the largest."""
        known = {file.width for file in self._files}
        if 0 not in known:
            return max(known)
        only = choice._replace(names=choice.names[:1])
        largest = (largest_index(batch.column(0)) for batch in self._lists(only, _SPARSE_ROWS))
        return max(1, *known, 1 + max(largest, default=0))

    def _lists(self, choice: ColumnChoice, size: int = _FIRST_LISTS) -> Iterator[Any]:
        """Yield the columns of lists, whose length is not known yet."""
        for file in self._files:
            try:
                yield from file.read(range(len(file.group_rows)), choice.names, size, 0)
            except ERRORS as error:
                raise unreadable(error, str(file.path)) from error

    def _read(self, i: int, groups: Sequence[int], row: int) -> Iterator[Chunk]:
        """Yield chunks of these groups of file number `i`, whose first row is number `row`."""
        file = self._files[i]
        name = str(file.path)
        step = self.settings.rows_per_chunk(self.n_features)
        if self.is_sparse:
            step = _SPARSE_ROWS
        try:
            for batch in file.read(groups, self._choice.all, step, row):
                for low in range(0, batch.num_rows, step):
                    part = batch.slice(low, step)
                    converted = to_batch(part, self._choice, name, row)
                    for rows, weights in self._pieces(*converted):
                        after = row + len(rows)
                        yield Chunk(rows, weights, Place(i, row), Place(i, after), name)
                        row = after
        except ERRORS as error:
            raise unreadable(error, name) from error

    def _pieces(
        self, rows: Any, weights: FloatArray | None
    ) -> Iterator[tuple[Any, FloatArray | None]]:
        """Cut sparse rows into pieces of bounded memory; dense unless they stay sparse."""
        if not isinstance(rows, SparseRows):
            yield rows, weights
            return
        for low, high in sparse_cuts(rows.starts, self.settings):
            piece: Any = rows[low:high]
            beta = None if weights is None else weights[low:high]
            yield piece if self.is_sparse else np.asarray(piece), beta
