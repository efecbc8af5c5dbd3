"""`SparseRows`: rows that are mostly zeros, with as much of NumPy's interface as passes need."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckm._util.arrays import Array, BoolArray, FloatArray, IntArray, LabelArray, float_type
from ckm.errors import DataError


class SparseRows:
    """Rows in compressed form (CSR): only numbers that are not zero are held.

    Conversion to a NumPy array makes them dense. Column numbers increase within each row.

    Parameters
    ----------
    values : float32 or float64 array (k,)
        The numbers.
    columns : int32 or int64 array (k,)
        The column of each number.
    starts : int64 array (b + 1,)
        Row r has the numbers from starts[r] to starts[r + 1]. The first may be above zero.
    n : int
        The number of columns.

    Examples
    --------
    >>> rows = SparseRows(np.array([1.0, 2.0]), np.array([0, 2]), np.array([0, 1, 1, 2]), 3)
    >>> len(rows), rows.shape
    (3, (3, 3))
    >>> np.asarray(rows[1:])
    array([[0., 0., 0.],
           [0., 0., 2.]])
    """

    __slots__ = ("columns", "n", "starts", "values")
    ndim = 2

    def __init__(self, values: Array, columns: Array, starts: Array, n: int) -> None:
        self.values = values
        self.columns = columns
        self.starts: IntArray = np.asarray(starts, np.int64)
        self.n = n

    @classmethod
    def of(cls, matrix: Any) -> "SparseRows":
        """The rows of SciPy's CSR matrix, each number once; integers become float64."""
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        values = matrix.data
        values = values.astype(float_type(values.dtype), copy=False)
        return cls(values, matrix.indices, matrix.indptr, int(matrix.shape[1]))

    @classmethod
    def joined(cls, parts: Sequence[Any]) -> "SparseRows":
        """All rows of several tables, at least one of them sparse."""
        tables = [as_sparse(part) for part in parts]
        lengths = [np.diff(table.starts) for table in tables]
        return cls(
            np.concatenate([table.values[table.numbers()] for table in tables]),
            np.concatenate([table.columns[table.numbers()] for table in tables]),
            np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))]),
            tables[0].n,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return len(self), self.n

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, which: Any) -> Any:
        """A slice of rows, without a copy; the rows of some indices or of a mask, copied; or the
        number at a row and a column.
        """
        if isinstance(which, tuple):
            row, column = which
            numbers = self[row : row + 1].numbers()
            return self.values[numbers][self.columns[numbers] == column].sum()
        if isinstance(which, slice):
            low, high, step = which.indices(len(self))
            if step == 1:
                starts = self.starts[low : max(low, high) + 1]
                return SparseRows(self.values, self.columns, starts, self.n)
            which = np.arange(low, high, step)
        which = np.asarray(which)
        if which.dtype.kind == "b":
            which = np.flatnonzero(which)
        lengths = self.starts[which + 1] - self.starts[which]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        # The place of each number in the whole: its place in the row, after the row's start.
        places = np.arange(starts[-1]) + np.repeat(self.starts[which] - starts[:-1], lengths)
        return SparseRows(self.values[places], self.columns[places], starts, self.n)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        dense = np.zeros(self.shape, self.dtype if dtype is None else dtype)
        numbers = self.numbers()
        dense[self.owners(), self.columns[numbers]] = self.values[numbers]
        return dense

    def __truediv__(self, units: Array) -> "SparseRows":
        """The rows with each column divided by its unit."""
        numbers = self.numbers()
        columns = self.columns[numbers]
        starts = self.starts - self.starts[0]
        return SparseRows(self.values[numbers] / units[columns], columns, starts, self.n)

    def astype(self, dtype: Any) -> "SparseRows":
        """The rows with numbers of another type."""
        return SparseRows(self.values.astype(dtype), self.columns, self.starts, self.n)

    def owners(self) -> IntArray:
        """The row of each number."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def any_where(self, is_marked: BoolArray) -> BoolArray:
        """Which rows have a number that is marked, given a mark for each of `numbers`."""
        rows = np.zeros(len(self), bool)
        rows[self.owners()[is_marked]] = True
        return rows

    def compressed(self) -> tuple[FloatArray, LabelArray, IntArray]:
        """Numbers (float64), their columns (int32) and the starts of rows, from zero on, as
        compiled code takes them. It does not check columns, so that they are checked here.
        """
        numbers = self.numbers()
        columns = self.columns[numbers]
        if len(columns) and not (columns.min() >= 0 and columns.max() < self.n):
            wrong = columns.min() if columns.min() < 0 else columns.max()
            raise DataError(
                f"The sparse rows have a number in column {wrong}, and there are {self.n} columns; "
                "check how the matrix was made, for example with its method check_format()."
            )
        values = np.ascontiguousarray(self.values[numbers], np.float64)
        return values, np.ascontiguousarray(columns, np.int32), self.starts - self.starts[0]

    def numbers(self) -> slice:
        """Where the numbers of these rows are in `values` and `columns`."""
        return slice(int(self.starts[0]), int(self.starts[-1]))

    def to_scipy(self) -> Any:
        """The same rows as SciPy's CSR array."""
        from scipy.sparse import csr_array

        numbers = self.numbers()
        parts = (self.values[numbers], self.columns[numbers], self.starts - self.starts[0])
        return csr_array(parts, shape=self.shape)


def as_sparse(rows: Any) -> SparseRows:
    """Rows as sparse ones; those that are dense lose their zeros."""
    if isinstance(rows, SparseRows):
        return rows
    from scipy.sparse import csr_array

    dense = np.asarray(rows)
    return SparseRows.of(csr_array(dense.astype(float_type(dense.dtype), copy=False)))
