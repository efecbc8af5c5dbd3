"""How large record batches of Arrow are in memory, known before they are decompressed.

A compressed batch of a few bytes may hold any number of zeros. Its metadata, a flatbuffer (see
Message.fbs and File.fbs of the Arrow format), tells where its buffers are; a compressed buffer
begins with its length after decompression. Arrow verifies what it reads itself, so that metadata
that cannot be understood here is left to its error.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ckm.errors import InputFileError

_CONTINUATION = 0xFFFFFFFF
_DICTIONARY_BATCH = 2
_RECORD_BATCH = 3
# Bytes of a length before a compressed buffer; it is -1 if the buffer is not compressed after all.
_PREFIX_BYTES = 8
# Sizes of structures in vectors: a block of a file, a buffer of a batch.
_BLOCK_BYTES = 24
_BUFFER_BYTES = 16

# Reads a number of bytes at an offset.
ReadAt = Callable[[int, int], bytes]


class _Table(NamedTuple):
    """A table of a flatbuffer, at a position of its bytes."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        return cls(data, struct.unpack_from("<I", data)[0])

    def number(self, field: int, kind: str) -> int:
        """A number of this kind; zero if it is left out."""
        at = self._find(field)
        return 0 if at is None else int(struct.unpack_from(kind, self.data, at)[0])

    def table(self, field: int) -> "_Table | None":
        """Another table; None if it is left out."""
        at = self._find(field)
        return None if at is None else _Table(self.data, self._follow(at))

    def vector(self, field: int, size: int) -> list[int]:
        """The positions of the structures of a vector, of `size` bytes each."""
        at = self._find(field)
        if at is None:
            return []
        start = self._follow(at)
        count = struct.unpack_from("<I", self.data, start)[0]
        if start + 4 + count * size > len(self.data):
            raise struct.error("a vector is longer than the metadata")
        return [start + 4 + i * size for i in range(count)]

    def _follow(self, at: int) -> int:
        return at + int(struct.unpack_from("<I", self.data, at)[0])

    def _find(self, field: int) -> int | None:
        """The position of a field; None if it is left out."""
        layout = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        size = struct.unpack_from("<H", self.data, layout)[0]
        entry = 4 + 2 * field
        if layout < 0 or entry >= size:
            return None
        offset = struct.unpack_from("<H", self.data, layout + entry)[0]
        return self.at + offset if offset else None


class Batch(NamedTuple):
    """A record batch, as its metadata describes it.

    Parameters
    ----------
    rows : int
        The number of rows.
    is_compressed : bool
        Whether its buffers are compressed.
    buffers : list of (int, int)
        Where each buffer begins in the body, and its bytes there.
    body_bytes : int
        The bytes of the body.
    """

    rows: int
    is_compressed: bool
    buffers: list[tuple[int, int]]
    body_bytes: int

    def bytes_in_memory(self, read_at: ReadAt, kept: Sequence[int] | None = None) -> int:
        """The bytes of the `kept` buffers (all without it) that decompression would make.

        `read_at` reads from the body.
        """
        if not self.is_compressed:
            return 0
        total = 0
        numbers = range(len(self.buffers)) if kept is None else kept
        last = self.body_bytes - _PREFIX_BYTES
        for offset, length in (self.buffers[i] for i in numbers if i < len(self.buffers)):
            if length >= _PREFIX_BYTES and 0 <= offset <= last:
                found = read_at(_PREFIX_BYTES, offset)
                if len(found) == _PREFIX_BYTES:
                    total += max(0, int(struct.unpack("<q", found)[0]))
        return total


def parse_message(metadata: bytes) -> Batch | None:
    """The batch, of rows or of a dictionary, that a message announces; None for other messages."""
    try:
        message = _Table.root(metadata)
        kind = message.number(1, "<B")
        body_bytes = message.number(3, "<q")
        header = message.table(2)
        if kind == _DICTIONARY_BATCH and header is not None:
            header = header.table(1)
        if header is None or kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
            return Batch(0, False, [], body_bytes) if body_bytes > 0 else None
        buffers = [
            struct.unpack_from("<qq", metadata, at) for at in header.vector(2, _BUFFER_BYTES)
        ]
        return Batch(header.number(0, "<q"), header.table(3) is not None, buffers, body_bytes)
    except struct.error:
        return None


