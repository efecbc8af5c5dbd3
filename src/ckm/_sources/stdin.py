"""Bytes that can be read once: standard input (`-`), pipes, open files.

They are CSV or an Arrow stream, as the first bytes show.
"""

import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from ckm._sources.arrow import ERRORS, stream_source
from ckm._sources.base import Source
from ckm._sources.batch_sizes import Batch as AnnouncedBatch
from ckm._sources.batch_sizes import parse_message, require_small
from ckm._sources.column_request import ColumnRequest
from ckm._sources.columns import choose
from ckm._sources.failures import unreadable
from ckm._sources.lines import layout_of_block, parse
from ckm._sources.paths import STANDARD_INPUT
from ckm._sources.records import split_records
from ckm._sources.settings import ReadSettings
from ckm._sources.streaming import Batch, StreamSource
from ckm.errors import InputFileError

_ARROW_STREAM = b"\xff\xff\xff\xff"
# First bytes of formats that need to be read in any order.
_FILES_ONLY = {
    b"PAR1": "Parquet",
    b"ARRO": "an Arrow file",
    b"\x93NUM": "a .npy file",
    b"\x89HDF": "HDF5",
    b"FEA1": "Feather",
}
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}
# Bytes that identify a format.
_MAGIC_BYTES = 4


class _Prefixed:
    """Bytes that were read already, then the rest of a stream.

    A pipe gives few bytes at a time; `read` waits for as many as are asked for.
    """

    closed = False

    def __init__(self, first: bytes, rest: Any, closes_rest: bool = False) -> None:
        self._first = first
        self._rest = rest
        self._closes_rest = closes_rest

    def read(self, size: int) -> bytes:
        taken = [self._first[:size]]
        self._first = self._first[size:]
        missing = size - len(taken[0])
        while missing > 0 and not self.closed:
            more = self._rest.read(missing)
            taken.append(more)
            missing -= len(more)
            if not more:
                self.close()
        return b"".join(taken)

    def close(self) -> None:
        self.closed = True
        if self._closes_rest:
            self._rest.close()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


class LimitedStream(_Prefixed):
    """An Arrow stream, each of whose batches is read at once: larger ones are refused.

    Arrow reads the metadata of a batch and then its body, each in one call.
    """

    def __init__(self, stream: Any, name: str, max_bytes: int) -> None:
        super().__init__(b"", stream)
        self._name = name
        self._max_bytes = max_bytes
        # What the metadata that was read last announces.
        self._batch: AnnouncedBatch | None = None

    def read(self, size: int) -> bytes:
        if size > self._max_bytes:
            raise InputFileError(
                f"Cannot read {self._name}: a record batch has {size:,} bytes, and at most "
                f"{self._max_bytes:,} are read at once; write smaller batches, with "
                f"writer.write_table(table, max_chunksize=100_000), or a file."
            )
        data = super().read(size)
        batch = self._batch
        if batch is not None and batch.body_bytes == size:
            self._batch = None

            def read_at(count: int, offset: int) -> bytes:
                return data[offset : offset + count] if offset >= 0 else b""

            require_small(batch.bytes_in_memory(read_at), self._name, self._max_bytes)
        elif size > _MAGIC_BYTES:
            self._batch = parse_message(data)
        return data


@dataclass(frozen=True)
class _Opener:
    """How to open one stream: its name in errors, the columns, and who may read and close it."""

    name: str
    request: ColumnRequest
    settings: ReadSettings
    can_prefetch: bool
    closes_file: bool = False

    def open(self, file: Any) -> Source:
        """Open a stream of bytes of any format."""
        stream = self._decompress(file)
        first = self._first_bytes(stream)
        magic = first[:_MAGIC_BYTES]
        if magic in _FILES_ONLY:
            raise InputFileError(
                f"{self.name} holds {_FILES_ONLY[magic]}, which cannot be read in one go; give it "
                f"as a file, or pipe CSV or an Arrow stream."
            )
        if not first:
            raise InputFileError(f"{self.name} is empty; pipe CSV or an Arrow stream into it.")
        whole = _Prefixed(first, stream)
        return self._open_arrow(whole) if magic == _ARROW_STREAM else self._open_csv(whole)

    def _decompress(self, file: Any) -> Any:
        """The stream itself, or its decompressed bytes."""
        try:
            is_text = isinstance(file.read(0), str)
        except ERRORS as error:
            raise unreadable(error, self.name) from error
        if is_text:
            raise InputFileError(
                f"{self.name} is open for text; open it for bytes, with open(name, 'rb')."
            )
        first = self._first_bytes(file)
        stream = _Prefixed(first, file, self.closes_file)
        compression = _COMPRESSIONS.get(first[:2])
        if compression is None:
            return stream
        return pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), compression)

    def _first_bytes(self, file: Any) -> bytes:
        """Read enough bytes to know the format, if there are as many."""
        first = b""
        try:
            while len(first) < _MAGIC_BYTES:
                more = file.read(self.settings.csv_block_bytes)
                if not more:
                    break
                first += more
        except ERRORS as error:
            raise unreadable(error, self.name) from error
        return first

    def _open_arrow(self, stream: Any) -> Source:
        limited = LimitedStream(stream, self.name, self.settings.max_batch_bytes)
        try:
            reader = pa.ipc.open_stream(pa.PythonFile(limited, mode="r"))
        except ERRORS as error:
            raise unreadable(error, self.name) from error
        return stream_source(
            reader.schema,
            lambda choice: reader,
            self.request,
            self.settings,
            once=True,
            name=self.name,
            can_prefetch=self.can_prefetch,
        )

    def _open_csv(self, stream: Any) -> Source:
        settings = self.settings
        size = settings.csv_block_bytes
        blocks = split_records(stream, size, self.name, settings.max_line_bytes)
        first = next(blocks, b"")
        layout = layout_of_block(first, self.name)
        layout.warn_of_doubt(self.name)
        choice = choose(self.request, layout.present, self.name)

        def read_batches() -> Iterator[Batch]:
            row = 0
            for block in chain([first[layout.header_bytes :]], blocks):
                batch = parse(block, layout, choice, self.name, row)
                row += len(batch.rows)
                yield batch

        return StreamSource(
            read_batches,
            len(choice.names),
            choice.columns,
            once=True,
            name=self.name,
            can_prefetch=self.can_prefetch,
            settings=self.settings,
        )


def open_path(path: Path, request: ColumnRequest, settings: ReadSettings) -> Source:
    """Open standard input, or a named pipe."""
    if path != STANDARD_INPUT:
        opener = _Opener(str(path), request, settings, can_prefetch=True, closes_file=True)
        return opener.open(path.open("rb", buffering=0))
    if sys.stdin is None:
        raise InputFileError("Standard input (-) is closed; pipe CSV or an Arrow stream into it.")
    try:
        # Unbuffered and our own: a thread that waits for it must not hold a lock that the
        # interpreter needs to end.
        file: Any = io.FileIO(sys.stdin.fileno(), closefd=False)
    except (OSError, ValueError):
        # Another object stands in for standard input.
        file = getattr(sys.stdin, "buffer", sys.stdin)
    if hasattr(file, "isatty") and file.isatty():
        raise InputFileError(
            "Standard input (-) is a terminal, where no rows come from; pipe CSV or an Arrow "
            "stream into it."
        )
    return _Opener("standard input", request, settings, can_prefetch=True).open(file)


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> Source:
    """Open a file that is open for reading bytes."""
    name = getattr(data, "name", None)
    where = os.fspath(name) if isinstance(name, (str, os.PathLike)) else "the stream"
    return _Opener(where, request, settings, can_prefetch=False).open(data)
