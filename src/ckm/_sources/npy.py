"""NumPy's own files, `.npy`.

They are read a slice at a time instead of mapped, so that a large file does not fill the memory of
the process.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ckm._sources.column_request import ColumnRequest
from ckm._sources.failures import is_failed_request, unreadable
from ckm._sources.settings import ReadSettings
from ckm._sources.stored import Part, Stored, StoredSource
from ckm._util.arrays import Array
from ckm._util.stores import (
    FilePath,
    RemoteFile,
    any_remote,
    file_size,
    map_files,
    open_seekable,
)
from ckm.errors import InputFileError


class _RowsInFile:
    """The rows of a `.npy` file in C order."""

    def __init__(self, mapped: np.memmap, path: Path) -> None:
        self.shape = mapped.shape
        self.dtype = mapped.dtype
        self._path = path
        self._offset = mapped.offset
        self._row_bytes = mapped.strides[0]

    def __getitem__(self, rows: slice) -> Array:
        width = self.shape[1]
        count = (rows.stop - rows.start) * width
        offset = self._offset + rows.start * self._row_bytes
        return np.fromfile(self._path, self.dtype, count, offset=offset).reshape(-1, width)


class _RowsInObject:
    """The rows of a `.npy` object: bytes of them are requested where they are.

    In Fortran's order, each column of a run of rows is a request of its own.
    """

    def __init__(self, file: RemoteFile) -> None:
        # Open as long as the source is: opening it again for every slice would be a request more.
        self._file = open_seekable(file)
        self.shape, self._is_fortran, self.dtype = _read_header(self._file, file.size)
        self._offset = self._file.tell()

    def __getitem__(self, rows: slice) -> Array:
        width = self.shape[1]
        count = rows.stop - rows.start
        if not self._is_fortran:
            return self._values(rows.start * width, count * width).reshape(-1, width)
        starts = [i * self.shape[0] + rows.start for i in range(width)]
        return np.column_stack([self._values(start, count) for start in starts])

    def _values(self, start: int, count: int) -> Array:
        """Some values, in the order in which they are stored."""
        size = self.dtype.itemsize
        self._file.seek(self._offset + start * size)
        return np.frombuffer(self._file.read(count * size), self.dtype)


def _read_header(file: Any, size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """The shape, the order and the type of the array in an open object of `size` bytes."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"version {version} of the format is not that of an array of numbers")
    shape, is_fortran, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    expected = file.tell() + math.prod(shape) * dtype.itemsize
    if size < expected:
        raise ValueError(f"it has {size} bytes where its header announces {expected}")
    return shape, is_fortran, dtype


def open_files(
    paths: Sequence[FilePath], request: ColumnRequest, settings: ReadSettings
) -> StoredSource:
    """Open `.npy` files, one after another."""
    request.refuse_names("A .npy file")
    arrays = map_files(_open, paths, any_remote(paths))
    parts = [
        Part(array, str(path), file_size(path), file=path)
        for array, path in zip(arrays, paths, strict=True)
    ]
    return StoredSource(parts, settings)


def _open(path: FilePath) -> Stored:
    try:
        if isinstance(path, RemoteFile):
            return _RowsInObject(path)
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except InputFileError:
        raise
    except (ValueError, OSError, EOFError) as error:
        if isinstance(path, RemoteFile) and is_failed_request(error):
            raise unreadable(error, str(path)) from None
        reason = f"it is damaged or not a .npy file ({str(error).splitlines()[0]})"
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            reason = "it holds Python objects (a pickle) where numbers are expected"
        raise InputFileError(
            f"Cannot read {path}: {reason}; write it again with np.save(name, array)."
        ) from error
    if isinstance(array, np.memmap):
        # Columns that lie far apart are better left to the operating system.
        in_rows = array.ndim == 2 and array.flags.c_contiguous
        return _RowsInFile(array, path) if in_rows else array
    if hasattr(array, "close"):
        array.close()
        raise InputFileError(
            f"Cannot read {path}: it is an archive of several arrays; write one with "
            f"np.save(name, array)."
        )
    # An array without rows cannot be mapped.
    stored: Stored = array
    return stored
