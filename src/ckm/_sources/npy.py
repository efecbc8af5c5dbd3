"""NumPy's own files, `.npy`: read a slice at a time, not mapped, so that a large file does not fill
the process's memory.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ckm._sources.columns import ColumnRequest
from ckm._sources.stored import Part, Stored, StoredSource
from ckm._util.arrays import Array
from ckm.errors import InputFileError


class _Rows:
    """The rows of a `.npy` file in C order."""

    def __init__(self, mapped: np.memmap, path: Path) -> None:
        self.shape, self.dtype = mapped.shape, mapped.dtype
        self._path, self._offset, self._stride = path, mapped.offset, mapped.strides[0]

    def __getitem__(self, rows: slice) -> Array:
        count = (rows.stop - rows.start) * self.shape[1]
        return np.fromfile(
            self._path, self.dtype, count, offset=self._offset + rows.start * self._stride
        ).reshape(-1, self.shape[1])


def open_files(paths: Sequence[Path], request: ColumnRequest) -> StoredSource:
    """The rows of `.npy` files, one after another."""
    request.refuse_names("A .npy file")
    return StoredSource([Part(_open(path), str(path), path.stat().st_size) for path in paths])


def _open(path: Path) -> Stored:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            reason = "it holds Python objects (a pickle) where numbers are expected"
        else:
            reason = f"it is damaged or not a .npy file ({str(error).splitlines()[0]})"
        raise InputFileError(
            f"Cannot read {path}: {reason}; write it again with np.save(name, array)."
        ) from error
    if not isinstance(array, np.memmap):
        if hasattr(array, "close"):
            array.close()
            raise InputFileError(
                f"Cannot read {path}: it is an archive of several arrays; write one with np.save(name, array)."
            )
        stored: Stored = array
        return stored  # nothing to map in an array without rows
    # Columns that lie far apart are better left to the operating system.
    return _Rows(array, path) if array.ndim == 2 and array.flags.c_contiguous else array
