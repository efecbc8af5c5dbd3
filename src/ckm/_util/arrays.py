"""Types of arrays, read-only arrays, and arrays that are aligned to cache lines."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array = NDArray[Any]  # of numbers of any type
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
LabelArray = NDArray[np.int32]
SignArray = NDArray[np.int8]
FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
ComplexArray = NDArray[np.complex128]
RowsArray = NDArray[np.float32] | NDArray[np.float64]

_CACHE_LINE = 64  # bytes


class Frozen:
    """Base class of values made of read-only arrays, which stay read-only when unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that numbers are computed in: float32 for float16 and float32, otherwise float64.

    >>> float_type(np.dtype(np.float16)), float_type(np.dtype(np.int8))
    (dtype('float32'), dtype('float64'))
    """
    is_narrow = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if is_narrow else np.float64)


def read_only(values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """A contiguous, read-only copy of `values`."""
    array = np.array(values, dtype=dtype, order="C", copy=True)
    array.flags.writeable = False
    return array


def read_only_view(array: Array) -> Array:
    """A read-only view: one type for the compiler, whether the array is writeable or not."""
    view = array.view()
    view.flags.writeable = False
    return view


def aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """An uninitialised array that starts on a cache line, so that no vector straddles two."""
    return aligned_arrays((shape, np.dtype(dtype)))[1][0]


def aligned_arrays(*plan: tuple[tuple[int, ...], np.dtype[Any]]) -> tuple[Array, list[Array]]:
    """One buffer of bytes, and uninitialised arrays in it that each start on a cache line.

    `plan` holds the shape and the dtype of each array.
    """
    sizes = []
    for shape, dtype in plan:
        n_bytes = math.prod(shape) * dtype.itemsize
        sizes.append(-(-n_bytes // _CACHE_LINE) * _CACHE_LINE)
    buffer = np.empty(sum(sizes) + _CACHE_LINE, np.uint8)
    start = -buffer.ctypes.data % _CACHE_LINE
    arrays = []
    for (shape, dtype), size in zip(plan, sizes, strict=True):
        arrays.append(np.ndarray(shape, dtype, buffer, start))
        start += size
    return buffer, arrays
