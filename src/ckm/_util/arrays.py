"""Arrays that cannot be written to: what frozen values are made of."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array = NDArray[Any]  # where numbers of any type will do
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
LabelArray = NDArray[np.int32]
SignArray = NDArray[np.int8]
FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
ComplexArray = NDArray[np.complex128]
RowsArray = NDArray[np.float32] | NDArray[np.float64]


class Frozen:
    """Base of values made of read-only arrays: they stay so when copied or unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)


def read_only(values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """A contiguous, read-only copy of `values`: nobody else can write to it."""
    array = np.array(values, dtype=dtype, order="C", copy=True)
    array.flags.writeable = False
    return array


def aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array that starts on a cache line, so that no vector straddles two."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    array: Array = raw[start : start + size].view(dtype).reshape(shape)
    return array


def aligned_arrays(*plan: tuple[tuple[int, ...], np.dtype[Any]]) -> tuple[Array, list[Array]]:
    """Bytes, and arrays of these shapes and types in them, which each start on a cache line."""
    sizes = [-(-math.prod(shape) * kind.itemsize // 64) * 64 for shape, kind in plan]
    memory = np.empty(sum(sizes) + 64, np.uint8)
    start, arrays = -memory.ctypes.data % 64, []
    for (shape, kind), size in zip(plan, sizes, strict=True):
        arrays.append(np.ndarray(shape, kind, memory, start))
        start += size
    return memory, arrays
