"""Bytes that can be read once: standard input (`-`), pipes, open files. CSV or an Arrow stream,
told apart by the first bytes.
"""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from ckm._sources.arrow import ERRORS, stream_source, unreadable
from ckm._sources.base import Source
from ckm._sources.columns import ColumnRequest, choose
from ckm._sources.lines import BLOCK, lines, parse, read_layout
from ckm._sources.paths import STANDARD_INPUT
from ckm._sources.streaming import Batch, StreamSource
from ckm.errors import InputFileError

_ARROW_STREAM = b"\xff\xff\xff\xff"
_NEED_A_FILE = {
    b"PAR1": "Parquet",
    b"ARRO": "an Arrow file",
    b"\x93NUM": "a .npy file",
    b"\x89HDF": "HDF5",
    b"FEA1": "Feather",
}
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}


class _Prefixed:
    """Bytes that were looked at, and then the rest. A pipe gives few at a time; this waits for all
    that is asked for.
    """

    closed = False

    def __init__(self, first: bytes, rest: Any, ours: bool = False) -> None:
        self._first, self._rest, self._ours = first, rest, ours

    def read(self, size: int) -> bytes:
        taken, self._first = [self._first[:size]], self._first[size:]
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
        if self._ours:
            self._rest.close()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


def open_path(path: Path, request: ColumnRequest) -> Source:
    """Standard input, or a named pipe."""
    if path != STANDARD_INPUT:
        return _open(path.open("rb", buffering=0), str(path), request, can_prefetch=True, ours=True)
    try:
        # Unbuffered and our own: a thread that waits for it must not hold a lock that the
        # interpreter needs to end.
        file: Any = io.FileIO(sys.stdin.fileno(), closefd=False)
    except (OSError, ValueError):
        file = getattr(sys.stdin, "buffer", sys.stdin)  # something else stands in for it
    if hasattr(file, "isatty") and file.isatty():
        raise InputFileError(
            "Standard input (-) is a terminal, where no rows come from; pipe CSV or an Arrow stream into it."
        )
    return _open(file, "standard input", request, can_prefetch=True)


def open_data(data: Any, request: ColumnRequest) -> Source:
    """A file that is open for reading bytes."""
    name = getattr(data, "name", None)
    return _open(
        data,
        os.fspath(name) if isinstance(name, (str, os.PathLike)) else "the stream",
        request,
        can_prefetch=False,
    )


def _open(
    file: Any, name: str, request: ColumnRequest, can_prefetch: bool, ours: bool = False
) -> Source:
    stream = _decompressed(file, name, ours)
    first = _first_bytes(stream, name)
    if first[:4] in _NEED_A_FILE:
        raise InputFileError(
            f"{name} holds {_NEED_A_FILE[first[:4]]}, which cannot be read in one go; give it as a file, or pipe CSV or an Arrow stream."
        )
    if not first:
        raise InputFileError(f"{name} is empty; pipe CSV or an Arrow stream into it.")
    stream = _Prefixed(first, stream)
    if not first.startswith(_ARROW_STREAM):
        return _open_csv(stream, name, request, can_prefetch)
    try:
        reader = pa.ipc.open_stream(pa.PythonFile(stream, mode="r"))
    except ERRORS as error:
        raise unreadable(error, name) from error
    return stream_source(
        reader.schema,
        lambda choice: reader,
        request,
        once=True,
        name=name,
        can_prefetch=can_prefetch,
    )


def _decompressed(file: Any, name: str, ours: bool) -> Any:
    if isinstance(file.read(0), str):
        raise InputFileError(f"{name} is open for text; open it for bytes, with open(name, 'rb').")
    first = _first_bytes(file, name)
    stream = _Prefixed(first, file, ours)
    compression = _COMPRESSIONS.get(first[:2])
    return (
        stream
        if compression is None
        else pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), compression)
    )


def _first_bytes(file: Any, name: str) -> bytes:
    """Four bytes or more, where there are as many."""
    first = b""
    try:
        while len(first) < 4 and (more := file.read(BLOCK)):
            first += more
    except ERRORS as error:
        raise unreadable(error, name) from error
    return first


def _open_csv(stream: Any, name: str, request: ColumnRequest, can_prefetch: bool) -> Source:
    blocks = lines(stream, BLOCK, name)
    first = next(blocks, b"")
    layout = read_layout(first, name)
    choice = choose(request, layout.held, name)

    def begin() -> Iterator[Batch]:
        row = 0
        for block in _all(first[layout.header :], blocks):
            batch = parse(block, layout, choice, name, row)
            row += len(batch.rows)
            yield batch

    return StreamSource(
        begin, len(choice.names), choice.columns, once=True, name=name, can_prefetch=can_prefetch
    )


def _all(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
