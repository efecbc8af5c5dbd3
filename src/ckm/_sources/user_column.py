"""The column of a table that says whose row each row is: what is asked for, and what is refused."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ckm._messages import Argument
from ckm._util.checks import check_whole_number
from ckm.errors import DataError, ParameterError


class UserCap(NamedTuple):
    """A column that says whose row each row is, and how many rows of a user count."""

    column: str
    max_rows: int


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


def require_user_numbers(name: Any, holds: str | None, where: str) -> None:
    """Refuse a column of users that holds anything else than numbers."""
    if holds is not None:
        raise DataError(
            f"Column {name!r} of {where} holds {holds}; give each user a number, for example with "
            "pandas.factorize, in the column of ",
            Argument("user_column", ...),
            ".",
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
