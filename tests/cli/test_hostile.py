"""Hostile command lines, each in a process of its own: one line says what is wrong, the exit status
is right, and there is never a traceback.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ckm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="the lines are those of a POSIX shell"),
]

LONG = "a" * 300
HUGE = "9" * 30
# Lines of a shell, with the exit status that they must have.
LINES: list[tuple[str, int]] = [
    ("ckm fit d.npy -k 2 > /dev/full", 1),
    ("ckm fit d.npy -k 2 --json > /dev/full", 1),
    ("ckm predict d.npy -c c.csv > /dev/full", 1),
    ("ckm inspect s.ckm > /dev/full", 1),
    ("ckm --help > /dev/full", 1),
    ("ckm --version > /dev/full", 1),
    ("ckm fit d.npy -k 2 >&-", 1),
    ("ckm inspect s.ckm >&-", 1),
    ("ckm fit d.npy -k 2 -o out.csv >&-", 0),
    ("ckm fit d.npy -k 2 2>&-", 0),
    ("ckm fit d.npy -k 2 2> /dev/full", 0),
    ("ckm fit d.npy -k 2 -o out.csv <&- >&- 2>&-", 0),
    ("ckm fit - -k 2 <&-", 1),
    ("ckm fit - -k 2 < /dev/null", 1),
    ("PYTHONIOENCODING=ascii ckm fit accent.csv -k 2", 1),
    ("PYTHONIOENCODING=ascii ckm fit accent.csv -k 2 --json", 0),
    ("PYTHONIOENCODING=ascii ckm fit accent.csv -k 2 -o out.csv", 0),
    ("PYTHONIOENCODING=ascii ckm inspect accent.ckm", 0),
    ("ckm fit $'\\xff.csv' -k 2", 1),
    ("ckm fit $'there\\xff.csv' -k 2", 1),
    ("ckm fit d.csv -k 2 --columns $'\\xff'", 1),
    ("ckm fit d.npy -k 2 -o $'\\xff.csv'", 0),
    ("ckm sketch d.npy -k 2 -o $'\\xff.ckm' --checkpoint $'\\xff.part'", 0),
    (f"ckm fit {LONG}.csv -k 2", 1),
    (f"ckm fit d.npy -k 2 -o {LONG}.csv", 1),
    (f"ckm fit d.npy -k 2 --save-sketch {LONG}.ckm", 1),
    (f"ckm inspect {LONG}.ckm", 1),
    (f"ckm predict d.npy -c {LONG}.csv", 1),
    (f"ckm sketch d.npy --like {LONG}.ckm -o out.ckm", 1),
    (f"ckm sketch d.npy -k 2 --checkpoint {LONG} -o out.ckm", 1),
    (f"ckm demo --folder {LONG}", 1),
    ("ckm fit d.npy -k 2 -m 100000000000", 1),
    ("ckm sketch d.npy -m 100000000000 -o out.ckm", 1),
    ("ckm fit d.npy -k 1200000000", 1),
    ("ckm fit d.csv -k 1200000000", 1),
    ("ckm sketch d.npy -k 1200000000 -o out.ckm", 1),
    ("ckm decode s.ckm -k 1200000000", 1),
    (f"ckm sketch d.npy -k {HUGE} -o out.ckm", 1),
    (f"ckm fit d.npy -k 2 --seed {HUGE}", 2),
    (f"ckm fit d.npy -k 2 --jobs {HUGE}", 0),
    (f"ckm fit d.npy -k 2 --pool {HUGE}", 0),
    ("ckm fit / -k 2", 1),
    ("NUMBA_DISABLE_JIT=1 ckm fit d.npy -k 2", 1),
    ("NUMBA_DISABLE_JIT=1 ckm inspect s.ckm", 1),
    ("ckm fit", 2),
    ("ckm nothing", 2),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    X = np.random.default_rng(0).normal(size=(200, 2))
    np.save(folder / "d.npy", X)
    lines = "".join(f"{a},{b}\n" for a, b in X)
    (folder / "d.csv").write_text("a,b\n" + lines)
    (folder / "accent.csv").write_text("\u00e9,b\n" + lines, encoding="utf-8")
    (folder / os.fsdecode(b"there\xff.csv")).write_text("a,b\n" + lines)
    (folder / "c.csv").write_text("cluster,weight,a,b\n0,1.0,0.0,0.0\n")
    ckm.sketch(X, n_clusters=2, random_state=0).save(folder / "s.ckm")
    ckm.sketch(folder / "accent.csv", n_clusters=2, random_state=0).save(folder / "accent.ckm")
    return folder


# Every fourth line is tried in continuous integration too.
CASES = [
    pytest.param(*case, id=case[0][:60], marks=() if i % 4 else pytest.mark.sampled)
    for i, case in enumerate(LINES)
]


@pytest.mark.parametrize(("line", "status"), CASES)
def test_hostile_lines_end_in_one_sentence(folder: Path, line: str, status: int) -> None:
    program = [sys.executable, "-c", "from ckm._cli.app import main; main()"]
    script = f'ckm() {{ {shlex.join(program)} "$@"; }}\n{line}'
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment | {"PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    errors = [text for text in done.stderr.splitlines() if text.startswith("Error: ")]
    if status:
        assert len(errors) == 1
        assert done.stderr.splitlines()[-1] == errors[0]
    else:
        assert errors == []
