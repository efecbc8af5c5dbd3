"""Data frames: pandas, polars, PyArrow tables and whatever else narwhals knows."""

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from ckm.errors import DataError, ParameterError
from ckm.readonly import Array
from ckm.sources.base import RandomAccessSource, require_table, rows_per_chunk


class FrameSource(RandomAccessSource):
    """The numeric columns of an in-memory data frame, made into arrays chunk by chunk."""

    def __init__(self, frame: nw.DataFrame[Any], columns: Sequence[str] | None = None) -> None:
        if columns is not None:
            names = require_columns(columns, frame.columns)
            frame = frame.select(names)
        require_table(frame.shape, "The data frame")
        for name, dtype in frame.schema.items():
            if not (dtype.is_numeric() or dtype == nw.Boolean):
                raise DataError(
                    f"Column {name!r} holds {dtype}, not numbers; convert or drop it, or (in ckm.sketch) "
                    f"name the numeric columns with columns=[...]."
                )
        self._frame = frame
        names = list(frame.columns)
        self.columns = tuple(names) if all(isinstance(name, str) for name in names) else None
        self.n_rows, self.n_features = frame.shape

    def chunks(self) -> Iterator[Array]:
        step = rows_per_chunk(self.n_features)
        for start in range(0, self.n_rows, step):
            yield to_array(self._frame[start : start + step])

    def take(self, indices: Array) -> Array:
        return to_array(self._frame[indices]).astype(np.float64)


def as_frame(data: Any) -> nw.DataFrame[Any] | None:
    """`data` as a frame, if it is one."""
    try:
        frame = nw.from_native(data, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            frame.columns  # noqa: B018  (some frames find duplicate names only when asked)
            return frame
    except DuplicateError as error:
        raise DataError(f"The data frame has columns of the same name ({' '.join(str(error).split())}); name each column once.") from None
    return None


def frame_rows(frame: nw.DataFrame[Any]) -> Array:
    """All rows of a frame as one array, once every column is known to hold numbers."""
    FrameSource(frame)
    return to_array(frame)


def to_array(frame: nw.DataFrame[Any]) -> Array:
    """A frame of numbers as an array; nulls become NaN, which the kernels refuse with their place."""
    array = frame.to_numpy()
    return array if array.dtype.kind in "biuf" else array.astype(np.float64)


def require_columns(wanted: Sequence[str], present: Sequence[str]) -> list[str]:
    """`wanted`, once each of them is known to be present and named once."""
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    missing = [name for name in names if name not in present]
    if missing:
        raise ParameterError(f"There is no column {missing[0]!r}; the columns are {', '.join(map(str, present))}.")
    if len(set(names)) != len(names):
        raise ParameterError(f"A column is named twice in columns={names}; name each once.")
    if not names:
        raise ParameterError("columns=[] leaves nothing to cluster; name at least one column.")
    return names
