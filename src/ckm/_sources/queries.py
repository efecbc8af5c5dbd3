"""Database cursors (Python's DB-API 2.0): the rows of a query that was executed, fetched a few at a
time.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ckm._sources.base import rows_per_chunk
from ckm._sources.columns import Chosen, Wanted, checked_weights, choose
from ckm._sources.streaming import Batch, StreamSource
from ckm._util.arrays import Array
from ckm.errors import DataError


def open_data(data: Any, wanted: Wanted) -> StreamSource:
    """The rows of a cursor, once. Columns hold numbers or not as the first rows say."""
    if data.description is None:
        raise DataError("The cursor has no rows to fetch; execute a query with it first.")
    names = [column[0] for column in data.description]
    size = rows_per_chunk(len(names))
    first = data.fetchmany(size)
    chosen = choose(wanted, [(name, _holds(first, i)) for i, name in enumerate(names)], "the query")

    def begin() -> Iterator[Batch]:
        rows, done = first, 0
        while rows:
            yield _batch(rows, names, chosen, done)
            done += len(rows)
            rows = data.fetchmany(size)

    return StreamSource(begin, len(chosen.names), chosen.columns, once=True)


def _holds(rows: list[Any], i: int) -> str | None:
    """What a column holds: None for numbers, and where there is nothing yet."""
    for row in rows:
        if row[i] is not None:
            try:
                np.float64(row[i])
                return "text" if isinstance(row[i], (str, bytes)) else None
            except (TypeError, ValueError):
                return "text" if isinstance(row[i], (str, bytes)) else type(row[i]).__name__
    return None


def _batch(rows: list[Any], names: list[str], chosen: Chosen, done: int) -> Batch:
    values = _column_numbers(rows, [names.index(name) for name in chosen.names], done)
    if chosen.weight is None:
        return Batch(values)
    weights = _column_numbers(rows, [names.index(chosen.weight)], done)[:, 0]
    return Batch(values, checked_weights(weights, f"Column {chosen.weight!r}", done))


def _column_numbers(rows: list[Any], which: list[int], done: int) -> Array:
    """Some columns of tuples, None as NaN."""
    try:
        array: Array = np.array([[row[i] for i in which] for row in rows], np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"A value of the query, among rows {done} to {done + len(rows)}, is not a number ({error}); leave out its column."
        ) from error
    return array
