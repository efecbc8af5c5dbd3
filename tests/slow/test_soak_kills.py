"""A pass that is killed again and again, by any signal at any moment, ends with the same bytes.

``make soak KILLS=1000`` sets the number of kills, over all kinds of files; see `kills.py`, which
also runs as a program for one kind.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckm._sources.paths import READERS

# It needs what Windows does not have.
KINDS = pytest.importorskip("kills", exc_type=ImportError).KINDS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked"),
]

N_KILLS = int(os.environ.get("CKM_SOAK_KILLS", "33"))
SEED = int(os.environ.get("CKM_SOAK_SEED", "0"))
PROGRAM = Path(__file__).with_name("kills.py")


wanted = pytest.mark.skipif(N_KILLS == 0, reason="CKM_SOAK_KILLS is 0")


def run_kills(folder: Path, kind: str, **counts: int) -> dict[str, Any]:
    """Run the program; its record."""
    options = [f"--{name}={count}" for name, count in counts.items()]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), "--kind", kind, *options],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record


@wanted
@pytest.mark.parametrize("kind", KINDS)
def test_killed_passes_end_with_the_same_bytes(kind: str, tmp_path: Path) -> None:
    share = -(-N_KILLS // len(KINDS))
    record = run_kills(tmp_path / "kills", kind, kills=share, files=1 + share // 3, seed=SEED)
    assert record["kills"] >= share
    assert record["places"] > 1, "kills come at different places of the pass"


@wanted
@pytest.mark.parametrize("kind", ["npy", "several-csv"])
def test_full_disks_leave_what_was_there(kind: str, tmp_path: Path) -> None:
    share = 4 + N_KILLS // 50
    record = run_kills(tmp_path / "disks", kind, files=0, disks=share, seed=SEED)
    assert record["refusals"] > 0


@wanted
@pytest.mark.sampled
def test_some_killed_passes_end_with_the_same_bytes(tmp_path: Path) -> None:
    record = run_kills(tmp_path / "kills", "npy", files=2, kills=2, disks=1, seed=SEED)
    assert record["files"] >= 2


def test_every_kind_of_file_is_killed() -> None:
    """The readers of files, each by one of its endings."""

    endings = {
        argument.split(".", 1)[1] for kind in KINDS.values() for argument in kind.arguments[:1]
    }
    assert {READERS[f".{ending}"] for ending in endings} == set(READERS.values())
