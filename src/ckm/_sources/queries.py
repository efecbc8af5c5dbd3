"""Queries: polars' lazy frames, DuckDB relations, and database cursors (Python's DB-API 2.0)."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ckm._sources.arrow import stream_source
from ckm._sources.base import Source
from ckm._sources.column_checks import checked_weights
from ckm._sources.column_request import ColumnChoice, ColumnRequest
from ckm._sources.columns import choose
from ckm._sources.frames import as_frame, choose_columns, frame_batch, with_first_width
from ckm._sources.settings import ReadSettings
from ckm._sources.streaming import Batch, StreamSource
from ckm._util.arrays import FloatArray
from ckm.errors import DataError, MissingPackageError

# The method of a relation that returns record batches, under the names it has had, latest first.
_DUCKDB_READERS = ("to_arrow_reader", "fetch_arrow_reader", "fetch_record_batch")


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> Source:
    """Open a lazy frame, a relation, or a cursor whose query was executed."""
    if _is_relation(data):
        return _open_relation(data, request, settings)
    is_cursor = hasattr(data, "fetchmany")
    return (_open_cursor if is_cursor else _open_lazy)(data, request, settings)


def _is_relation(data: Any) -> bool:
    """Whether it is a DuckDB relation, which has some methods of a cursor too."""
    return any(base.__name__ == "DuckDBPyRelation" for base in type(data).__mro__)


def _open_lazy(frame: Any, request: ColumnRequest, settings: ReadSettings) -> StreamSource:
    """The rows of a lazy frame: the query runs for each pass, in polars' streaming engine."""
    if not hasattr(frame, "collect_batches"):
        raise MissingPackageError(
            "Reading a lazy frame in batches needs a newer polars (pip install -U polars); or pass "
            "its collect()."
        )
    empty = as_frame(frame.head(0).collect())
    assert empty is not None
    choice = choose_columns(empty, request)
    if choice.width == 0:
        name = choice.names[0]
        first = as_frame(frame.select(name).drop_nulls().head(1).collect())
        assert first is not None
        choice = with_first_width(first, choice)

    def read_batches() -> Iterator[Batch]:
        row = 0
        batches = frame.select(choice.all).collect_batches(
            chunk_size=settings.rows_per_chunk(choice.n_features), maintain_order=True
        )
        for batch in batches:
            part = as_frame(batch)
            assert part is not None
            yield frame_batch(part, choice, row)
            row += len(part)

    return StreamSource(
        read_batches,
        choice.n_features,
        choice.columns,
        once=False,
        can_prefetch=True,
        settings=settings,
    )


def _open_relation(relation: Any, request: ColumnRequest, settings: ReadSettings) -> Source:
    """The rows of a DuckDB relation: the query runs for each pass.

    The thread that asks for rows reads them, as the relation's connection requires.
    """
    name = next(name for name in _DUCKDB_READERS if hasattr(relation, name))
    schema = getattr(relation.limit(0), name)().schema

    def read_batches(choice: ColumnChoice) -> Iterable[Any]:
        batches: Iterable[Any] = getattr(relation, name)(
            settings.rows_per_chunk(max(1, choice.n_features))
        )
        return batches

    return stream_source(schema, read_batches, request, settings, once=False, what="the relation")


def _open_cursor(cursor: Any, request: ColumnRequest, settings: ReadSettings) -> StreamSource:
    """The rows of a cursor, read once. The first rows show which columns hold numbers."""
    if cursor.description is None:
        raise DataError("The cursor has no rows to fetch; execute a query with it first.")
    names = [column[0] for column in cursor.description]
    size = settings.rows_per_chunk(len(names))
    first = cursor.fetchmany(size)
    present = [(name, _holds(first, i)) for i, name in enumerate(names)]
    choice = choose(request, present, "the query")

    def read_batches() -> Iterator[Batch]:
        rows = first
        row = 0
        while rows:
            yield _to_batch(rows, names, choice, row)
            row += len(rows)
            rows = cursor.fetchmany(size)

    return StreamSource(
        read_batches, len(choice.names), choice.columns, once=True, settings=settings
    )


def _holds(rows: list[Any], i: int) -> str | None:
    """Describe what column `i` holds: None for numbers, and for a column without a value."""
    value = next((row[i] for row in rows if row[i] is not None), None)
    if value is None:
        return None
    if isinstance(value, (str, bytes)):
        return "text"
    try:
        np.float64(value)
    except (TypeError, ValueError):
        return type(value).__name__
    return None


def _to_batch(rows: list[Any], names: list[str], choice: ColumnChoice, row: int) -> Batch:
    """Convert tuples, of which the first is row number `row`."""
    plain = [name for name in choice.names if name not in choice.category_names]
    values = _to_numbers(rows, [names.index(name) for name in plain], row)
    for name, levels in zip(choice.category_names, choice.levels, strict=True):
        place = names.index(name)
        numbers = levels.number(pa.array([fields[place] for fields in rows]))
        values = np.column_stack([values, numbers])
    if choice.weight is None:
        return Batch(values)
    weights = _to_numbers(rows, [names.index(choice.weight)], row)[:, 0]
    return Batch(values, checked_weights(weights, f"Column {choice.weight!r}", row))


def _to_numbers(rows: list[Any], columns: list[int], row: int) -> FloatArray:
    """Convert some columns of tuples; None becomes NaN."""
    try:
        return np.array([[values[i] for i in columns] for values in rows], np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"A value of the query, among rows {row} to {row + len(rows)}, is not a number "
            f"({error}); leave out its column."
        ) from error
