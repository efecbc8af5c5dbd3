"""Rows that come one batch after another from the beginning: once only, or again for each pass."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ckm._messages import Argument, Message
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.sampling import pair_weights
from ckm._sources.settings import DEFAULT_SETTINGS, SPARSE_NUMBER_BYTES, ReadSettings
from ckm._sources.sparse import sparse_cuts
from ckm._util.arrays import FloatArray
from ckm._util.sparse import SparseRows, as_sparse
from ckm._util.warn import warn_user
from ckm.errors import DataError, HeadWarning


class Batch(NamedTuple):
    """Some rows, perhaps sparse, and, if a column holds them, their weights."""

    rows: Any
    weights: FloatArray | None = None


class StreamSource(Source):
    """Rows of the batches that a function returns.

    Parameters
    ----------
    read_batches : callable
        Returns an iterator of batches; called for each pass.
    n_features : int
        The number of columns.
    columns : tuple of str, optional
        Their names.
    once : bool
        Whether the batches can be read only once. Their head is then kept for the sample.
    name : str, optional
        The name of the data in errors.
    can_prefetch : bool
        Whether another thread may read.
    may_stay_sparse : bool
        Whether batches are of sparse rows.
    settings : ReadSettings
        How much is read at a time.
    """

    def __init__(
        self,
        read_batches: Callable[[], Iterator[Batch]],
        n_features: int,
        columns: tuple[str, ...] | None = None,
        *,
        once: bool,
        name: str | None = None,
        can_prefetch: bool = False,
        may_stay_sparse: bool = False,
        settings: ReadSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.columns = columns
        self.n_features = n_features
        self.n_rows = None
        self.can_prefetch = can_prefetch
        self.is_rereadable = not once
        self.parts = () if name is None else (name,)
        self.settings = settings
        self._read_batches = read_batches
        self._may_stay_sparse = may_stay_sparse
        self._name = name
        self._head = list[Chunk]()
        self._rest = self._numbered() if once else None
        self._is_complete = False
        self._has_warned = False
        self._is_spent = False

    def stay_sparse(self) -> bool:
        if self._may_stay_sparse:
            self.is_sparse = True
            self._head = [chunk._replace(rows=as_sparse(chunk.rows)) for chunk in self._head]
        return self.is_sparse

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for chunk in self._numbered() if self._rest is None else self._read_once():
            later = chunk.without_rows_before(start.row)
            if later is not None:
                yield later

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        """Draw rows from everything; if it can be read only once, from its head."""
        if self._rest is None:
            return super().sample_rows(size, rng, weights)
        self._fill_head(size)
        rows = sum(len(chunk.rows) for chunk in self._head)
        if not self._is_complete:
            self._warn_of_head(rows)
            weights = None if weights is None else weights[:rows]
        return self._draw(pair_weights(self._head, weights), size, rng)

    def first_rows(self, size: int) -> Any:
        if self._rest is None:
            return super().first_rows(size)
        self._fill_head(size)
        return self._head[0].rows[:size] if self._head else None

    def _warn_of_head(self, rows: int) -> None:
        """Warn once that a sample comes from the first rows only."""
        if self._has_warned:
            return
        self._has_warned = True
        message = Message(
            f"This data can be read once only, so the scale and the origin come from its first "
            f"{rows:,} rows: the others should look like them. Shuffle it, give what can be read "
            f"again, or an earlier sketch's frequencies: ",
            Argument("like", ..., function="ckm.sketch"),
            ".",
        )
        warn_user(message, HeadWarning)

    def _fill_head(self, size: int) -> None:
        """Read ahead until the head holds `size` rows and `settings.head_bytes`."""
        assert self._rest is not None
        enough = self.settings.head_bytes
        rows = sum(len(chunk.rows) for chunk in self._head)
        n_bytes = sum(_bytes_of(chunk.rows) for chunk in self._head)
        while not self._is_complete and (rows < size or n_bytes < enough):
            chunk = next(self._rest, None)
            self._is_complete = chunk is None
            if chunk is not None:
                self._head.append(chunk)
                rows += len(chunk.rows)
                n_bytes += _bytes_of(chunk.rows)

    def _read_once(self) -> Iterator[Chunk]:
        """Yield the head, then the rest; raise `DataError` the second time."""
        assert self._rest is not None
        if self._is_spent:
            raise DataError(
                "This data can be read once only, and has been; give something that can be read "
                "again (a file, a list of batches, or a function that returns them)."
            )
        self._is_spent = True
        while self._head:
            # Popped, so that its memory is released.
            yield self._head.pop(0)
        yield from self._rest

    def _numbered(self) -> Iterator[Chunk]:
        """Yield batches with their places, cut if they are large."""
        row = 0
        for batch in self._read_batches():
            table = as_sparse(batch.rows) if self.is_sparse else batch.rows
            for low, high in self._cuts(table):
                rows = table[low:high]
                if isinstance(rows, SparseRows) and not self.is_sparse:
                    rows = np.asarray(rows)
                weights = None if batch.weights is None else batch.weights[low:high]
                after = row + len(rows)
                yield Chunk(rows, weights, Place(row=row), Place(row=after), self._name)
                row = after

    def _cuts(self, rows: Any) -> Iterable[tuple[int, int]]:
        """Where to cut a batch into chunks."""
        if self.is_sparse:
            return sparse_cuts(rows.starts, self.settings)
        step = self.chunk_rows
        return ((low, min(low + step, len(rows))) for low in range(0, len(rows), step))


def _bytes_of(rows: Any) -> int:
    """The bytes of rows in float64."""
    if isinstance(rows, SparseRows):
        numbers = rows.numbers()
        return SPARSE_NUMBER_BYTES * int(numbers.stop - numbers.start) + 8 * len(rows)
    return 8 * len(rows) * int(rows.shape[1])
