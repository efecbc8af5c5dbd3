"""`ColumnSums`: sums over all columns of rows that are projected."""

from dataclasses import dataclass

import numpy as np

from ckm._util.arrays import FloatArray, Frozen, read_only


@dataclass(frozen=True, eq=False)
class ColumnSums(Frozen):
    """Sums over the columns of wide rows, of which the rest of a tally knows a projection only.

    Parameters
    ----------
    first : float64 array (n,)
        Sum of beta (x - origin), with the origin of the projection.
    second : float64 array (n,)
        Sum of beta (x - origin)^2.
    """

    first: FloatArray
    second: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", read_only(self.first, np.float64))
        object.__setattr__(self, "second", read_only(self.second, np.float64))

    @classmethod
    def empty(cls, n: int) -> "ColumnSums":
        """The sums over zero rows."""
        return cls(np.zeros(n), np.zeros(n))

    def __add__(self, other: "ColumnSums") -> "ColumnSums":
        return ColumnSums(self.first + other.first, self.second + other.second)

    def __sub__(self, other: "ColumnSums") -> "ColumnSums":
        # Rounding may leave less than nothing of the squares of a column.
        second = np.maximum(self.second - other.second, 0.0)
        return ColumnSums(self.first - other.first, second)

    def scaled(self, factor: float) -> "ColumnSums":
        """The same rows with their weights times `factor`."""
        return ColumnSums(factor * self.first, factor * self.second)

    def emptied(self) -> "ColumnSums":
        """The sums over zero rows of this width."""
        return ColumnSums.empty(len(self.first))
