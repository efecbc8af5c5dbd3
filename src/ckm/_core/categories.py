"""How categories become numbers: one indicator per value, or the share of rows with the value.

The values are those of sampled rows; any other one is "other". A missing value is a value of its
own, "missing", if sampled rows have some. Part of the design of a sketch, as frequencies are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._messages import Argument
from ckm._util.arrays import FloatArray
from ckm.errors import ParameterError

ONEHOT = "onehot"
FREQUENCY = "frequency"
OTHER = "other"
MISSING = "missing"
# Values that are told apart, the most frequent ones. One-hot coding makes a column of each.
MAX_LEVELS = {ONEHOT: 32, FREQUENCY: 1000}


@dataclass(frozen=True)
class Category:
    """A column of categories, and how it is coded.

    Parameters
    ----------
    name : str
        The column of the table.
    coding : {"onehot", "frequency"}
        A column of zeros and ones per value and one for all others, or one column with the share of
        sampled rows that have the value, which is 0 for others.
    weight : float
        What coded columns are multiplied by. If columns are standardised, all columns of a category
        have one unit, by which their variances add up to the square of the weight.
    levels : tuple of str, optional
        The values that are told apart, sorted; None until rows were sampled.
    shares : tuple of float
        Their shares, for "frequency".

    Examples
    --------
    >>> plan = Category("plan", levels=("basic", "pro"))
    >>> plan.columns
    ('plan=basic', 'plan=pro', 'plan=other')
    >>> plan.values
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    name: str
    coding: str = ONEHOT
    weight: float = 1.0
    levels: tuple[str, ...] | None = None
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.coding not in MAX_LEVELS:
            raise ParameterError(
                Argument("categories", ...),
                f' takes "{ONEHOT}" or "{FREQUENCY}", a weight, or both; got {self.coding!r} for '
                f"{self.name!r}.",
            )
        if not 0 < self.weight < math.inf:
            raise ParameterError(
                Argument("categories", ...),
                f" takes weights that are positive numbers; got {self.weight} for {self.name!r}.",
            )
        levels = self.levels or ()
        if list(levels) != sorted(set(levels)) or OTHER in levels:
            raise ValueError(f"{levels} are not different values in order")
        is_shared = self.coding == FREQUENCY and self.levels is not None
        if len(self.shares) != is_shared * len(levels) or not all(0 < p <= 1 for p in self.shares):
            raise ValueError(f"{self.shares} are not the shares of {len(levels)} values")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the coded columns."""
        if self.coding == FREQUENCY:
            return (f"frequency of {self.name}",)
        return tuple(f"{self.name}={level}" for level in (*(self.levels or ()), OTHER))

    @property
    def values(self) -> FloatArray:
        """The coded columns (levels + 1, columns) of each value; the last row is for others."""
        if self.coding == FREQUENCY:
            return np.array([*self.shares, 0.0])[:, None]
        return np.eye(len(self.levels or ()) + 1)

    def __str__(self) -> str:
        """The coding in words.

        >>> print(Category("plan", levels=("basic", "pro")))
        plan (one-hot, 2 values and other, weight 1)
        """
        coding = "one-hot" if self.coding == ONEHOT else "by frequency"
        known = "" if self.levels is None else f", {len(self.levels)} values and {OTHER}"
        return f"{self.name} ({coding}{known}, weight {self.weight:g})"

    @property
    def request(self) -> "Category":
        """What was asked for, before rows were sampled."""
        return Category(self.name, self.coding, self.weight)

    def with_counts(self, counts: Mapping[str, float]) -> "Category":
        """The category with the values of sampled rows, of which these are the weights."""
        total = sum(counts.values())
        known = [level for level in counts if level != OTHER and counts[level] > 0]
        frequent = sorted(known, key=lambda level: (-counts[level], level))
        levels = tuple(sorted(frequent[: MAX_LEVELS[self.coding]]))
        is_shared = self.coding == FREQUENCY
        shares = tuple(counts[level] / total for level in levels) if is_shared else ()
        return Category(self.name, self.coding, self.weight, levels, shares)

    def record(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "name": self.name,
            "coding": self.coding,
            "weight": self.weight,
            "levels": list(self.levels or ()),
            "shares": list(self.shares),
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> "Category":
        """The category that `record` describes; ValueError or another error if it is none."""
        texts = [record["name"], record["coding"], *record["levels"]]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("names and values of categories are text")
        weight = float(record["weight"])
        shares = tuple(map(float, record["shares"]))
        return cls(record["name"], record["coding"], weight, tuple(record["levels"]), shares)


Categories = tuple[Category, ...]


def as_categories(given: Any) -> Categories:
    """The categories that an argument asks for: names, or a coding, a weight or both per name."""
    if given is None:
        return ()
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping):
        found = tuple(_category(str(name), value) for name, value in given.items())
    elif isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
        found = tuple(Category(name) for name in given)
    else:
        raise ParameterError(
            Argument("categories"),
            " must be names of columns, or a dict with a coding or a weight for each; got "
            f"{given!r}.",
        )
    if len({category.name for category in found}) < len(found):
        raise ParameterError(
            "A column is named twice in ", Argument("categories", ...), "; name each once."
        )
    return found


def _category(name: str, value: Any) -> Category:
    parts = value if isinstance(value, tuple | list) else (value,)
    codings = [part for part in parts if isinstance(part, str)]
    weights = [part for part in parts if isinstance(part, int | float) and part is not True]
    if len(codings) > 1 or len(weights) > 1 or len(codings) + len(weights) != len(parts):
        raise ParameterError(
            Argument("categories", ...),
            f' takes "{ONEHOT}" or "{FREQUENCY}", a weight, or both; got {value!r} for {name!r}.',
        )
    coding = codings[0] if codings else ONEHOT
    return Category(name, coding, float(weights[0]) if weights else 1.0)


def coded_columns(categories: Categories) -> tuple[str, ...]:
    """The names of the columns of all categories, which are the last ones of a table."""
    return tuple(name for category in categories for name in category.columns)


def groups_of(categories: Categories, n: int) -> list[tuple[Category, slice]]:
    """Each category with its columns among the n of a table."""
    found = list[tuple[Category, slice]]()
    stop = n
    for category in reversed(categories):
        start = stop - len(category.columns)
        found.append((category, slice(start, stop)))
        stop = start
    return found[::-1]


def pooled_variances(variances: FloatArray, categories: Categories) -> FloatArray:
    """The squares (n,) of the units that columns of these variances are standardised by: those of a
    category have the sum of theirs, divided by the square of its weight.
    """
    pooled = np.array(variances, np.float64)
    for category, columns in groups_of(categories, len(pooled)):
        pooled[columns] = pooled[columns].sum() / category.weight**2
    return pooled
