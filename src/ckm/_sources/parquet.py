"""Parquet files, also in folders whose names hold keys (`year=2024/month=1`, Hive's way)."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from ckm._sources.arrow import ERRORS, describe_schema, index_of, unreadable
from ckm._sources.columns import ColumnRequest, choose, require_numbers
from ckm._sources.tables import TableFile, TableSource

# bytes of each column held while it is read, instead of all that a row group has of it
_BUFFER = 2**17
# One thread decodes as fast as a few cores sketch, and costs less than several that share it.
_SEVERAL_DECODE = (os.cpu_count() or 1) > 4
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
        self.held, self.index = describe_schema(schema), index_of(schema)
        self.group_rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self.keys = keys_in(path)

    def read(self, groups: Sequence[int], columns: list[str], size: int) -> Iterator[Any]:
        inside = {name for name, _ in self.held}
        stored = [name for name in columns if name in inside]
        with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER) as file:
            for batch in file.iter_batches(
                size, row_groups=list(groups), columns=stored, use_threads=_SEVERAL_DECODE
            ):
                yield pa.table(
                    [
                        batch.column(name)
                        if name in inside
                        else pa.repeat(_number(self.keys[name]), batch.num_rows)
                        for name in columns
                    ],
                    columns,
                )


def open_files(paths: Sequence[Path], request: ColumnRequest) -> TableSource:
    """The rows of Parquet files with the same columns."""
    files = [ParquetFile(path) for path in paths]
    stored = {name for name, _ in files[0].held}
    keys = {
        key: None if all(_is_number(file.keys.get(key)) for file in files) else "text"
        for key in files[0].keys
        if key not in stored
    }
    choice = choose(request, files[0].held, str(files[0].path), keys, files[0].index)
    for file in files[1:]:
        require_numbers(
            choice,
            file.held,
            str(file.path),
            {key: keys.get(key) for key in file.keys} | dict(file.held),
        )
    return TableSource(files, choice)


def keys_in(path: Path) -> dict[str, str]:
    """Keys and values in the names of the folders that a file is in."""
    pairs = (part.split("=", 1) for part in path.parent.parts if "=" in part)
    return {key: unquote(value) for key, value in pairs}


def _number(text: str) -> float | None:
    return None if text == _NULL_KEY else float(text)


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and (text == _NULL_KEY or float(text) is not None)
    except ValueError:
        return False
