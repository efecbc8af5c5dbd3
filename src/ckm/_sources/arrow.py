"""Arrow: record-batch readers, datasets, anything with `__arrow_c_stream__`; and batches of every
other source turned into rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckm._sources.base import Chunk, Source, draw_sample, pick_parts, rows_per_chunk
from ckm._sources.columns import ColumnChoice, ColumnRequest, checked_weights, choose
from ckm._sources.streaming import Batch, StreamSource
from ckm._util.arrays import Array
from ckm.errors import DataError, InputFileError

ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OSError,
    UnicodeDecodeError,
)
# A column of a CSV without rows, or without a value in its first block, is null.
_NUMERIC = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_null,
)


def open_data(data: Any, request: ColumnRequest) -> Source:
    """The rows of an Arrow producer: a dataset again and again; a reader, or a stream of unknown
    kind, once.
    """
    if isinstance(data, pa.RecordBatch):
        from ckm._sources.frames import open_data as open_frame

        return open_frame(pa.Table.from_batches([data]), request)
    if hasattr(data, "get_fragments"):
        return DatasetSource(data, request)
    if hasattr(data, "iter_batches"):  # an open Parquet file
        return stream_source(
            data.schema_arrow,
            lambda choice: data.iter_batches(rows_per_chunk(len(choice.all)), columns=choice.all),
            request, once=False, what="the Parquet file",
        )  # fmt: skip
    if hasattr(data, "to_reader"):  # a scanner
        data = data.to_reader()
    reader = (
        data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
    )
    return stream_source(reader.schema, lambda choice: reader, request, once=True)


def stream_source(
    schema: Any,
    begin: Callable[[ColumnChoice], Iterable[Any]],
    request: ColumnRequest,
    *,
    once: bool,
    name: str | None = None,
    can_prefetch: bool = False,
    what: str = "the data",
) -> StreamSource:
    """Rows of the record batches that `begin` gives for the chosen columns."""
    choice = choose(request, describe_schema(schema), name or what, index=index_of(schema))

    def batches() -> Iterator[Batch]:
        return batches_of(begin(choice), choice, name or what)

    return StreamSource(
        batches, len(choice.names), choice.columns, once=once, name=name, can_prefetch=can_prefetch
    )


class DatasetSource(StreamSource):
    """A `pyarrow.dataset.Dataset`, in batches of bounded size with hardly any read ahead:
    prefetching is ours.
    """

    def __init__(self, dataset: Any, request: ColumnRequest) -> None:
        self._choice = choose(
            request, describe_schema(dataset.schema), "the dataset", index=index_of(dataset.schema)
        )
        self._dataset = dataset
        n = len(self._choice.names)
        super().__init__(
            lambda: self._batches(dataset), n, self._choice.columns, once=False, can_prefetch=True
        )

    def sample(
        self, size: int, rng: np.random.Generator, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """From some files or row groups, spread over all of them; a dataset with a filter is read
        once.
        """
        try:
            fragments = [
                part for fragment in self._dataset.get_fragments() for part in _row_groups(fragment)
            ]
        except ValueError:  # a filter, which fragments know nothing of
            return super().sample(size, rng, weights)
        if weights is not None:
            return super().sample(size, rng, weights)
        rows = sum(fragment.count_rows() for fragment in fragments)
        picked = pick_parts(len(fragments), rows, size, self.n_features, rng)
        batches = (
            Chunk(*batch)
            for i in picked
            for batch in self._batches(fragments[i], schema=self._dataset.schema)
        )
        return draw_sample(batches, size, self.n_features, rng)

    def _batches(self, scanned: Any, **scan: Any) -> Iterator[Batch]:
        import pyarrow.dataset as ds

        if isinstance(getattr(self._dataset, "format", None), ds.ParquetFileFormat):
            scan["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
                pre_buffer=False, use_buffered_stream=True
            )
        size = rows_per_chunk(self.n_features)
        batches = scanned.to_batches(
            columns=self._choice.all,
            batch_size=size,
            batch_readahead=1,
            fragment_readahead=1,
            **scan,
        )
        return batches_of(batches, self._choice, "the dataset")


def _row_groups(fragment: Any) -> list[Any]:
    return (
        list(fragment.split_by_row_group())
        if hasattr(fragment, "split_by_row_group")
        else [fragment]
    )


def batches_of(batches: Iterable[Any], choice: ColumnChoice, where: str) -> Iterator[Batch]:
    """Record batches as rows; what Arrow objects to is said in a sentence."""
    try:
        for batch in batches:
            yield to_batch(batch, choice, where)
    except ERRORS as error:
        raise unreadable(error, where) from error


def matrix_batches(batches: Iterable[Any], choice: ColumnChoice, where: str) -> Iterator[Batch]:
    """Record batches with a whole row, a list or a tensor, in each cell of the one chosen column."""
    for batch in batches:
        cells = batch.column(choice.names[0])
        cells = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
        cells = cells.storage if isinstance(cells, pa.ExtensionArray) else cells
        numbers = pc.cast(cells.flatten(), pa.float64()).to_numpy(zero_copy_only=False)
        lengths = pc.list_value_length(cells)
        if cells.null_count or len(pc.unique(lengths)) != 1:
            raise DataError(
                f"Column {choice.names[0]!r} of {where} holds rows that are missing or of unequal lengths; leave them out."
            )
        weights = (
            None
            if choice.weight is None
            else to_batch(batch, ColumnChoice([choice.weight], choice.weight), where).weights
        )
        yield Batch(numbers.reshape(batch.num_rows, -1), weights)


def describe_schema(schema: Any) -> list[tuple[str, str | None]]:
    """The columns of an Arrow schema, with what they hold: None for numbers."""
    return [
        (field.name, None if _is_numeric(field.type) else _words(field.type)) for field in schema
    ]


def index_of(schema: Any) -> list[str]:
    """Its columns that were the index of the data frame that pandas wrote."""
    return [
        name
        for name in (schema.pandas_metadata or {}).get("index_columns", [])
        if isinstance(name, str)
    ]


def _is_numeric(kind: Any) -> bool:
    return any(is_kind(kind) for is_kind in _NUMERIC)


def _words(kind: Any) -> str:
    text = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
    return "text" if text else str(kind)


def to_batch(batch: Any, choice: ColumnChoice, where: str, row: int = 0) -> Batch:
    """The chosen columns of a record batch or table as rows, and the weights; `row` is the number
    of the first.
    """
    rows = to_rows([batch.column(name) for name in choice.names], batch.num_rows)
    if choice.weight is None:
        return Batch(rows)
    weights = to_rows([batch.column(choice.weight)], batch.num_rows)[:, 0]
    return Batch(rows, checked_weights(weights, f"Column {choice.weight!r} of {where}", row))


def to_rows(columns: Sequence[Any], count: int) -> Array:
    """Columns side by side; single precision stays single, nulls become NaN.

    Columns stay contiguous: blocks of them are turned into rows in parallel, by those who compute.
    """
    narrow = (pa.float32(), pa.float16())
    turned = np.empty(
        (len(columns), count),
        np.float32 if all(column.type in narrow for column in columns) else np.float64,
    )
    for i, column in enumerate(columns):
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            column = pc.cast(column, pa.float64())
        turned[i] = (
            column.to_numpy(zero_copy_only=False)
            if isinstance(column, pa.Array)
            else column.to_numpy()
        )
    return turned.T


def unreadable(error: Exception, where: str) -> InputFileError:
    """The first line of what Arrow has to say, with the name of the file."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputFileError(
        f"Cannot read {where}: {reason.rstrip('.')}; check the file, or write it again."
    )
