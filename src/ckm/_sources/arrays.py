"""NumPy arrays, and what turns into one: nested lists, tensors, anything with `__array__`."""

from typing import Any

import numpy as np

from ckm._sources.base import RandomAccessSource, require_numeric, require_table
from ckm._sources.columns import ColumnRequest
from ckm._util.arrays import Array
from ckm._util.device import is_tensor, to_host
from ckm.errors import DataError


class ArraySource(RandomAccessSource):
    """Rows of a two-dimensional array in memory. Nothing is copied."""

    can_prefetch = False  # there is nothing to wait for

    def __init__(
        self, array: Array, columns: tuple[str, ...] | None = None, weights: Array | None = None
    ) -> None:
        require_table(array.shape, "The array")
        require_numeric(array.dtype, "The array")
        self._array = array
        self.columns, self.weights = columns, weights
        self.n_rows, self.n_features = array.shape

    def rows(self, which: Array | slice) -> Array:
        taken: Array = self._array[which]
        return taken


def open_data(data: Any, request: ColumnRequest) -> ArraySource:
    """The rows of anything that is an array, or can be made one."""
    array = as_array(data)
    request.refuse_names("An array")
    return ArraySource(array)


def as_array(data: Any) -> Array:
    """`data` as an array; tensors come to the CPU."""
    if data is None:
        raise DataError(
            "Got None where rows are expected; pass an array (rows, columns), a data frame, or a file name."
        )
    if np.ma.isMaskedArray(data) and np.ma.getmaskarray(data).any():
        raise DataError(
            "The array has masked values, which are missing; fill them, or drop such rows, first."
        )
    data = to_host(data)
    if is_tensor(data):
        data = data.detach().cpu()
        # NumPy has no bfloat16
        data = (data.float() if "bfloat16" in str(data.dtype) else data).numpy()
    try:
        array: Array = np.asarray(data)
    except ValueError as error:
        raise DataError(
            f"Cannot make an array of {type(data).__name__}: {error}; pass rows of one length."
        ) from error
    return array
