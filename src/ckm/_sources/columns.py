"""Which columns of a table are used: those named, else all that hold numbers."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckm._util.arrays import Array
from ckm._util.warn import warn_user
from ckm.errors import ColumnsWarning, DataError, MismatchError, ParameterError

_LARGEST_WEIGHT = 1e100


class ColumnRequest(NamedTuple):
    """What a person asks of the columns: their names, the one that holds weights, and those that an
    earlier sketch was made with.

    The last are used where the data names its columns, whatever their order; `made` says what has
    them, in errors.
    """

    columns: Sequence[str] | None = None
    weight: str | None = None
    like: tuple[str, ...] | None = None
    made: str = "the sketch given as like="

    def refuse_names(self, what: str) -> None:
        """For data without column names."""
        if self.columns is not None:
            raise ParameterError(
                f"{what} has no column names; leave out columns=, or pass a data frame or a table's file."
            )
        if self.weight is not None:
            raise ParameterError(
                f"{what} has no column names, so none is {self.weight!r}; leave out weight_column=, or pass sample_weight=."
            )


class ColumnChoice(NamedTuple):
    """The columns to read: features in order, and the one that holds weights."""

    names: list[Any]
    weight: str | None

    @property
    def all(self) -> list[Any]:
        """Features, and then the weight."""
        return self.names if self.weight is None else [*self.names, self.weight]

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The features' names, where they are names."""
        return tuple(self.names) if all(isinstance(name, str) for name in self.names) else None


def choose(
    request: ColumnRequest,
    present: Sequence[tuple[Any, str | None]],
    where: str,
    extra: Mapping[str, str | None] | None = None,
    index: Collection[str] = (),
) -> ColumnChoice:
    """Columns among those `present`, which come with what they hold: None for numbers, else words
    for it.

    `extra` ones (keys in the names of folders), and those that are the `index` of a data frame, are
    used only when they are named.
    """
    names = [name for name, _ in present]
    held = dict(present) | dict(extra or {})
    left_out: list[tuple[Any, str | None]] = []
    if request.columns is not None:
        choice = require_columns(request.columns, list(held))
    elif request.like is not None and all(isinstance(name, str) for name in names):
        choice = _as_in(request, list(held), where)
    else:
        numbers = [name for name, holds in present if holds is None and name != request.weight]
        choice = [name for name in numbers if name != "" and name not in index] or numbers
        left_out += [_of_rows(name) for name in numbers if name not in choice]
        left_out += [(name, holds) for name, holds in present if holds is not None]
        left_out += [(name, "a key of folders") for name in extra or {}]
    if request.weight is not None:
        require_columns([request.weight], list(held))
        if request.weight in choice:
            raise ParameterError(
                f"Column {request.weight!r} holds the weights, so it cannot be clustered too; leave it out of columns=."
            )
    if not choice:
        seen = ", ".join(f"{name}: {holds}" for name, holds in left_out) or "there are none"
        raise DataError(
            f"In {where} no column holds numbers ({seen}); convert one, or give it some."
        )
    result = ColumnChoice(choice, request.weight)
    require_numbers(result, present, where, held)
    _warn_left_out(left_out, where)
    return result


def choose_matrix(
    request: ColumnRequest, present: Sequence[tuple[Any, str | None]], matrices: Sequence[str]
) -> str | None:
    """The one column that holds whole rows, where it is named or there is nothing else to use; None
    where plain columns are meant.
    """
    if request.columns is not None:
        named = [request.columns] if isinstance(request.columns, str) else list(request.columns)
        return named[0] if len(named) == 1 and named[0] in matrices else None
    plain = any(holds is None and name != request.weight for name, holds in present)
    return matrices[0] if len(matrices) == 1 and not plain and request.like is None else None


def require_numbers(
    choice: ColumnChoice,
    present: Sequence[tuple[Any, str | None]],
    where: str,
    held: Mapping[str, str | None] | None = None,
) -> None:
    """Refuse a table that lacks a column, has it twice, or has something else than numbers in it."""
    held = dict(present) if held is None else held
    names = [name for name, _ in present]
    for name in choice.all:
        if name not in held or names.count(name) > 1:
            what = "no column" if name not in held else "more than one column"
            raise MismatchError(
                f"{where} has {what} {name!r}; give tables with the same columns, each named once."
            )
        if held[name] is not None:
            numeric = [str(other) for other, holds in present if holds is None][:3]
            raise DataError(
                f"Column {name!r} of {where} holds {held[name]}, not numbers; convert it, "
                f"or leave it out, for example with ckm.sketch(..., columns={numeric or ['a', 'b']})."
            )


def require_columns(request: Sequence[Any], present: Sequence[Any]) -> list[Any]:
    """`request`, once each of them is known to be present and named once."""
    names = [request] if isinstance(request, str) else list(request)
    missing = [name for name in names if name not in present]
    if missing:
        raise ParameterError(
            f"There is no column {missing[0]!r}; the columns are {listed(present)}."
        )
    if len(set(names)) != len(names):
        raise ParameterError(f"A column is named twice in columns={names}; name each once.")
    if not names:
        raise ParameterError("columns=[] leaves nothing to cluster; name at least one column.")
    return names


def listed(names: Iterable[Hashable], most: int = 20) -> str:
    """Names in a sentence; the first of them where there are many."""
    words = list(map(str, names))
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def checked_weights(weights: Array, what: str, row: int = 0) -> Array:
    """Weights as finite float64 that are not negative. NaN is left for those who look for missing
    values; `row` is the first one's.
    """
    weights = np.asarray(weights, np.float64)
    if (
        len(weights)
        and weights.min() >= 0
        and 1 / _LARGEST_WEIGHT <= weights.max() <= _LARGEST_WEIGHT
    ):
        return weights  # as they should be
    with np.errstate(invalid="ignore"):
        bad = (weights < 0) | np.isinf(weights)
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            f"{what} must be finite and not negative; weight {row + at} is {weights[at]}."
        )
    largest = float(np.fmax.reduce(weights, initial=0.0))
    if largest > _LARGEST_WEIGHT or 0 < largest < 1 / _LARGEST_WEIGHT:
        raise DataError(
            f"{what} has {largest:g} as its largest weight, which sums cannot hold; rescale the weights."
        )
    return weights


def _as_in(request: ColumnRequest, present: list[str], where: str) -> list[str]:
    """The columns of an earlier sketch: their order in a file does not matter."""
    assert request.like is not None
    missing = [name for name in request.like if name not in present]
    if missing:
        raise MismatchError(
            f"{where} has no column {missing[0]!r}, which {request.made} was made with: the data has {listed(present)}, "
            f"{request.made} has {listed(request.like)}. Give the same columns."
        )
    return list(request.like)


def _of_rows(name: Any) -> tuple[Any, str]:
    """A column that tells rows apart, in words."""
    return (
        ("a column", "numbers without a name, perhaps of rows")
        if name == ""
        else (name, "a data frame's index")
    )


def _warn_left_out(left_out: Sequence[tuple[Any, str | None]], where: str) -> None:
    if left_out:
        named = listed(f"{name} ({holds})" for name, holds in left_out)
        warn_user(
            f"Left out of {where}: {named}; choose others with ckm.sketch(..., columns=[...]).",
            ColumnsWarning,
        )
