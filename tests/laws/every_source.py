"""Ways to give the same rows: as arrays, and as tables with columns of names and types. Each takes
the rows and a folder to write to.
"""

import atexit
import sqlite3
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from zarr_stores import write_array, write_arrays

from ckm._core.drawing import draw_frequencies
from ckm._core.sketch import Sketch
from ckm._sources import ColumnRequest, ReadSettings, open_source

NAMES = ("east", "north", "height")

LIKE = Sketch.empty(draw_frequencies(10, 3, seed=0), NAMES)
PLAIN = Sketch.empty(LIKE.frequencies)

duckdb, h5py, zarr = (pytest.importorskip(name) for name in ("duckdb", "h5py", "zarr"))


def values(count: int = 3000) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(count, 3))
    X.flags.writeable = False
    return X


def as_table(X: np.ndarray, kind: Any = None, names: tuple[str, ...] = NAMES) -> pa.Table:
    return pa.table({name: pa.array(X[:, i], kind) for i, name in enumerate(names)})


def cuts(rows: Any) -> list[Any]:
    """Pieces of an array or a table: some rows, none, one, and the others."""
    places = [min(place, len(rows)) for place in (0, 10, 10, 11, len(rows))]
    return [
        rows[low:high] if isinstance(rows, np.ndarray) else rows.slice(low, high - low)
        for low, high in pairwise(places)
    ]


def rows_of(
    data: Any,
    request: ColumnRequest = ColumnRequest(),  # noqa: B008
    settings: ReadSettings = ReadSettings(),  # noqa: B008
) -> np.ndarray:
    """All rows of a source."""
    return np.concatenate([chunk.rows for chunk in open_source(data, request, settings).chunks()])


# Tables


def as_csv(text: str | bytes, path: Path) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def text_of(table: pa.Table) -> str:
    """Numbers as Python writes them, which is exact."""
    lines = [",".join(table.column_names)]
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        lines.append(",".join("" if value is None else str(value) for value in row))
    return "\n".join(lines) + "\n"


def write_csv(table: pa.Table, path: Path) -> Path:
    path.write_text(text_of(table))
    return path


def write_compressed(table: pa.Table, path: Path) -> Path:
    with pa.CompressedOutputStream(str(path), {".gz": "gzip", ".zst": "zstd"}[path.suffix]) as file:
        file.write(text_of(table).encode())
    return path


