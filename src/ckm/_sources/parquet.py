"""Parquet files, also in folders whose names hold keys, as Hive has them (`year=2024/month=1`)."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from ckm._sources.arrow import ERRORS, describe_schema, index_of, width_of
from ckm._sources.blocks import cut_at_multiples
from ckm._sources.column_checks import require_numbers
from ckm._sources.column_request import ColumnRequest
from ckm._sources.columns import choose
from ckm._sources.failures import unreadable
from ckm._sources.settings import ReadSettings
from ckm._sources.tables import TableFile, TableSource
from ckm._util.stores import FilePath, any_remote, map_files, open_file

# Bytes of each column that are in memory while it is read, instead of its whole row group.
_BUFFER_BYTES = 2**17
# Bytes of a row group of an object that are requested together, and then in memory.
_REQUESTED_BYTES = 64 * 2**20
# One thread decodes as fast as a few cores sketch, and costs less than several that share them.
_DECODE_IN_THREADS = (os.cpu_count() or 1) > 4
_NULL_KEY = "__HIVE_DEFAULT_PARTITION__"


class ParquetFile(TableFile):
    """One file, with the values of the keys in its path."""

    def __init__(self, path: FilePath) -> None:
        self.path = path
        try:
            with open_file(path) as file:
                metadata = pq.read_metadata(file)
            schema = metadata.schema.to_arrow_schema()
        except ERRORS as error:
            raise unreadable(error, str(path)) from error
        self.present = describe_schema(schema)
        self.index = index_of(schema)
        self.width = width_of(schema)
        self.group_rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self.keys = keys_in(path)

    def read(self, groups: Sequence[int], columns: list[str], size: int, row: int) -> Iterator[Any]:
        stored = {name for name, _ in self.present}
        wanted = [name for name in columns if name in stored]
        with open_file(self.path) as file:
            is_local = isinstance(self.path, Path)
            batches = (_read_local if is_local else _read_remote)(file, groups, wanted, size)
            for table in _end_at_multiples(batches, size, row):
                arrays = [
                    table.column(name) if name in stored else self._repeat_key(name, table.num_rows)
                    for name in columns
                ]
                yield pa.table(arrays, columns)

    def _repeat_key(self, name: str, count: int) -> Any:
        """A column with the value that a key has in the path."""
        text = self.keys[name]
        value = text if not _is_number(text) else None if text == _NULL_KEY else float(text)
        return pa.repeat(value, count)


def _read_local(file: Any, groups: Sequence[int], columns: list[str], size: int) -> Iterator[Any]:
    """Yield record batches of an open file of this machine."""
    with pq.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER_BYTES) as opened:
        yield from opened.iter_batches(
            size, row_groups=list(groups), columns=columns, use_threads=_DECODE_IN_THREADS
        )


def _read_remote(file: Any, groups: Sequence[int], columns: list[str], size: int) -> Iterator[Any]:
    """Yield record batches of an open object, which is requested a row group at a time.

    The columns of a group are requested together, unless they would take too much memory: then
    each is requested in pieces.
    """
    metadata = pq.read_metadata(file)
    for group in groups:
        n_bytes = _group_bytes(metadata.row_group(group), columns)
        is_small = n_bytes <= _REQUESTED_BYTES
        piece = max(_BUFFER_BYTES, _REQUESTED_BYTES // max(1, len(columns)))
        opened = pq.ParquetFile(
            file, metadata=metadata, pre_buffer=is_small, buffer_size=0 if is_small else piece
        )
        yield from opened.iter_batches(
            size, row_groups=[group], columns=columns, use_threads=_DECODE_IN_THREADS
        )


def _group_bytes(group: Any, columns: list[str]) -> int:
    """The bytes of some columns of a row group, as they are stored."""
    chosen = set(columns)
    total = 0
    for i in range(group.num_columns):
        column = group.column(i)
        if column.path_in_schema.partition(".")[0] in chosen:
            total += column.total_compressed_size
    return total


def open_files(
    paths: Sequence[FilePath], request: ColumnRequest, settings: ReadSettings
) -> TableSource:
    """Open Parquet files with the same columns."""
    files = map_files(ParquetFile, paths, any_remote(paths))
    first = files[0]
    stored = {name for name, _ in first.present}
    keys = {
        key: None if all(_is_number(file.keys.get(key)) for file in files) else "text"
        for key in first.keys
        if key not in stored
    }
    choice = choose(request, first.present, str(first.path), keys, first.index, True)
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


def keys_in(path: FilePath) -> dict[str, str]:
    """The keys and values in the names of the folders that a file is in.

    >>> keys_in(Path("data/year=2024/month=1/0.parquet"))
    {'year': '2024', 'month': '1'}
    """
    pairs = (part.split("=", 1) for part in path.parts[:-1] if "=" in part)
    return {key: unquote(value) for key, value in pairs}


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and (text == _NULL_KEY or float(text) is not None)
    except ValueError:
        return False
