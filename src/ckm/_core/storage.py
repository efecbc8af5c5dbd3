"""Sketches as files: safetensors, which cannot run code when opened, with our metadata as one
canonical JSON string.

The same sketch always gives the same bytes, and only those bytes load: a file whose header or
payload differs from what this module would write for the sketch it describes is refused. A SHA-256
covers metadata and payload.
"""

import hashlib
import json
import math
import struct
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as _load_tensors
from safetensors.numpy import save as _save_tensors

from ckm._core.frequencies import Frequencies
from ckm._core.moments import second_moment_shape
from ckm._core.pool import Pool
from ckm._core.sketch import Sketch
from ckm._core.tally import UNIT, Tally
from ckm._util.arrays import Array
from ckm._util.checks import check_whole_number
from ckm._util.files import write_atomically
from ckm._util.random import seed_of
from ckm.errors import CkmError, MissingFileError, SketchFileError

# since version 2 a file knows the data's spread, the columns' units, frequencies' structure, and
# the odds of its pool
VERSION = 2
_KEY = "ckm"
_MAX_HEADER = 64 * 2**20


def save(sketch: Sketch, path: str | Path) -> None:
    """Write `sketch` to `path`: complete under its final name, or not at all."""
    write_atomically(path, serialise(sketch))


def load(path: str | Path) -> Sketch:
    """Read a sketch written by `Sketch.save`.

    Refuses, with the reason, files that are foreign, truncated, altered in any byte, or written by
    a later version.

    >>> import ckm, numpy as np, tempfile, os
    >>> s = ckm.sketch(np.eye(3), sketch_size=8, scale=1.0, random_state=0)
    >>> name = os.path.join(tempfile.mkdtemp(), "s.ckm")
    >>> s.save(name)
    >>> ckm.load(name) == s
    True
    """
    return deserialise(_read(Path(path)), str(path))


def serialise(sketch: Sketch, version: int = VERSION) -> bytes:
    """The bytes of a sketch file."""
    tensors = _tensors(sketch, version)
    metadata = _metadata(sketch, version)
    metadata["sha256"] = _digest(metadata, tensors)
    return bytes(_save_tensors(tensors, metadata={_KEY: _canonical(metadata)}))


def deserialise(data: bytes, name: str = "these bytes") -> Sketch:
    """The sketch in `data`, refused unless it is byte for byte what `serialise` would write."""
    metadata = _checked_metadata(_header(data, name), name)
    try:
        tensors = _load_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        _refuse(name, f"is damaged ({error})")
    try:
        if _digest({k: v for k, v in metadata.items() if k != "sha256"}, tensors) != metadata.get(
            "sha256"
        ):
            _refuse(name, "does not match its checksum: it was altered or damaged")
        sketch = _sketch(metadata, tensors)
    except SketchFileError:
        raise
    except (CkmError, KeyError, TypeError, ValueError, OverflowError) as error:
        _refuse(name, f"does not hold a valid sketch ({error})")
    if serialise(sketch, metadata["version"]) != data:
        _refuse(name, "is not written the way this library writes sketches: its header was altered")
    return sketch


def _tensors(sketch: Sketch, version: int) -> dict[str, Array]:
    f, t = sketch.frequencies, sketch.tally
    tensors = {
        "turns": f.turns,
        "origin": f.origin,
        "sums": t.sums,
        "lower": t.lower,
        "upper": t.upper,
    }
    tensors |= {"first": t.first, "second": t.second}
    if f.units is not None:
        tensors["units"] = f.units
    if f.signs is not None:
        tensors["signs"] = f.signs
    if sketch.pool is not None:
        p = sketch.pool
        tensors |= {"pool.rows": p.rows, "pool.weights": p.weights, "pool.keys": p.keys}
        tensors |= {"pool.odds": p.odds} if version > 1 else {}
    return tensors


def _metadata(sketch: Sketch, version: int) -> dict[str, Any]:
    f, t, p = sketch.frequencies, sketch.tally, sketch.pool
    metadata = {
        "version": version,
        "distribution": f.distribution,
        "scale": f.scale,
        "seed": f.seed,
        "count": t.count,
        "weight": t.weight,
        "tight": t.tight,
        "columns": None if sketch.columns is None else list(sketch.columns),
        "pool": None if p is None else {"capacity": p.capacity, "seen": p.seen},
    }
    return metadata | {"spread": f.spread} if version > 1 else metadata


def _sketch(metadata: dict[str, Any], tensors: dict[str, Array]) -> Sketch:
    """The value behind metadata and tensors, with every shape and range checked (a checksum can be
    forged).
    """
    scale, weight, count = (
        float(metadata["scale"]),
        float(metadata["weight"]),
        int(metadata["count"]),
    )
    seed = None if metadata["seed"] is None else seed_of(metadata["seed"])
    spread = (
        None
        if metadata["version"] == 1 or metadata["spread"] is None
        else float(metadata["spread"])
    )
    drawn = (
        scale,
        str(metadata["distribution"]),
        seed,
        spread,
        tensors.get("units"),
        tensors.get("signs"),
    )
    f = Frequencies(tensors["turns"], tensors["origin"], *drawn)
    t = Tally(
        tensors["sums"],
        weight,
        count,
        tensors["lower"],
        tensors["upper"],
        tensors["first"],
        tensors["second"],
        bool(metadata["tight"]),
    )
    shapes = (t.sums.shape, t.lower.shape, t.upper.shape, t.first.shape, t.second.shape)
    if shapes != ((2, f.m), (f.n,), (f.n,), (f.n,), second_moment_shape(f.m, f.n)):
        raise ValueError(f"shapes {shapes} do not fit {f.m} frequencies in dimension {f.n}")
    _check_tally(t)
    columns = metadata["columns"]
    if columns is not None and (
        len(columns) != f.n or not all(isinstance(c, str) for c in columns)
    ):
        raise ValueError(f"there must be {f.n} column names")
    return Sketch(
        f,
        t,
        None if columns is None else tuple(columns),
        _pool(metadata["pool"], tensors, f.n, count, t.exact),
    )


