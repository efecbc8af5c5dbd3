"""The column of a table that says whose row each row is: what is asked for, and what is refused."""

from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ckm._messages import Argument
from ckm._util.arrays import FloatArray
from ckm._util.checks import check_whole_number
from ckm.errors import DataError, MismatchError, ParameterError


class UserCap(NamedTuple):
    """A column that says whose row each row is, and how many rows of a user count."""

    column: str
    max_rows: int


class UserNames:
    """A number for each name of a user, in the order in which names are met.

    Every user needs a number of its own: with a counter shared by two, the rows of one would decide
    which rows of the other count.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._next = count()

    def number(self, column: Any) -> FloatArray:
        """The numbers of an Arrow column of text; NaN where there is no name."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if not isinstance(column, pa.DictionaryArray):
            column = pc.dictionary_encode(column)
        # Threads that meet a name at the same time agree on one number, and no number is used
        # twice, though some may not be used.
        known = [
            self._numbers.setdefault(name, next(self._next)) if name else np.nan
            for name in column.dictionary.to_pylist()
        ]
        numbers: FloatArray = np.array([*known, np.nan])
        places = pc.fill_null(pc.cast(column.indices, pa.int64()), len(known))
        return np.asarray(numbers[places.to_numpy(zero_copy_only=False)])


def check_user_cap(column: str | None, max_rows: Any) -> UserCap | None:
    """The cap that is asked for; ParameterError if only one of its two arguments is given."""
    if column is None and max_rows is None:
        return None
    if column is None or max_rows is None:
        given, other = ("max_rows_per_user", "user_column")
        if max_rows is None:
            given, other = other, given
        raise ParameterError(
            Argument(given), " is used together with ", Argument(other, ...), "; give both."
        )
    return UserCap(column, check_whole_number(max_rows, "max_rows_per_user", 1))


def has_text(name: Any, holds: str | None, where: str) -> bool:
    """Whether a column of users holds text, not numbers; DataError for anything else."""
    if holds is not None and not holds.startswith("text"):
        raise DataError(
            f"Column {name!r} of {where} holds {holds}; give each user a number or a name in the "
            "column of ",
            Argument("user_column", ...),
            ".",
        )
    return holds is not None


def require_same_users(name: Any, is_text: bool, was_text: bool, where: str) -> None:
    """Refuse users that are numbers in one table and text in another: the same user would have two
    counters.
    """
    if is_text != was_text:
        kinds = ("numbers", "text")
        raise MismatchError(
            f"Column {name!r} of {where} holds {kinds[is_text]} where other tables hold "
            f"{kinds[was_text]}; write users alike in all tables."
        )


def check_user_column(user: Any, weight: Any, chosen: Sequence[Any]) -> None:
    """Require that the column of users is neither clustered nor that of weights."""
    if user is not None and (user in chosen or user == weight):
        raise ParameterError(
            f"Column {user!r} says whose row it is, so it cannot be clustered or hold weights too; "
            "leave it out of ",
            Argument("columns", ...),
            " and ",
            Argument("weight_column", ...),
            ".",
        )


def refuse_user_column(user: Any, where: str) -> None:
    """Refuse a column of users beside vectors and sparse rows, to which it cannot be appended."""
    if user is not None:
        raise ParameterError(
            f"In {where} a column holds whole rows, beside which ",
            Argument("user_column", ...),
            " cannot be used; give each coordinate a column of its own.",
        )
