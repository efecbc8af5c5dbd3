"""A pass that was stopped, however it was, goes on from its checkpoint and ends with the bits of
one that was not.
"""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sketch_files import mutations

import ckm
from ckm._core.storage import serialise
from ckm._kernels.cpu import dense as numba_kernel
from ckm._sketching import checkpoint as checkpoints
from ckm._sketching.checkpoint import Checkpoint, File, from_bytes, to_bytes
from ckm._sources import Place
from ckm.errors import CheckpointError, OutputError, ParameterError

OPTIONS: dict[str, Any] = {"sketch_size": 40, "scale": 1.0, "pool": 30, "random_state": 3}


def write_files(folder: Path, count: int, rows: int = 3000) -> None:
    """Parquet files of different lengths, in row groups that do not divide them, with a missing
    value in each.
    """
    rng = np.random.default_rng(count)
    for i in range(count):
        X = rng.normal(size=(rows + 777 * i, 3))
        X[7 * i, 1] = np.nan
        pq.write_table(
            pa.table(dict(zip("abc", X.T, strict=True))),
            folder / f"part-{i:02}.parquet",
            row_group_size=1100,
        )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    write_files(tmp_path, 6)
    return tmp_path


class Stop(Exception):
    """What stops a pass in these tests."""


def stop_after(monkeypatch: pytest.MonkeyPatch, blocks: int, error: BaseException) -> None:
    """Make the kernel fail once it was given so many blocks."""
    seen, tally = [0], numba_kernel.tally

    def failing(*args: Any) -> Any:
        seen[0] += 1
        if seen[0] > blocks:
            raise error
        return tally(*args)

    monkeypatch.setattr(numba_kernel, "tally", failing)


@pytest.mark.filterwarnings("ignore:Left out")
@pytest.mark.parametrize(
    "error",
    [Stop(), KeyboardInterrupt(), OSError(errno.EIO, "input/output error")],
    ids=["bug", "ctrl-c", "read error"],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_it_goes_on_where_it_was_stopped(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, n_jobs: int
) -> None:
    whole = ckm.sketch("part-*.parquet", nan="drop", **OPTIONS)
    monkeypatch.setattr(checkpoints, "EVERY", 1e9)  # only the end writes
    with monkeypatch.context() as patch:
        stop_after(patch, 3, error)
        with pytest.raises(type(error)):
            ckm.sketch("part-*.parquet", nan="drop", checkpoint="s.part", n_jobs=n_jobs, **OPTIONS)
    kept = from_bytes(Path("s.part").read_bytes())
    assert 0 < kept.sketch.count < whole.count
    assert kept.dropped > 0
    with pytest.warns(ckm.errors.MissingRowsWarning, match=r"Left out 6 of 29,655 rows"):
        resumed = ckm.sketch(
            "part-*.parquet", nan="drop", checkpoint="s.part", resume=True, n_jobs=n_jobs, **OPTIONS
        )
    assert serialise(resumed) == serialise(whole), "every bit, of the moments and the pool too"
    again = ckm.sketch("part-*.parquet", nan="drop", checkpoint="s.part", resume=True, **OPTIONS)
    assert serialise(again) == serialise(whole), "a finished checkpoint has nothing left to read"


@pytest.mark.filterwarnings("ignore:Left out")
def test_without_a_seed_the_one_before_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**OPTIONS, "random_state": None}
    with monkeypatch.context() as patch:
        stop_after(patch, 2, Stop())
        with pytest.raises(Stop):
            ckm.sketch("part-*.parquet", nan="drop", checkpoint="s.part", **options)
    resumed = ckm.sketch("part-*.parquet", nan="drop", checkpoint="s.part", resume=True, **options)
    seed = from_bytes(Path("s.part").read_bytes()).asked["random_state"]
    assert serialise(resumed) == serialise(
        ckm.sketch("part-*.parquet", nan="drop", **(options | {"random_state": seed}))
    )


_KILLED = """
import sys, warnings, ckm, ckm._sketching.checkpoint
ckm._sketching.checkpoint.EVERY = 0.0
warnings.simplefilter("ignore")
s = ckm.sketch("part-*.parquet", nan="drop", checkpoint="s.part", resume=True, sketch_size=400, scale=1.0, pool=30, random_state=3)
s.save("s.ckm")
"""


@pytest.mark.filterwarnings("ignore:Left out")
def test_killed_at_ten_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, 20, rows=20_000)
    whole = ckm.sketch(
        "part-*.parquet", nan="drop", sketch_size=400, scale=1.0, pool=30, random_state=3
    )
    chance, kills = random.Random(0), 0
    while kills < 10:
        process = subprocess.Popen([sys.executable, "-c", _KILLED])
        before = _written()
        while process.poll() is None and _written() == before:  # until it has done something
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        if Path("s.ckm").exists():  # it was done before; begin again
            assert Path("s.ckm").read_bytes() == serialise(whole)
            Path("s.ckm").unlink()
            Path("s.part").unlink()
    subprocess.run([sys.executable, "-c", _KILLED], check=True)
    assert Path("s.ckm").read_bytes() == serialise(whole)
    assert not list(tmp_path.glob("*.tmp"))