def write_parquet(table: pa.Table, path: Path, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return path


def write_arrow(table: pa.Table, path: Path) -> Path:
    with pa.ipc.new_file(path, table.schema) as writer:
        for part in cuts(table):
            writer.write_table(part)
    return path


def write_stream(table: pa.Table, path: Path) -> Path:
    with pa.ipc.new_stream(path, table.schema) as writer:
        for part in cuts(table):
            writer.write_table(part)
    return path


def write_feather(table: pa.Table, path: Path, **options: Any) -> Path:
    pyarrow.feather.write_feather(table, path, **options)
    return path


def parts(write: Callable[[Any, Path], Path], rows: Any, folder: Path, suffix: str) -> list[Path]:
    return [write(part, folder / f"part-{i}{suffix}") for i, part in enumerate(cuts(rows))]


OPENED: list[Any] = []  # files to close when a test is done


def opened(path: Path, mode: str = "rb") -> Any:
    OPENED.append(path.open(mode))
    return OPENED[-1]


def on_standard_input(path: Path) -> str:
    """The name of standard input, after it became this file."""
    sys.stdin = opened(path, "r")  # the test puts it back
    return "-"


class OnlyArrow:
    """Something of which nothing is known but that it speaks Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def as_reader(table: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(
        table.schema, (batch for part in cuts(table) for batch in part.to_batches())
    )


def as_cursor(table: pa.Table) -> sqlite3.Cursor:
    def plain(value: Any) -> Any:
        return float(value) if isinstance(value, Decimal | np.floating) else value

    connection = sqlite3.connect(":memory:")
    atexit.register(connection.close)  # the test has the cursor alone
    cursor = connection.cursor()
    cursor.execute(f"create table rows ({', '.join(map(repr, table.column_names))})")
    marks = ", ".join("?" * table.num_columns)
    cursor.executemany(
        f"insert into rows values ({marks})",
        zip(*([plain(v) for v in c.to_pylist()] for c in table.columns), strict=True),
    )
    return cursor.execute("select * from rows")


def folder_with_keys(table: pa.Table, folder: Path) -> Path:
    for i, part in enumerate(cuts(table)):
        write_parquet(part, folder / "hive" / f"year=202{i}" / f"kind=k{i}" / "0.parquet")
    (folder / "hive" / "_SUCCESS").touch()
    return folder / "hive"


def pandas_of(table: pa.Table) -> pd.DataFrame:
    """NumPy's own types, where it has them."""
    frame = table.to_pandas()
    for field in table.schema:
        if pa.types.is_decimal(field.type):
            frame[field.name] = frame[field.name].astype(pd.ArrowDtype(field.type))
    return frame


TABLES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "csv": lambda t, d: write_csv(t, d / "x.csv"),
    "csv, name": lambda t, d: str(write_csv(t, d / "x.csv")),
    "csv, gz": lambda t, d: write_compressed(t, d / "x.csv.gz"),
    "csv, zst": lambda t, d: write_compressed(t, d / "x.csv.zst"),
    "csv, many": lambda t, d: parts(write_csv, t, d, ".csv"),
    "csv, folder": lambda t, d: parts(write_csv, t, d, ".csv") and d,
    "csv, open": lambda t, d: opened(write_csv(t, d / "x.csv")),
    "csv, standard input": lambda t, d: on_standard_input(write_csv(t, d / "x.csv")),
    "gz, standard input": lambda t, d: on_standard_input(write_compressed(t, d / "x.csv.gz")),
    "parquet": lambda t, d: write_parquet(t, d / "x.parquet"),
    "parquet, row groups": lambda t, d: write_parquet(t, d / "x.parquet", row_group_size=7),
    "parquet, compressed": lambda t, d: write_parquet(
        t, d / "x.parquet", compression="zstd", use_dictionary=False
    ),
    "parquet, many": lambda t, d: parts(write_parquet, t, d, ".parquet"),
    "parquet, pattern": lambda t, d: (
        parts(write_parquet, t, d, ".parquet") and str(d / "*.parquet")
    ),
    "parquet, folder": lambda t, d: parts(write_parquet, t, d / "in" / "it", ".parquet") and str(d),
    "arrow": lambda t, d: write_arrow(t, d / "x.arrow"),
    "arrow, many": lambda t, d: parts(write_arrow, t, d, ".arrow"),
    "arrow stream": lambda t, d: write_stream(t, d / "x.arrows"),
    "arrow stream, many": lambda t, d: parts(write_stream, t, d, ".arrow"),
    "arrow, standard input": lambda t, d: on_standard_input(write_stream(t, d / "x.arrows")),
    "feather": lambda t, d: write_feather(t, d / "x.feather", compression="lz4", chunksize=1000),
    "feather, plain": lambda t, d: write_feather(t, d / "x.feather", compression="uncompressed"),
    "pandas": lambda t, d: pandas_of(t),
    "pandas, odd index": lambda t, d: pandas_of(t).set_axis(np.arange(len(t))[::-1], axis=0),
    "pandas, arrow": lambda t, d: t.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda t, d: pl.from_arrow(t),
    "polars, chunks": lambda t, d: pl.concat(
        [pl.from_arrow(part) for part in cuts(t)], rechunk=False
    ),
    "polars, lazy": lambda t, d: pl.from_arrow(t).lazy(),
    "polars, scan": lambda t, d: pl.scan_parquet(
        write_parquet(t, d / "x.parquet", row_group_size=500)
    ),
    "pyarrow": lambda t, d: t,
    "pyarrow, chunks": lambda t, d: pa.concat_tables(cuts(t)),
    "record batch": lambda t, d: (
        t.combine_chunks().to_batches()[0]
        if len(t)
        else pa.RecordBatch.from_pylist([], schema=t.schema)
    ),
    "reader": lambda t, d: as_reader(t),
    "dataset": lambda t, d: ds.dataset(parts(write_parquet, t, d, ".parquet")),
    "dataset, in memory": lambda t, d: ds.dataset(t),
    "scanner": lambda t, d: ds.dataset(t).scanner(),
    "duckdb": lambda t, d: OPENED.append(duckdb.connect()) or OPENED[-1].from_arrow(t),
    "arrow protocol": lambda t, d: OnlyArrow(t),
    "cursor": lambda t, d: as_cursor(t),
    "list of frames": lambda t, d: [pandas_of(part) for part in cuts(t)],
    "iterator of frames": lambda t, d: iter([pl.from_arrow(part) for part in cuts(t)]),
    "function of frames": lambda t, d: lambda: (part for part in cuts(t)),
}

