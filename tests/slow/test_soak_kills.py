"""A pass that is killed again and again, by any signal at any moment, ends with the same bytes.

``make soak KILLS=1000`` sets the number of kills, over all kinds of files; see `kills.py`, which
also runs as a program for one kind.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import fail, run

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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("only the superuser may mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("seed", range(6))
def test_a_disk_that_is_full_loses_nothing(tmp_path: Path, small_disk: Path, seed: int) -> None:
    """Before the pass, while a checkpoint is written, or when the sketch is."""
    chance = random.Random(SEED + seed)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(200_000, 3)))
    output = small_disk / "out.ckm"
    output.write_bytes(b"old")
    common = ("sketch", tmp_path / "x.npy", "-m", 3000, "--pool", 50, "-q")
    files = ("-o", output, "--checkpoint", small_disk / "out.part", "--checkpoint-interval", 0)
    run(*common, "-o", tmp_path / "whole.ckm")
    whole = (tmp_path / "whole.ckm").read_bytes()
    filler = small_disk / "filler"
    # Room for less than a checkpoint, for one, or for two.
    filler.write_bytes(bytes(512 * 1024 - 8192 - int(len(whole) * chance.uniform(0, 2))))
    message = fail(*common, *files)
    assert "No space left on device" in message
    assert output.read_bytes() == b"old"
    assert not list(small_disk.glob(".ckm-*")), "no unfinished file is left"
    filler.unlink()
    run(*common, *files, "--resume")
    assert output.read_bytes() == whole
    assert sorted(path.name for path in small_disk.iterdir()) == ["out.ckm"]
