"""Which columns of a table are used: those that are named, otherwise all that hold numbers."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ckm._core.categories import coded_columns
from ckm._messages import Argument
from ckm._sources.category_columns import (
    numbers_of,
    require_category,
)
from ckm._sources.column_checks import (
    describe_index,
    refuse_bad_values,
    require_columns,
    require_numbers,
    require_order,
    warn_left_out,
)
from ckm._sources.column_request import (
    SPARSE_NAMES,
    ColumnChoice,
    ColumnRequest,
    DescribedColumns,
    Vectors,
    is_count,
    listed,
)
from ckm._sources.user_column import (
    UserNames,
    check_user_column,
    has_text,
    refuse_user_column,
)
from ckm.errors import DataError, MismatchError, ParameterError


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
        left_out += [describe_index(name) for name in numbers if name not in chosen]
        left_out += [(name, holds) for name, holds in present if holds is not None and name != user]
        refuse_bad_values(left_out, chosen, where)
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
    warn_left_out(left_out, where)
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
    if missing and request.like:
        raise MismatchError(
            f"{where} has no column {missing[0]!r}, whose values ",
            request.like_name,
            f" was made with: the data has {listed(by_text)}. Give the same columns.",
        )
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

    Nothing else can be used, too, where an earlier sketch had columns without names, as vectors
    have none, and the table has not as many plain ones. None if plain columns are meant. `matrices`
    are the columns that hold whole rows.
    """
    if request.columns is not None:
        named = [request.columns] if isinstance(request.columns, str) else list(request.columns)
        return named[0] if len(named) == 1 and named[0] in matrices else None
    beside = (request.weight, None if request.user is None else request.user.column)
    n_plain = sum(holds is None and name not in beside for name, holds in present)
    is_other = request.like == () and n_plain != request.like_features
    is_only = len(matrices) == 1 and (n_plain == 0 or is_other)
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
