"""The command line on every kind of input: standard input, folders, arrays inside files, columns,
weights, missing values.
"""

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from command import fail, run

import ckm
from ckm._cli.errors import in_options
from ckm._messages import Argument, Message


@pytest.fixture
def X(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    X = ckm.datasets.gaussian_mixture(3000, 3, 2, separation=30, random_state=0).rows
    monkeypatch.chdir(tmp_path)
    table = pa.table(
        {
            "east": X[:, 0],
            "name": ["row"] * len(X),
            "north": X[:, 1],
            "times": np.arange(len(X)) % 3,
        }
    )
    pa_csv.write_csv(table, "data.csv")
    Path("folder/day=1").mkdir(parents=True)
    Path("folder/day=2").mkdir()
    pq.write_table(table.slice(0, 1000), "folder/day=1/0.parquet")
    pq.write_table(table.slice(1000), "folder/day=2/0.parquet")
    with h5py.File("data.h5", "w") as file:
        file["a/rows"] = file["b/rows"] = X
    return X


COLUMNS = ("--columns", "east,north")


def piped(data: bytes, *args: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from ckm._cli.app import main; main()", *map(str, args)]
    return subprocess.run(command, input=data, capture_output=True, timeout=120, check=False)


@pytest.mark.slow
def test_standard_input(X: np.ndarray) -> None:
    run("fit", "data.csv", "-k", 3, *COLUMNS, "-o", "a.csv", "--save-sketch", "a.ckm")
    data = Path("data.csv").read_bytes()
    done = piped(data, "fit", "-", "-k", 3, *COLUMNS, "-o", "b.csv", "--save-sketch", "b.ckm")
    assert (done.returncode, done.stderr.decode()) == (
        0,
        "Found 3 centroids of 3,000 rows from 30 frequencies: b.csv\n",
    )
    assert Path("a.ckm").read_bytes() == Path("b.ckm").read_bytes()
    assert len(Path("b.csv").read_text().splitlines()) == 4
    done = piped(data, "predict", "-", "-c", "a.csv", "-o", "labels.npy")
    assert done.returncode == 0, done.stderr
    run("predict", "data.csv", "-c", "a.csv", "-o", "same.npy")
    assert np.array_equal(np.load("labels.npy"), np.load("same.npy"))
    for option in (("--sse",), ("--polish", 2)):
        done = piped(data, "fit", "-", "-k", 3, *COLUMNS, *option)
        assert done.returncode == 2
        assert "standard input can be read only once" in " ".join(done.stderr.decode().split())
    assert (
        piped(b"", "fit", "-", "-k", 3).stderr.decode().startswith("Error: standard input is empty")
    )


def test_standard_input_is_not_a_terminal(X: np.ndarray) -> None:
    controller, terminal = os.openpty()
    command = [sys.executable, "-c", "from ckm._cli.app import main; main()", "fit", "-", "-k", "3"]
    done = subprocess.run(
        command, stdin=terminal, capture_output=True, text=True, timeout=120, check=False
    )
    os.close(controller), os.close(terminal)
    assert done.returncode == 1
    assert "is a terminal" in done.stderr


def test_folders_keys_and_arrays_inside_files(X: np.ndarray) -> None:
    run("sketch", "folder", "-m", 20, *COLUMNS, "-o", "s.ckm")
    assert ckm.load("s.ckm") == ckm.sketch(
        "data.csv", sketch_size=20, columns=["east", "north"], random_state=0
    )
    run("sketch", "folder", "-m", 20, "--columns", "east,day", "-o", "t.ckm")
    assert ckm.load("t.ckm").upper[1] == 2
    run("sketch", "data.h5::a/rows", "-m", 20, "-o", "u.ckm")
    assert np.array_equal(ckm.load("u.ckm").tally.sums, ckm.load("s.ckm").tally.sums)
    assert "name one, as data.h5::a/rows" in fail("sketch", "data.h5", "-m", 20, "-o", "v.ckm")
    assert "given twice" in fail(
        "sketch", "folder", "folder/day=1/0.parquet", "-m", 20, "-o", "v.ckm"
    )


def test_columns_left_out_are_a_line_on_standard_error(X: np.ndarray) -> None:
    _, err = run("sketch", "data.csv", "-m", 20, "-o", "s.ckm")
    assert (
        err.splitlines()[0]
        == "Warning: Left out of data.csv: name (text); choose others with --columns A,B, and use "
        "text of few values with --categories A,B."
    )
    assert ckm.load("s.ckm").columns == ("east", "north", "times")
    assert "There is no column 'z'" in fail(
        "sketch", "data.csv", "-m", 20, "--weight-column", "z", "-o", "t.ckm"
    )


def test_vectors_beside_an_id_are_labelled_from_their_file(X: np.ndarray) -> None:
    table = pa.table({"id": np.arange(len(X)), "embedding": list(X)})
    pq.write_table(table, "vectors.parquet")
    run("fit", "vectors.parquet", "-k", 3, "--columns", "embedding", "-o", "c.csv")
    run("predict", "vectors.parquet", "-c", "c.csv", "-o", "labels.npy")
    np.save("rows.npy", X)
    run("predict", "rows.npy", "-c", "c.csv", "-o", "expected.npy")
    assert np.array_equal(np.load("labels.npy"), np.load("expected.npy"))
    out, _ = run("describe", "vectors.parquet")
    assert "embedding holds lists of numbers: to cluster these, and no other column, write" in out
    assert "--columns embedding" in out


def test_a_cap_on_the_rows_of_each_user(X: np.ndarray) -> None:
    cap = ("--max-rows-per-user", 5)
    run("sketch", "data.csv", "-m", 20, *COLUMNS, "--user-column", "times", *cap, "-o", "s.ckm")
    assert ckm.load("s.ckm").count == 15
    assert "--max-rows-per-user is used together with --user-column; give both" in fail(
        "sketch", "data.csv", "-m", 20, *cap, "-o", "t.ckm"
    )


def test_weights_in_a_column(X: np.ndarray) -> None:
    run(
        "fit",
        "data.csv",
        "-k",
        3,
        *COLUMNS,
        "--weight-column",
        "times",
        "--polish",
        3,
        "-o",
        "a.csv",
    )
    np.save("repeated.npy", np.repeat(X, np.arange(len(X)) % 3, axis=0))
    run("fit", "repeated.npy", "-k", 3, "--polish", 3, "-o", "b.csv")
    a, b = (
        np.sort(np.loadtxt(name, delimiter=",", skiprows=1)[:, 1:], axis=0)
        for name in ("a.csv", "b.csv")
    )
    np.testing.assert_allclose(a, b, rtol=1e-9)


def test_missing_values(X: np.ndarray) -> None:
    lines = Path("data.csv").read_text().splitlines()
    lines[8] = ",row,1.5,0"
    Path("gaps.csv").write_text("\n".join(lines) + "\n")
    message = fail("fit", "gaps.csv", "-k", 3, *COLUMNS)
    assert "Row 7, column 'east' of gaps.csv holds NaN" in message
    assert "or use --nan drop." in message
    _, err = run("fit", "gaps.csv", "-k", 3, *COLUMNS, "--nan", "drop", "--sse", "-o", "a.csv")
    assert err.splitlines()[0].startswith(
        "Warning: Left out 1 of 3,000 rows, which have missing values; the first is row 7, "
        "column 'east'"
    )
    assert "2,999 rows" in err
    assert "--nan must be 'error', 'drop' or 'impute'" in fail(
        "fit", "gaps.csv", "-k", 3, "--nan", "fill", status=2
    )


def test_lists_of_columns_are_worded_as_the_option_takes_them() -> None:
    message = Message("name ", Argument("columns", ["a", "b c", "d,e"]), ".")
    assert in_options(message) == "name --columns 'a,b c,\"d,e\"'."
    message = Message("use ", Argument("nan", "drop"), ", or ", Argument("weight_column", ...))
    assert in_options(message) == "use --nan drop, or --weight-column"
