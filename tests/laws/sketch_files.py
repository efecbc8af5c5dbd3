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


POWERS = (-323, -308, -200, -100, -45, -30, -12, -6, 6, 12, 30, 38, 39, 77, 100, 200, 308)
NUMBERS = np.array(
    [0.0, 1.0, np.inf, np.nan, 2.0**22, 2.0**41, 2.0**63] + [10.0**power for power in POWERS]
)
NUMBERS = np.concatenate([NUMBERS, -NUMBERS])
DISTRIBUTIONS = ("gaussian", "structured", "multiscale", "folded-gaussian", "adapted-radius", "x")


def forgeries(data: bytes, count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Sketch files with one to three fields changed at random and a correct checksum.

    Each comes with the names of the fields and its number, from which it is made again:
    ``forgery(data, number)``.
    """
    for number in range(seed, seed + count):
        fields, forged = forgery(data, number)
        if forged != data:
            yield f"forgery {number} of {', '.join(fields)}", forged


def forgery(data: bytes, number: int) -> tuple[list[str], bytes]:
    """The fields that forgery `number` changes, and the file."""
    rng = np.random.default_rng(number)
    arrays = load(data)
    metadata: dict[str, Any] = {}
    tensors: dict[str, Any] = {}
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.6:
            name = str(rng.choice(sorted(arrays)))
            tensors[name] = forged_array(rng, arrays[name])
        else:
            name = str(
                rng.choice(["scale", "weight", "spread", "count", "seed", "distribution", "pool"])
            )
            metadata[name] = forged_value(rng, name)
    return [*metadata, *tensors], forge(data, metadata, tensors)


def forged_value(rng: np.random.Generator, name: str) -> Any:
    """A value of a field of the metadata, of the right type and hardly ever in range."""
    if name == "distribution":
        return str(rng.choice(DISTRIBUTIONS))
    if name == "pool":
        sizes = rng.integers(0, 200, size=2).tolist()
        return None if rng.random() < 0.3 else {"capacity": sizes[0], "seen": sizes[1]}
    if name in ("count", "seed"):
        return int(rng.integers(-2, 200)) if rng.random() < 0.5 else 2 ** int(rng.integers(70))
    return float(rng.choice(NUMBERS) if rng.random() < 0.5 else 10.0 ** rng.uniform(-308, 308))


def forged_array(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """The array with one value or all of them changed, slightly or absurdly."""
    changed = array.copy()
    flat = changed.reshape(-1)
    at = rng.integers(len(flat))
    with np.errstate(all="ignore"):
        if array.dtype.kind == "i":
            limits = np.iinfo(array.dtype)
            values = (0, 1, -1, 2, limits.min, limits.max, rng.integers(limits.min, limits.max))
            flat[at] = values[rng.integers(len(values))]
            return changed
        match rng.integers(7):
            case 0:
                flat[at] = rng.choice(NUMBERS)
            case 1:
                flat[:] = rng.choice(NUMBERS)
            case 2:
                flat[at] *= 10.0 ** rng.uniform(-300, 300)
            case 3:
                flat *= array.dtype.type(10.0 ** rng.uniform(-40, 40))
            case 4:
                flat *= array.dtype.type(10.0 ** rng.uniform(-2, 2))
            case 5:
                flat[:] = rng.permutation(flat)
            case 6:
                noise = rng.normal(size=len(flat)) * 10.0 ** rng.uniform(-8, 1)
                flat += (noise * np.abs(flat).max()).astype(array.dtype)
    return changed
