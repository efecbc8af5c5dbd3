"""Read a sketch file without ckm: the standard library and NumPy are all that is needed.

    python read_ckm.py week.ckm

This is a second reader of the format, written from its description (file-format.md): it shows how
to write one in another language, and a test holds it to the files of every version.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# The names of types in a safetensors header, and those of NumPy, which are in the checksum.
TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I16": "<i2", "I8": "|i1"}
NEWEST_VERSION = 5
UNIT = 2.0**-22  # cosines and sines are whole multiples of it
GRID = 2**16  # steps of half the width of a column, in a private release


class SketchFile(NamedTuple):
    """What a file holds, as it is: the metadata and the arrays by their names."""

    metadata: dict[str, Any]
    arrays: dict[str, np.ndarray]


def read(path: str | Path) -> SketchFile:
    """Return the contents of a file whose checksum is right."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    payload = data[8 + length :]
    text = header.pop("__metadata__")["ckm"]
    arrays = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        numbers = np.frombuffer(payload[start:end], TYPES[entry["dtype"]])
        arrays[name] = numbers.reshape(entry["shape"])
    metadata = json.loads(text)
    if metadata["version"] > NEWEST_VERSION:
        raise ValueError(f"{path} has version {metadata['version']}, newer than {NEWEST_VERSION}")
    if checksum(text, metadata["sha256"], arrays) != metadata["sha256"]:
        raise ValueError(f"{path} does not match its checksum")
    return SketchFile(metadata, arrays)


def checksum(text: str, digest: str, arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 of the metadata without the digest, then of every array by name."""
    # The text has sorted keys and no spaces, so that the entry can be cut out of it as it is.
    found = hashlib.sha256(text.replace(f'"sha256":"{digest}",', "").encode())
    for name in sorted(arrays):
        array = arrays[name]
        shape = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
        found.update(f"\n{name} {array.dtype.str} ({shape})\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def frequencies(file: SketchFile) -> np.ndarray:
    """Return the frequencies omega, (m, n) in radians per unit of the columns."""
    turns = file.arrays["turns"].astype(np.float64)
    if "signs" in file.arrays:
        turns = turns[:, None] * _structured_directions(file)
    return 2 * np.pi * turns


def _structured_directions(file: SketchFile) -> np.ndarray:
    """Return the rows of H D3 H D2 H D1, a product for each block of p frequencies (m, n)."""
    m = len(file.arrays["turns"])
    n = len(file.arrays["origin"])
    p = file.arrays["signs"].shape[1]
    D = file.arrays["signs"] * np.float32(2.0 ** -(p.bit_length() // 2))
    if "units" in file.arrays:
        D[0, :n] = D[0, :n] / file.arrays["units"]
    H = np.ones((1, 1))
    while len(H) < p:
        H = np.block([[H, H], [H, -H]])
    blocks = [H * D[i + 1] @ (H * D[i]) @ (H * D[0]) for i in range(1, len(D), 2)]
    return np.concatenate(blocks)[:m, :n]


def size(file: SketchFile) -> float:
    """Return the total weight of the rows, which is their number if they are unweighted."""
    release = file.metadata.get("release")
    if release is None:
        return float(file.metadata["weight"])
    step = _release_steps(file)[0]
    return max(1.0, int(release["count"]) / step)


def characteristic_function(file: SketchFile) -> np.ndarray:
    """Return z_j, the mean of exp(-i omega_j (x - origin)) over the rows x, complex (m,)."""
    name = "sums" if file.metadata.get("release") is None else "release.sums"
    cosines, sines = file.arrays[name] * (UNIT / size(file))
    return cosines - 1j * sines


def mean(file: SketchFile) -> np.ndarray:
    """Return the mean of the rows as they were sketched: after logarithms, if there are any."""
    if file.metadata.get("release") is not None:
        lower, upper = file.arrays["bounds"]
        step = _release_steps(file)[1]
        u = file.arrays["release.first"] / (step * GRID * size(file))
        return lower + (upper - lower) / 2 * (1 + u)
    if "columns.first" in file.arrays:
        origin = file.arrays.get("projection.origin", 0.0)
        return origin + file.arrays["columns.first"] / size(file)
    return file.arrays["origin"] + file.arrays["first"] / size(file)


def _release_steps(file: SketchFile) -> tuple[int, int]:
    """Return what one row adds to the count and to the sum of a column, in a private release."""
    m = len(file.arrays["turns"])
    n = len(file.arrays["origin"])
    length = m**0.5 / UNIT
    return max(1, round(0.2 * length)), max(1, round(0.2 * length / n**0.5 / GRID))


def cells(file: SketchFile) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight (c,) and the mean (c, n) of each cell that has rows.

    Of projected rows, in the columns of the data where the file has sums over these.
    """
    mass = _numbers(file.arrays["cells.mass"], 1)
    if "cells.wide" in file.arrays:
        sums = _numbers(file.arrays["cells.wide"], 2)
        steps = np.ldexp(1.0, -file.arrays["cells.wide_exponents"])
        origin = file.arrays.get("projection.origin", 0.0)
    else:
        sums = _numbers(file.arrays["cells.sums"], 2)
        steps = np.ldexp(1.0, -file.arrays["cells.exponents"])
        origin = file.arrays["origin"]
    has_rows = mass > 0
    return mass[has_rows], origin + sums[has_rows] / mass[has_rows, None] * steps


def _numbers(array: np.ndarray, ndim: int) -> np.ndarray:
    """Return whole numbers as float64; those beyond int64 are digits to the base 2**62."""
    if array.ndim == ndim:
        return array.astype(np.float64)
    return sum(digits * 2.0 ** (62 * i) for i, digits in enumerate(array.astype(np.float64)))


if __name__ == "__main__":
    opened = read(sys.argv[1])
    z = characteristic_function(opened)
    print(f"version {opened.metadata['version']}: {size(opened):,.0f} rows, {len(z)} frequencies")
    print(f"mean of the rows as they were sketched: {mean(opened)}")