# Arrays, without names


def write_npy(X: np.ndarray, path: Path) -> Path:
    np.save(path, X)
    return path


def write_hdf5(X: np.ndarray, path: Path, name: str = "rows", **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=X, **options)
    return path


def write_hdf5_chunks(X: np.ndarray, path: Path) -> Path:
    """Compressed chunks in a group."""
    options = {"chunks": (300, 2), "maxshape": (None, 3), "compression": "gzip"}
    return write_hdf5(X, path, "in/it", **options)


def write_zarr(X: np.ndarray, path: Path, chunk: int = 700) -> Path:
    write_array(path, X, (chunk, 2))
    return path


def write_zarr_group(X: np.ndarray, path: Path) -> Path:
    write_arrays(path, {"in/it": X})
    return path


class Loader:
    """Makes a new iterator each time, as a DataLoader does."""

    def __init__(self, batches: list[Any]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batches)


def sparse(kind: str) -> Callable[[np.ndarray, Path], Any]:
    import scipy.sparse

    return lambda X, d: getattr(scipy.sparse, kind)(X)


ARRAYS: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "array": lambda X, d: X,
    "fortran": lambda X, d: np.asfortranarray(X),
    "big-endian": lambda X, d: X.astype(X.dtype.newbyteorder(">")),
    "memory map": lambda X, d: np.load(write_npy(X, d / "x.npy"), mmap_mode="r"),
    "npy": lambda X, d: write_npy(X, d / "x.npy"),
    "npy, fortran": lambda X, d: write_npy(np.asfortranarray(X), d / "x.npy"),
    "npy, many": lambda X, d: parts(write_npy, X, d, ".npy"),
    "npy, pattern": lambda X, d: parts(write_npy, X, d, ".npy") and str(d / "part-*.npy"),
    "hdf5": lambda X, d: write_hdf5(X, d / "x.h5"),
    "hdf5, chunks": lambda X, d: f"{write_hdf5_chunks(X, d / 'x.h5')}::in/it",
    "hdf5, open": lambda X, d: (
        OPENED.append(h5py.File(write_hdf5(X, d / "x.h5"))) or OPENED[-1]["rows"]
    ),
    "hdf5, many": lambda X, d: parts(write_hdf5, X, d, ".hdf5"),
    "zarr": lambda X, d: write_zarr(X, d / "x.zarr"),
    "zarr, open": lambda X, d: zarr.open(str(write_zarr(X, d / "x.zarr")), mode="r"),
    "zarr, group": lambda X, d: write_zarr_group(X, d / "x.zarr"),
    "csr array": sparse("csr_array"),
    "csr matrix": sparse("csr_matrix"),
    "csc array": sparse("csc_array"),
    "coo array": sparse("coo_array"),
    "lil matrix": sparse("lil_matrix"),
    "list of arrays": lambda X, d: cuts(X),
    "generator": lambda X, d: (part for part in cuts(X)),
    "small batches": lambda X, d: iter(np.array_split(X, 500)),
    "loader": lambda X, d: Loader([[part] for part in cuts(X)]),
    "function": lambda X, d: lambda: (part for part in cuts(X)),
}


