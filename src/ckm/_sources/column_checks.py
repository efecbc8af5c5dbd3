"""Columns that cannot be used, and weights, each refused with what to do."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ckm._messages import Argument, Message
from ckm._sources.category_columns import (
    require_category,
)
from ckm._sources.column_request import (
    AlmostNumbers,
    ColumnChoice,
    Dates,
    DescribedColumns,
    Vectors,
    listed,
)
from ckm._sources.user_column import (
    has_text,
    require_same_users,
)
from ckm._util.arrays import FloatArray
from ckm._util.warn import warn_user
from ckm.errors import ColumnsWarning, DataError, MismatchError, ParameterError

# A weight whose square and sum over 2**40 rows stay within float64.
_MAX_WEIGHT = 1e100
_ID_NAME = re.compile(
    r"(^|[_\s.-])(id|ids|uuid|guid|key|pk|idx|index|row|rowid|row_?(number|no|num))$"
    r"|[a-z]I[dD]$|^unnamed: \d+$|^$",
    re.IGNORECASE,
)


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
            message = Message(
                f"Column {name!r} of {where} holds {_described(holds, choice)}; convert it, "
            )
            if str(holds).startswith("text") and name != choice.weight:
                # No comma after the option: it is copied as it stands.
                use = Argument("categories", [str(name)])
                message = Message(message, "use its values with ", use, " ")
            raise DataError(
                message,
                "or leave it out, for example with ",
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


def describe_index(name: Any) -> tuple[Any, str]:
    """Describe a column that numbers rows."""
    if name == "":
        return "a column", "numbers without a name, perhaps of rows"
    return name, "a data frame's index"


def refuse_bad_values(left_out: DescribedColumns, chosen: Sequence[Any], where: str) -> None:
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


def warn_left_out(left_out: DescribedColumns, where: str) -> None:
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
