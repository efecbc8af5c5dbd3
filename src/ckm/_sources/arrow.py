"""Arrow: record-batch readers, datasets, anything with `__arrow_c_stream__`; and the conversion of
record batches to rows for all other sources.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckm._sources.base import Chunk, Source
from ckm._sources.category_columns import NO_NUMBERINGS, Numbering
from ckm._sources.column_checks import checked_weights
from ckm._sources.column_request import ColumnChoice, ColumnRequest, Dates
from ckm._sources.columns import choose
from ckm._sources.failures import unreadable
from ckm._sources.sampling import pick_parts
from ckm._sources.settings import ReadSettings
from ckm._sources.streaming import Batch, StreamSource
from ckm._sources.vectors import describe_vectors, to_sparse, to_vectors, with_width
from ckm._util.arrays import FloatArray, RowsArray
from ckm.errors import DataError

ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    pa.ArrowKeyError,
    pa.ArrowIndexError,
    pa.ArrowSerializationError,
    pa.ArrowCapacityError,
    OSError,
    UnicodeDecodeError,
)
# A column of a CSV without rows, or without a value in its first block, is null.
_IS_NUMERIC = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_null,
)
_MICROSECONDS_PER_DAY = 86_400_000_000
_IS_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> Source:
    """Open an Arrow producer. A dataset can be read again, a reader or unknown stream once."""
    if isinstance(data, pa.RecordBatch):
        from ckm._sources.frames import open_data as open_frame

        return open_frame(pa.Table.from_batches([data]), request, settings)
    if hasattr(data, "get_fragments"):
        return DatasetSource(data, request, settings)
    if hasattr(data, "iter_batches"):
        return _open_parquet_file(data, request, settings)
    is_scanner = hasattr(data, "to_reader")
    if is_scanner:
        data = data.to_reader()
    if not isinstance(data, pa.RecordBatchReader):
        data = pa.RecordBatchReader.from_stream(data)
    return stream_source(data.schema, lambda choice: data, request, settings, once=True)


def _open_parquet_file(file: Any, request: ColumnRequest, settings: ReadSettings) -> Source:
    """Open a `pyarrow.parquet.ParquetFile`."""

    def read_batches(choice: ColumnChoice) -> Iterable[Any]:
        batches: Iterable[Any] = file.iter_batches(
            settings.rows_per_chunk(max(1, choice.n_features)), columns=choice.all
        )
        return batches

    return stream_source(
        file.schema_arrow, read_batches, request, settings, once=False, what="the Parquet file"
    )


def stream_source(
    schema: Any,
    read_batches: Callable[[ColumnChoice], Iterable[Any]],
    request: ColumnRequest,
    settings: ReadSettings,
    *,
    once: bool,
    name: str | None = None,
    can_prefetch: bool = False,
    what: str = "the data",
) -> StreamSource:
    """Open the record batches that `read_batches` returns for the chosen columns.

    Errors call the data by its `name`, or `what` it is if it has none.
    """
    where = name or what
    choice = choose(request, describe_schema(schema), where, index=index_of(schema))
    if choice.width == 0:
        read_batches, choice = _measured(read_batches, choice, where, once)

    def converted() -> Iterator[Batch]:
        size = settings.rows_per_chunk(choice.n_features)
        return batches_of(read_batches(choice), choice, where, size)

    return StreamSource(
        converted,
        choice.n_features,
        choice.columns,
        once=once,
        name=name,
        can_prefetch=can_prefetch,
        settings=settings,
    )


def _measured(
    read_batches: Callable[[ColumnChoice], Iterable[Any]],
    choice: ColumnChoice,
    where: str,
    once: bool,
) -> tuple[Callable[[ColumnChoice], Iterable[Any]], ColumnChoice]:
    """The choice with the length of the first list, and how to read from the beginning after it."""
    batches = iter(read_batches(choice))
    seen = list[Any]()

    def remembered() -> Iterator[Any]:
        for batch in batches:
            seen.append(batch)
            yield batch

    try:
        measured = with_width(choice, remembered(), where)
    except ERRORS as error:
        raise unreadable(error, where) from error
    if not once:
        return read_batches, measured
    return lambda _: chain(seen, batches), measured


class DatasetSource(StreamSource):
    """A `pyarrow.dataset.Dataset`, in batches of bounded size.

    Arrow reads hardly ahead, since a thread of ours does.
    """

    def __init__(self, dataset: Any, request: ColumnRequest, settings: ReadSettings) -> None:
        schema = dataset.schema
        present = describe_schema(schema)
        choice = choose(request, present, "the dataset", index=index_of(schema))
        self._dataset = dataset
        if choice.width == 0:
            lists = dataset.to_batches(columns=choice.names, batch_size=1, batch_readahead=1)
            choice = with_width(choice, lists, "the dataset")
        self._choice = choice
        super().__init__(
            lambda: self._scan(dataset),
            choice.n_features,
            self._choice.columns,
            once=False,
            can_prefetch=True,
            settings=settings,
        )

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        """Draw rows from some files or row groups; a dataset with a filter is read as a whole."""
        try:
            fragments = [
                part
                for fragment in self._dataset.get_fragments()
                for part in _split_row_groups(fragment)
            ]
        # Fragments of a dataset with a filter would ignore it.
        except ValueError:
            return super().sample_rows(size, rng, weights)
        if weights is not None:
            return super().sample_rows(size, rng, weights)
        rows = sum(fragment.count_rows() for fragment in fragments)
        picked = pick_parts(len(fragments), rows, size, self.n_features, rng, self.settings)
        batches = (
            Chunk(*batch)
            for i in picked
            for batch in self._scan(fragments[i], schema=self._dataset.schema)
        )
        return self._draw(batches, size, rng)

    def _scan(self, scanned: Any, **scan: Any) -> Iterator[Batch]:
        """Read a dataset or a fragment of it."""
        import pyarrow.dataset as ds

        if isinstance(getattr(self._dataset, "format", None), ds.ParquetFileFormat):
            scan["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
                pre_buffer=False, use_buffered_stream=True
            )
        batches = scanned.to_batches(
            columns=self._choice.all,
            batch_size=self.settings.rows_per_chunk(self.n_features),
            batch_readahead=1,
            fragment_readahead=1,
            **scan,
        )
        return batches_of(batches, self._choice, "the dataset")


def _split_row_groups(fragment: Any) -> list[Any]:
    """The row groups of a fragment of Parquet; the fragment itself for other formats."""
    if not hasattr(fragment, "split_by_row_group"):
        return [fragment]
    return list(fragment.split_by_row_group())


def batches_of(
    batches: Iterable[Any], choice: ColumnChoice, where: str, size: int | None = None
) -> Iterator[Batch]:
    """Convert record batches, `size` rows at a time; errors of Arrow become `InputFileError`."""
    row = 0
    try:
        for batch in batches:
            step = size or max(1, batch.num_rows)
            for low in range(0, batch.num_rows, step):
                yield to_batch(batch.slice(low, step), choice, where, row + low)
            row += batch.num_rows
    except ERRORS as error:
        raise unreadable(error, where) from error


def matrix_batches(batches: Iterable[Any], choice: ColumnChoice, where: str) -> Iterator[Batch]:
    """Convert record batches whose chosen column holds a whole row per cell: a list or a tensor."""
    name = choice.names[0]
    for batch in batches:
        cells = batch.column(name)
        if isinstance(cells, pa.ChunkedArray):
            cells = cells.combine_chunks()
        if isinstance(cells, pa.ExtensionArray):
            cells = cells.storage
        numbers = pc.cast(cells.flatten(), pa.float64()).to_numpy(zero_copy_only=False)
        lengths = pc.list_value_length(cells)
        if cells.null_count or len(pc.unique(lengths)) != 1:
            raise DataError(
                f"Column {name!r} of {where} holds rows that are missing or of unequal lengths; "
                f"leave them out."
            )
        weights = None
        if choice.weight is not None:
            weights = to_batch(batch, ColumnChoice([choice.weight], choice.weight), where).weights
        yield Batch(numbers.reshape(batch.num_rows, -1), weights)


def describe_schema(schema: Any) -> list[tuple[str, str | None]]:
    """The columns of an Arrow schema, each with what it holds: None for numbers."""
    return [(field.name, describe_type(field.type)) for field in schema]


def width_of(schema: Any) -> int:
    """The number of columns of sparse rows, if the metadata of a schema has it; otherwise 0."""
    text = (schema.metadata or {}).get(b"n_features", b"")
    return int(text) if text.isdigit() else 0


def index_of(schema: Any) -> list[str]:
    """The columns that were the index of the data frame that pandas wrote."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in index if isinstance(name, str)]


