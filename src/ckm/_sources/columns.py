"""Which columns of a table are used: those that are named, otherwise all that hold numbers."""

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckm._core.categories import Categories, Category, coded_columns
from ckm._messages import Argument, Message
from ckm._sources.category_columns import (
    LevelNumbers,
    Numbering,
    numbers_of,
    require_category,
)
from ckm._sources.user_column import (
    UserCap,
    UserNames,
    check_user_column,
    has_text,
    refuse_user_column,
    require_same_users,
)
from ckm._util.arrays import FloatArray
from ckm._util.warn import warn_user
from ckm.errors import ColumnsWarning, DataError, MismatchError, ParameterError

# A weight whose square and sum over 2**40 rows stay within float64.
_MAX_WEIGHT = 1e100

# The columns of lists that are sparse rows, unless others are named.
SPARSE_NAMES = ("indices", "values")

_ID_NAME = re.compile(
    r"(^|[_\s.-])(id|ids|uuid|guid|key|pk|idx|index|row|rowid|row_?(number|no|num))$"
    r"|[a-z]I[dD]$|^unnamed: \d+$|^$",
    re.IGNORECASE,
)

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


def choose(
    request: ColumnRequest,
    present: DescribedColumns,
    where: str,
    extra: Mapping[str, str | None] | None = None,
    index: Collection[str] = (),
    may_be_sparse: bool = False,
) -> ColumnChoice:
    """Choose columns among those `present` in `where`, which messages name.

    `extra` columns (keys in the names of folders), and those that are the `index` of a data frame,
    are used only if they are named. With `may_be_sparse`, two columns of lists may be sparse rows.
    """
    if request.categories:
        return _choose_with_categories(request, present, where, extra or {}, index)
    if request.exclude is not None:
        present, extra = _without_excluded(request, present, extra or {})
    contents = dict(present) | dict(extra or {})
    by_text = _by_text(list(contents), where)
    left_out: list[tuple[Any, str | None]] = []
    weight = None
    if request.weight is not None:
        weight = require_columns([request.weight], by_text)[0]
    user = None
    has_text_users = False
    if request.user is not None:
        user = require_columns([request.user.column], by_text)[0]
        has_text_users = has_text(user, contents[user], where)
    pair = _choose_pair(request, present) if may_be_sparse else None
    if pair is not None:
        refuse_user_column(user, where)
        return ColumnChoice(pair, weight, 0, True)
    matrix = _choose_vectors(request, present, index)
    if matrix is not None:
        refuse_user_column(user, where)
        chosen = [matrix]
        if request.columns is None:
            left_out += [(name, holds) for name, holds in present if holds and name != matrix]
    elif request.columns is not None:
        chosen = require_columns(request.columns, by_text)
    elif request.like and _has_names_like(request.like, [name for name, _ in present]):
        chosen = _columns_of_like(request, by_text, where)
    else:
        numbers = [name for name, holds in present if holds is None and name not in (weight, user)]
        chosen = [name for name in numbers if name != "" and name not in index] or numbers
        if request.like == ():
            require_order(chosen, request.like_name, where)
        left_out += [_describe_index(name) for name in numbers if name not in chosen]
        left_out += [(name, holds) for name, holds in present if holds is not None and name != user]
        _refuse_bad_values(left_out, chosen, where)
        left_out += [(name, "a key of folders") for name in extra or {}]
    _check_weight_column(weight, chosen)
    check_user_column(user, weight, chosen)
    if not chosen:
        seen = ", ".join(f"{name}: {holds}" for name, holds in left_out) or "there are none"
        several = [name for name, holds in left_out if isinstance(holds, Vectors)]
        if several:
            raise DataError(
                f"In {where} several columns hold vectors ({seen}); choose one with ",
                Argument("columns", str(several[0]), function="ckm.sketch"),
                ".",
            )
        raise DataError(f"In {where} no column holds numbers ({seen}); convert one, or add one.")
    width = None if matrix is None else getattr(contents[matrix], "width", None)
    choice = ColumnChoice(chosen, weight, width)
    if user is not None:
        names = UserNames() if has_text_users else None
        choice = ColumnChoice([*chosen, user], weight, user=user, user_names=names)
    require_numbers(choice, present, where, contents)
    _warn_left_out(left_out, where)
    return choice


