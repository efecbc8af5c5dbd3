"""Run commands of the command line in tests."""

import contextlib
import csv
import io
import subprocess
import sys

import numpy as np
import pytest

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
