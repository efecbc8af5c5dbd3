"""Parquet files, also in folders whose names hold keys, as Hive has them (`year=2024/month=1`)."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from ckm._sources.arrow import ERRORS, describe_schema, index_of, unreadable
from ckm._sources.blocks import cut_at_multiples
from ckm._sources.columns import ColumnRequest, choose, require_numbers
from ckm._sources.settings import ReadSettings
from ckm._sources.tables import TableFile, TableSource

# Bytes of each column that are in memory while it is read, instead of its whole row group.
_BUFFER_BYTES = 2**17
# One thread decodes as fast as a few cores sketch, and costs less than several that share them.
_DECODE_IN_THREADS = (os.cpu_count() or 1) > 4
_NULL_KEY = "__HIVE_DEFAULT_PARTITION__"


class ParquetFile(TableFile):
    """One file, with the values of the keys in its path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            metadata = pq.read_metadata(path)
            schema = metadata.schema.to_arrow_schema()
        except ERRORS as error:
            raise unreadable(error, str(path)) from error
        self.present = describe_schema(schema)
        self.index = index_of(schema)
        self.group_rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self.keys = keys_in(path)

    def read(self, groups: Sequence[int], columns: list[str], size: int, row: int) -> Iterator[Any]:
        stored = {name for name, _ in self.present}
        options = {
            "row_groups": list(groups),
            "columns": [name for name in columns if name in stored],
            "use_threads": _DECODE_IN_THREADS,
        }
        with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER_BYTES) as file:
            for table in _end_at_multiples(file.iter_batches(size, **options), size, row):
                arrays = [
                    table.column(name) if name in stored else self._repeat_key(name, table.num_rows)
                    for name in columns
                ]
                yield pa.table(arrays, columns)

    def _repeat_key(self, name: str, count: int) -> Any:
        """A column with the value that a key has in the path."""
        text = self.keys[name]
        return pa.repeat(None if text == _NULL_KEY else float(text), count)


def open_files(
    paths: Sequence[Path], request: ColumnRequest, settings: ReadSettings
) -> TableSource:
    """Open Parquet files with the same columns."""
    files = [ParquetFile(path) for path in paths]
    first = files[0]
    stored = {name for name, _ in first.present}
    keys = {
        key: None if all(_is_number(file.keys.get(key)) for file in files) else "text"
        for key in first.keys
        if key not in stored
    }
    choice = choose(request, first.present, str(first.path), keys, first.index)
    for file in files[1:]:
        contents = {key: keys.get(key) for key in file.keys} | dict(file.present)
        require_numbers(choice, file.present, str(file.path), contents)
    return TableSource(files, choice, settings)


def _end_at_multiples(batches: Iterable[Any], size: int, row: int) -> Iterator[Any]:
    """Yield record batches as tables that end at row numbers that are multiples of `size`.

    The first row is number `row`. Arrow counts from the row group that it reads first, so that a
    pass that continues in the middle of a file would otherwise be cut at other rows.
    """
    sized = ((batch, batch.num_rows) for batch in batches)
    for pieces in cut_at_multiples(sized, size, row):
        yield pa.Table.from_batches([batch.slice(low, high - low) for batch, low, high in pieces])


def keys_in(path: Path) -> dict[str, str]:
    """The keys and values in the names of the folders that a file is in.

    >>> keys_in(Path("data/year=2024/month=1/0.parquet"))
    {'year': '2024', 'month': '1'}
    """
    pairs = (part.split("=", 1) for part in path.parent.parts if "=" in part)
    return {key: unquote(value) for key, value in pairs}


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and (text == _NULL_KEY or float(text) is not None)
    except ValueError:
        return False
