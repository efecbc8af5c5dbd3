"""The pilot that decides scale and origin: a spread sample, which sorted files do not fool, nor a
few absurd values.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import zarr

import ckm
import ckm._sources.csv as csv
from ckm._sources import base, open_source
from ckm._sources.base import pick_evenly

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
    zarr.create_array(str(folder / "x.zarr"), data=X, chunks=(5000, 1))
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
@pytest.mark.parametrize("kind", WRITERS)
def test_sorted_data_does_not_fool_the_pilot(
    kind: str, stretches: int, error: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where a few parts are all that it may look at.

    Sorted as a whole, sixteen parts are sixteen quantiles. Sorted in stretches of two parts, each
    is the lower or the upper half of all, at mean -0.8 or 0.8: the mean of sixteen has a standard
    error of 0.2."""
    monkeypatch.setattr(base, "_SAMPLED_BYTES", 8 * 40_000)
    monkeypatch.setattr(csv, "_RUN_BYTES", 1024)
    X = np.sort(np.random.default_rng(0).normal(size=(ROWS, 1)), axis=0)
    X = np.concatenate([X[i::stretches] for i in range(stretches)])
    data = WRITERS[kind](X, tmp_path)
    rows, _ = open_source(data).sample(5000, np.random.default_rng(0))
    assert len(rows) == 5000
    assert abs(rows.mean()) < error
    assert rows.std() == pytest.approx(1, rel=0.15)
    assert np.quantile(rows, [0.1, 0.9]) == pytest.approx([-1.28, 1.28], abs=0.3)
    drawn, in_memory = (
        ckm.sketch(rows, n_clusters=3, random_state=0).frequencies.scale for rows in (data, X)
    )
    assert drawn == pytest.approx(in_memory, rel=0.5)


class Counting(np.random.Generator):
    """Knows how many rows got a key."""

    drawn = 0

    def standard_exponential(self, size: int) -> np.ndarray:  # type: ignore[override]
        self.drawn += size
        return super().standard_exponential(size)


@pytest.mark.parametrize("kind", ["parquet", "npy", "hdf5", "csv", "arrow", "dataset"])
def test_a_pilot_reads_a_part_only(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "_SAMPLED_BYTES", 0)
    monkeypatch.setattr(csv, "_RUN_BYTES", 1024)
    source = open_source(WRITERS[kind](np.random.default_rng(0).normal(size=(ROWS, 1)), tmp_path))
    rng = Counting(np.random.PCG64(0))
    rows, _ = source.sample(1000, rng)
    assert len(rows) == 1000
    assert 1000 < rng.drawn < ROWS / 2


def test_many_small_files_make_a_whole_pilot(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(30_000, 2))
    for i, part in enumerate(np.split(X, 300)):
        (tmp_path / f"{i:03}.csv").write_text(
            "a,b\n" + "\n".join(",".join(map(repr, row)) for row in part.tolist())
        )
    rows, _ = open_source(tmp_path).sample(5000, np.random.default_rng(0))
    assert len(rows) == 5000
    assert np.abs(rows.mean(axis=0)).max() < 0.1


@pytest.mark.parametrize(
    ("count", "wanted"), [(1, 1), (5, 16), (16, 16), (17, 16), (1000, 16), (10**12, 64)]
)
def test_spread_takes_one_of_each_stretch(count: int, wanted: int) -> None:
    for seed in range(5):
        picked = pick_evenly(count, wanted, np.random.default_rng(seed))
        assert len(picked) == min(count, wanted)
        assert (np.diff(picked) > 0).all()
        assert (
            picked * min(wanted, count) // count == np.arange(len(picked))
        ).all() or count < 2 * wanted


# Absurd values


def scales(X: np.ndarray, law: str, **options: Any) -> ckm.Frequencies:
    return ckm.sketch(X, n_clusters=4, random_state=0, distribution=law, **options).frequencies


both_laws = pytest.mark.parametrize("law", ["multiscale", "adapted-radius"])


@both_laws
@pytest.mark.parametrize("value", [1e6, -1e12, 1e30])
@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.filterwarnings("ignore::ckm.errors.PhaseWarning")
def test_huge_values_do_not_take_the_scale(law: str, value: float, count: int) -> None:
    X = ckm.datasets.gaussian_mixture(2000, 4, 3, separation=6, random_state=0).rows
    spoilt = X.copy()
    spoilt[:count, 1] = value * np.arange(1, count + 1)
    good, found = scales(X, law), scales(spoilt, law)
    assert found.scale == pytest.approx(good.scale, rel=0.5)
    assert np.abs(found.origin - good.origin).max() < 100 * X.std()
    assert ckm.sketch(spoilt, like=found).count == 2000  # the sketch counts them


@both_laws
def test_tails_and_rare_values_stay(law: str) -> None:
    """What is far out by nature, or different now and then, is data."""
    rng = np.random.default_rng(0)
    for X in (
        rng.standard_cauchy(size=(3000, 2)),
        np.exp(3 * rng.normal(size=(3000, 2))),
        np.where(rng.random((3000, 2)) < 0.005, 1e6, 0.0),
        np.where(rng.random((3000, 2)) < 0.3, 1e6, rng.normal(size=(3000, 2))),
        np.c_[
            np.where(np.arange(3000) < 15, 1e9, rng.normal(size=3000)),
            np.where(np.arange(3000) < 20, 1e9 * rng.normal(size=3000), 0.0),
        ],
    ):
        f = scales(X[:, :2], law)
        assert f.scale > 0
    rare = np.zeros((3000, 1))
    rare[:10] = 7.0
    np.testing.assert_allclose(scales(rare, law).origin, rare.mean(axis=0))


@both_laws
def test_constant_and_repeated_columns(law: str) -> None:
    X = ckm.datasets.gaussian_mixture(2000, 4, 3, separation=6, random_state=0).rows
    good = scales(X, law).scale
    constant = scales(np.c_[X, np.full((2000, 2), 1e6)], law)
    factor = 2 if law == "multiscale" else 8  # the paper's rule is rougher, and feels every column
    assert good / factor < constant.scale < 2 * good
    assert constant.origin[3] == 1e6
    repeated = scales(np.c_[X, X, X], law).scale
    assert good / factor < repeated < factor * good
    assert ckm.sketch(
        np.repeat(X, 3, axis=0), n_clusters=4, random_state=0, distribution=law
    ).frequencies.scale == pytest.approx(good, rel=0.3)