def _written() -> int:
    try:
        return os.stat("s.part").st_mtime_ns
    except FileNotFoundError:
        return 0


@pytest.mark.filterwarnings("ignore:Left out")
def test_a_full_disk_leaves_the_last_checkpoint(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, writes, replace = ckm.sketch("part-*.parquet", nan="drop", **OPTIONS), [0], os.replace

    def full(*args: Any) -> None:
        writes[0] += 1
        if writes[0] > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OutputError, match="No space left"):
            ckm.sketch("part-*.parquet", nan="drop", checkpoint="s.part", **OPTIONS)
    assert 0 < from_bytes(Path("s.part").read_bytes()).sketch.count < whole.count
    assert sorted(path.name for path in folder.iterdir() if "part-" not in path.name) == [
        "s.part"
    ], "no half file is left"
    resumed = ckm.sketch("part-*.parquet", nan="drop", checkpoint="s.part", resume=True, **OPTIONS)
    assert serialise(resumed) == serialise(whole)


# What it refuses


@pytest.fixture
def begun(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a checkpoint in the middle."""
    with monkeypatch.context() as patch:
        stop_after(patch, 2, Stop())
        with pytest.raises(Stop):
            ckm.sketch("part-*.parquet", nan="drop", checkpoint="s.part", **OPTIONS)
    return folder


def resume(**options: Any) -> None:
    ckm.sketch(
        "part-*.parquet", checkpoint="s.part", resume=True, **({"nan": "drop"} | OPTIONS | options)
    )


@pytest.mark.parametrize("name", ["part-00.parquet", "part-05.parquet"])
def test_a_file_that_is_gone_is_named(begun: Path, name: str) -> None:
    (begun / name).unlink()
    with pytest.raises(
        CheckpointError,
        match=rf"{name}, which was there when the checkpoint s\.part was begun, is gone",
    ):
        resume()


@pytest.mark.parametrize("name", ["part-00.parquet", "part-05.parquet"])
def test_a_file_that_changed_is_named(begun: Path, name: str) -> None:
    os.utime(begun / name, ns=(0, 0))
    with pytest.raises(CheckpointError, match=rf"{name} has changed since"):
        resume()


def test_a_new_file_is_named(begun: Path) -> None:
    (begun / "part-99.parquet").write_bytes((begun / "part-00.parquet").read_bytes())
    with pytest.raises(CheckpointError, match=r"part-99\.parquet was not there"):
        resume()


@pytest.mark.parametrize(
    "options",
    [
        {"pool": 31},
        {"sketch_size": 41},
        {"nan": "error"},
        {"random_state": 4},
        {"columns": ["a", "b"]},
        {"standardize": True},
    ],
)
def test_other_options_are_named(begun: Path, options: dict[str, Any]) -> None:
    before = (begun / "s.part").read_bytes()
    (name,) = options
    with pytest.raises(ParameterError, match=f"was begun with {name}="):
        resume(**options)
    assert (begun / "s.part").read_bytes() == before


def test_a_checkpoint_is_not_overwritten_unasked(begun: Path) -> None:
    with pytest.raises(
        ParameterError,
        match=r"There is a checkpoint s\.part already; go on from it with resume=True",
    ):
        ckm.sketch("part-*.parquet", nan="drop", checkpoint="s.part", **OPTIONS)


def test_only_files_can_be_read_again(folder: Path) -> None:
    for data in (np.eye(3), [np.eye(3)], iter([np.eye(3)])):
        with pytest.raises(ParameterError, match="needs rows in files"):
            ckm.sketch(data, sketch_size=4, scale=1.0, checkpoint="s.part")
    with pytest.raises(ParameterError, match="name it with checkpoint="):
        ckm.sketch(np.eye(3), sketch_size=4, resume=True)
    with pytest.raises(OutputError, match="does not exist"):
        ckm.sketch("part-*.parquet", checkpoint="nowhere/s.part", **OPTIONS)


# Damaged files


def small() -> bytes:
    s = ckm.sketch(
        np.random.default_rng(0).normal(size=(9, 2)),
        sketch_size=4,
        scale=1.0,
        pool=3,
        random_state=0,
    )
    files = (
        File("a.csv", 120, 1_700_000_000_000_000_000),
        File("b.csv", 80, 1_700_000_000_000_000_001),
    )
    return to_bytes(Checkpoint(s, {"pool": 3, "random_state": 0}, files, Place(1, 4, 70), 2, 9, 1))


DATA = small()


def refused(data: bytes) -> str:
    with pytest.raises(CheckpointError) as found:
        from_bytes(data, "s.part")
    return str(found.value)


def test_there_and_back() -> None:
    assert to_bytes(from_bytes(DATA)) == DATA


def test_damage_is_told() -> None:
    assert "is not a checkpoint, or is truncated; remove it and begin anew" in refused(b"")
    assert "truncated" in refused(DATA[:30])
    assert "checksum" in refused(DATA[:-1])
    assert "checksum" in refused(DATA.replace(b'"rows":9', b'"rows":8'))
    assert "later version" in refused(DATA.replace(b'"ckm-checkpoint":1', b'"ckm-checkpoint":2'))


def test_ten_thousand_mutations_are_refused() -> None:
    for spoilt in mutations(DATA, 10_000):
        refused(spoilt)
