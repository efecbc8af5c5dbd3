"""Lazy frames of polars: the query runs for each pass, in polars' streaming engine, a batch of rows
at a time.
"""

from collections.abc import Iterator
from typing import Any

from ckm._sources.base import rows_per_chunk
from ckm._sources.columns import Wanted
from ckm._sources.frames import as_frame, choose_columns, frame_batch
from ckm._sources.streaming import Batch, StreamSource
from ckm.errors import MissingPackageError


def open_data(data: Any, wanted: Wanted) -> StreamSource:
    """The rows that a lazy frame will have."""
    if not hasattr(data, "collect_batches"):
        raise MissingPackageError(
            "Reading a lazy frame in batches needs a newer polars (pip install -U polars); or pass its collect()."
        )
    empty = as_frame(data.head(0).collect())
    assert empty is not None
    chosen = choose_columns(empty, wanted)

    def begin() -> Iterator[Batch]:
        row = 0
        for part in data.select(chosen.all).collect_batches(
            chunk_size=rows_per_chunk(len(chosen.all)), maintain_order=True
        ):
            frame = as_frame(part)
            assert frame is not None
            yield frame_batch(frame, chosen, row)
            row += len(frame)

    return StreamSource(begin, len(chosen.names), chosen.columns, once=False, background=True)
