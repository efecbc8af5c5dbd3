"""DuckDB relations: the query runs for each pass, and its result comes as record batches."""

from collections.abc import Iterable
from typing import Any

from ckm._sources.arrow import stream_source
from ckm._sources.base import Source, rows_per_chunk
from ckm._sources.columns import Chosen, Wanted

# the names it had, the latest first
_READERS = ("to_arrow_reader", "fetch_arrow_reader", "fetch_record_batch")


def open_data(data: Any, wanted: Wanted) -> Source:
    """The rows of a relation, read by the thread that asks, as its connection wants it."""
    name = next(name for name in _READERS if hasattr(data, name))

    def begin(chosen: Chosen) -> Iterable[Any]:
        batches: Iterable[Any] = getattr(data, name)(rows_per_chunk(len(chosen.all)))
        return batches

    return stream_source(
        getattr(data.limit(0), name)().schema, begin, wanted, once=False, what="the relation"
    )
