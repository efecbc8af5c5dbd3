"""Sources: arrays, data frames and files, all turned into chunks of rows.

To add one: a `Source` in a file of its own, and a line in `open_source` that recognises it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ckm.errors import DataError, ParameterError
from ckm.sources.arrays import ArraySource
from ckm.sources.base import Source
from ckm.sources.frames import FrameSource, as_frame

__all__ = ["Source", "column_names", "open_source"]


def open_source(data: Any, columns: Sequence[str] | None = None) -> Source:
    """The source behind whatever a person passes: an array, a data frame, a file name or pattern, or a list of those names."""
    if isinstance(data, Source):
        return data
    names = _file_names(data)
    if names:
        from ckm.sources.files import open_files  # pyarrow is imported only when files are read

        return open_files(names, columns)
    frame = as_frame(data)
    if frame is not None:
        return FrameSource(frame, columns)
    if columns is not None:
        raise ParameterError("An array has no column names; leave out columns=, or pass a data frame or a file.")
    return ArraySource([_as_array(data)])


def column_names(data: Any) -> tuple[str, ...] | None:
    """The names of all columns of `data`, usable or not; None where it has none."""
    if isinstance(data, Source):
        return data.columns
    names = _file_names(data)
    if names:
        from ckm.sources.files import file_columns

        return file_columns(names)
    frame = as_frame(data)
    return None if frame is None else tuple(frame.columns)


def _file_names(data: Any) -> list[str | Path] | None:
    if isinstance(data, (str, Path)):
        return [data]
    if isinstance(data, (list, tuple)) and data and all(isinstance(item, (str, Path)) for item in data):
        return list(data)
    return None


def _as_array(data: Any) -> Any:
    if data is None:
        raise DataError("Got None where rows are expected; pass an array (rows, columns), a data frame, or a file name.")
    if hasattr(data, "collect"):
        raise DataError(f"A {type(data).__name__} holds no rows yet; call its collect() first.")
    if np.ma.isMaskedArray(data) and np.ma.getmaskarray(data).any():
        raise DataError("The array has masked values, which are missing; fill them, or drop such rows, first.")
    if hasattr(data, "toarray") and hasattr(data, "tocsr"):
        raise DataError("Sparse matrices are not supported; pass data.toarray() if it fits in memory.")
    try:
        return np.asarray(data)
    except ValueError as error:
        raise DataError(f"Cannot make an array of {type(data).__name__}: {error}; pass rows of one length.") from error
