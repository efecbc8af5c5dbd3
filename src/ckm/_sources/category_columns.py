"""Columns of categories: read as numbers of their values, then coded (`ckm._core.categories`)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np

from ckm._core.categories import MISSING, Categories, coded_columns
from ckm._messages import Argument
from ckm._sources.adapters import Adapter
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._util.arrays import Array, FloatArray
from ckm.errors import DataError, ParameterError

# Rows that show which values there are, as many as in a pilot.
SAMPLED_ROWS = 5000
# Different values that are numbered before it is known which ones are told apart.
MAX_NUMBERED = 100_000
# Which number stands for every value that is not told apart.
_UNKNOWN = -1
# Whole numbers are written alike, whether they come as integers, as floats, or from CSV.
_WHOLE = re.compile(r"(-?\d+)\.0*")


class LevelNumbers:
    """A number for each value of a column, in the order in which values are met; -1 for values that
    were not met before `settle` was called.

    Parameters
    ----------
    levels : sequence of str, optional
        The values, if they are known: no other one gets a number.
    """

    def __init__(self, levels: Sequence[str] | None = None) -> None:
        self._numbers = {level: number for number, level in enumerate(levels or ())}
        self._is_settled = levels is not None
        self._lock = Lock()

    @property
    def levels(self) -> list[str]:
        """The values in the order of their numbers."""
        return list(self._numbers)

    def settle(self) -> None:
        """Give no more numbers."""
        self._is_settled = True

    def number(self, column: Any) -> FloatArray:
        """The numbers of the values of an Arrow column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(column, pa.ChunkedArray):
            column = column.unify_dictionaries().combine_chunks()
        if not isinstance(column, pa.DictionaryArray):
            column = pc.dictionary_encode(column)
        with self._lock:
            numbers = [*map(self._number, column.dictionary.to_pylist()), self._number(None)]
        places = pc.fill_null(pc.cast(column.indices, pa.int64()), len(numbers) - 1)
        known: FloatArray = np.array(numbers, np.float64)
        return np.asarray(known[places.to_numpy(zero_copy_only=False)])

    def _number(self, value: Any) -> int:
        level = as_level(value)
        if not self._is_settled and len(self._numbers) < MAX_NUMBERED:
            return self._numbers.setdefault(level, len(self._numbers))
        return self._numbers.get(level, _UNKNOWN)


def numbers_of(categories: Categories) -> tuple[LevelNumbers, ...]:
    """What reads each of the categories."""
    return tuple(LevelNumbers(category.levels) for category in categories)


def as_level(value: Any) -> str:
    """A value as text, the same whichever kind of table it comes from.

    >>> [as_level(value) for value in ("pro", True, 3, 3.0, "3.0", 0.5, None, "", float("nan"))]
    ['pro', 'true', '3', '3', '3', '0.5', 'missing', 'missing', 'missing']
    """
    if value is None or value == "" or value != value:
        return MISSING
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


class Coded(Adapter):
    """The rows of a source with its categories coded, which are its last columns; before the column
    of users, if there is one.

    Parameters
    ----------
    source : Source
        Rows with the numbers of `LevelNumbers` in the columns of categories.
    categories : tuple of Category
        How they are coded.
    levels : sequence of sequence of str
        The values in the order of their numbers, for each category.
    has_users : bool
        Whether the last column is that of users.
    """

    def __init__(
        self,
        source: Source,
        categories: Categories,
        levels: Sequence[Sequence[str]],
        has_users: bool,
    ) -> None:
        super().__init__(source)
        self.categories = categories
        self._tables = [
            _values_by_number(category, own)
            for category, own in zip(categories, levels, strict=True)
        ]
        self._n_last = int(has_users)
        self._n_plain = source.n_features - len(categories) - self._n_last
        coded = coded_columns(categories)
        self.n_features = self._n_plain + len(coded) + self._n_last
        names = source.columns or ()
        last = names[len(names) - self._n_last :]
        self.columns = (*names[: self._n_plain], *coded, *last)
        if len(set(self.columns)) < len(self.columns):
            twice = next(name for name in coded if self.columns.count(name) > 1)
            raise DataError(
                f"A column is called {twice!r}, as is one that stands for a category; rename it."
            )

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for chunk in self.inside.chunks(start):
            yield chunk._replace(rows=self._code(chunk.rows))

    def first_rows(self, size: int) -> Any:
        rows = self.inside.first_rows(size)
        return None if rows is None else self._code(rows)

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        rows, drawn = self.inside.sample_rows(size, rng, weights)
        return self._code(rows), drawn

    def _code(self, rows: Array) -> Array:
        """Rows with the coded columns in place of numbers; columns stay contiguous in memory."""
        turned = np.empty((self.n_features, len(rows)))
        turned[: self._n_plain] = rows[:, : self._n_plain].T
        at = self._n_plain
        for j, table in enumerate(self._tables, self._n_plain):
            numbers = rows[:, j].astype(np.intp)
            turned[at : at + table.shape[1]] = table[numbers].T
            at += table.shape[1]
        turned[at:] = rows[:, rows.shape[1] - self._n_last :].T
        return turned.T


def _values_by_number(category: Any, levels: Sequence[str]) -> FloatArray:
    """The coded columns of each number of `LevelNumbers`; of -1 too, as NumPy counts."""
    places = {level: place for place, level in enumerate(category.levels)}
    other = len(places)
    return np.asarray(category.values[[*(places.get(level, other) for level in levels), other]])


def code_categories(
    source: Source,
    categories: Categories,
    numbers: Sequence[LevelNumbers],
    has_users: bool,
) -> Coded:
    """The source with its categories coded: by the values of sampled rows, unless they are known.

    The sample is the same whatever the seed of a sketch.
    """
    if any(category.levels is None for category in categories):
        rows, weights = source.sample_rows(SAMPLED_ROWS, np.random.default_rng(0))
        first = source.n_features - len(categories) - int(has_users)
        counted = []
        for j, (category, own) in enumerate(zip(categories, numbers, strict=True), first):
            own.settle()
            places = rows[:, j].astype(np.intp)
            is_known = places >= 0
            mass = np.bincount(places[is_known], weights[is_known], minlength=len(own.levels))
            counted.append(category.with_counts(dict(zip(own.levels, mass.tolist(), strict=True))))
        categories = tuple(counted)
    return Coded(source, categories, [own.levels for own in numbers], has_users)


def refuse_categories(categories: Categories, engine: str) -> None:
    """Refuse categories of rows that stay with an engine, whose workers read no text."""
    if categories:
        raise ParameterError(
            Argument("categories", [category.name for category in categories]),
            f" is for rows that this process reads, and these are with {engine}; code the columns "
            "there, or read the files here without an engine.",
        )


def require_category(name: Any, holds: str | None, where: str) -> None:
    """Refuse a column of categories that holds dates, lists, or anything else that is no text,
    number or boolean.
    """
    if holds is not None and not holds.startswith(("text", "numbers but for")):
        raise DataError(
            f"Column {name!r} of {where} holds {holds}; ",
            Argument("categories", ...),
            " is for text, whole numbers and booleans: convert it, or leave it out.",
        )


# What reads the numbers of a column: of users, or of the values of a category.
Numbering = Callable[[Any], FloatArray]
NO_NUMBERINGS: Mapping[int, Numbering] = MappingProxyType({})
