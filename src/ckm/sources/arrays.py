"""NumPy arrays, in memory or memory-mapped, one after another."""

from collections.abc import Iterator, Sequence

import numpy as np

from ckm.errors import DataError
from ckm.readonly import Array
from ckm.sources.base import RandomAccessSource, require_numeric, require_table, rows_per_chunk


class ArraySource(RandomAccessSource):
    """Rows of one or several two-dimensional arrays of the same width. Nothing is copied but the chunk at hand."""

    def __init__(self, arrays: Sequence[Array], columns: tuple[str, ...] | None = None, names: Sequence[str] | None = None) -> None:
        names = names or ["The array"] * len(arrays)
        for array, name in zip(arrays, names, strict=True):
            require_table(array.shape, name)
            require_numeric(array.dtype, name)
        widths = [array.shape[1] for array in arrays]
        for width, name in zip(widths, names, strict=True):
            if width != widths[0]:
                raise DataError(f"{name} has {width} columns where {names[0]} has {widths[0]}; give arrays of one width.")
        self._arrays = arrays
        self.columns = columns
        self.n_features = widths[0]
        self.n_rows = sum(map(len, arrays))

    def chunks(self) -> Iterator[Array]:
        step = rows_per_chunk(self.n_features)
        for array in self._arrays:
            for start in range(0, len(array), step):
                yield array[start : start + step]

    def take(self, indices: Array) -> Array:
        starts = np.cumsum([0, *map(len, self._arrays)])
        parts = [
            np.asarray(array[indices[(indices >= start) & (indices < start + len(array))] - start], np.float64)
            for array, start in zip(self._arrays, starts[:-1], strict=True)
        ]
        return np.concatenate(parts)
