"""Columns of vectors: each cell holds a whole row, as a list of numbers of one length.

Lists of Arrow may be of a fixed size, which their type tells, or of any size; then all must be as
long as the first, which is checked as they are read.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckm._sources.column_request import ColumnChoice, Vectors
from ckm._util.arrays import Array, IntArray
from ckm._util.sparse import SparseRows
from ckm.errors import DataError

_IS_LIST = (pa.types.is_list, pa.types.is_large_list)


class UnequalLengthsError(DataError):
    """A list is shorter or longer than the others of its column."""


def describe_vectors(kind: Any) -> Vectors | None:
    """What a column of an Arrow type holds, if these are lists of numbers; otherwise None."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    is_fixed = pa.types.is_fixed_size_list(kind)
    if not is_fixed and not any(is_list(kind) for is_list in _IS_LIST):
        return None
    inner = kind.value_type
    if not (pa.types.is_integer(inner) or pa.types.is_floating(inner)):
        return None
    return Vectors(kind.list_size if is_fixed else 0)


def with_width(choice: ColumnChoice, batches: Iterable[Any], where: str) -> ColumnChoice:
    """The choice with the length of the first list, if the lists may be of any length."""
    if choice.width != 0:
        return choice
    for batch in batches:
        lengths = pc.drop_null(pc.list_value_length(_storage(batch.column(choice.names[0]))))
        if len(lengths):
            return choice._replace(width=_checked_width(lengths[0].as_py(), choice, where))
    raise no_width(choice.names[0], where)


def _checked_width(width: int, choice: ColumnChoice, where: str) -> int:
    if not width:
        raise DataError(
            f"Column {choice.names[0]!r} of {where} begins with an empty list; each list is a row, "
            f"and needs at least one number."
        )
    return width


def no_width(name: Any, where: str) -> DataError:
    """The error for lists of any length of which there is none."""
    return DataError(
        f"Column {name!r} of {where} has no list to tell the number of coordinates from; give it "
        f"some rows, or lists of a fixed size."
    )


def to_vectors(
    column: Any, width: int, name: Any, where: str, numbers: int | Sequence[int] | IntArray = 0
) -> Array:
    """Convert lists to rows (b, width); those that are null become rows of NaN.

    `numbers` are those of the rows, or that of the first, for errors.
    """
    cells = _storage(column)
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.chunk(0) if cells.num_chunks == 1 else cells.combine_chunks()
    lengths = pc.list_value_length(cells)
    differs = pc.fill_null(pc.not_equal(lengths, width), False).to_numpy(zero_copy_only=False)
    if differs.any():
        at = int(np.argmax(differs))
        row = numbers + at if isinstance(numbers, int) else int(numbers[at])
        raise unequal_lengths(name, where, row, lengths[at].as_py(), width)
    count = len(cells)
    if not cells.null_count:
        return _to_numbers(cells.flatten()).reshape(count, width)
    values = _to_numbers(cells.drop_null().flatten()).reshape(-1, width)
    is_narrow = values.dtype.kind == "f" and values.dtype.itemsize <= 4
    rows = np.full((count, width), np.nan, values.dtype if is_narrow else np.float64)
    rows[cells.is_valid().to_numpy(zero_copy_only=False)] = values
    return rows


def to_sparse(columns: Sequence[Any], width: int, where: str, row: int) -> SparseRows:
    """Convert a column of lists of column numbers and one of lists of values to sparse rows.

    `row` is the number of the first.
    """
    from scipy.sparse import csr_array

    indices, values = (_combined(column) for column in columns)
    if indices.null_count or values.null_count:
        missing = pc.or_(indices.is_null(), values.is_null()).to_numpy(zero_copy_only=False)
        at = row + int(np.argmax(missing))
        raise DataError(f"Row {at} of {where} is missing (null); leave such rows out.")
    lengths = pc.list_value_length(indices).to_numpy(zero_copy_only=False)
    others = pc.list_value_length(values).to_numpy(zero_copy_only=False)
    if (lengths != others).any():
        at = int(np.argmax(lengths != others))
        raise DataError(
            f"Row {row + at} of {where} has {lengths[at]} column numbers and {others[at]} values; "
            f"give one for each."
        )
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    numbers = _to_numbers(indices.flatten())
    outside = (numbers < 0) | (numbers >= width)
    if numbers.dtype.kind not in "iu" or outside.any():
        at = int(np.searchsorted(starts, np.argmax(outside), side="right")) - 1
        raise DataError(
            f"Row {row + at} of {where} has a column number that is not one of 0 to {width - 1}; "
            f"write whole numbers from zero on, and the number of columns as n_features in the "
            f"metadata of the schema."
        )
    parts = (_to_numbers(values.flatten()), numbers, starts)
    return SparseRows.of(csr_array(parts, (len(lengths), width)))


def largest_index(column: Any) -> int:
    """The largest number in a column of lists; -1 if there is none."""
    found = pc.max(_combined(column).flatten()).as_py()
    return -1 if found is None else int(found)


def _combined(column: Any) -> Any:
    """A column as one array."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def unequal_lengths(
    name: Any, where: str, row: int, length: int, width: int
) -> UnequalLengthsError:
    """The error for a list that is not as long as the others."""
    return UnequalLengthsError(
        f"Row {row} of {where} has a list of {length} numbers in column {name!r} where others have "
        f"{width}; give lists of one length."
    )


def _storage(column: Any) -> Any:
    """The lists that a column of an extension type, such as tensors, is stored as."""
    if isinstance(column.type, pa.BaseExtensionType):
        kind = column.type.storage_type
        if isinstance(column, pa.ChunkedArray):
            return pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
        return column.storage
    return column


def _to_numbers(values: Any) -> Array:
    """Numbers without a copy if none is null; nulls become NaN."""
    numbers: Array = values.to_numpy(zero_copy_only=False)
    return numbers
