"""SciPy's sparse matrices and arrays: rows as they are, or made dense a few at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ckm._sources.base import (
    BEGINNING,
    Chunk,
    Place,
    RandomAccessSource,
    require_numeric,
    require_table,
)
from ckm._sources.column_request import ColumnRequest
from ckm._sources.settings import DEFAULT_SETTINGS, ReadSettings
from ckm._util.arrays import FloatArray, IntArray
from ckm._util.sparse import SparseRows


class SparseSource(RandomAccessSource):
    """Rows of a sparse matrix.

    Formats other than CSR, of which rows cannot be cut, are converted once, which takes as much
    memory again.
    """

    def __init__(
        self,
        matrix: Any,
        columns: tuple[str, ...] | None = None,
        weights: FloatArray | None = None,
        settings: ReadSettings = DEFAULT_SETTINGS,
    ) -> None:
        require_table(matrix.shape, "The sparse matrix")
        require_numeric(matrix.dtype, "The sparse matrix")
        self._matrix = matrix if matrix.format == "csr" else matrix.tocsr()
        self._sparse: SparseRows | None = None
        self.columns = columns
        self.weights = weights
        self.settings = settings
        self.n_rows, self.n_features = self._matrix.shape

    @property
    def values(self) -> Any:
        """All rows, as SciPy's matrix or array."""
        return self._matrix

    def stay_sparse(self) -> bool:
        if self._sparse is None:
            self._sparse = SparseRows.of(self._matrix)
        self.is_sparse = True
        return True

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        if self._sparse is None:
            yield from super().chunks(start)
            return
        for low, high in sparse_cuts(self._sparse.starts, self.settings, start.row):
            beta = None if self.weights is None else self.weights[low:high]
            yield Chunk(self._sparse[low:high], beta, Place(row=low), Place(row=high))

    def rows(self, which: IntArray | slice) -> Any:
        if self._sparse is not None:
            return self._sparse[which]
        return np.asarray(self._matrix[which].toarray())


def sparse_cuts(
    starts: IntArray, settings: ReadSettings, row: int = 0
) -> Iterator[tuple[int, int]]:
    """Where to cut sparse rows, from number `row` on, into chunks of bounded memory.

    Row r has the numbers from starts[r] to starts[r + 1].

    >>> list(sparse_cuts(np.array([0, 5, 5, 9]), ReadSettings(chunk_bytes=60)))
    [(0, 2), (2, 3)]
    """
    n_rows = len(starts) - 1
    while row < n_rows:
        limit = starts[row] + settings.sparse_numbers
        end = int(np.searchsorted(starts, limit, side="right")) - 1
        # Rows without a number take memory too.
        count = min(end - row, settings.sparse_numbers, n_rows - row)
        high = row + settings.whole_blocks(max(1, count))
        yield row, high
        row = high


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> SparseSource:
    """Open a sparse matrix or array of any format."""
    request.refuse_names("A sparse matrix")
    return SparseSource(data, settings=settings)


def is_sparse(data: Any) -> bool:
    """Whether it is a sparse matrix; SciPy is not imported to find out."""
    return hasattr(data, "tocsr") and hasattr(data, "toarray")