class FileBatch(NamedTuple):
    """A batch of a file, and where its body begins there."""

    batch: Batch
    body: int


def batches_of_file(file: Any) -> tuple[list[FileBatch], list[FileBatch]]:
    """The dictionaries and the record batches of an open Arrow file."""
    size = file.size()
    try:
        end = file.read_at(10, max(0, size - 10))
        length = struct.unpack("<i6x", end)[0]
        if not 0 < length <= size - 10:
            raise struct.error("the footer is longer than the file")
        data = file.read_at(length, size - 10 - length)
        footer = _Table.root(data)
        dictionaries = footer.vector(2, _BLOCK_BYTES)
        batches = footer.vector(3, _BLOCK_BYTES)
        return (
            [_batch_at(file, size, *struct.unpack_from("<qi", data, at)) for at in dictionaries],
            [_batch_at(file, size, *struct.unpack_from("<qi", data, at)) for at in batches],
        )
    except struct.error as error:
        raise pa.ArrowInvalid(f"its footer is damaged ({error})") from None


def _batch_at(file: Any, size: int, offset: int, metadata_bytes: int) -> FileBatch:
    """The batch whose message begins at `offset` of a file of `size` bytes."""
    body = offset + metadata_bytes
    if offset < 0 or metadata_bytes < 8 or body > size:
        raise struct.error("a batch is not within the file")
    data = file.read_at(metadata_bytes, offset)
    start = 8 if struct.unpack_from("<I", data)[0] == _CONTINUATION else 4
    batch = parse_message(data[start:])
    if batch is None or not 0 <= batch.body_bytes <= size - body or batch.rows < 0:
        raise struct.error("a batch is not within the file")
    return FileBatch(batch, body)


def batches_of_stream(file: Any) -> Iterator[FileBatch]:
    """The batches of a file in the streaming format, until the first that is not understood."""
    at = 0
    size = file.size()
    while at + 8 <= size:
        first, second = struct.unpack("<II", file.read_at(8, at))
        start, length = (8, second) if first == _CONTINUATION else (4, first)
        if length == 0 or at + start + length > size:
            return
        batch = parse_message(file.read_at(length, at + start))
        at += start + length
        if batch is not None:
            if not 0 <= batch.body_bytes <= size - at:
                return
            yield FileBatch(batch, at)
            at += batch.body_bytes


def require_small(n_bytes: int, name: str, max_bytes: int) -> None:
    """Raise `InputFileError` for a batch that decompression would make too large for memory."""
    if n_bytes > max_bytes:
        raise InputFileError(
            f"Cannot read {name}: a record batch has {n_bytes:,} bytes after decompression, and at "
            f"most {max_bytes:,} are read at once; write smaller batches, with "
            f"writer.write_table(table, max_chunksize=100_000)."
        )


def buffers_of(schema: Any, names: Sequence[str]) -> list[int] | None:
    """The numbers of the buffers of these columns within a batch; None if they are not known."""
    numbers: list[int] = []
    start = 0
    for field in schema:
        count = _count_buffers(field.type)
        if count is None:
            return None
        if field.name in names:
            numbers += range(start, start + count)
        start += count
    return numbers


def _count_buffers(kind: Any) -> int | None:
    """How many buffers an array of this type has; None for types that are not known here."""
    if isinstance(kind, pa.BaseExtensionType):
        return _count_buffers(kind.storage_type)
    if pa.types.is_null(kind):
        return 0
    if pa.types.is_dictionary(kind) or pa.types.is_fixed_size_binary(kind):
        return 2
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return 2
    if any(is_text(kind) for is_text in _HAVE_OFFSETS):
        return 3
    return None


_HAVE_OFFSETS = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_large_string,
    pa.types.is_large_binary,
)
