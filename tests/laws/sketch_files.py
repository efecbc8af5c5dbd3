"""Sketch files taken apart, altered and put together, by code that does not use the library."""

import hashlib
import json
import random
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from safetensors.numpy import load, save

LEFT_OUT = object()


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The safetensors header, and the payload after it."""
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def with_header(header: str, payload: bytes) -> bytes:
    """A safetensors file with this header, padded as safetensors pads."""
    encoded = header.encode()
    encoded += b" " * (-len(encoded) % 8)
    return struct.pack("<Q", len(encoded)) + encoded + payload


def metadata_of(data: bytes, key: str = "ckm") -> dict[str, Any]:
    """Our own metadata; `key` is "ckm" in sketches and "ckm-checkpoint" in checkpoints."""
    return json.loads(header_of(data)[0]["__metadata__"][key])


def forge(
    data: bytes,
    metadata: dict[str, Any] | None = None,
    tensors: dict[str, Any] | None = None,
    key: str = "ckm",
) -> bytes:
    """The file with some metadata and tensors changed (or LEFT_OUT), and a correct checksum."""
    own = _kept(metadata_of(data, key) | (metadata or {}) | {"sha256": LEFT_OUT})
    arrays = _kept(load(data) | (tensors or {}))
    digest = hashlib.sha256(canonical(own).encode())
    for name in sorted(arrays):
        digest.update(f"\n{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    own["sha256"] = digest.hexdigest()
    return bytes(save(arrays, metadata={key: canonical(own)}))


def _kept(items: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in items.items() if value is not LEFT_OUT}


def canonical(metadata: dict[str, Any]) -> str:
    """JSON with sorted keys and without spaces; NaN is allowed, unlike in the library."""
    return json.dumps(metadata, sort_keys=True, separators=(",", ":"))


def mutations(data: bytes, count: int) -> Iterator[bytes]:
    """Copies of the file with a bit flipped, the end cut off, or bytes removed or inserted."""
    chance = random.Random(0)
    for _ in range(count):
        altered = bytearray(data)
        at = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                altered[at] ^= 1 << chance.randrange(8)
            case 1:
                del altered[at:]
            case 2:
                del altered[at : at + chance.randrange(1, 20)]
            case 3:
                altered[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        yield bytes(altered)
