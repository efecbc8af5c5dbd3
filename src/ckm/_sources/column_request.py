"""What is asked of the columns of a table, and what was chosen of them."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from ckm._core.categories import Categories, Category
from ckm._messages import Argument, Message
from ckm._sources.category_columns import (
    LevelNumbers,
    Numbering,
)
from ckm._sources.user_column import (
    UserCap,
    UserNames,
)
from ckm.errors import ParameterError

# The columns of lists that are sparse rows, unless others are named.
SPARSE_NAMES = ("indices", "values")
# The columns of a table, each with a description of what it holds: None for numbers.
DescribedColumns = Sequence[tuple[Any, str | None]]


class Vectors(str):
    """What a column holds, in words, whose cells are whole rows: lists of `width` numbers.

    The width is 0 if lists may be of any length, of which all rows must then have the same.

    >>> Vectors(384)
    'vectors of 384 numbers'
    """

    width: int

    def __new__(cls, width: int) -> "Vectors":
        text = super().__new__(cls, f"vectors of {width} numbers" if width else "lists of numbers")
        text.width = width
        return text


class AlmostNumbers(str):
    """What a column holds, in words, of which few values are text: the first is in this `row`.

    >>> AlmostNumbers(12, "unknown", 1)
    "numbers but for 1 value ('unknown' in row 12)"
    """

    def __new__(cls, row: int, text: str, count: int) -> "AlmostNumbers":
        values = f"{count} value{'s' * (count > 1)}"
        first = "the first is " if count > 1 else ""
        shown = f"{first}{text[:20]!r} in row {row}"
        return super().__new__(cls, f"numbers but for {values} ({shown})")


class Dates(str):
    """What a column of dates or times holds, in words. If it is named, it is used: as days since
    1970.
    """


class ColumnRequest(NamedTuple):
    """The columns that a user asks for.

    Parameters
    ----------
    columns : sequence of str or None
        The names of the columns to cluster, in this order; None for all that hold numbers. Names
        that are not text, such as the integers of a data frame, are found by their text too.
    weight : str or None
        The name of the column of weights.
    like : tuple of str or None
        The columns of an earlier sketch or model, used if the data has column names, in whatever
        order they are there. An empty tuple if those had no names.
    like_features : int or None
        How many these are. A column of vectors is used where plain columns are not as many.
    like_name : str
        What `like` belongs to, for messages.
    user : UserCap or None
        The column of users, which is read after those to cluster, as one of them:
        `ckm._sources.user_cap` takes it off again.
    exclude : sequence of str or None
        The names of columns that are not clustered.
    categories : tuple of Category
        The columns of categories, which are clustered too, after all others; `like` has the names
        of the coded ones.
    levels : tuple of LevelNumbers
        What reads each of them.
    """

    columns: Sequence[str] | None = None
    weight: str | None = None
    like: tuple[str, ...] | None = None
    like_name: str = Message("the sketch given as ", Argument("like", ...))
    user: UserCap | None = None
    exclude: Sequence[str] | None = None
    categories: Categories = ()
    levels: tuple[LevelNumbers, ...] = ()
    like_features: int | None = None

    @property
    def excluded(self) -> list[str]:
        """The names of columns that are not clustered."""
        names = [self.exclude] if isinstance(self.exclude, str) else list(self.exclude or ())
        return list(map(str, names))

    def refuse_names(self, what: str) -> None:
        """Raise `ParameterError` if columns are named, for data without column names."""
        if self.columns is not None:
            raise ParameterError(
                f"{what} has no column names; leave out ",
                Argument("columns", ...),
                ", or pass a data frame or a table's file.",
            )
        if self.exclude is not None:
            raise ParameterError(
                f"{what} has no column names; leave out ",
                Argument("exclude", ...),
                ", or pass a data frame or a table's file.",
            )
        if self.categories:
            raise ParameterError(
                f"{what} has no column names, so none is {self.categories[0].name!r}; pass a data "
                "frame or a table's file for ",
                Argument("categories", ...),
                ".",
            )
        if self.weight is not None:
            raise ParameterError(
                f"{what} has no column names, so none is {self.weight!r}; leave out ",
                Argument("weight_column", ...),
                ", or pass ",
                Argument("sample_weight", ...),
                ".",
            )
        if self.user is not None:
            raise ParameterError(
                f"{what} has no column names, so none is {self.user.column!r}; pass a data frame "
                "or a table's file for ",
                Argument("user_column", ...),
                ".",
            )


class ColumnChoice(NamedTuple):
    """The columns to read: the ones to cluster, in order, and the one of weights.

    If the only one to cluster holds vectors, `width` is their number of coordinates, or 0 until the
    first vector shows it. If `is_sparse`, two columns hold the column numbers and the values of
    rows that are mostly zeros. The last name is that of the `user` column, if there is one, and
    `user_names` numbers its users if they are text. The names before are those of categories, of
    which each has an item of `levels`.
    """

    names: list[Any]
    weight: Any
    width: int | None = None
    is_sparse: bool = False
    user: Any = None
    user_names: UserNames | None = None
    levels: tuple[LevelNumbers, ...] = ()

    @property
    def category_names(self) -> list[Any]:
        """The columns of categories."""
        stop = len(self.names) - (self.user is not None)
        return self.names[stop - len(self.levels) : stop]

    @property
    def numberings(self) -> dict[int, Numbering]:
        """What reads a column as numbers that are not its own, by its place among the names."""
        found: dict[int, Numbering] = {}
        if self.user_names is not None:
            found[len(self.names) - 1] = self.user_names.number
        for name, own in zip(self.category_names, self.levels, strict=True):
            found[self.names.index(name)] = own.number
        return found

    @property
    def has_named_users(self) -> bool:
        """Whether users are text."""
        return self.user_names is not None

    @property
    def n_features(self) -> int:
        """The number of columns of the rows."""
        return len(self.names) if self.width is None else self.width

    @property
    def all(self) -> list[Any]:
        """The columns to cluster, then the one of weights."""
        return self.names if self.weight is None else [*self.names, self.weight]

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns to cluster, as text; None if they only count the columns."""
        is_unnamed = self.width is not None or (is_count(self.names) and not self.levels)
        return None if is_unnamed else tuple(map(str, self.names))


def request_like(choice: ColumnChoice) -> ColumnRequest:
    """The request for the columns of a choice, in another table."""
    categories = tuple(Category(str(name)) for name in choice.category_names)
    user = None if choice.user is None else UserCap(choice.user, 1)
    names = choice.names if user is None else choice.names[:-1]
    return ColumnRequest(names, choice.weight, user=user, categories=categories)


def is_count(names: Sequence[Any]) -> bool:
    """Whether names are the integers from zero on, as data frames have them without names.

    >>> is_count([0, 1, 2]), is_count([3, 1, 2]), is_count(["0", "1", "2"])
    (True, False, False)
    """
    return list(names) == list(range(len(names)))


def listed(names: Iterable[Hashable], most: int = 20) -> str:
    """Join names for a sentence; only the first `most` of them.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    words = list(map(str, names))
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
