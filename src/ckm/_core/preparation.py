"""What is done to columns before anything else: part of the design of a sketch, as frequencies are.

Everything in a sketch is about prepared rows; centroids are given in the columns of the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._core.categories import Categories, groups_of
from ckm._util.arrays import FloatArray
from ckm._util.sparse import SparseRows


@dataclass(frozen=True)
class Preparation:
    """Logarithms of some columns, which units columns are divided by, and coded categories.

    The logarithm is sign(x) log(1 + |x|), which zero and negative numbers have too.

    Parameters
    ----------
    logged : tuple of int
        The numbers of the columns that are replaced by their logarithms, in increasing order.
    is_robust : bool
        Whether columns are standardised by the interquartile range of the pilot rather than by the
        standard deviation.
    categories : tuple of Category
        How the last columns were coded, and what they are multiplied by. Rows have coded columns
        already.

    Examples
    --------
    >>> prepared = Preparation(logged=(1,)).apply(np.array([[5.0, np.e - 1]]))
    >>> prepared
    array([[5., 1.]])
    >>> Preparation(logged=(1,)).undo(prepared).round(6)
    array([[5.      , 1.718282]])
    """

    logged: tuple[int, ...] = ()
    is_robust: bool = False
    categories: Categories = ()

    def __post_init__(self) -> None:
        if list(self.logged) != sorted(set(self.logged)) or any(j < 0 for j in self.logged):
            raise ValueError(f"{self.logged} are not column numbers in increasing order")

    def __bool__(self) -> bool:
        return bool(self.logged) or self.is_robust or bool(self.categories)

    @property
    def changes_rows(self) -> bool:
        """Whether rows are not sketched as they are."""
        return bool(self.logged) or any(category.weight != 1 for category in self.categories)

    @property
    def fingerprint(self) -> str:
        """All of it as text."""
        coded = f" categories {self.categories}" if self.categories else ""
        return f"log {self.logged} robust {self.is_robust}{coded}"

    def apply(self, rows: Any) -> Any:
        """Rows of the data (..., n) as they are sketched; the same rows if nothing changes."""
        if not self.changes_rows:
            return rows
        dense = np.asarray(rows) if isinstance(rows, SparseRows) else rows
        prepared = np.array(dense, np.float64)
        some = prepared[..., self.logged]
        prepared[..., self.logged] = np.copysign(np.log1p(np.abs(some)), some)
        for category, columns in groups_of(self.categories, prepared.shape[-1]):
            prepared[..., columns] *= category.weight
        return prepared

    def undo(self, points: FloatArray) -> FloatArray:
        """Prepared points (..., n) in the columns of the data."""
        if not self.changes_rows:
            return points
        found = np.array(points, np.float64)
        some = found[..., self.logged]
        with np.errstate(over="ignore"):
            found[..., self.logged] = np.copysign(np.expm1(np.abs(some)), some)
        for category, columns in groups_of(self.categories, found.shape[-1]):
            found[..., columns] /= category.weight
        return found

    def log_slope(self, points: FloatArray) -> FloatArray:
        """The logarithm of the factor (...,) by which volumes shrink around points of the data."""
        shrunk = np.asarray(-np.log1p(np.abs(points[..., self.logged])).sum(axis=-1))
        stretched = sum(len(own.columns) * np.log(own.weight) for own in self.categories)
        return np.asarray(shrunk + stretched)


def prepared(rows: Any, preparation: Preparation | None) -> Any:
    """Rows as they are sketched, if they are prepared at all."""
    return rows if preparation is None else preparation.apply(rows)


def categories_of(preparation: Preparation | None) -> Categories:
    """How categories were coded, if there are any."""
    return () if preparation is None else preparation.categories


def prepared_names(names: Sequence[str], preparation: Preparation | None) -> tuple[str, ...]:
    """What prepared columns are called, where they are spoken of as they are sketched.

    >>> prepared_names(("age", "amount"), Preparation(logged=(1,)))
    ('age', 'log(1 + amount)')
    """
    found = list(names)
    if preparation is None:
        return tuple(found)
    for j in preparation.logged:
        found[j] = f"log(1 + {found[j]})"
    for category, columns in groups_of(preparation.categories, len(found)):
        if category.weight != 1:
            found[columns] = [f"{category.weight:g} * {name}" for name in found[columns]]
    return tuple(found)


def unprepared(points: FloatArray, preparation: Preparation | None) -> FloatArray:
    """Prepared points in the columns of the data."""
    return points if preparation is None else preparation.undo(points)
