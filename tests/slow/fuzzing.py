"""Files of sketches and checkpoints with anything in them changed, and a correct checksum."""

import copy
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from safetensors.numpy import load
from sketch_files import LEFT_OUT, forge, forged_array, metadata_of

# Seconds after which loading or using a file is taken for stuck.
TIMEOUT = 30
WHOLE = (-1, 0, 1, 2, 3, 4, 7, 120, 2**31, 2**53, 2**62, 2**63, 2**64, 10**30)
REAL = (0.0, -0.0, 0.5, 1.0, 1e-300, 1e-90, 1e90, 1e300, 120.0, -1.0)
TEXTS = ("", "a", "auto", "drop", "error", "gaussian", "cuda", "cpu", "\0", "é", "0" * 64, "x" * 99)
ODD: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"a": 1}, ["a", "b"], [0, 0, 0])
DTYPES = ("<f4", "<f8", "<i8", "|i1", "<i4", "<u8", "|b1", "<f2")


def fuzzed(data: bytes, key: str, number: int) -> bytes:
    """The file with one to three random changes, which `number` determines."""
    rng = np.random.default_rng(number)
    metadata = metadata_of(data, key)
    arrays = dict(load(data))
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.5:
            _change_metadata(rng, metadata)
        else:
            _change_tensors(rng, arrays)
    left_out = {name: LEFT_OUT for name in load(data) if name not in arrays}
    gone = {name: LEFT_OUT for name in metadata_of(data, key) if name not in metadata}
    return forge(data, metadata | gone, arrays | left_out, key)


def _change_metadata(rng: np.random.Generator, metadata: dict[str, Any]) -> None:
    """Change one value somewhere in the metadata, remove it, or add one."""
    holder, name = _pick(rng, metadata)
    match rng.integers(8):
        case 0 if isinstance(holder, dict):
            del holder[name]
        case 0:
            holder.pop(name)
        case 1 if isinstance(holder, dict):
            holder[f"{name}2"] = _any_value(rng)
        case 1:
            holder.append(copy.deepcopy(holder[name]))
        case 2 | 3 | 4:
            holder[name] = _near(rng, holder[name])
        case _:
            holder[name] = _any_value(rng)


def _pick(rng: np.random.Generator, node: Any) -> tuple[Any, Any]:
    """A dictionary or list in the tree, with one of its keys."""
    while True:
        names = sorted(node) if isinstance(node, dict) else list(range(len(node)))
        name = names[int(rng.integers(len(names)))]
        inner = node[name]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.9:
            node = inner
            continue
        return node, name


def _near(rng: np.random.Generator, value: Any) -> Any:
    """A value of the same type, often the one beside it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        steps = (1, -1, 2, 10, value, -value - 1)
        return value + steps[int(rng.integers(len(steps)))]
    if isinstance(value, float):
        return value * float(rng.choice([1 + 1e-15, 1 + 1e-9, 1.5, -1.0, 1e9, 1e-9]))
    if isinstance(value, str):
        return value + "a" if rng.random() < 0.5 else value[:-1]
    return _any_value(rng)


def _any_value(rng: np.random.Generator) -> Any:
    kinds = (WHOLE, REAL, TEXTS, ODD)
    values = kinds[int(rng.integers(len(kinds)))]
    return copy.deepcopy(values[int(rng.integers(len(values)))])


def _change_tensors(rng: np.random.Generator, arrays: dict[str, Any]) -> None:
    """Change the values, the type or the shape of one tensor, remove it, or add one."""
    if not arrays:
        return
    name = str(rng.choice(sorted(arrays)))
    array = arrays[name]
    with np.errstate(all="ignore"):
        match rng.integers(12):
            case 0:
                del arrays[name]
            case 1:
                arrays[str(rng.choice(["more", "pool.rows", "units", "signs"]))] = array.copy()
            case 2:
                arrays[name] = array.astype(str(rng.choice(DTYPES)))
            case 3:
                arrays[name] = _reshaped(rng, array)
            case 4:
                other = str(rng.choice(sorted(arrays)))
                arrays[name], arrays[other] = arrays[other], array
            case _ if array.size:
                arrays[name] = forged_array(rng, array)


def _reshaped(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    match rng.integers(5):
        case 0:
            return array.reshape(-1).copy()
        case 1:
            return np.ascontiguousarray(array.T)
        case 2:
            return array[:-1].copy()
        case 3:
            return np.concatenate([array, array])
    return array[None].copy()


@contextmanager
def time_limit(what: str) -> Iterator[None]:
    """Raise `AssertionError` if the block takes too long."""

    def stop(*_: Any) -> None:
        raise AssertionError(f"{what}: stuck for {TIMEOUT} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def describe(data: bytes, forged: bytes, key: str) -> str:
    """What a change did, for messages."""
    before = metadata_of(data, key)
    after = metadata_of(forged, key)
    changed = {
        name: after.get(name)
        for name in before | after
        if name != "sha256" and before.get(name) != after.get(name)
    }
    old = load(data)
    new = load(forged)
    tensors = [
        name
        for name in old | new
        if name not in old or name not in new or old[name].tobytes() != new[name].tobytes()
    ]
    return f"metadata {json.dumps(changed)[:500]}, tensors {tensors}"