def _choose_with_categories(
    request: ColumnRequest,
    present: DescribedColumns,
    where: str,
    extra: Mapping[str, str | None],
    index: Collection[str],
) -> ColumnChoice:
    """Choose columns as if there were no categories, and add these."""
    contents = dict(present) | dict(extra)
    by_text = _by_text(list(contents), where)
    names = [category.name for category in request.categories]
    missing = [name for name in names if name not in by_text]
    if missing:
        raise ParameterError(
            f"There is no column {missing[0]!r} for ",
            Argument("categories", ...),
            f" in {where}; the columns are {listed(by_text)}.",
        )
    for name in names:
        require_category(name, contents[by_text[name]], where)
    plain = _without_categories(request, names)
    rest = [(name, holds) for name, holds in present if str(name) not in names]
    has_rest = any(holds is None and name != request.weight for name, holds in rest)
    if plain.columns == [] or plain.like == () or not has_rest:
        # Nothing but categories.
        plain = plain._replace(columns=None, like=None)
        weight = None if request.weight is None else require_columns([request.weight], by_text)[0]
        choice = ColumnChoice([], weight)
    else:
        others = {name: holds for name, holds in extra.items() if name not in names}
        choice = choose(plain, rest, where, others, index)
    if choice.width is not None:
        raise ParameterError(
            f"In {where} a column holds whole rows, beside which ",
            Argument("categories", ...),
            " cannot be used; give each coordinate a column of its own.",
        )
    last = [] if choice.user is None else [choice.user]
    chosen = choice.names[: len(choice.names) - len(last)]
    return choice._replace(
        names=[*chosen, *(by_text[name] for name in names), *last],
        levels=request.levels or numbers_of(request.categories),
    )


def _without_categories(request: ColumnRequest, names: Collection[str]) -> ColumnRequest:
    """The request for all other columns."""
    columns = [request.columns] if isinstance(request.columns, str) else request.columns
    if columns is not None:
        columns = [name for name in columns if str(name) not in names]
    like = request.like
    if like:
        like = like[: len(like) - len(coded_columns(request.categories))]
    return request._replace(columns=columns, like=like, categories=())


def _without_excluded(
    request: ColumnRequest, present: DescribedColumns, extra: Mapping[str, str | None]
) -> tuple[DescribedColumns, Mapping[str, str | None]]:
    """The columns that are not excluded; raises `ParameterError` for names that make no sense."""
    excluded = request.excluded
    names = [str(name) for name, _ in present] + list(map(str, extra))
    missing = [name for name in excluded if name not in names]
    if missing:
        raise ParameterError(
            f"There is no column {missing[0]!r} to leave out with ",
            Argument("exclude", ...),
            f"; the columns are {listed(names)}.",
        )
    named = [request.columns] if isinstance(request.columns, str) else request.columns
    for wanted, what in (
        (named, Argument("columns", ...)),
        (request.like, request.like_name),
        ([request.weight] if request.weight else None, Argument("weight_column", ...)),
    ):
        both = [name for name in excluded if name in set(map(str, wanted or ()))]
        if both:
            raise ParameterError(
                Argument("exclude", both), " leaves out what ", what, " asks for; leave out one."
            )
    kept = [(name, holds) for name, holds in present if str(name) not in excluded]
    if not any(holds is None or isinstance(holds, Vectors) for _, holds in kept):
        raise ParameterError(
            Argument("exclude", excluded), " leaves nothing to cluster; keep at least one column."
        )
    return kept, {name: holds for name, holds in extra.items() if str(name) not in excluded}


def choose_matrix(
    request: ColumnRequest, present: DescribedColumns, matrices: Sequence[str]
) -> str | None:
    """Choose the one column that holds whole rows, if it is named or there is nothing else to use.

    None if plain columns are meant. `matrices` are the columns that hold whole rows.
    """
    if request.columns is not None:
        named = [request.columns] if isinstance(request.columns, str) else list(request.columns)
        return named[0] if len(named) == 1 and named[0] in matrices else None
    has_plain = any(holds is None and name != request.weight for name, holds in present)
    is_only = len(matrices) == 1 and not has_plain
    return matrices[0] if is_only else None


def _choose_pair(request: ColumnRequest, present: DescribedColumns) -> list[str] | None:
    """The columns of lists that are sparse rows: two that are named, or `indices` and `values`."""
    lists = [name for name, holds in present if isinstance(holds, Vectors) and not holds.width]
    if request.columns is not None:
        named = [request.columns] if isinstance(request.columns, str) else list(request.columns)
        return named if len(named) == 2 and set(named) <= set(lists) else None
    has_plain = any(holds is None and name != request.weight for name, holds in present)
    return list(SPARSE_NAMES) if not has_plain and set(SPARSE_NAMES) <= set(lists) else None


