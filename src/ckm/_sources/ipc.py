"""Arrow's own files: IPC, also called Feather, whose record batches can be read in any order; and
its streaming format.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ckm._sources.arrow import ERRORS, describe_schema, index_of, stream_source, unreadable
from ckm._sources.base import Source
from ckm._sources.columns import ColumnChoice, ColumnRequest, choose, require_numbers
from ckm._sources.settings import ReadSettings
from ckm._sources.tables import TableFile, TableSource
from ckm.errors import InputFileError, ParameterError

# First bytes of a file, and of one in Feather's first version.
_FILE = b"ARROW1"
_FEATHER_V1 = b"FEA1"


class ArrowFile(TableFile):
    """One file; a record batch of it is in memory at a time, or mapped to memory if it is large."""

    def __init__(self, path: Path, settings: ReadSettings) -> None:
        self.path = path
        self._settings = settings
        try:
            with pa.memory_map(str(path)) as file:
                reader = pa.ipc.open_file(file)
                self._schema = reader.schema
                self.present = describe_schema(self._schema)
                self.index = index_of(self._schema)
                # One column is enough to see how many rows a batch has; as it is mapped, it is not
                # even read.
                first = self._only([name for name, _ in self.present[:1]])
                reader = pa.ipc.open_file(file, options=first)
                self.group_rows = [
                    reader.get_batch(i).num_rows for i in range(reader.num_record_batches)
                ]
        except ERRORS as error:
            raise unreadable(error, str(path)) from error

    def read(self, groups: Sequence[int], columns: list[str], size: int, row: int) -> Iterator[Any]:
        largest = max(self.group_rows, default=0) / max(1, sum(self.group_rows))
        is_mapped = self.path.stat().st_size * largest > self._settings.mapped_bytes
        with (pa.memory_map if is_mapped else pa.OSFile)(str(self.path)) as file:
            # Arrow copies chosen columns, but not whole batches that are mapped. Compressed ones
            # must be copied anyway.
            is_copied = not is_mapped or self._is_compressed()
            reader = pa.ipc.open_file(file, options=self._only(columns) if is_copied else None)
            for group in groups:
                yield reader.get_batch(group)

    def _is_compressed(self) -> bool:
        """Whether the columns of numbers alone would not fit into the file without compression."""
        numbers = [name for name, holds in self.present if holds is None]
        kinds = [self._schema.field(name).type for name in numbers]
        bits = sum(kind.bit_width for kind in kinds if not pa.types.is_null(kind))
        n_bytes: int = sum(self.group_rows) * bits // 8
        return n_bytes > self.path.stat().st_size

    def _only(self, columns: list[str]) -> Any:
        """The option to read these columns only."""
        return pa.ipc.IpcReadOptions(
            included_fields=[self._schema.get_field_index(name) for name in columns]
        )


def open_files(paths: Sequence[Path], request: ColumnRequest, settings: ReadSettings) -> Source:
    """Open Arrow files with the same columns, all of them in one of the two formats."""
    are_files = {_is_file(path) for path in paths}
    if len(are_files) > 1:
        raise ParameterError(
            "Some of these Arrow files are streams and some are not; give one kind at a time."
        )
    if are_files == {False}:
        return _open_streams(paths, request, settings)
    files = [ArrowFile(path, settings) for path in paths]
    first = files[0]
    choice = choose(request, first.present, str(first.path), index=first.index)
    for file in files[1:]:
        require_numbers(choice, file.present, str(file.path))
    return TableSource(files, choice, settings)


def _is_file(path: Path) -> bool:
    """Whether it is in the file format, not in the streaming format."""
    with path.open("rb") as file:
        start = file.read(len(_FILE))
    if start.startswith(_FEATHER_V1):
        raise InputFileError(
            f"{path} is in Feather's first version; write it again with "
            f"pyarrow.feather.write_feather(table, name)."
        )
    return start == _FILE


def _open_streams(paths: Sequence[Path], request: ColumnRequest, settings: ReadSettings) -> Source:
    """Open files in the streaming format, one after another."""

    def read_batches(choice: ColumnChoice) -> Iterator[Any]:
        for path in paths:
            # Mapped, so that a large batch is not copied as a whole.
            with pa.memory_map(str(path)) as file:
                reader = _open_stream(file, path)
                require_numbers(choice, describe_schema(reader.schema), str(path))
                yield from reader

    with pa.OSFile(str(paths[0])) as file:
        schema = _open_stream(file, paths[0]).schema
    return stream_source(
        schema,
        read_batches,
        request,
        settings,
        once=False,
        name=str(paths[0]) if len(paths) == 1 else None,
        can_prefetch=True,
        what=f"{paths[0]} and {len(paths) - 1} more",
    )


def _open_stream(file: Any, path: Path) -> Any:
    try:
        return pa.ipc.open_stream(file)
    except ERRORS as error:
        raise unreadable(error, str(path)) from error
