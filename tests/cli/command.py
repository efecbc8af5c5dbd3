"""Run commands of the command line in tests, and files to run them on."""

import contextlib
import csv
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import ckm
from ckm._cli.app import app


def run(*args: object, expect: int = 0) -> tuple[str, str]:
    """Run a command in this process and return its standard output and standard error."""
    out = io.StringIO()
    err = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as exit,
    ):
        app(args=[str(arg) for arg in args], prog_name="ckm")
    assert (exit.value.code or 0) == expect, err.getvalue()
    return out.getvalue(), err.getvalue()


def shell(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command in its own process."""
    command = [sys.executable, "-c", "from ckm._cli.app import main; main()", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload,no-any-return]


def example_rows() -> np.ndarray:
    """Return 3000 rows of three separate clusters in the plane."""
    return ckm.datasets.gaussian_mixture(3000, 3, 2, separation=30, random_state=0).rows


def write_example_files(folder: Path, X: np.ndarray) -> None:
    """Write the same rows as .npy, .csv and .parquet, whole and in two parts."""
    table = pa.table({"east": X[:, 0], "north": X[:, 1]})
    np.save(folder / "data.npy", X)
    pa_csv.write_csv(table, folder / "data.csv")
    pq.write_table(table, folder / "data.parquet")
    pq.write_table(table[:1000], folder / "part-1.parquet")
    pq.write_table(table[1000:], folder / "part-2.parquet")
    named = table.select(["north", "east"]).append_column("name", pa.array(["row"] * len(X)))
    pq.write_table(named, folder / "shuffled.parquet")


def read_csv(text: str) -> tuple[list[str], np.ndarray]:
    header, *rows = csv.reader(io.StringIO(text))
    return header, np.array(rows, float)


def fail(*args: object, status: int = 1) -> str:
    """Run a command that must fail and return its error message, the only output."""
    out, err = run(*args, expect=status)
    assert out == ""
    assert "Traceback" not in err
    *before, last = err.splitlines()
    assert last.startswith("Error: ")
    assert status == 2 or all(line.startswith("Warning: ") for line in before)
    return last
