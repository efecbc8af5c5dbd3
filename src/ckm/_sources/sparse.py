"""SciPy's sparse matrices and arrays, made dense a few rows at a time."""

from typing import Any

import numpy as np

from ckm._sources.base import RandomAccessSource, require_numeric, require_table
from ckm._sources.columns import ColumnRequest
from ckm._util.arrays import Array


class SparseSource(RandomAccessSource):
    """Rows of a sparse matrix. Formats other than CSR, of which rows cannot be cut, are converted
    once: as much memory again.
    """

    def __init__(
        self, matrix: Any, columns: tuple[str, ...] | None = None, weights: Array | None = None
    ) -> None:
        require_table(matrix.shape, "The sparse matrix")
        require_numeric(matrix.dtype, "The sparse matrix")
        self._matrix = matrix if matrix.format == "csr" else matrix.tocsr()
        self.columns, self.weights = columns, weights
        self.n_rows, self.n_features = self._matrix.shape

    def rows(self, which: Array | slice) -> Array:
        dense: Array = np.asarray(self._matrix[which].toarray())
        return dense


def open_data(data: Any, request: ColumnRequest) -> SparseSource:
    """The rows of any sparse matrix or array."""
    request.refuse_names("A sparse matrix")
    return SparseSource(data)


def is_sparse(data: Any) -> bool:
    """Whether it is one, told without SciPy."""
    return hasattr(data, "tocsr") and hasattr(data, "toarray")
