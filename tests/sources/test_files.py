"""Files by name: patterns, folders, keys, arrays inside files, and what is imported for them."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from every_source import (
    LIKE,
    NAMES,
    as_csv,
    as_table,
    folder_with_keys,
    rows_of,
    values,
    write_csv,
    write_npy,
)
from zarr_stores import write_arrays

import ckm
from ckm._sources import ColumnRequest, open_source
from ckm.errors import (
    ColumnsWarning,
    DataError,
    InputFileError,
    MissingPackageError,
    NonFiniteError,
    ParameterError,
)


def test_a_pattern_finds_files_in_folders(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    write_npy(values()[:1000], tmp_path / "a" / "1.npy")
    write_npy(values()[1000:], tmp_path / "a" / "b" / "2.npy")
    for data in (str(tmp_path / "**" / "*.npy"), tmp_path, str(tmp_path) + "/"):
        assert ckm.sketch(data, like=LIKE) == ckm.sketch(values(), like=LIKE)


def test_a_name_with_brackets_is_a_name_first(tmp_path: Path) -> None:
    path = write_npy(values(), tmp_path / "x[1].npy")
    assert ckm.sketch(str(path), like=LIKE).count == 3000


def test_folders_hold_one_kind_of_file(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="is a directory without a file"):
        ckm.sketch(tmp_path, like=LIKE)
    write_npy(values(), tmp_path / "x.npy")
    (tmp_path / "README.txt").write_text("Not data.")
    (tmp_path / ".hidden.csv").write_text("a\n1\n")
    assert ckm.sketch(tmp_path, like=LIKE).count == 3000
    write_csv(as_table(values()), tmp_path / "x.csv")
    with pytest.raises(ParameterError, match=r"several kinds \(.csv, .npy\)"):
        ckm.sketch(tmp_path, like=LIKE)


def test_keys_in_the_names_of_folders(tmp_path: Path) -> None:
    X = values(500)
    hive = folder_with_keys(as_table(X), tmp_path)
    assert ckm.sketch(hive, like=LIKE) == ckm.sketch(X, like=LIKE)
    with pytest.warns(
        ColumnsWarning, match=r"year \(a key of folders\), kind \(a key of folders\)"
    ):
        assert open_source(hive).columns == NAMES
    years = np.repeat([2020, 2021, 2022, 2023], [10, 0, 1, 489])
    assert np.array_equal(
        rows_of(hive, ColumnRequest(["north", "year"])), np.stack([X[:, 1], years], axis=1)
    )
    assert np.array_equal(rows_of(f"{hive}/*/*/*.parquet", ColumnRequest(["year"]))[:, 0], years)
    with pytest.raises(DataError, match=r"Column 'kind' of .* holds text"):
        open_source(hive, ColumnRequest(["kind"]))
    (tmp_path / "hive" / "year=2020").rename(tmp_path / "hive" / "year=__HIVE_DEFAULT_PARTITION__")
    with pytest.raises(NonFiniteError, match=r"Row 0, column 'year' of .*NaN"):
        ckm.sketch(hive, columns=["north", "year"], sketch_size=4)


def test_arrays_on_disk_are_read_not_mapped(tmp_path: Path) -> None:
    """A map would count as memory of the process until the machine runs out of it."""
    rows = next(iter(open_source(write_npy(values(), tmp_path / "x.npy")).chunks())).rows
    assert rows.base is None or not isinstance(rows.base, np.memmap)
    assert not isinstance(rows, np.memmap)


def test_which_array_in_a_file(tmp_path: Path) -> None:
    X = values(50)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a/rows"] = X
        file["b"] = 2 * X
        file["flat"] = X[:, 0]
        file["names"] = np.array([b"x", b"y"])
    write_arrays(tmp_path / "x.zarr", {"a/rows": X, "b": 2 * X})
    for name, what in (("x.h5", "dataset"), ("x.zarr", "array")):
        assert np.array_equal(rows_of(f"{tmp_path / name}::a/rows"), X)
        assert np.array_equal(rows_of(f"{tmp_path / name}::/b"), 2 * X)
        with pytest.raises(
            InputFileError,
            match=rf"{what}s that are tables of numbers: a/rows, b; name one, as .*{name}::a/rows",
        ):
            open_source(tmp_path / name)
        with pytest.raises(InputFileError, match=rf"no {what} 'c'; it has a/rows, b"):
            open_source(f"{tmp_path / name}::c")
        with pytest.raises(ParameterError, match="no column names"):
            open_source(f"{tmp_path / name}::b", ColumnRequest(["b"]))
    with pytest.raises(DataError, match=r"flat has shape \(50,\)"):
        open_source(f"{tmp_path / 'x.h5'}::flat")
    as_csv("not it", tmp_path / "bad.h5")
    with pytest.raises(InputFileError, match=r"Cannot read .*bad.h5.*not an HDF5 file"):
        open_source(tmp_path / "bad.h5")
    (tmp_path / "bad.zarr").mkdir()
    with pytest.raises(InputFileError, match=r"Cannot read .*bad.zarr.*not a Zarr store"):
        open_source(tmp_path / "bad.zarr")


@pytest.mark.parametrize(("package", "name"), [("h5py", "x.h5"), ("zarr", "x.zarr")])
def test_a_package_that_is_missing_is_named(
    package: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_csv("anything", tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)
    extra = {"h5py": "hdf5", "zarr": "zarr"}[package]
    with pytest.raises(
        MissingPackageError,
        match=rf"needs {package}, which is not installed: "
        rf"pip install 'compressive-kmeans\[{extra}\]'",
    ):
        ckm.sketch(tmp_path / name, like=LIKE)


def test_feather_of_the_first_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="Feather's first version"):
        open_source(as_csv(b"FEA1....", tmp_path / "x.feather"))


def no_libraries(code: str) -> str:
    names = "pyarrow,h5py,zarr,polars,duckdb,torch,pandas,narwhals,scipy.sparse"
    code += f"\nimport sys; print([m for m in '{names}'.split(',') if m in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def test_nothing_is_imported_that_is_not_read_with(tmp_path: Path) -> None:
    path = write_npy(values(), tmp_path / "x.npy")
    assert (
        no_libraries(
            "import numpy as np; from ckm._sources import open_source; open_source(np.eye(3))"
        )
        == "[]"
    )
    assert (
        no_libraries(
            f"from ckm._sources import open_source; list(open_source({str(path)!r}).chunks())"
        )
        == "[]"
    )


def test_every_kind_of_reader_is_a_module() -> None:
    from ckm._sources import paths

    for name in set(paths.READERS.values()):
        opener: Callable[..., Any] = importlib.import_module(f"ckm._sources.{name}").open_files
        assert callable(opener)
