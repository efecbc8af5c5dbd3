"""float16 and bfloat16 rows: computed in float32, which holds them exactly, chunk by chunk."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ckm
from ckm._sklearn.rows import validate_rows
from ckm._sources import open_source
from ckm._sources.arrays import BrainFloatSource
from ckm._sources.blocks import as_floats, to_floats

X = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float16)
NAMES = ("a", "b", "c")


def table() -> pa.Table:
    return pa.table({name: X[:, i].copy() for i, name in enumerate(NAMES)})


def saved(array: np.ndarray, folder: Path) -> Path:
    np.save(folder / "x.npy", array)
    return folder / "x.npy"


def written(folder: Path) -> Path:
    pq.write_table(table(), folder / "x.parquet")
    return folder / "x.parquet"


HALVES: dict[str, Callable[[Path], Any]] = {
    "array": lambda d: X,
    "fortran": lambda d: np.asfortranarray(X),
    "npy": lambda d: saved(X, d),
    "npy, fortran": lambda d: saved(np.asfortranarray(X), d),
    "memory map": lambda d: np.load(saved(X, d), mmap_mode="r"),
    "memory map, fortran": lambda d: np.load(saved(np.asfortranarray(X), d), mmap_mode="r"),
    "batches": lambda d: [X[:7], X[7:]],
    "pandas": lambda d: pd.DataFrame(X, columns=list(NAMES)),
    "arrow": lambda d: table(),
    "parquet": written,
}


@pytest.mark.parametrize("kind", HALVES)
def test_half_precision_gives_the_sketch_of_single_precision(kind: str, tmp_path: Path) -> None:
    expected = ckm.sketch(X.astype(np.float32), sketch_size=10, random_state=0)
    found = ckm.sketch(HALVES[kind](tmp_path), sketch_size=10, random_state=0)
    assert dataclasses.replace(found, columns=None) == expected
    rows, _ = open_source(HALVES[kind](tmp_path)).sample_rows(50, np.random.default_rng(0))
    assert rows.dtype == np.float32


def test_blocks_of_half_precision_become_single() -> None:
    assert to_floats(X).dtype == np.float32
    assert np.array_equal(as_floats(X), X)
    assert to_floats(np.arange(4).reshape(2, 2)).dtype == np.float64


@pytest.mark.parametrize("kind", ["array", "fortran", "pandas", "memory map"])
def test_models_of_half_precision_have_single_precision(kind: str, tmp_path: Path) -> None:
    data = HALVES[kind](tmp_path)
    model = ckm.CompressiveKMeans(3, random_state=0).fit(data)
    expected = ckm.CompressiveKMeans(3, random_state=0).fit(X.astype(np.float32))
    assert model.cluster_centers_.dtype == np.float32
    assert np.array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert np.array_equal(model.predict(data), expected.labels_)
    assert model.transform(data).dtype == np.float32


def test_models_do_not_copy_half_precision() -> None:
    validated = validate_rows(ckm.CompressiveKMeans(3), X, None, reset=True)
    assert validated.dtype == np.float32
    assert np.shares_memory(next(validated.source.chunks()).rows, X)


def test_an_infinite_half_is_refused() -> None:
    rows = X.copy()
    rows[7, 1] = np.inf
    with pytest.raises(ckm.errors.NonFiniteError, match="Row 7"):
        ckm.CompressiveKMeans(3).fit(rows)


def test_brain_floats_are_the_upper_halves_of_single_precision() -> None:
    bits = X.astype(np.float32).view(np.uint32)
    rounded = (bits & 0xFFFF0000).view(np.float32)
    source = BrainFloatSource((bits >> 16).astype(np.uint16))
    assert np.array_equal(next(source.chunks()).rows, rounded)
    drawn, _ = source.sample_rows(50, np.random.default_rng(0))
    assert drawn.dtype == np.float32


def test_tensors_of_brain_floats() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(X.astype(np.float32)).bfloat16()
    expected = tensor.float().numpy()
    source = open_source(tensor)
    assert isinstance(source, BrainFloatSource)
    assert np.array_equal(next(source.chunks()).rows, expected)
    model = ckm.CompressiveKMeans(3, random_state=0).fit(tensor)
    assert np.array_equal(model.predict(expected), model.labels_)