def describe_type(kind: Any) -> str | None:
    """What a column of an Arrow type holds: None for numbers."""
    if any(is_numeric(kind) for is_numeric in _IS_NUMERIC):
        return None
    vectors = describe_vectors(kind)
    if vectors is not None:
        return vectors
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return Dates(kind)
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return "text" if any(is_text(values) for is_text in _IS_TEXT) else str(kind)


def to_batch(batch: Any, choice: ColumnChoice, where: str, row: int = 0) -> Batch:
    """Convert the chosen columns of a record batch or table, whose first row is number `row`."""
    columns = [batch.column(name) for name in choice.names]
    if choice.width is None:
        rows: Any = to_rows(columns, batch.num_rows, choice.numberings)
    elif choice.is_sparse:
        rows = to_sparse(columns, choice.width, where, row)
    else:
        rows = to_vectors(columns[0], choice.width, choice.names[0], where, row)
    if choice.weight is None:
        return Batch(rows)
    weights = to_rows([batch.column(choice.weight)], batch.num_rows)[:, 0]
    return Batch(rows, checked_weights(weights, f"Column {choice.weight!r} of {where}", row))


def to_rows(
    columns: Sequence[Any], count: int, numberings: Mapping[int, Numbering] = NO_NUMBERINGS
) -> RowsArray:
    """Put columns side by side; single precision stays single, nulls become NaN. Some columns are
    read by `numberings`, by their place.

    Columns stay contiguous in memory: blocks of them are turned into rows in parallel by the
    threads that compute.
    """
    is_narrow = all(column.type in (pa.float32(), pa.float16()) for column in columns)
    turned = np.empty((len(columns), count), np.float32 if is_narrow else np.float64)
    for i, column in enumerate(columns):
        if i in numberings:
            turned[i] = numberings[i](column)
            continue
        if pa.types.is_temporal(column.type):
            turned[i] = _to_days(column)
            continue
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            column = pc.cast(column, pa.float64())
        options = {"zero_copy_only": False} if isinstance(column, pa.Array) else {}
        turned[i] = column.to_numpy(**options)
    return turned.T


def _to_days(column: Any) -> FloatArray:
    """Dates and times as days since 1970, float64: the same for every unit they are stored in."""
    unit = pa.timestamp("us", tz=getattr(column.type, "tz", None))
    counts = pc.cast(pc.cast(column, unit, safe=False), pa.int64())
    options = {"zero_copy_only": False} if isinstance(counts, pa.Array) else {}
    # Nulls become NaN.
    numbers: FloatArray = pc.cast(counts, pa.float64(), safe=False).to_numpy(**options)
    return numbers / _MICROSECONDS_PER_DAY