def _choose_vectors(
    request: ColumnRequest, present: DescribedColumns, index: Collection[str]
) -> Any:
    """The column of vectors to use, if one is named or there are no other numbers."""
    vectors = {str(name): name for name, holds in present if isinstance(holds, Vectors)}
    plain = [(str(name), holds) for name, holds in present if name not in index and name != ""]
    chosen = choose_matrix(request, plain, list(vectors))
    return None if chosen is None else vectors[chosen]


def require_numbers(
    choice: ColumnChoice,
    present: DescribedColumns,
    where: str,
    contents: Mapping[str, str | None] | None = None,
) -> None:
    """Raise an error for a table that lacks a chosen column, has it twice, or not in numbers.

    `contents` describes columns by name, if there are others than those `present`.
    """
    contents = dict(present) if contents is None else contents
    if choice.is_sparse and all(isinstance(contents.get(name), Vectors) for name in choice.names):
        return
    names = [name for name, _ in present]
    for name in choice.all:
        if name not in contents or names.count(name) > 1:
            what = "no column" if name not in contents else "more than one column"
            raise MismatchError(
                f"{where} has {what} {name!r}; give tables with the same columns, each named once."
            )
        holds = contents[name]
        if choice.user is not None and name == choice.user:
            require_same_users(name, has_text(name, holds, where), choice.has_named_users, where)
        elif name in choice.category_names:
            require_category(name, holds, where)
        elif isinstance(holds, Vectors):
            _require_width(choice, name, holds, where)
        elif isinstance(holds, Dates) and choice.width is None and name != choice.weight:
            continue
        elif holds is not None or (choice.width is not None and name != choice.weight):
            raise DataError(
                f"Column {name!r} of {where} holds {_described(holds, choice)}; convert it, "
                f"or leave it out, for example with ",
                Argument("columns", _examples(choice, present), function="ckm.sketch"),
                ".",
            )


def _examples(choice: ColumnChoice, present: DescribedColumns) -> list[str]:
    """Columns of numbers to name in a message, without ids unless there is nothing else."""
    numeric = [str(name) for name, holds in present if holds is None and name != choice.weight]
    useful = [name for name in numeric if not has_id_name(name)]
    return (useful or numeric)[:3] or ["a", "b"]


def has_id_name(name: str) -> bool:
    """Whether a column is named as ids and row numbers are.

    >>> [has_id_name(name) for name in ("id", "customer_id", "orderId", "Unnamed: 0", "width")]
    [True, True, True, True, False]
    """
    return _ID_NAME.search(name) is not None


def _described(holds: str | None, choice: ColumnChoice) -> str:
    """What a column holds that it should not hold."""
    if holds is None:
        return "numbers where other tables have vectors"
    if isinstance(holds, AlmostNumbers):
        return holds
    return f"{holds}, not {'numbers' if choice.width is None else 'vectors'}"


def _require_width(choice: ColumnChoice, name: Any, holds: Vectors, where: str) -> None:
    """Require that vectors are all that is clustered, and as long as those of the choice."""
    if choice.width is None or name == choice.weight:
        raise DataError(
            f"Column {name!r} of {where} holds {holds}, which are rows by themselves; use it "
            f"alone, with ",
            Argument("columns", str(name), function="ckm.sketch"),
            ".",
        )
    if holds.width and choice.width and holds.width != choice.width:
        raise MismatchError(
            f"Column {name!r} of {where} holds {holds} where others have {choice.width}; give "
            f"vectors of one length."
        )


def require_columns(named: Sequence[Any], by_text: Mapping[str, Any]) -> list[Any]:
    """Return the named columns; raise `ParameterError` unless each is present and named once.

    `by_text` are the columns that are present, by their names as text.
    """
    names = [named] if isinstance(named, str) else list(named)
    missing = [name for name in names if str(name) not in by_text]
    if missing:
        raise ParameterError(
            f"There is no column {missing[0]!r}; the columns are {listed(by_text)}."
        )
    if len(set(map(str, names))) != len(names):
        raise ParameterError(
            "A column is named twice in ", Argument("columns", names), "; name each once."
        )
    if not names:
        raise ParameterError(
            Argument("columns", []), " leaves nothing to cluster; name at least one column."
        )
    return [by_text[str(name)] for name in names]


