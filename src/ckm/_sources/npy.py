"""NumPy's own files, `.npy`.

They are read a slice at a time instead of mapped, so that a large file does not fill the memory of
the process.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ckm._sources.columns import ColumnRequest
from ckm._sources.settings import ReadSettings
from ckm._sources.stored import Part, Stored, StoredSource
from ckm._util.arrays import Array
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


def open_files(
    paths: Sequence[Path], request: ColumnRequest, settings: ReadSettings
) -> StoredSource:
    """Open `.npy` files, one after another."""
    request.refuse_names("A .npy file")
    parts = [Part(_open(path), str(path), path.stat().st_size) for path in paths]
    return StoredSource(parts, settings)


def _open(path: Path) -> Stored:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
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
