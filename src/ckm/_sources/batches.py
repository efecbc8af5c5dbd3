"""Python iterables of batches (a list, a generator, a DataLoader), and functions that return one.

A batch is an array, a sparse matrix, a tensor, a data frame, or a list of rows. The thread that
asks for rows also iterates: a user's own code need not be safe in another thread.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from ckm._sources.arrays import as_array
from ckm._sources.base import require_numeric, require_table
from ckm._sources.column_request import ColumnChoice, ColumnRequest, request_like
from ckm._sources.settings import ReadSettings
from ckm._sources.sparse import is_sparse
from ckm._sources.streaming import Batch, StreamSource
from ckm._sources.user_column import require_same_users
from ckm._util.device import DeviceRows, is_on_gpu, rows_at_once
from ckm._util.sparse import SparseRows
from ckm.errors import DataError, MismatchError


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> StreamSource:
    """Open batches: once if they come from an iterator, again and again otherwise."""
    is_iterator = isinstance(data, Iterator)
    return BatchSource(_Restart(data), request, settings, once=is_iterator)


class BatchSource(StreamSource):
    """Rows of the batches of `iterate()`, which is called for each pass.

    The columns are those of the first batch.
    """

    def __init__(
        self,
        iterate: Callable[[], Iterator[Any]],
        request: ColumnRequest,
        settings: ReadSettings,
        once: bool,
    ) -> None:
        self._iterate = iterate
        started = iterate()
        first = self._first_batch(started)
        # The first pass continues the iteration that was started to look at the first batch.
        self._started: Iterator[Any] | None = chain([first], started)
        self._choice: ColumnChoice | None = None
        device = None
        is_first_sparse = False
        frame = _as_frame(first)
        if frame is not None:
            from ckm._sources.frames import choose_columns, with_first_width

            self._choice = with_first_width(frame, choose_columns(frame, request))
            self._width = self._choice.n_features
        else:
            request.refuse_names("An array")
            rows = _as_rows(first)
            self._width = rows.shape[1]
            is_first_sparse = isinstance(rows, SparseRows)
            device = rows.tensor.device if isinstance(rows, DeviceRows) else None
        columns = None if self._choice is None else self._choice.columns
        super().__init__(
            self._convert_all,
            self._width,
            columns,
            once=once,
            may_stay_sparse=is_first_sparse,
            settings=settings,
        )
        self.device = device
        if self.is_on_gpu:
            self.prefer_chunk_rows(rows_at_once(self._width))

    def _first_batch(self, batches: Iterator[Any]) -> Any:
        for batch in batches:
            if not _is_empty_list(batch):
                return batch
        raise DataError(
            "The data is an iterable that gives no batch, so its columns are not known; give at "
            "least one (it may have no rows)."
        )

    def _convert_all(self) -> Iterator[Batch]:
        """Yield the converted batches of one pass."""
        batches = self._iterate() if self._started is None else self._started
        self._started = None
        row = 0
        for batch in batches:
            if not _is_empty_list(batch):
                converted = self._convert(batch, row)
                row += len(converted.rows)
                yield converted

    def _convert(self, batch: Any, row: int) -> Batch:
        """Convert a batch, whose first row is number `row`."""
        frame = _as_frame(batch)
        if (frame is None) != (self._choice is None):
            raise MismatchError("Some batches are data frames and some are not; give one kind.")
        if self._choice is not None:
            return _from_frame(frame, self._choice, row)
        rows = _as_rows(batch)
        if rows.shape[1] != self._width:
            raise MismatchError(
                f"A batch has {rows.shape[1]} columns where the first has {self._width}; give "
                f"batches of one width."
            )
        return Batch(rows)


class _Restart:
    """Starts the iteration anew with each call; raises `DataError` if that is not possible."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._last: Iterator[Any] | None = None

    def __call__(self) -> Iterator[Any]:
        batches = self._data() if callable(self._data) else self._data
        if not isinstance(batches, Iterable):
            raise DataError(
                f"The function given as data returned {type(batches).__name__}, not an iterable of "
                f"batches."
            )
        if isinstance(batches, Iterator) and batches is self._last:
            raise DataError(
                "The function given as data returned the same iterator twice; make a new one in "
                "each call."
            )
        self._last = batches if isinstance(batches, Iterator) else None
        return iter(batches)


def _as_frame(batch: Any) -> Any:
    """The batch as a data frame; None if it is not one."""
    if isinstance(batch, (np.ndarray, list, tuple)):
        return None
    from ckm._sources.frames import as_frame

    return as_frame(batch)


def _from_frame(frame: Any, choice: ColumnChoice, row: int) -> Batch:
    """Convert a data frame, which must have the chosen columns."""
    from ckm._sources.frames import choose_columns, frame_batch

    # Python objects of which there is none do not show that they are vectors.
    if choice.width is None or len(frame):
        found = choose_columns(frame, request_like(choice))
        require_same_users(choice.user, found.has_named_users, choice.has_named_users, "a batch")
    return frame_batch(frame, choice, row)


def _is_empty_list(batch: Any) -> bool:
    return isinstance(batch, (list, tuple)) and not batch


def _as_rows(batch: Any) -> Any:
    """Convert a batch to an array (rows, columns), to sparse rows, or to rows on a GPU.

    Loaders wrap the only tensor of a data set in a list.
    """
    if isinstance(batch, (list, tuple)) and hasattr(batch[0], "shape"):
        if len(batch) > 1:
            raise DataError(
                f"A batch has {len(batch)} arrays, of which one should be clustered: pass "
                f"(x for x, *_ in batches), for instance."
            )
        batch = batch[0]
    if is_on_gpu(batch):
        rows: Any = DeviceRows.of(batch)
        require_table(rows.shape, "A batch")
        return rows
    array: Any = batch if is_sparse(batch) else as_array(batch)
    require_table(array.shape, "A batch")
    require_numeric(array.dtype, "A batch")
    return SparseRows.of(array.tocsr()) if is_sparse(batch) else array
