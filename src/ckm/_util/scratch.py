"""Memory for vectors."""

import math
from typing import Any

import numpy as np

from ckm.readonly import Array


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
