"""Data frames in memory: pandas, polars, PyArrow tables and whatever else narwhals knows."""

from typing import Any

import narwhals as nw
from narwhals.exceptions import DuplicateError

from ckm._sources.base import RandomAccessSource, require_table
from ckm._sources.columns import ColumnChoice, ColumnRequest, checked_weights, choose
from ckm._sources.settings import DEFAULT_SETTINGS, ReadSettings
from ckm._sources.streaming import Batch
from ckm._util.arrays import Array, FloatArray, IntArray
from ckm.errors import DataError


class FrameSource(RandomAccessSource):
    """The numeric columns of a data frame in memory, converted to arrays chunk by chunk."""

    def __init__(
        self,
        frame: nw.DataFrame[Any],
        request: ColumnRequest,
        settings: ReadSettings = DEFAULT_SETTINGS,
    ) -> None:
        if frame.shape[1] == 0:
            require_table(frame.shape, "The data frame")
        choice = choose_columns(frame, request)
        self._frame = _select(frame, choice.names)
        self.columns = choice.columns
        self.n_rows, self.n_features = self._frame.shape
        self.weights = frame_weights(frame, choice)
        self.settings = settings

    def rows(self, which: IntArray | slice) -> Array:
        return to_array(self._frame[which])


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> FrameSource:
    """Open a data frame."""
    frame = as_frame(data)
    assert frame is not None
    return FrameSource(frame, request, settings)


def choose_columns(frame: nw.DataFrame[Any], request: ColumnRequest) -> ColumnChoice:
    """Choose the columns of a frame that are asked for, otherwise all that hold numbers."""
    present = [
        (name, _describe_unknown(frame, i) if dtype == nw.Unknown else _describe(dtype))
        for i, (name, dtype) in enumerate(frame.schema.items())
    ]
    return choose(request, present, "the data frame", index=_index(frame))


def _index(frame: nw.DataFrame[Any]) -> list[str]:
    """The columns of an Arrow table that pandas made from an index."""
    if not frame.implementation.is_pyarrow():
        return []
    from ckm._sources.arrow import index_of

    return index_of(frame.to_native().schema)


def _describe(dtype: Any) -> str | None:
    """Describe what a column holds; None for numbers."""
    if dtype.is_numeric() or dtype == nw.Boolean:
        return None
    if dtype in (nw.String, nw.Categorical):
        return "text"
    return "dates" if dtype in (nw.Date, nw.Datetime) else str(dtype)


def _describe_unknown(frame: nw.DataFrame[Any], i: int) -> str | None:
    """Describe column number i, of a type that narwhals does not know, as Arrow calls it.

    One such type is float16, in versions of narwhals before it had a name.
    """
    from ckm._sources.arrow import ERRORS, describe_type

    try:
        column = frame.head(0).select(nw.nth(i)).to_arrow().column(0)
    except ERRORS:
        return "values of an unknown type"
    return describe_type(column.type)


def as_frame(data: Any) -> nw.DataFrame[Any] | None:
    """`data` as a frame of narwhals; None if it is not a data frame."""
    try:
        frame = nw.from_native(data, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            # Some frames find duplicate names only when their columns are asked for.
            frame.columns  # noqa: B018
            return frame
    except DuplicateError as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"The data frame has columns of the same name ({reason}); name each column once."
        ) from None
    return None


def frame_batch(frame: nw.DataFrame[Any], choice: ColumnChoice, row: int) -> Batch:
    """Convert the chosen columns of a frame whose first row is number `row`."""
    return Batch(to_array(_select(frame, choice.names)), frame_weights(frame, choice, row))


def frame_weights(
    frame: nw.DataFrame[Any], choice: ColumnChoice, row: int = 0
) -> FloatArray | None:
    """The column of weights, if there is one."""
    if choice.weight is None:
        return None
    weights = to_array(_select(frame, [choice.weight]))[:, 0]
    return checked_weights(weights, f"Column {choice.weight!r}", row)


def _select(frame: nw.DataFrame[Any], names: list[Any]) -> nw.DataFrame[Any]:
    """Select columns by position, since their names may be numbers."""
    return frame.select(nw.nth(*map(frame.columns.index, names)))


def frame_rows(frame: nw.DataFrame[Any]) -> Array:
    """All rows of a frame as one array, after a check that every column holds numbers."""
    require_table(frame.shape, "The data frame")
    choose_columns(frame, ColumnRequest(columns=frame.columns))
    return to_array(frame)


def to_array(frame: nw.DataFrame[Any]) -> Array:
    """Convert a frame of numbers; nulls become NaN, which kernels refuse with their place."""
    array = frame.to_numpy()
    if array.dtype.kind in "biuf":
        return array
    # Columns of several types, or with nulls, for which NumPy has no type.
    from ckm._sources.arrow import to_rows

    return to_rows([column.to_arrow() for column in frame.iter_columns()], len(frame))
