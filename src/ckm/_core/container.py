"""The file format of sketches and checkpoints: safetensors, with metadata as canonical JSON.

Opening a safetensors file runs no code. The metadata is one JSON string with sorted keys, and it
includes a SHA-256 digest of metadata and tensors. The same contents always give the same bytes, and
`restore` accepts only those bytes: a file whose header or payload differs from what would be
written for its contents is refused.
"""

import hashlib
import json
import os
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as _load_tensors
from safetensors.numpy import save as _save_tensors

from ckm._util.address import Address
from ckm._util.arrays import Array
from ckm._util.stores import open_seekable, require_file
from ckm.errors import CkmError, MissingFileError, OutputError

Metadata = dict[str, Any]
Tensors = dict[str, Array]

_Value = TypeVar("_Value")

# Headers hold the names of columns and, in checkpoints, of files. Longer ones are neither written
# nor read: JSON takes up to thirty times its bytes in memory, up to a hundred for each item.
MAX_HEADER_BYTES = 16 * 2**20
MAX_HEADER_ITEMS = 2**20
_ITEM_MARKS = (b",", b"[", b"{")  # each item comes after one of them
# What reading metadata and tensors that are not ours may raise.
_BUILD_ERRORS = (
    CkmError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_LENGTH_BYTES = 8  # of the integer that the file starts with
_MARGIN = 2**13  # bytes of the rest of a header: its tensors


@dataclass(frozen=True)
class ContainerKind:
    """What a container holds, and how its errors are worded.

    Parameters
    ----------
    key : str
        The entry of the safetensors metadata that holds the JSON string.
    noun : str
        What the file is, as in "is not a sketch".
    version : int
        The newest version of the format that this library writes and reads.
    error : type of CkmError
        Raised for files that are refused.
    remedy : str
        The end of every such message.
    former_start : bytes, optional
        The first bytes of files in an earlier format, which is no longer read.
    """

    key: str
    noun: str
    version: int
    error: type[CkmError]
    remedy: str
    former_start: bytes | None = None

    def refuse(self, name: str, reason: str) -> NoReturn:
        """Raise the error of this kind: "`name` `reason`; `remedy`"."""
        raise self.error(f"{name} {reason}; {self.remedy}")


class Contents(NamedTuple):
    """Metadata (with its "version", without the digest) and tensors of a container."""

    metadata: Metadata
    tensors: Tensors


def pack_container(
    kind: ContainerKind, metadata: Metadata, tensors: Tensors, version: int | None = None
) -> bytes:
    """The bytes of a container; `version` is the newest of its kind unless given."""
    own = metadata | {"version": kind.version if version is None else version}
    own["sha256"] = _digest(own, tensors)
    text = _canonical(own)
    require_header_space(kind, text)
    return bytes(_save_tensors(tensors, metadata={kind.key: text}))


def require_header_space(kind: ContainerKind, text: str) -> None:
    """Raise `OutputError` if metadata, as JSON, would make a header that is not read again."""
    # As the header holds it: a string within JSON.
    excess = _excess(json.dumps(text, ensure_ascii=False).encode(errors="surrogatepass"), _MARGIN)
    if excess is not None:
        raise OutputError(
            f"The names of columns and files in this {kind.noun} take {excess}; shorten them, or "
            "sketch fewer files at a time and merge the sketches."
        )


def unpack_container(kind: ContainerKind, data: bytes, name: str) -> Contents:
    """The contents of a container whose digest is right; `name` is the file's name in errors."""
    metadata = _metadata(kind, _header(kind, data, name), name)
    digest = metadata.pop("sha256", None)
    try:
        tensors = _load_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        kind.refuse(name, f"is damaged ({error})")
    try:
        expected = _digest(metadata, tensors)
    except (ValueError, RecursionError) as error:  # NaN, or too deeply nested
        kind.refuse(name, f"does not hold a valid {kind.noun} ({error})")
    if digest != expected:
        kind.refuse(name, "does not match its checksum: it was altered or damaged")
    return Contents(metadata, tensors)


def restore(
    kind: ContainerKind,
    data: bytes,
    name: str,
    build: Callable[[Metadata, Tensors], _Value],
    serialise: Callable[[_Value, int], bytes],
) -> _Value:
    """The value in `data`, refused unless `serialise(value, version)` gives the same bytes.

    `build` makes the value of metadata and tensors. It must check them: a digest can be forged.
    """
    metadata, tensors = unpack_container(kind, data, name)
    try:
        value = build(metadata, tensors)
    except _BUILD_ERRORS as error:
        kind.refuse(name, f"does not hold a valid {kind.noun} ({error})")
    if serialise(value, metadata["version"]) != data:
        kind.refuse(
            name,
            f"is not written the way this library writes a {kind.noun}: its header was altered",
        )
    return value


def read_container(kind: ContainerKind, path: Path | Address) -> bytes:
    """The bytes of a file whose header announces exactly as many bytes as the file has.

    Only the header of another file is read, and nothing of a pipe or a device, which may never end.
    """
    if isinstance(path, Address):
        found = require_file(path)
        with open_seekable(found) as remote:
            return _read_announced(kind, remote, found.size, str(path))
    try:
        # Opening a pipe would wait for somebody to write to it.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            size = _regular_file_size(kind, file, path)
            return _read_announced(kind, file, size, str(path))
    except FileNotFoundError:
        raise MissingFileError(f"There is no file {path}; check the name.") from None
    except IsADirectoryError:
        kind.refuse(str(path), "is a directory")
    except (OSError, ValueError) as error:
        if isinstance(error, CkmError):
            raise
        reason = getattr(error, "strerror", None) or error
        kind.refuse(str(path), f"cannot be read ({reason})")


def _read_announced(kind: ContainerKind, file: BinaryIO, size: int, name: str) -> bytes:
    """The bytes of an open file of `size` bytes, if its header announces as many."""
    header = file.read(_LENGTH_BYTES + 1)
    if len(header) > _LENGTH_BYTES and 0 < _header_length(header) <= MAX_HEADER_BYTES:
        header += file.read(_header_length(header) - 1)
    expected = len(header) + _payload_bytes(_header(kind, header, name))
    if size < expected:
        kind.refuse(name, "is truncated")
    if size > expected:
        kind.refuse(name, "is damaged: it is longer than its header says")
    return header + file.read(expected - len(header))


def _regular_file_size(kind: ContainerKind, file: BinaryIO, path: Path) -> int:
    """The size in bytes of an open file that is not a directory, a pipe or a device."""
    status = os.fstat(file.fileno())
    if stat.S_ISDIR(status.st_mode):
        kind.refuse(str(path), "is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise kind.error(
            f"{path} is a pipe or a device, not a file; write the {kind.noun} to a file first."
        )
    return status.st_size


def _header_length(data: bytes) -> int:
    """The length of the JSON header in bytes, which the file starts with."""
    return int(struct.unpack("<Q", data[:_LENGTH_BYTES])[0])


def _payload_bytes(header: dict[str, Any]) -> int:
    """The number of bytes after the header: where its last tensor ends."""
    ends = [0]
    for name, tensor in header.items():
        if name != "__metadata__":
            ends.append(_tensor_end(tensor))
    return max(ends)


def _tensor_end(tensor: Any) -> int:
    """Where a tensor ends in the payload; zero if its entry is not one that safetensors writes."""
    offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2:
        return 0
    return offsets[1] if type(offsets[1]) is int and offsets[1] > 0 else 0


def _excess(header: bytes, margin: int = 0) -> str | None:
    """How a header is larger than those that are read, in words; None if it is not."""
    if len(header) + margin > MAX_HEADER_BYTES:
        return f"{len(header):,} bytes, where a header has at most {MAX_HEADER_BYTES:,}"
    n_items = sum(header.count(mark) for mark in _ITEM_MARKS)
    if n_items + margin > MAX_HEADER_ITEMS:
        return f"{n_items:,} items, where a header has at most {MAX_HEADER_ITEMS:,}"
    return None


def _canonical(metadata: Metadata) -> str:
    return json.dumps(metadata, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(metadata: Metadata, tensors: Tensors) -> str:
    digest = hashlib.sha256(_canonical(metadata).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _header(kind: ContainerKind, data: bytes, name: str) -> dict[str, Any]:
    """The JSON header: its length as a 64-bit integer comes first in the file."""
    if not data:
        kind.refuse(name, "is empty")
    if kind.former_start is not None and data.startswith(kind.former_start[:_LENGTH_BYTES]):
        kind.refuse(name, "was written by an earlier version of ckm, in another format")
    length = _header_length(data) if len(data) >= _LENGTH_BYTES else 0
    end = _LENGTH_BYTES + length
    if length < 2 or data[_LENGTH_BYTES : _LENGTH_BYTES + 1] != b"{":
        kind.refuse(name, f"is not a {kind.noun}")
    if length > MAX_HEADER_BYTES:
        kind.refuse(
            name, f"has a header of {length:,} bytes, and at most {MAX_HEADER_BYTES:,} are read"
        )
    if len(data) < end:
        kind.refuse(name, "is truncated")
    excess = _excess(data[_LENGTH_BYTES:end])
    if excess is not None:
        kind.refuse(name, f"has a header of {excess}")
    try:
        header = json.loads(data[_LENGTH_BYTES:end].decode())
    except (ValueError, RecursionError):
        kind.refuse(name, "is damaged: its header is not readable")
    if not isinstance(header, dict):
        kind.refuse(name, f"is not a {kind.noun}")
    return header


def _metadata(kind: ContainerKind, header: dict[str, Any], name: str) -> Metadata:
    """The metadata of a header, known to have a version that can be read."""
    own = header.get("__metadata__")
    text = own.get(kind.key) if isinstance(own, dict) else None
    if not isinstance(text, str):
        kind.refuse(name, f"is a safetensors file, but not a {kind.noun}")
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        kind.refuse(name, "is damaged: its metadata is not readable")
    version = metadata.get("version") if isinstance(metadata, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        kind.refuse(name, "is damaged: it has no valid version number")
    if version > kind.version:
        raise kind.error(
            f"{name} was written by a later version of ckm (file format {version}; this one reads "
            f"up to {kind.version}); upgrade with: pip install -U compressive-kmeans"
        )
    assert isinstance(metadata, dict)
    return metadata
