"""Files of vectors of the benchmarks of nearest-neighbour search: `.fvecs`, `.ivecs`, `.bvecs`.

Each row is its number of values, as an int32, and then the values: float32, int32 or bytes. Numbers
are little-endian. Rows are read a slice at a time instead of mapped, as those of `.npy`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ckm._sources.column_request import ColumnRequest
from ckm._sources.settings import ReadSettings
from ckm._sources.stored import Part, StoredSource
from ckm._util.arrays import Array
from ckm._util.stores import FilePath, RemoteFile, any_remote, file_size, map_files, open_seekable
from ckm.errors import InputFileError

_TYPES: dict[str, np.dtype[Any]] = {
    ".fvecs": np.dtype("<f4"),
    ".ivecs": np.dtype("<i4"),
    ".bvecs": np.dtype("u1"),
}
_COUNT = np.dtype("<i4")
# The largest number of values of a row; more are a sign of another format.
_MAX_WIDTH = 2**20


class _RowsInFile:
    """The rows of one file, whose number of columns is that of its first row."""

    def __init__(self, path: FilePath) -> None:
        self.dtype = _TYPES[path.suffix.lower()]
        self._path = path
        width = int(self._bytes(0, _COUNT.itemsize).view(_COUNT)[0])
        if not 0 < width <= _MAX_WIDTH:
            raise InputFileError(
                f"Cannot read {path}: its first row announces {width} values; each row is the "
                f"number of its values, as an int32 (little-endian), and then the values."
            )
        self._row_bytes = _COUNT.itemsize + width * self.dtype.itemsize
        n_bytes = file_size(path)
        if n_bytes % self._row_bytes:
            raise InputFileError(
                f"Cannot read {path}: it has {n_bytes} bytes, and rows of {width} values take "
                f"{self._row_bytes} each, so that the last one is cut, or rows differ in length; "
                f"write it again."
            )
        self.shape = (n_bytes // self._row_bytes, width)

    def __getitem__(self, rows: slice) -> Array:
        first = rows.start * self._row_bytes
        count = (rows.stop - rows.start) * self._row_bytes
        records = self._bytes(first, count)
        records = records[: len(records) - len(records) % self._row_bytes]
        records = records.reshape(-1, self._row_bytes)
        width = self.shape[1]
        widths = np.ascontiguousarray(records[:, : _COUNT.itemsize]).view(_COUNT)[:, 0]
        if (widths != width).any():
            at = int(np.argmax(widths != width))
            raise InputFileError(
                f"Cannot read {self._path}: row {rows.start + at} announces {widths[at]} values "
                f"where the first has {width}; give rows of one length."
            )
        return np.ascontiguousarray(records[:, _COUNT.itemsize :]).view(self.dtype)

    def _bytes(self, offset: int, count: int) -> Array:
        """Some bytes of the file; fewer if it ends before."""
        if isinstance(self._path, Path):
            return np.fromfile(self._path, np.uint8, count, offset=offset)
        with open_seekable(self._path) as file:
            file.seek(offset)
            return np.frombuffer(file.read(count), np.uint8)


def open_files(
    paths: Sequence[FilePath], request: ColumnRequest, settings: ReadSettings
) -> StoredSource:
    """Open files of vectors, one after another."""
    request.refuse_names(f"A {paths[0].suffix} file")
    arrays = map_files(_open, paths, any_remote(paths))
    parts = [
        Part(array, str(path), file_size(path), file=path)
        for array, path in zip(arrays, paths, strict=True)
    ]
    return StoredSource(parts, settings)


def _open(path: FilePath) -> _RowsInFile:
    if not isinstance(path, RemoteFile) and file_size(path) < _COUNT.itemsize:
        raise InputFileError(f"Cannot read {path}: it has {file_size(path)} bytes; write it again.")
    return _RowsInFile(path)
