"""NumPy arrays, and what turns into one: nested lists, tensors, anything with `__array__`."""

from typing import Any

import numpy as np

from ckm._sources.base import RandomAccessSource, require_numeric, require_table
from ckm._sources.column_request import ColumnRequest
from ckm._sources.settings import DEFAULT_SETTINGS, ReadSettings
from ckm._util.arrays import Array, FloatArray, IntArray
from ckm._util.checks import refuse_masked
from ckm._util.device import brain_float_bits, is_tensor, to_host
from ckm.errors import DataError


class ArraySource(RandomAccessSource):
    """Rows of a two-dimensional array in memory. Nothing is copied."""

    # There is nothing to wait for.
    can_prefetch = False

    def __init__(
        self,
        array: Array,
        columns: tuple[str, ...] | None = None,
        weights: FloatArray | None = None,
        settings: ReadSettings = DEFAULT_SETTINGS,
    ) -> None:
        require_table(array.shape, "The array")
        require_numeric(array.dtype, "The array")
        self._array = array
        self.columns = columns
        self.weights = weights
        self.settings = settings
        self.n_rows, self.n_features = array.shape

    @property
    def values(self) -> Array:
        """All rows."""
        return self._array

    def rows(self, which: IntArray | slice) -> Array:
        rows: Array = self._array[which]
        return rows


class BrainFloatSource(RandomAccessSource):
    """Rows of a tensor in bfloat16, which NumPy lacks; chunks are converted to float32.

    The tensor is given as its bits (N, n): the upper halves of float32 numbers.
    """

    # There is nothing to wait for.
    can_prefetch = False

    def __init__(self, bits: Array, settings: ReadSettings = DEFAULT_SETTINGS) -> None:
        require_table(bits.shape, "The tensor")
        self._bits = bits
        self.columns = None
        self.settings = settings
        self.n_rows, self.n_features = bits.shape

    def rows(self, which: IntArray | slice) -> Array:
        widened = self._bits[which].astype(np.uint32)
        widened <<= 16
        return widened.view(np.float32)


def open_data(
    data: Any, request: ColumnRequest, settings: ReadSettings
) -> ArraySource | BrainFloatSource:
    """Open anything that is an array, or can be made one."""
    if is_tensor(data) and "bfloat16" in str(data.dtype):
        request.refuse_names("A tensor")
        return BrainFloatSource(brain_float_bits(data), settings)
    array = as_array(data)
    request.refuse_names("An array")
    return ArraySource(array, settings=settings)


def as_array(data: Any) -> Array:
    """Convert `data` to an array; tensors are copied to the CPU."""
    if data is None:
        raise DataError(
            "Got None where rows are expected; pass an array (rows, columns), a data frame, or a "
            "file name."
        )
    refuse_masked(data, "The array")
    data = to_host(data)
    if is_tensor(data):
        data = data.detach().cpu()
        # NumPy has no bfloat16.
        is_bfloat16 = "bfloat16" in str(data.dtype)
        data = (data.float() if is_bfloat16 else data).numpy()
    try:
        array: Array = np.asarray(data)
    except ValueError as error:
        raise DataError(
            f"Cannot make an array of {type(data).__name__}: {error}; pass rows of one length."
        ) from error
    return array
