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
