"""Rows in files of every kind, in a working directory of their own."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import ckm


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return ckm.datasets.gaussian_mixture(3000, 3, 2, separation=30, random_state=0).rows


@pytest.fixture
def folder(tmp_path: Path, X: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the same rows as .npy, .csv and .parquet, whole and in two parts."""
    table = pa.table({"east": X[:, 0], "north": X[:, 1]})
    np.save(tmp_path / "data.npy", X)
    pa_csv.write_csv(table, tmp_path / "data.csv")
    pq.write_table(table, tmp_path / "data.parquet")
    pq.write_table(table[:1000], tmp_path / "part-1.parquet")
    pq.write_table(table[1000:], tmp_path / "part-2.parquet")
    named = table.select(["north", "east"]).append_column("name", pa.array(["row"] * len(X)))
    pq.write_table(named, tmp_path / "shuffled.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path
