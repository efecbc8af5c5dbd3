"""Sketch files taken apart and put together again, by code that knows the format and not the
library: for forging.
"""

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
    """The file with some metadata and tensors changed (or LEFT_OUT), and a checksum that fits."""
    own = {
        k: v
        for k, v in (metadata_of(data, key) | (metadata or {})).items()
        if v is not LEFT_OUT and k != "sha256"
    }
    arrays = {k: v for k, v in (load(data) | (tensors or {})).items() if v is not LEFT_OUT}
    digest = hashlib.sha256(canonical(own).encode())
    for name in sorted(arrays):
        digest.update(f"\n{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    own["sha256"] = digest.hexdigest()
    return bytes(save(arrays, metadata={key: canonical(own)}))


def canonical(metadata: dict[str, Any]) -> str:
    """One way to write JSON (NaN included, which a careful reader refuses)."""
    return json.dumps(metadata, sort_keys=True, separators=(",", ":"))


def mutations(data: bytes, count: int) -> Iterator[bytes]:
    """The file with a bit flipped, its end cut off, some bytes left out, or some put in; never as
    it was.
    """
    chance = random.Random(0)
    for _ in range(count):
        spoilt, at = bytearray(data), chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                spoilt[at] ^= 1 << chance.randrange(8)
            case 1:
                del spoilt[at:]
            case 2:
                del spoilt[at : at + chance.randrange(1, 20)]
            case 3:
                spoilt[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        yield bytes(spoilt)
