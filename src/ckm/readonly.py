"""Arrays that cannot be written to: what frozen values are made of."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array = NDArray[Any]


def read_only(values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """A contiguous, read-only array of `values`; the caller's own array is neither changed nor aliased."""
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.flags.writeable:
        array = array.copy() if array is values or array.base is not None else array
        array.flags.writeable = False
    return array