def require_order(names: Sequence[Any], like_name: str, where: str) -> None:
    """Refuse columns whose names count them in another order, for a sketch without names.

    Columns are matched by position then, which such names contradict.
    """
    words = list(map(str, names))
    in_order = [str(i) for i in range(len(words))]
    if words != in_order and sorted(words) == sorted(in_order):
        raise MismatchError(
            f"{where} has the columns {listed(words)}, and ",
            like_name,
            " has columns without names, which are matched by position; give the columns in the "
            "order 0, 1, 2 ..., or as an array to keep this one.",
        )


def listed(names: Iterable[Hashable], most: int = 20) -> str:
    """Join names for a sentence; only the first `most` of them.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    words = list(map(str, names))
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def checked_weights(values: Any, what: str | Argument, row: int = 0) -> FloatArray:
    """Return weights as float64; raise `DataError` if one is negative, infinite or too large.

    NaN is left for the check of missing values. `row` is the number of the first row.
    """
    weights: FloatArray = np.asarray(values, np.float64)
    # The usual case takes two passes over the weights.
    if len(weights) and weights.min() >= 0 and 1 / _MAX_WEIGHT <= weights.max() <= _MAX_WEIGHT:
        return weights
    with np.errstate(invalid="ignore"):
        bad = (weights < 0) | np.isinf(weights)
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            what, f" must be finite and not negative; weight {row + at} is {weights[at]}."
        )
    largest = float(np.fmax.reduce(weights, initial=0.0))
    if largest > _MAX_WEIGHT or 0 < largest < 1 / _MAX_WEIGHT:
        raise DataError(
            what,
            f" has {largest:g} as its largest weight, which sums cannot hold; rescale the weights.",
        )
    return weights


def _by_text(names: Sequence[Any], where: str) -> dict[str, Any]:
    """The columns by their names as text, which those of data frames need not be."""
    by_text = {str(name): name for name in names}
    if len(by_text) < len(names):
        twice = next(name for name in names if by_text[str(name)] != name)
        raise DataError(
            f"{where} has columns whose names read alike, {twice!r} and {by_text[str(twice)]!r}; "
            "rename one."
        )
    return by_text


def _has_names_like(like: Sequence[str], names: Sequence[Any]) -> bool:
    """Whether names are to be looked up. Those that only count the columns are, if all of `like`
    are among them.
    """
    return not is_count(names) or set(like) <= set(map(str, names))


def _check_weight_column(weight: Any, chosen: Sequence[Any]) -> None:
    """Require that the column of weights is not clustered."""
    if weight is not None and weight in chosen:
        raise ParameterError(
            f"Column {weight!r} holds the weights, so it cannot be clustered too; leave it out of ",
            Argument("columns", ...),
            ".",
        )


def _columns_of_like(request: ColumnRequest, by_text: Mapping[str, Any], where: str) -> list[Any]:
    """The columns of an earlier sketch, which must be present in any order."""
    assert request.like is not None
    missing = [name for name in request.like if name not in by_text]
    if missing:
        raise MismatchError(
            f"{where} has no column {missing[0]!r}, which ",
            request.like_name,
            f" was made with: the data has {listed(by_text)}, ",
            request.like_name,
            f" has {listed(request.like)}. Give the same columns.",
        )
    return [by_text[name] for name in request.like]


def _describe_index(name: Any) -> tuple[Any, str]:
    """Describe a column that numbers rows."""
    if name == "":
        return "a column", "numbers without a name, perhaps of rows"
    return name, "a data frame's index"


def _refuse_bad_values(left_out: DescribedColumns, chosen: Sequence[Any], where: str) -> None:
    """Refuse to leave out a column of numbers because of a few values that are none."""
    for name, holds in left_out:
        if isinstance(holds, AlmostNumbers):
            others = [str(other) for other in chosen][:3]
            raise DataError(
                f"Column {name!r} of {where} holds {holds}; mend that, leave it empty for a "
                "missing value, or leave the column out, for example with ",
                Argument("columns", others or ["a", "b"], function="ckm.sketch"),
                ".",
            )


def _warn_left_out(left_out: DescribedColumns, where: str) -> None:
    """Warn of the columns that are not used."""
    if left_out:
        named = listed(f"{name} ({holds})" for name, holds in left_out)
        vectors = [str(name) for name, holds in left_out if isinstance(holds, Vectors)]
        advice = "cluster the vectors" if vectors else "choose others"
        message = Message(
            f"Left out of {where}: {named}; {advice} with ",
            Argument("columns", vectors[0] if vectors else ..., function="ckm.sketch"),
        )
        if any(str(holds).startswith("text") for _, holds in left_out):
            use = Argument("categories", ...)
            message = Message(message, ", and use text of few values with ", use)
        message = Message(message, ".")
        warn_user(message, ColumnsWarning)
