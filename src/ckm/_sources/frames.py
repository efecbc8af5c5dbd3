"""Data frames in memory: pandas, polars, PyArrow tables and whatever else narwhals knows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from ckm._messages import Argument
from ckm._sources.base import RandomAccessSource, require_table
from ckm._sources.category_columns import NO_NUMBERINGS, Numbering
from ckm._sources.column_checks import checked_weights
from ckm._sources.column_request import ColumnChoice, ColumnRequest, Dates, Vectors
from ckm._sources.columns import choose
from ckm._sources.settings import DEFAULT_SETTINGS, ReadSettings
from ckm._sources.streaming import Batch
from ckm._util.arrays import Array, FloatArray, IntArray, float_type
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
        choice = with_first_width(frame, choose_columns(frame, request))
        self._whole = frame
        self._frame = _select(frame, choice.names)
        self._choice = choice
        self.columns = choice.columns
        self.n_rows = len(self._frame)
        self.n_features = choice.n_features
        self.weights = frame_weights(frame, choice)
        self.settings = settings

    def table_batches(self) -> Iterator[Any]:
        step = self.settings.rows_per_chunk(max(1, self._whole.shape[1]))
        for low in range(0, self.n_rows, step):
            yield self._whole[low : low + step].to_arrow()

    def rows(self, which: IntArray | slice) -> Array:
        if self._choice.width is None:
            return to_array(self._frame[which], self._choice.numberings)
        numbers = range(self.n_rows)[which] if isinstance(which, slice) else which
        return _to_vectors(self._frame[which], self._choice, numbers)


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> FrameSource:
    """Open a data frame."""
    frame = as_frame(data)
    assert frame is not None
    return FrameSource(frame, request, settings)


def choose_columns(frame: nw.DataFrame[Any], request: ColumnRequest) -> ColumnChoice:
    """Choose the columns of a frame that are asked for, otherwise all that hold numbers."""
    present = [
        (name, _describe_column(frame, i, dtype))
        for i, (name, dtype) in enumerate(frame.schema.items())
    ]
    return choose(request, present, "the data frame", index=_index(frame))


def _index(frame: nw.DataFrame[Any]) -> list[str]:
    """The columns of an Arrow table that pandas made from an index."""
    if not frame.implementation.is_pyarrow():
        return []
    from ckm._sources.arrow import index_of

    return index_of(frame.to_native().schema)


def with_first_width(frame: nw.DataFrame[Any], choice: ColumnChoice) -> ColumnChoice:
    """The choice with the length of the first list of a frame, if lists may be of any length."""
    if choice.width != 0:
        return choice
    lists = _select(frame, choice.names).drop_nulls().head(1)
    width = len(lists.rows()[0][0]) if len(lists) else 0
    if not width:
        from ckm._sources.vectors import no_width

        raise no_width(choice.names[0], "the data frame")
    return choice._replace(width=width)


def _describe_column(frame: nw.DataFrame[Any], i: int, dtype: Any) -> str | None:
    """Describe what column number i holds; None for numbers."""
    if dtype == nw.Object:
        return _describe_objects(frame, i)
    if dtype in (nw.Unknown, nw.List, nw.Array):
        return _describe_unknown(frame, i)
    return _describe(dtype)


def _describe_objects(frame: nw.DataFrame[Any], i: int) -> str:
    """Describe a column of Python objects, which are vectors if the first one is."""
    known = frame.select(nw.nth(i)).drop_nulls().head(1)
    first = known.rows()[0][0] if len(known) else None
    if isinstance(first, (list, tuple, np.ndarray)):
        try:
            array = np.asarray(first)
        except ValueError:
            return "lists of lists"
        if array.ndim == 1 and array.dtype.kind in "iuf":
            return Vectors(len(array))
    return str(nw.Object())


def _describe(dtype: Any) -> str | None:
    """Describe what a column holds; None for numbers."""
    if dtype.is_numeric() or dtype == nw.Boolean:
        return None
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "text"
    return Dates("dates") if dtype in (nw.Date, nw.Datetime) else str(dtype)


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
    chosen = _select(frame, choice.names)
    if choice.width is None:
        rows = to_array(chosen, choice.numberings)
    else:
        rows = _to_vectors(chosen, choice, range(row, row + len(chosen)))
    return Batch(rows, frame_weights(frame, choice, row))


def _to_vectors(
    frame: nw.DataFrame[Any], choice: ColumnChoice, numbers: Sequence[int] | IntArray
) -> Array:
    """Convert the only column of a frame, of vectors; its rows have these numbers."""
    from ckm._sources.vectors import to_vectors

    assert choice.width is not None
    column = frame.to_native().iloc[:, 0] if frame.implementation.is_pandas() else None
    if column is not None and column.dtype == object:
        return _stack(column.to_numpy(), choice, numbers)
    lists = frame.get_column(frame.columns[0]).to_arrow()
    return to_vectors(lists, choice.width, choice.names[0], "the data frame", numbers)


def _stack(cells: Array, choice: ColumnChoice, numbers: Sequence[int] | IntArray) -> Array:
    """Put arrays or lists below each other; what is missing becomes a row of NaN."""
    from ckm._sources.vectors import unequal_lengths

    name, width = choice.names[0], choice.width
    assert width is not None
    is_list = [isinstance(cell, (list, tuple, np.ndarray)) for cell in cells]
    for number, cell, is_vector in zip(numbers, cells, is_list, strict=True):
        if is_vector and len(cell) != width:
            raise unequal_lengths(name, "the data frame", int(number), len(cell), width)
        if not is_vector and not (cell is None or cell != cell):
            raise DataError(
                f"Row {number} of the data frame has {type(cell).__name__} in column {name!r}, "
                f"where others have lists of numbers; convert it."
            )
    vectors = [cell for cell, is_vector in zip(cells, is_list, strict=True) if is_vector]
    try:
        values = np.array(vectors).reshape(-1, width)
        values = values if values.dtype.kind in "biuf" else values.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(
            f"Column {name!r} of the data frame has a list that is not of numbers ({error}); "
            f"convert it."
        ) from None
    if all(is_list):
        return values
    rows = np.full((len(cells), width), np.nan, float_type(values.dtype))
    rows[np.array(is_list)] = values
    return rows


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
    require_numeric(frame)
    return to_array(frame)


def require_numeric(frame: nw.DataFrame[Any]) -> None:
    """Raise `DataError` unless every column of a frame holds numbers."""
    choice = choose_columns(frame, ColumnRequest(columns=frame.columns))
    dates = [name for name, dtype in frame.schema.items() if dtype in (nw.Date, nw.Datetime)]
    if dates:
        raise DataError(
            f"Column {dates[0]!r} of the data frame holds dates, not numbers; convert it, or name "
            f"the columns to use with ",
            Argument("columns", ...),
            ", which takes dates as days since 1970.",
        )
    if choice.width is not None:
        raise DataError(
            f"Column {choice.names[0]!r} holds vectors; models take them as an array, such as "
            f"np.stack(X[{choice.names[0]!r}]), and ckm.sketch as they are."
        )


def to_array(
    frame: nw.DataFrame[Any], numberings: Mapping[int, Numbering] = NO_NUMBERINGS
) -> Array:
    """Convert a frame of numbers; nulls become NaN, which kernels refuse with their place. Some
    columns are read by `numberings`, by their place.
    """
    has_dates = any(dtype in (nw.Date, nw.Datetime) for dtype in frame.schema.values())
    array = None if numberings or has_dates else frame.to_numpy()
    if array is not None and array.dtype.kind in "biuf":
        return array
    # Columns of several types, with nulls, for which NumPy has no type, or of dates.
    from ckm._sources.arrow import to_rows

    columns = [column.to_arrow() for column in frame.iter_columns()]
    return to_rows(columns, len(frame), numberings)
