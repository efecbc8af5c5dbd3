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
from ckm._sources.tables import TableFile, TableSource
from ckm.errors import InputFileError, ParameterError

_FILE, _OLD_FEATHER = b"ARROW1", b"FEA1"
_LARGE = 64 * 2**20  # bytes of a batch that is better mapped than read


class ArrowFile(TableFile):
    """One file; what is in memory is a record batch of it at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with pa.memory_map(str(path)) as file:
                reader = pa.ipc.open_file(file)
                self._schema = reader.schema
                self.held, self.index = describe_schema(self._schema), index_of(self._schema)
                # One column is enough to see how many rows a batch has: mapped, it is not even
                # read.
                reader = pa.ipc.open_file(
                    file, options=self._only([name for name, _ in self.held[:1]])
                )
                self.group_rows = [
                    reader.get_batch(i).num_rows for i in range(reader.num_record_batches)
                ]
        except ERRORS as error:
            raise unreadable(error, str(path)) from error

    def read(self, groups: Sequence[int], columns: list[str], size: int) -> Iterator[Any]:
        large = self.path.stat().st_size > _LARGE * max(1, len(self.group_rows))
        with (pa.memory_map if large else pa.OSFile)(str(self.path)) as file:
            reader = pa.ipc.open_file(file, options=self._only(columns))
            for group in groups:
                yield reader.get_batch(group)

    def _only(self, columns: list[str]) -> Any:
        return pa.ipc.IpcReadOptions(
            included_fields=[self._schema.get_field_index(name) for name in columns]
        )


def open_files(paths: Sequence[Path], request: ColumnRequest) -> Source:
    """The rows of Arrow files with the same columns, all of them in one of the two formats."""
    in_blocks = {_is_file(path) for path in paths}
    if len(in_blocks) > 1:
        raise ParameterError(
            "Some of these Arrow files are streams and some are not; give one kind at a time."
        )
    if in_blocks == {False}:
        return _open_streams(paths, request)
    files = [ArrowFile(path) for path in paths]
    choice = choose(request, files[0].held, str(files[0].path), index=files[0].index)
    for file in files[1:]:
        require_numbers(choice, file.held, str(file.path))
    return TableSource(files, choice)


def _is_file(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(len(_FILE))
    if start.startswith(_OLD_FEATHER):
        raise InputFileError(
            f"{path} is in Feather's first version; write it again with pyarrow.feather.write_feather(table, name)."
        )
    return start == _FILE


def _open_streams(paths: Sequence[Path], request: ColumnRequest) -> Source:
    def begin(choice: ColumnChoice) -> Iterator[Any]:
        for path in paths:
            with pa.OSFile(str(path)) as file:
                reader = _open_stream(file, path)
                require_numbers(choice, describe_schema(reader.schema), str(path))
                yield from reader

    with pa.OSFile(str(paths[0])) as file:
        schema = _open_stream(file, paths[0]).schema
    name = str(paths[0]) if len(paths) == 1 else None
    return stream_source(
        schema,
        begin,
        request,
        once=False,
        name=name,
        can_prefetch=True,
        what=f"{paths[0]} and {len(paths) - 1} more",
    )


def _open_stream(file: Any, path: Path) -> Any:
    try:
        return pa.ipc.open_stream(file)
    except ERRORS as error:
        raise unreadable(error, str(path)) from error
