"""Arrays that cannot be written to: what frozen values are made of."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array = NDArray[Any]


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