def vectors(X: np.ndarray, kind: str = "fixed") -> pa.Table:
    """One column of lists, and one of text."""
    inner = pa.from_numpy_dtype(X.dtype)
    width = X.shape[1]
    numbers = pa.array(X.ravel(), inner)
    if kind == "fixed":
        lists = pa.FixedSizeListArray.from_arrays(numbers, width)
    else:
        offsets = np.arange(0, len(numbers) + 1, width)
        make = pa.LargeListArray if kind == "large" else pa.ListArray
        lists = make.from_arrays(
            pa.array(offsets, pa.int64() if kind == "large" else pa.int32()), numbers
        )
    return pa.table({"embedding": lists})


# Columns of which each cell is a row. Lists of any length need one to show it.
VECTORS: dict[str, Callable[[np.ndarray, Path], Any]] = {
    f"{name}, vectors": (lambda X, d, make=make: make(vectors(X), d))
    for name, make in TABLES.items()
    if name
    in {
        "parquet",
        "parquet, row groups",
        "parquet, many",
        "arrow",
        "arrow, many",
        "arrow stream",
        "arrow, standard input",
        "feather",
        "pandas",
        "pandas, arrow",
        "polars",
        "polars, chunks",
        "polars, lazy",
        "pyarrow",
        "pyarrow, chunks",
        "record batch",
        "reader",
        "dataset",
        "scanner",
        "duckdb",
        "arrow protocol",
        "list of frames",
        "iterator of frames",
    }
}
LISTED: dict[str, Callable[[np.ndarray, Path], Any]] = {
    f"{name}, lists": (lambda X, d, make=make, kind=kind: make(vectors(X, kind), d))
    for name, make, kind in [
        ("parquet", TABLES["parquet, row groups"], "list"),
        ("parquet, large", TABLES["parquet"], "large"),
        ("arrow", TABLES["arrow"], "list"),
        ("arrow stream", TABLES["arrow stream"], "list"),
        ("pandas", TABLES["pandas"], "list"),
        ("pandas, arrow", TABLES["pandas, arrow"], "list"),
        ("polars", TABLES["polars"], "list"),
        ("polars, lazy", TABLES["polars, lazy"], "list"),
        ("pyarrow", TABLES["pyarrow, chunks"], "large"),
        ("reader", TABLES["reader"], "list"),
        ("dataset", TABLES["dataset"], "list"),
        ("duckdb", TABLES["duckdb"], "list"),
    ]
}
# Numbers that are no NumPy array, but rows of Python's own.
LISTS: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "list": lambda X, d: X.tolist(),
    "batches of tuples": lambda X, d: ([tuple(row) for row in part.tolist()] for part in cuts(X)),
    "batches of lists": lambda X, d: Loader([part.tolist() for part in cuts(X)]),
}
# What can be read once only.
ONCE = {
    "csv, open",
    "csv, standard input",
    "gz, standard input",
    "arrow, standard input",
    "reader",
    "scanner",
    "arrow protocol",
    "cursor",
    "iterator of frames",
    "generator",
    "small batches",
    "batches of tuples",
    "arrow, standard input, vectors",
    "reader, vectors",
    "scanner, vectors",
    "arrow protocol, vectors",
    "iterator of frames, vectors",
    "reader, lists",
}
EVERY: dict[str, Callable[[np.ndarray, Path], Any]] = {
    **ARRAYS,
    **LISTS,
    **VECTORS,
    **LISTED,
    **{name: (lambda X, d, make=make: make(as_table(X), d)) for name, make in TABLES.items()},
}