def _check_tally(t: Tally) -> None:
    """Refuse sums that no rows could add up to."""
    if not all(np.isfinite(a).all() for a in (t.sums, t.first, t.second)):
        raise ValueError("sums and moments must be finite")
    if not (
        0 <= t.count < 2**63
        and math.isfinite(t.weight)
        and t.weight >= 0
        and (t.count == 0) == (t.weight == 0)
    ):
        raise ValueError(f"count {t.count} and weight {t.weight} do not go together")
    if t.exact and t.weight != t.count:
        raise ValueError(f"{t.count} unweighted rows cannot weigh {t.weight}")
    # a cosine is at most one, give or take its rounding
    if (np.abs(t.sums.astype(np.float64)) > t.weight / UNIT * (1 + 1e-6)).any():
        raise ValueError("the sums are larger than the number of rows allows")
    if t.count == 0:
        empty = Tally.empty(t.sums.shape[1], len(t.first))
        if any(
            not np.array_equal(getattr(t, name), getattr(empty, name))
            for name in ("lower", "upper", "first", "second")
        ):
            raise ValueError("a sketch of zero rows must be empty")
    elif not (
        np.isfinite(t.lower).all() and np.isfinite(t.upper).all() and (t.lower <= t.upper).all()
    ):
        raise ValueError("the bounds are not bounds")


def _pool(
    metadata: dict[str, Any] | None, tensors: dict[str, Array], n: int, count: int, exact: bool
) -> Pool | None:
    if metadata is None:
        return None
    rows, weights, keys = (tensors[f"pool.{name}"] for name in ("rows", "weights", "keys"))
    odds = tensors.get("pool.odds", weights)  # version 1 sampled by weight alone
    pool = Pool(
        rows,
        weights,
        odds,
        keys,
        check_whole_number(metadata["capacity"], "capacity", 1),
        check_whole_number(metadata["seen"], "seen", 0),
    )
    if (exact and pool.seen != count) or pool.weights.shape != (min(pool.capacity, pool.seen),):
        raise ValueError("the pool does not fit the number of rows")
    if (
        pool.rows.shape != (len(pool.weights), n)
        or not pool.keys.shape == pool.odds.shape == pool.weights.shape
    ):
        raise ValueError("the pool does not fit the sketch")
    if not all(np.isfinite(a).all() for a in (pool.rows, pool.weights, pool.odds, pool.keys)):
        raise ValueError("the pool's rows, weights, odds and keys must be finite")
    if (pool.weights <= 0).any() or (pool.odds <= 0).any() or (pool.keys < 0).any():
        raise ValueError("the pool's weights, odds and keys must be positive")
    if (np.diff(pool.keys) < 0).any():
        raise ValueError("the pool is not in the order of its keys")
    return pool


def _canonical(metadata: dict[str, Any]) -> str:
    return json.dumps(metadata, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(metadata: dict[str, Any], tensors: dict[str, Array]) -> str:
    digest = hashlib.sha256(_canonical(metadata).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _read(path: Path) -> bytes:
    """The whole file, once its first bytes look like a sketch's: a wrong, huge file is not read."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            if len(start) == 8 and struct.unpack("<Q", start)[0] > _MAX_HEADER:
                _refuse(str(path), "is not a sketch")
            return start + file.read()
    except FileNotFoundError:
        raise MissingFileError(f"There is no file {path}; check the name.") from None
    except IsADirectoryError:
        _refuse(str(path), "is a directory")
    except OSError as error:
        _refuse(str(path), f"cannot be read ({error.strerror or error})")


def _header(data: bytes, name: str) -> dict[str, Any]:
    if not data:
        _refuse(name, "is empty")
    length = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else 0
    if not 2 <= length <= _MAX_HEADER or data[8:9] != b"{":
        _refuse(name, "is not a sketch")
    if len(data) < 8 + length:
        _refuse(name, "is truncated")
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError):
        _refuse(name, "is damaged: its header is not readable")
    if not isinstance(header, dict):
        _refuse(name, "is not a sketch")
    return header


def _checked_metadata(header: dict[str, Any], name: str) -> dict[str, Any]:
    own = header.get("__metadata__")
    text = own.get(_KEY) if isinstance(own, dict) else None
    if not isinstance(text, str):
        _refuse(name, "is a safetensors file, but not a sketch")
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        _refuse(name, "is damaged: its metadata is not readable")
    version = metadata.get("version") if isinstance(metadata, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        _refuse(name, "is damaged: it has no valid version number")
    if version > VERSION:
        raise SketchFileError(
            f"{name} was written by a later version of ckm (file format {version}; this one reads up to {VERSION}); "
            f"upgrade with: pip install -U compressive-kmeans"
        )
    assert isinstance(metadata, dict)
    return metadata


def _refuse(name: str, reason: str) -> NoReturn:
    raise SketchFileError(
        f"{name} {reason}; make it again with ckm.sketch(...).save or `ckm sketch -o`."
    )
