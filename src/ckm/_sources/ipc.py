"""Arrow's own files: IPC, also called Feather, whose record batches can be read in any order; and
its streaming format.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from ckm._sources.arrow import ERRORS, describe_schema, index_of, stream_source, width_of
from ckm._sources.base import Source
from ckm._sources.batch_sizes import (
    FileBatch,
    batches_of_file,
    batches_of_stream,
    buffers_of,
    require_small,
)
from ckm._sources.column_checks import require_numbers
from ckm._sources.column_request import ColumnChoice, ColumnRequest
from ckm._sources.columns import choose
from ckm._sources.failures import unreadable
from ckm._sources.settings import ReadSettings
from ckm._sources.stdin import LimitedStream
from ckm._sources.tables import TableFile, TableSource
from ckm._util.stores import (
    FilePath,
    RemoteFile,
    any_remote,
    file_size,
    map_files,
    open_file,
    open_seekable,
    require_unchanged,
)
from ckm.errors import InputFileError, ParameterError

# First bytes of a file, and of one in Feather's first version.
_FILE = b"ARROW1"
_FEATHER_V1 = b"FEA1"


class ArrowFile(TableFile):
    """One file; a record batch of it is in memory at a time, or mapped to memory if it is large."""

    def __init__(self, path: FilePath, settings: ReadSettings) -> None:
        self.path = path
        self._settings = settings
        try:
            with _open_anywhere(path, mapped=True) as file:
                reader = pa.ipc.open_file(file)
                self._schema = reader.schema
                # Of an object, looking at each buffer would be a request.
                self._batches: list[FileBatch] | None = None
                if not isinstance(path, RemoteFile):
                    dictionaries, self._batches = batches_of_file(file)
                    for dictionary in dictionaries:
                        self._require_small(file, dictionary, None)
                self.present = describe_schema(self._schema)
                self.index = index_of(self._schema)
                self.width = width_of(self._schema)
                self.group_rows = self._count_rows(file, reader.num_record_batches)
        except ERRORS as error:
            raise unreadable(error, str(path)) from error

    def _count_rows(self, file: Any, n_batches: int) -> list[int]:
        """How many rows each batch has."""
        if self._batches is not None:
            return [found.batch.rows for found in self._batches]
        # One column is enough to see it; the smallest is read.
        reader = pa.ipc.open_file(file, options=self._only([self._smallest()]))
        return [reader.get_batch(i).num_rows for i in range(n_batches)]

    def _require_small(self, file: Any, found: FileBatch, kept: Sequence[int] | None) -> None:
        """Refuse a batch that decompression would make too large for memory."""

        def read_at(size: int, offset: int) -> bytes:
            return bytes(file.read_at(size, found.body + offset))

        n_bytes = found.batch.bytes_in_memory(read_at, kept)
        require_small(n_bytes, str(self.path), self._settings.max_batch_bytes)

    def read(self, groups: Sequence[int], columns: list[str], size: int, row: int) -> Iterator[Any]:
        largest = max(self.group_rows, default=0) / max(1, sum(self.group_rows))
        batch_bytes = int(file_size(self.path) * largest)
        is_remote = isinstance(self.path, RemoteFile)
        if is_remote:
            self._require_small_batches(batch_bytes)
        is_mapped = not is_remote and batch_bytes > self._settings.mapped_bytes
        with _open_anywhere(self.path, is_mapped) as file:
            # Arrow copies chosen columns, but not whole batches that are mapped. Compressed ones
            # must be copied anyway.
            is_copied = not is_mapped or self._is_compressed()
            reader = pa.ipc.open_file(file, options=self._only(columns) if is_copied else None)
            kept = buffers_of(self._schema, columns) if is_copied else None
            for group in groups:
                if self._batches is not None:
                    self._require_small(file, self._batches[group], kept)
                yield reader.get_batch(group)

    def _require_small_batches(self, n_bytes: int) -> None:
        """Refuse an object whose largest batch, which must be in memory, is too large for it."""
        if n_bytes > self._settings.max_batch_bytes:
            raise InputFileError(
                f"Cannot read {self.path}: a record batch has about {n_bytes:,} bytes, and at most "
                f"{self._settings.max_batch_bytes:,} are read at once; write smaller batches, with "
                f"writer.write_table(table, max_chunksize=100_000)."
            )

    def _smallest(self) -> str:
        """The column whose values have the fewest bits."""
        sizes = []
        for name, _ in self.present:
            kind = self._schema.field(name).type
            bits = kind.bit_width if pa.types.is_primitive(kind) else math.inf
            sizes.append((bits, name))
        return min(sizes)[1]

    def _is_compressed(self) -> bool:
        """Whether the columns of numbers alone would not fit into the file without compression."""
        numbers = [name for name, holds in self.present if holds is None]
        kinds = [self._schema.field(name).type for name in numbers]
        bits = sum(kind.bit_width for kind in kinds if not pa.types.is_null(kind))
        n_bytes: int = sum(self.group_rows) * bits // 8
        return n_bytes > file_size(self.path)

    def _only(self, columns: list[str]) -> Any:
        """The option to read these columns only."""
        return pa.ipc.IpcReadOptions(
            included_fields=[self._schema.get_field_index(name) for name in columns]
        )


def open_files(paths: Sequence[FilePath], request: ColumnRequest, settings: ReadSettings) -> Source:
    """Open Arrow files with the same columns, all of them in one of the two formats."""
    are_remote = any_remote(paths)
    are_files = set(map_files(_is_file, paths, are_remote))
    if len(are_files) > 1:
        raise ParameterError(
            "Some of these Arrow files are streams and some are not; give one kind at a time."
        )
    if are_files == {False}:
        return _open_streams(paths, request, settings)
    files = map_files(partial(ArrowFile, settings=settings), paths, are_remote)
    first = files[0]
    choice = choose(request, first.present, str(first.path), index=first.index, may_be_sparse=True)
    for file in files[1:]:
        require_numbers(choice, file.present, str(file.path))
    return TableSource(files, choice, settings)


def _is_file(path: FilePath) -> bool:
    """Whether it is in the file format, not in the streaming format."""
    try:
        with _open_anywhere(path, mapped=False) as file:
            start = file.read(len(_FILE))
    except ERRORS as error:
        raise unreadable(error, str(path)) from error
    if start.startswith(_FEATHER_V1):
        raise InputFileError(
            f"{path} is in Feather's first version; write it again with "
            f"pyarrow.feather.write_feather(table, name)."
        )
    return bool(start == _FILE)


def _open_streams(
    paths: Sequence[FilePath], request: ColumnRequest, settings: ReadSettings
) -> Source:
    """Open files in the streaming format, one after another."""

    def read_batches(choice: ColumnChoice) -> Iterator[Any]:
        for path in paths:
            # Mapped, so that a large batch is not copied as a whole.
            with _open_in_order(path, settings) as file:
                if not isinstance(path, RemoteFile):
                    _require_small_stream(file, path, settings.max_batch_bytes)
                reader = _open_stream(file, path)
                require_numbers(choice, describe_schema(reader.schema), str(path))
                yield from reader
            require_unchanged(path)

    with _open_in_order(paths[0], settings) as file:
        schema = _open_stream(file, paths[0]).schema
    try:
        describe_schema(schema)
    except ERRORS as error:  # names that are not UTF-8
        raise unreadable(error, str(paths[0])) from error
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


def _open_anywhere(path: FilePath, mapped: bool) -> Any:
    """Open a file that is read in any order; small reads of an object are requested together."""
    if isinstance(path, RemoteFile):
        return pa.PythonFile(open_seekable(path), mode="r")
    return open_file(path, mapped)


def _open_in_order(path: FilePath, settings: ReadSettings) -> Any:
    """Open a file that is read from its beginning to its end."""
    file = open_file(path, mapped=True)
    if not isinstance(path, RemoteFile):
        return file
    buffered = pa.BufferedInputStream(file, settings.csv_block_bytes)
    return pa.PythonFile(LimitedStream(buffered, str(path), settings.max_batch_bytes), mode="r")


def _require_small_stream(file: Any, path: FilePath, max_bytes: int) -> None:
    """Refuse a stream with a batch that decompression would make too large for memory."""
    for batch, body in batches_of_stream(file):

        def read_at(size: int, offset: int, body: int = body) -> bytes:
            return bytes(file.read_at(size, body + offset))

        require_small(batch.bytes_in_memory(read_at), str(path), max_bytes)


def _open_stream(file: Any, path: FilePath) -> Any:
    try:
        return pa.ipc.open_stream(file)
    except ERRORS as error:
        raise unreadable(error, str(path)) from error
