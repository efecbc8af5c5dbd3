"""Bad files of rows and of sketches: a named error says what was seen and what to do about it."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_input import fail, sketch
from safetensors.numpy import save as save_tensors
from sketch_files import forge

import ckm
from ckm.errors import (
    DataError,
    InputFileError,
    MismatchError,
    MissingFileError,
    OutputError,
    ParameterError,
    SketchFileError,
)


@pytest.fixture
def X() -> np.ndarray:
    """Rows into which tests put bad values."""
    return np.random.default_rng(0).normal(size=(200, 2))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def s(X: np.ndarray) -> ckm.Sketch:
    return sketch(X)


# Files


def test_missing_and_empty_files(folder: Path) -> None:
    fail(MissingFileError, "There is no file none.npy", "check the name", sketch, "none.npy")
    fail(
        MissingFileError,
        "No file matches none-*.parquet",
        "check the name",
        sketch,
        "none-*.parquet",
    )
    fail(MissingFileError, "none.csv", "check the name", sketch, ["none.csv"])
    assert issubclass(MissingFileError, FileNotFoundError)
    fail(
        InputFileError, "is a directory without a file that can be read", ".parquet", sketch, folder
    )
    Path("empty.csv").touch()
    fail(InputFileError, "empty.csv is empty (0 bytes)", "leave it out", sketch, "empty.csv")
    Path("x.txt").write_text("1,2\n")
    fail(InputFileError, "x.txt", "must end in .npy, .csv", sketch, "x.txt")


def test_mixed_suffixes(X: np.ndarray, folder: Path) -> None:
    np.save("x.npy", X)
    pd.DataFrame(X).to_csv("x.csv", index=False)
    fail(
        ParameterError,
        "several kinds (.csv, .npy)",
        "one kind at a time",
        sketch,
        ["x.npy", "x.csv"],
    )
    fail(ParameterError, "no column names", "leave out columns=", sketch, "x.npy", columns=["a"])


def test_invalid_npy_files(X: np.ndarray, folder: Path) -> None:
    np.save("good.npy", X)
    good = Path("good.npy").read_bytes()
    Path("text.npy").write_text("1,2\n3,4\n")
    Path("short.npy").write_bytes(good[:-8])
    Path("stub.npy").write_bytes(good[:20])
    Path("pickle.npy").write_bytes(pickle.dumps(X))
    np.save("objects.npy", np.array([[1, "a"]], object), allow_pickle=True)
    np.savez("x.npz", X)
    Path("x.npz").rename("archive.npy")
    for name in ("text", "short", "stub", "pickle", "objects", "archive"):
        fail(InputFileError, f"Cannot read {name}.npy", "np.save", sketch, f"{name}.npy")
    np.save("flat.npy", X[:, 0])
    fail(DataError, "flat.npy has shape (200,)", "reshape", sketch, "flat.npy")
    np.save("narrow.npy", X[:, :1])
    fail(
        DataError,
        "narrow.npy has 1 columns where good.npy has 2",
        "one width",
        sketch,
        ["good.npy", "narrow.npy"],
    )


def test_invalid_csv_files(X: np.ndarray, folder: Path) -> None:
    Path("text.csv").write_text("a,b,name\n1,2,x\n3,4,y\n")
    fail(
        DataError,
        "Column 'name' of text.csv holds text",
        "columns=['a', 'b']",
        sketch,
        "text.csv",
        columns=["a", "name"],
    )
    Path("late.csv").write_text("a,b\n" + "1,2\n" * 300_000 + "3,oops\n")
    message = fail(InputFileError, "late.csv", "check", sketch, "late.csv", scale=1.0)
    assert "oops" in message
    Path("ragged.csv").write_text("a,b\n1,2\n3\n")
    fail(
        InputFileError,
        "Cannot read ragged.csv",
        "row 1 (line 3) has 1 fields where the first line has 2",
        sketch,
        "ragged.csv",
    )
    Path("twice.csv").write_text("a,a\n1,2\n3,5\n")
    fail(
        MismatchError,
        "twice.csv has more than one column 'a'",
        "each named once",
        sketch,
        "twice.csv",
    )
    Path("binary.csv").write_bytes(bytes(range(256)) * 8)
    fail(InputFileError, "Cannot read binary.csv", "check the file", sketch, "binary.csv")


def test_invalid_parquet_files(X: np.ndarray, folder: Path) -> None:
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), "good.parquet")
    good = Path("good.parquet").read_bytes()
    Path("short.parquet").write_bytes(good[:-20])
    Path("text.parquet").write_text("a,b\n1,2\n")
    Path("damaged.parquet").write_bytes(good[:4] + b"\xff" * 40 + good[44:])
    for name in ("short", "text", "damaged"):
        fail(
            InputFileError,
            f"Cannot read {name}.parquet",
            "check the file",
            sketch,
            f"{name}.parquet",
        )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_of_one_set_must_agree(X: np.ndarray, folder: Path, suffix: str) -> None:
    """The second file has other columns, or text where the first has numbers: it is named."""

    def write(name: str, frame: pd.DataFrame) -> str:
        (
            frame.to_csv(name, index=False)
            if suffix == ".csv"
            else frame.to_parquet(name, index=False)
        )
        return name

    first = write(f"first{suffix}", pd.DataFrame(X, columns=["a", "b"]))
    other = write(f"other{suffix}", pd.DataFrame(X, columns=["a", "c"]))
    words = write(f"words{suffix}", pd.DataFrame({"a": ["one", "two"], "b": ["1.5", "2.5"]}))
    for options in ({}, {"columns": ["a", "b"]}):
        with pytest.raises(
            (DataError, InputFileError, MismatchError), match=rf"other{suffix}.*'?b'?"
        ):
            sketch([first, other], **options)
        with pytest.raises((DataError, InputFileError), match=rf"words{suffix}"):
            sketch([first, words], **options)


def test_files_that_are_not_utf8(folder: Path) -> None:
    Path("x.csv").write_bytes("größe,b\n1,2\n3,5\n".encode("latin-1"))
    fail(InputFileError, "Cannot read x.csv", "utf-8", sketch, "x.csv")


# Sketch files


def test_invalid_sketch_files(folder: Path, s: ckm.Sketch, X: np.ndarray) -> None:
    s.save("good.ckm")
    good = Path("good.ckm").read_bytes()
    files = {
        "truncated": (good[: len(good) // 2], "truncated"),
        "cut": (good[:-3], "truncated"),
        "altered": (good[:-1] + bytes([good[-1] ^ 1]), "checksum"),
        "foreign": (save_tensors({"x": np.zeros(3)}), "safetensors file, but not a sketch"),
        "pickle": (pickle.dumps(X), "is not a sketch"),
        "csv": (b"a,b\n1,2\n3,4\n5,6\n", "is not a sketch"),
        "empty": (b"", "is empty"),
    }
    for name, (data, seen) in files.items():
        Path(f"{name}.ckm").write_bytes(data)
        message = fail(
            SketchFileError,
            seen,
            "make one from the rows with ckm.sketch(...).save",
            ckm.load,
            f"{name}.ckm",
        )
        assert message.startswith(f"{name}.ckm ")
        assert fail(SketchFileError, seen, "make one", ckm.sketch, X, like=f"{name}.ckm") == message
    Path("future.ckm").write_bytes(forge(good, {"version": 99}))
    fail(
        SketchFileError,
        "file format 99",
        "pip install -U compressive-kmeans",
        ckm.load,
        "future.ckm",
    )
    fail(MissingFileError, "There is no file none.ckm", "check the name", ckm.load, "none.ckm")
    fail(SketchFileError, "is a directory", "file", ckm.load, folder)


def test_outputs_that_cannot_be_written(folder: Path, s: ckm.Sketch) -> None:
    fail(OutputError, "is a directory", "name a file in it", s.save, folder)
    fail(OutputError, "folder none does not exist", "make it first", s.save, "none/s.ckm")
    fail(OutputError, "No such file", "choose another output", s.save, "/proc/s.ckm")
