"""Tensors on a GPU: of torch, and by DLPack of CuPy and JAX. They stay there."""

from typing import Any

from ckm._sources.base import RandomAccessSource, require_numeric, require_table
from ckm._sources.column_request import ColumnRequest
from ckm._sources.settings import ReadSettings
from ckm._util.arrays import FloatArray, IntArray
from ckm._util.device import DeviceRows, as_tensor, rows_at_once
from ckm.errors import DataError


class TensorSource(RandomAccessSource):
    """Rows of a two-dimensional tensor. Only samples are copied."""

    # There is nothing to wait for.
    can_prefetch = False

    def __init__(self, tensor: Any, weights: FloatArray | None = None) -> None:
        self._rows = DeviceRows.of(tensor)
        require_table(self._rows.shape, "The tensor")
        require_numeric(self._rows.dtype, "The tensor")
        self.columns = None
        self.weights = weights
        self.device = self._rows.tensor.device
        self.n_rows, self.n_features = self._rows.shape
        self.prefer_chunk_rows(rows_at_once(self.n_features))

    def rows(self, which: IntArray | slice) -> Any:
        return self._rows[which]


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> TensorSource:
    """Open a tensor on a GPU, which is taken in chunks of a size of its own."""
    request.refuse_names("A tensor")
    tensor = as_tensor(data)
    if "strided" not in str(tensor.layout):
        raise DataError(
            f"The tensor has the layout {tensor.layout}; give a dense one, with tensor.to_dense()."
        )
    return TensorSource(tensor)
