"""A sample of any source comes from all over it: sorted files do not mislead it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from zarr_stores import write_array

import ckm
from ckm._sources import ReadSettings, open_source
from ckm._sources.sampling import pick_evenly

ROWS = 400_000


def write_parquet(X: np.ndarray, folder: Path) -> Path:
    pq.write_table(pa.table({"x": X[:, 0]}), folder / "x.parquet", row_group_size=5000)
    return folder / "x.parquet"


def write_many(X: np.ndarray, folder: Path) -> str:
    for i, part in enumerate(np.split(X, 40)):
        pq.write_table(pa.table({"x": part[:, 0]}), folder / f"{i:02}.parquet")
    return str(folder / "*.parquet")


def write_csv(X: np.ndarray, folder: Path, suffix: str = ".csv") -> Path:
    text = "x\n" + "\n".join(map(repr, X[:, 0].tolist())) + "\n"
    codec = {".csv": None, ".csv.gz": "gzip", ".csv.zst": "zstd"}[suffix]
    with pa.output_stream(str(folder / f"x{suffix}"), compression=codec) as file:
        file.write(text.encode())
    return folder / f"x{suffix}"


def write_arrow(X: np.ndarray, folder: Path) -> Path:
    table = pa.table({"x": X[:, 0]})
    with pa.ipc.new_file(folder / "x.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=5000)
    return folder / "x.arrow"


def write_npy(X: np.ndarray, folder: Path) -> Path:
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def write_hdf5(X: np.ndarray, folder: Path) -> Path:
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", data=X, chunks=(5000, 1))
    return folder / "x.h5"


def write_zarr(X: np.ndarray, folder: Path) -> Path:
    write_array(folder / "x.zarr", X, (5000, 1))
    return folder / "x.zarr"


WRITERS: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "parquet": write_parquet,
    "parquet, many": write_many,
    "csv": write_csv,
    "csv, gz": lambda X, d: write_csv(X, d, ".csv.gz"),
    "csv, zst": lambda X, d: write_csv(X, d, ".csv.zst"),
    "arrow": write_arrow,
    "npy": write_npy,
    "hdf5": write_hdf5,
    "zarr": write_zarr,
    "dataset": lambda X, d: ds.dataset(write_parquet(X, d)),
}


@pytest.mark.parametrize(
    ("stretches", "error"), [(1, 0.1), (40, 0.4)], ids=["sorted", "sorted in parts"]
)
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.slow) if ", " in kind else kind for kind in WRITERS],
)
def test_sorted_data_does_not_mislead_the_sample(
    kind: str, stretches: int, error: float, tmp_path: Path
) -> None:
    """Not even where it may read a few parts only.

    Sorted as a whole, sixteen parts are sixteen quantiles. Sorted in stretches of two parts, each
    is the lower or the upper half of all, at mean -0.8 or 0.8: the mean of sixteen has a standard
    error of 0.2."""
    settings = ReadSettings(sampled_bytes=8 * 40_000, csv_run_bytes=1024)
    X = np.sort(np.random.default_rng(0).normal(size=(ROWS, 1)), axis=0)
    X = np.concatenate([X[i::stretches] for i in range(stretches)])
    source = open_source(WRITERS[kind](X, tmp_path), settings=settings)
    rows, _ = source.sample(5000, np.random.default_rng(0))
    assert len(rows) == 5000
    assert abs(rows.mean()) < error
    assert rows.std() == pytest.approx(1, rel=0.15)
    assert np.quantile(rows, [0.1, 0.9]) == pytest.approx([-1.28, 1.28], abs=0.3)
    drawn, in_memory = (
        ckm.sketch(rows, n_clusters=3, random_state=0).frequencies.scale for rows in (source, X)
    )
    assert drawn == pytest.approx(in_memory, rel=0.5)


class Counting(np.random.Generator):
    """Counts the rows that get a random key."""

    drawn = 0

    def standard_exponential(self, size: int) -> np.ndarray:  # type: ignore[override]
        self.drawn += size
        return super().standard_exponential(size)


@pytest.mark.parametrize("kind", ["parquet", "npy", "hdf5", "csv", "arrow", "dataset"])
def test_a_sample_reads_only_a_part(kind: str, tmp_path: Path) -> None:
    data = WRITERS[kind](np.random.default_rng(0).normal(size=(ROWS, 1)), tmp_path)
    source = open_source(data, settings=ReadSettings(sampled_bytes=0, csv_run_bytes=1024))
    rng = Counting(np.random.PCG64(0))
    rows, _ = source.sample(1000, rng)
    assert len(rows) == 1000
    assert 1000 < rng.drawn < ROWS / 2


def test_many_small_files_give_a_complete_sample(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(30_000, 2))
    for i, part in enumerate(np.split(X, 300)):
        (tmp_path / f"{i:03}.csv").write_text(
            "a,b\n" + "\n".join(",".join(map(repr, row)) for row in part.tolist())
        )
    rows, _ = open_source(tmp_path).sample(5000, np.random.default_rng(0))
    assert len(rows) == 5000
    assert np.abs(rows.mean(axis=0)).max() < 0.1


@pytest.mark.parametrize(
    ("count", "n_picked"), [(1, 1), (5, 16), (16, 16), (17, 16), (1000, 16), (10**12, 64)]
)
def test_one_is_picked_from_each_stretch(count: int, n_picked: int) -> None:
    for seed in range(5):
        picked = pick_evenly(count, n_picked, np.random.default_rng(seed))
        assert len(picked) == min(count, n_picked)
        assert (np.diff(picked) > 0).all()
        assert (
            picked * min(n_picked, count) // count == np.arange(len(picked))
        ).all() or count < 2 * n_picked
