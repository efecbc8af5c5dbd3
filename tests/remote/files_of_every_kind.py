"""The same rows in files of every kind."""

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import zarr

NAMES = ("east", "north", "height")


def rows(count: int = 3000) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, 3))


def table(X: np.ndarray) -> pa.Table:
    return pa.table({name: X[:, i] for i, name in enumerate(NAMES)})


def write_parquet(X: np.ndarray, folder: Path) -> str:
    pq.write_table(table(X), folder / "rows.parquet", row_group_size=max(1, len(X) // 4))
    return "rows.parquet"


def _csv(X: np.ndarray) -> bytes:
    stream = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table(X), stream)
    content: bytes = stream.getvalue().to_pybytes()
    return content


def write_csv(X: np.ndarray, folder: Path) -> str:
    (folder / "rows.csv").write_bytes(_csv(X))
    return "rows.csv"


def write_gzip(X: np.ndarray, folder: Path) -> str:
    with pa.CompressedOutputStream(str(folder / "rows.csv.gz"), "gzip") as file:
        file.write(_csv(X))
    return "rows.csv.gz"


def write_zstd(X: np.ndarray, folder: Path) -> str:
    with pa.CompressedOutputStream(str(folder / "rows.csv.zst"), "zstd") as file:
        file.write(_csv(X))
    return "rows.csv.zst"


def write_arrow(X: np.ndarray, folder: Path) -> str:
    with pa.ipc.new_file(folder / "rows.arrow", table(X).schema) as writer:
        writer.write_table(table(X), max_chunksize=700)
    return "rows.arrow"


def write_feather(X: np.ndarray, folder: Path) -> str:
    pyarrow.feather.write_feather(table(X), folder / "rows.feather", chunksize=700)
    return "rows.feather"


def write_stream(X: np.ndarray, folder: Path) -> str:
    with pa.ipc.new_stream(folder / "rows.arrows", table(X).schema) as writer:
        writer.write_table(table(X), max_chunksize=700)
    return "rows.arrows"


def write_npy(X: np.ndarray, folder: Path) -> str:
    np.save(folder / "rows.npy", X)
    return "rows.npy"


def write_fortran(X: np.ndarray, folder: Path) -> str:
    np.save(folder / "fortran.npy", np.asfortranarray(X))
    return "fortran.npy"


def write_hdf5(X: np.ndarray, folder: Path) -> str:
    with h5py.File(folder / "rows.h5", "w") as file:
        file.create_dataset("deep/rows", data=X, chunks=(512, 3), compression="gzip")
        file.create_dataset("others", data=X[:10])
    return "rows.h5::deep/rows"


def write_zarr(X: np.ndarray, folder: Path) -> str:
    array = zarr.open(
        str(folder / "rows.zarr"), mode="w", shape=X.shape, chunks=(512, 3), dtype="f8"
    )
    array[:] = X
    return "rows.zarr"


KINDS: dict[str, Callable[[np.ndarray, Path], str]] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "gzip": write_gzip,
    "zstd": write_zstd,
    "arrow": write_arrow,
    "feather": write_feather,
    "stream": write_stream,
    "npy": write_npy,
    "fortran": write_fortran,
    "hdf5": write_hdf5,
    "zarr": write_zarr,
}
