"""SciPy's sparse matrices and arrays, made dense a few rows at a time."""

from typing import Any

import numpy as np

from ckm._sources.base import RandomAccessSource, require_numeric, require_table
from ckm._sources.columns import ColumnRequest
from ckm._sources.settings import DEFAULT_SETTINGS, ReadSettings
from ckm._util.arrays import Array, FloatArray, IntArray


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
        self.columns = columns
        self.weights = weights
        self.settings = settings
        self.n_rows, self.n_features = self._matrix.shape

    def rows(self, which: IntArray | slice) -> Array:
        dense: Array = np.asarray(self._matrix[which].toarray())
        return dense


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> SparseSource:
    """Open a sparse matrix or array of any format."""
    request.refuse_names("A sparse matrix")
    return SparseSource(data, settings=settings)


def is_sparse(data: Any) -> bool:
    """Whether it is a sparse matrix; SciPy is not imported to find out."""
    return hasattr(data, "tocsr") and hasattr(data, "toarray")
