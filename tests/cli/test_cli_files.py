"""Sketches, centroids and outputs that a command cannot use: an exit status and one sentence."""

import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import fail
from safetensors.numpy import save as save_tensors

import ckm

K3 = ("-k", "3")


@pytest.fixture
def X(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Rows into which tests put bad values; data.npy and data.parquet hold them."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(200, 2))
    np.save("data.npy", X)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), "data.parquet")
    return X


@pytest.fixture
def sketch_file(X: np.ndarray) -> Path:
    ckm.sketch(X, n_clusters=3, random_state=0).save("s.ckm")
    return Path("s.ckm")


@pytest.fixture
def unreadable(X: np.ndarray) -> None:
    """Put a missing value into the first row of data.npy: a command that reads it reports that,
    not what the test expects.
    """
    X[0, 0] = np.nan
    np.save("data.npy", X)


# Invalid files of sketches and centroids


def altered_header(data: bytes) -> bytes:
    at = data.index(b"multiscale")
    return data[:at] + b"Multi" + data[at + 5 :]


def from_the_future(data: bytes) -> bytes:
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    metadata = {**json.loads(header["__metadata__"]["ckm"]), "version": 99}
    header["__metadata__"]["ckm"] = json.dumps(metadata)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[: len(data) // 2], "s.ckm is"),
        (lambda data: data[:100], "truncated"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "altered"),
        (altered_header, "altered"),
        (lambda data: save_tensors({"x": np.zeros(3)}), "not a sketch"),
        (lambda data: b"PK\x03\x04" + data, "not a sketch"),
        (lambda data: pickle.dumps(data), "not a sketch"),
        (lambda data: b"", "empty"),
        (from_the_future, "file format 99"),
    ],
    ids=[
        "half",
        "truncated",
        "payload",
        "header",
        "safetensors",
        "zip",
        "pickle",
        "empty",
        "future",
    ],
)
def test_invalid_sketch_files(sketch_file: Path, damage: object, words: str) -> None:
    sketch_file.write_bytes(damage(sketch_file.read_bytes()))  # type: ignore[operator]
    for command in (
        ("decode", sketch_file, *K3),
        ("inspect", sketch_file),
        ("sketch", "data.npy", "--like", sketch_file, "-o", "t.ckm"),
    ):
        message = fail(*command)
        assert "s.ckm" in message
        assert words in message
        assert "make one from the rows" in message or "upgrade" in message
    fail("merge", sketch_file, "-o", "t.ckm")
    assert not Path("t.ckm").exists()


def test_a_missing_or_foreign_sketch(X: np.ndarray) -> None:
    Path("folder").mkdir()
    assert "There is no file none.ckm" in fail("inspect", "none.ckm")
    assert "data.npy is not a sketch" in fail("inspect", "data.npy")
    assert "folder is a directory" in fail("inspect", "folder")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("c.csv", "a,b\n1,2\n", "cluster,weight"),
        ("c.csv", "", "cluster,weight"),
        ("c.csv", "cluster,weight,a,b\n0,1,2\n", "line 2 has 3 fields"),
        ("c.csv", "cluster,weight,a,b\n0,1,2,x\n", "'x'"),
        ("c.csv", "cluster,weight,a,b\n0,1,2,nan\n", "finite"),
        ("c.csv", "cluster,weight,a,b\n", "finite"),
        ("c.json", "{", "not a file of centroids"),
        ("c.json", "{}", "not a file of centroids"),
        ("c.json", '{"columns": ["a"], "centroids": [[1, 2]]}', "names 1 columns for 2"),
        ("c.txt", "", ".csv or .json"),
    ],
)
def test_invalid_files_of_centroids(X: np.ndarray, name: str, text: str, words: str) -> None:
    Path(name).write_text(text)
    message = fail("predict", "data.npy", "-c", name)
    assert name in message
    assert words in message


# Outputs


@pytest.mark.parametrize(
    ("command", "option", "suffix"),
    [
        (("fit", "data.npy", *K3), "-o", ".csv"),
        (("fit", "data.npy", *K3), "--save-sketch", ".ckm"),
        (("sketch", "data.npy", *K3), "-o", ".ckm"),
        (("merge", "s.ckm"), "-o", ".ckm"),
        (("decode", "s.ckm", *K3), "-o", ".json"),
        (("predict", "data.npy", "-c", "c.csv"), "-o", ".npy"),
    ],
    ids=["fit", "save-sketch", "sketch", "merge", "decode", "predict"],
)
def test_outputs_are_checked_before_the_data(
    sketch_file: Path, unreadable: None, command: tuple[str, ...], option: str, suffix: str
) -> None:
    Path("c.csv").write_text("cluster,weight,x0,x1\n0,1.0,0.0,0.0\n")
    Path(f"folder{suffix}").mkdir()
    message = fail(*command, option, f"none/out{suffix}")
    assert "the folder none does not exist; make it first" in message
    assert "is a directory" in fail(*command, option, f"folder{suffix}")
    message = fail(*command, option, "out.xyz", status=2)
    assert "out.xyz" in message
    kinds = {".npy": ".csv or .npy", ".ckm": ".ckm"}
    assert f"must end in {kinds.get(suffix, '.csv or .json')}" in message


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere"
)
def test_read_only_outputs(X: np.ndarray, unreadable: None) -> None:
    Path("old.csv").write_text("mine")
    Path("old.csv").chmod(0o444)
    assert "read-only" in fail("fit", "data.npy", *K3, "-o", "old.csv")
    Path("locked").mkdir(mode=0o555)
    assert "locked" in fail("fit", "data.npy", *K3, "-o", "locked/c.csv")


def test_outputs_never_replace_inputs(sketch_file: Path, unreadable: None) -> None:
    Path("data.csv").write_text("a,b\n,2\n")
    Path("c.csv").write_text("cluster,weight,a,b\n0,1.0,0.0,0.0\n")
    Path("link.csv").symlink_to("data.csv")
    before = Path("data.csv").read_bytes(), sketch_file.read_bytes()
    for command, role in (
        (("fit", "d*.csv", *K3, "-o", "./data.csv"), "one of the inputs"),
        (("fit", "data.csv", *K3, "-o", "link.csv"), "one of the inputs"),
        (("predict", "data.csv", "-c", "c.csv", "-o", "data.csv"), "one of the inputs"),
        (("predict", "data.csv", "-c", "c.csv", "-o", "c.csv"), "the file of --centroids"),
        (("predict", "data.npy", "-c", "c.csv", "-o", "data.npy"), "one of the inputs"),
        (("sketch", "data.npy", "--like", "s.ckm", "-o", "s.ckm"), "the sketch of --like"),
        (("merge", "s.ckm", "-o", "s.ckm"), "one of the inputs"),
    ):
        message = fail(*command)
        assert role in message
        assert "choose another name" in message
    assert (Path("data.csv").read_bytes(), sketch_file.read_bytes()) == before


def test_failure_leaves_the_old_output_alone(X: np.ndarray) -> None:
    Path("labels.csv").write_text("old")
    Path("c.csv").write_text("cluster,weight,x0,x1\n0,1.0,0.0,0.0\n")
    X[-1, 0] = np.nan
    np.save("bad.npy", X)
    fail("predict", "bad.npy", "-c", "c.csv", "-o", "labels.csv")
    assert Path("labels.csv").read_text() == "old"
    assert not list(Path().glob(".*.part"))
