"""Python iterables of batches (a list, a generator, a DataLoader), and functions that return one.

A batch is an array, a tensor, a data frame, or a list of rows. Batches are taken by the thread that
asks: what a person's own code does in them may not like another.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from ckm._sources.arrays import as_array
from ckm._sources.base import require_numeric, require_table
from ckm._sources.columns import ColumnChoice, ColumnRequest
from ckm._sources.sparse import is_sparse
from ckm._sources.streaming import Batch, StreamSource
from ckm._util.device import DeviceRows, is_on_gpu, rows_at_once
from ckm.errors import DataError, MismatchError


def open_data(data: Any, request: ColumnRequest) -> StreamSource:
    """The rows of all batches: once where they come from an iterator, again and again from anything
    that makes a new one.
    """
    return BatchSource(_Again(data), request, once=isinstance(data, Iterator))


class BatchSource(StreamSource):
    """Rows of the batches of `begin()`, which is called for each pass. The first batch tells what
    columns there are.
    """

    def __init__(
        self, begin: Callable[[], Iterator[Any]], request: ColumnRequest, once: bool
    ) -> None:
        self._batches_of, self._wanted = begin, request
        self._waiting: Iterator[Any] | None = begin()
        first = self._first(self._waiting)
        frame = _as_frame(first)
        self._choice: ColumnChoice | None = None
        if frame is not None:
            from ckm._sources.frames import choose_columns

            self._choice = choose_columns(frame, request)
        else:
            request.refuse_names("An array")
        rows = first if self._choice else _as_rows(first)
        self._width = len(self._choice.names) if self._choice else rows.shape[1]
        self.device = rows.tensor.device if isinstance(rows, DeviceRows) else None
        super().__init__(
            self._converted, self._width, self._choice.columns if self._choice else None, once=once
        )
        self._waiting = chain([first], self._waiting)
        if self.is_on_gpu:
            self.prefer_chunk_rows(rows_at_once(self._width))

    def _first(self, batches: Iterator[Any]) -> Any:
        for batch in batches:
            if not _is_empty_list(batch):
                return batch
        raise DataError(
            "The data is an iterable that gives no batch, so its columns are not known; give at least one (it may have no rows)."
        )

    def _converted(self) -> Iterator[Batch]:
        batches, self._waiting = (
            self._waiting if self._waiting is not None else self._batches_of(),
            None,
        )
        row = 0
        for batch in batches:
            if not _is_empty_list(batch):
                made = self._made(batch, row)
                row += len(made.rows)
                yield made

    def _made(self, batch: Any, row: int) -> Batch:
        frame = _as_frame(batch)
        if (frame is None) != (self._choice is None):
            raise MismatchError("Some batches are data frames and some are not; give one kind.")
        if self._choice is not None:
            return _from_frame(frame, self._choice, row)
        rows = _as_rows(batch)
        if rows.shape[1] != self._width:
            raise MismatchError(
                f"A batch has {rows.shape[1]} columns where the first has {self._width}; give batches of one width."
            )
        return Batch(rows)


class _Again:
    """Begins the iteration anew each time, and finds out where that is not possible."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._last: Iterator[Any] | None = None

    def __call__(self) -> Iterator[Any]:
        made = self._data() if callable(self._data) else self._data
        if not isinstance(made, Iterable):
            raise DataError(
                f"The function given as data returned {type(made).__name__}, not an iterable of batches."
            )
        if isinstance(made, Iterator) and made is self._last:
            raise DataError(
                "The function given as data returned the same iterator twice; make a new one in each call."
            )
        self._last = made if isinstance(made, Iterator) else None
        return iter(made)


def _as_frame(batch: Any) -> Any:
    if isinstance(batch, (np.ndarray, list, tuple)):
        return None
    from ckm._sources.frames import as_frame

    return as_frame(batch)


def _from_frame(frame: Any, choice: ColumnChoice, row: int) -> Batch:
    from ckm._sources.frames import choose_columns, frame_batch

    choose_columns(frame, ColumnRequest(columns=choice.names, weight=choice.weight))
    return frame_batch(frame, choice, row)


def _is_empty_list(batch: Any) -> bool:
    return isinstance(batch, (list, tuple)) and not batch


def _as_rows(batch: Any) -> Any:
    """An array (rows, columns), or a table on a card. Loaders wrap the only tensor of a data set in
    a list.
    """
    if isinstance(batch, (list, tuple)) and hasattr(batch[0], "shape"):
        if len(batch) > 1:
            raise DataError(
                f"A batch has {len(batch)} arrays, of which one should be clustered: pass (x for x, *_ in batches), for instance."
            )
        batch = batch[0]
    if is_on_gpu(batch):
        array: Any = DeviceRows.of(batch)
        require_table(array.shape, "A batch")
        return array
    array = as_array(batch.toarray() if is_sparse(batch) else batch)
    require_table(array.shape, "A batch")
    require_numeric(array.dtype, "A batch")
    return array
