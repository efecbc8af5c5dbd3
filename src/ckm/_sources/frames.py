"""Data frames in memory: pandas, polars, PyArrow tables and whatever else narwhals knows."""

from typing import Any

import narwhals as nw
from narwhals.exceptions import DuplicateError

from ckm._sources.base import RandomAccessSource, require_table
from ckm._sources.columns import ColumnChoice, ColumnRequest, checked_weights, choose
from ckm._sources.streaming import Batch
from ckm._util.arrays import Array
from ckm.errors import DataError


class FrameSource(RandomAccessSource):
    """The numeric columns of an in-memory data frame, made into arrays chunk by chunk."""

    def __init__(self, frame: nw.DataFrame[Any], request: ColumnRequest) -> None:
        if frame.shape[1] == 0:
            require_table(frame.shape, "The data frame")
        choice = choose_columns(frame, request)
        self._frame = _only(frame, choice.names)
        self.columns = choice.columns
        self.n_rows, self.n_features = self._frame.shape
        self.weights = frame_weights(frame, choice)

    def rows(self, which: Array | slice) -> Array:
        return to_array(self._frame[which])


def open_data(data: Any, request: ColumnRequest) -> FrameSource:
    """The rows of a data frame."""
    frame = as_frame(data)
    assert frame is not None
    return FrameSource(frame, request)


def choose_columns(frame: nw.DataFrame[Any], request: ColumnRequest) -> ColumnChoice:
    """The frame's columns that are asked for, else all that hold numbers."""
    held = [
        (name, None if dtype.is_numeric() or dtype == nw.Boolean else _words(dtype))
        for name, dtype in frame.schema.items()
    ]
    return choose(request, held, "the data frame", index=_index(frame))


def _index(frame: nw.DataFrame[Any]) -> list[str]:
    """The columns of an Arrow table that pandas made from an index."""
    if not frame.implementation.is_pyarrow():
        return []
    from ckm._sources.arrow import index_of

    return index_of(frame.to_native().schema)


def _words(dtype: Any) -> str:
    return (
        "text"
        if dtype in (nw.String, nw.Categorical)
        else "dates"
        if dtype in (nw.Date, nw.Datetime)
        else str(dtype)
    )


def as_frame(data: Any) -> nw.DataFrame[Any] | None:
    """`data` as a frame, if it is one."""
    try:
        frame = nw.from_native(data, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            frame.columns  # noqa: B018  (some frames find duplicate names only when asked)
            return frame
    except DuplicateError as error:
        raise DataError(
            f"The data frame has columns of the same name ({' '.join(str(error).split())}); name each column once."
        ) from None
    return None


def frame_batch(frame: nw.DataFrame[Any], choice: ColumnChoice, row: int) -> Batch:
    """The chosen columns of a frame whose first row is number `row`."""
    return Batch(to_array(_only(frame, choice.names)), frame_weights(frame, choice, row))


def frame_weights(frame: nw.DataFrame[Any], choice: ColumnChoice, row: int = 0) -> Array | None:
    """The column that holds weights, where there is one."""
    if choice.weight is None:
        return None
    return checked_weights(
        to_array(_only(frame, [choice.weight]))[:, 0], f"Column {choice.weight!r}", row
    )


def _only(frame: nw.DataFrame[Any], names: list[Any]) -> nw.DataFrame[Any]:
    # by number, since names may be numbers
    return frame.select(nw.nth(*map(frame.columns.index, names)))


def frame_rows(frame: nw.DataFrame[Any]) -> Array:
    """All rows of a frame as one array, once every column is known to hold numbers."""
    require_table(frame.shape, "The data frame")
    choose_columns(frame, ColumnRequest(columns=frame.columns))
    return to_array(frame)


def to_array(frame: nw.DataFrame[Any]) -> Array:
    """A frame of numbers as an array; nulls become NaN, which the kernels refuse with their place."""
    array = frame.to_numpy()
    if array.dtype.kind in "biuf":
        return array
    from ckm._sources.arrow import (
        to_rows,  # columns of several types, or with nulls, which NumPy has no type for
    )

    return to_rows([column.to_arrow() for column in frame.iter_columns()], len(frame))
