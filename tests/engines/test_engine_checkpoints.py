"""Passes of an engine over files that are interrupted, and resumed from a checkpoint."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import MarkedRows
from partitions import assert_same

import ckm
from ckm._sketching.checkpoint import from_bytes
from ckm._sketching.resumable import check_checkpoint
from ckm._sources import Place
from ckm._sources.engines.base import PartitionedSource, PartitionReader
from ckm.errors import CheckpointError, ParameterError

PACKAGES = {"dask": "dask", "spark": "pyspark", "ray": "ray"}
WAIT_SECONDS = 300.0


def write_files(folder: Path, count: int, rows: int) -> MarkedRows:
    table = MarkedRows(folder, count, rows, pause=0.0)
    for number in range(count):
        np.save(folder / f"{number:03d}.npy", table.values(number))
    return table


class Interrupted:
    """The runs of an engine: which partitions, and an interruption instead of run `number`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int | None = None) -> None:
        self.first: list[int] = []
        run = PartitionedSource.run

        def recording(source: PartitionedSource, job: Any, which: Any = None) -> Any:
            if len(self.first) == number:
                raise KeyboardInterrupt
            self.first.append(int(which[0]))
            return run(source, job, which)

        monkeypatch.setattr(PartitionedSource, "run", recording)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    write_files(tmp_path, 20, 500)
    return sorted(map(str, tmp_path.glob("*.npy")))


@pytest.mark.parametrize("pool", [0, 100])
def test_a_resumed_pass_reads_the_other_files_alone(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: int
) -> None:
    pytest.importorskip("dask")
    from ckm._sources.engines.dask import DaskSource, open_files

    monkeypatch.setattr(DaskSource, "tasks_at_a_time", lambda self: 1)
    local = ckm.sketch(files, sketch_size=60, random_state=0)
    source = open_files(files, PartitionReader(3), None)
    options = {"like": local.frequencies, "pool": pool, "random_state": 0}
    whole = ckm.sketch(source, checkpoint=tmp_path / "whole.part", **options)
    assert_same(whole, local)

    part = tmp_path / "a.part"
    with monkeypatch.context() as patch:
        Interrupted(patch, number=2)
        with pytest.raises(KeyboardInterrupt):
            ckm.sketch(source, checkpoint=part, **options)
    assert from_bytes(part.read_bytes()).rows == 8 * 500
    # another number of workers, the same steps
    monkeypatch.setattr(DaskSource, "tasks_at_a_time", lambda self: 7)
    runs = Interrupted(monkeypatch)
    found = ckm.sketch(source, checkpoint=part, resume=True, **options)
    assert runs.first == [8, 12, 16]
    assert found == whole
    # a pass that is over has nothing left to do
    assert ckm.sketch(source, checkpoint=part, resume=True, **options) == whole
    assert runs.first == [8, 12, 16]


def test_other_files_and_options_are_refused(files: list[str], tmp_path: Path) -> None:
    pytest.importorskip("dask")
    from ckm._sources.engines.dask import open_files

    part = tmp_path / "a.part"
    options = {"sketch_size": 60, "random_state": 0, "checkpoint": part, "resume": True}
    ckm.sketch(open_files(files, PartitionReader(3), None), **options)
    with pytest.raises(ParameterError, match="nan='error', and now nan='drop'"):
        ckm.sketch(open_files(files, PartitionReader(3, drop_missing=True), None), **options)
    np.save(files[3], np.ones((10, 3)))
    with pytest.raises(CheckpointError, match=r"003\.npy has changed"):
        ckm.sketch(open_files(files, PartitionReader(3), None), **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in PACKAGES]
)
def test_a_driver_that_is_killed_is_resumed(engine: str, tmp_path: Path) -> None:
    """Ten million rows in fifty files, sketched by the command line."""
    if find_spec(PACKAGES[engine]) is None:
        pytest.skip(f"{engine} is not installed")
    data = tmp_path / "data"
    data.mkdir()
    table = write_files(data, 50, 200_000)
    local = ckm.sketch(table.all_values(), sketch_size=500, random_state=0)
    ckm.Sketch.empty(local.frequencies).save(tmp_path / "like.ckm")
    part = tmp_path / "a.part"
    output = tmp_path / "all.ckm"
    address = ["--master", "local[2]"] if engine == "spark" else []
    start = [sys.executable, "-W", "ignore", "-c", "from ckm._cli.app import main; main()"]
    command = [*start, "sketch", str(data), "--engine", engine, *address]
    command += ["--like", str(tmp_path / "like.ckm"), "-o", str(output), "-q"]
    command += ["--checkpoint", str(part), "--checkpoint-interval", "0", "--resume"]
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as driver:
        limit = time.monotonic() + WAIT_SECONDS
        while not part.exists() and driver.poll() is None and time.monotonic() < limit:
            time.sleep(0.005)
        driver.kill()
    assert not output.exists()
    done = from_bytes(part.read_bytes()).rows
    assert 0 < done < local.count
    print(f"{engine}: the driver was killed after {done:,} of {local.count:,} rows")
    resumed = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False
    )
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    assert_same(ckm.load(output), local)
    assert not part.exists()


def test_steps_without_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask")
    from ckm._sources.engines.dask import DaskSource, open_files

    monkeypatch.setattr(DaskSource, "tasks_at_a_time", lambda self: 1)
    for number in range(5):
        np.save(tmp_path / f"{number}.npy", np.ones((10 * (number // 4), 3)))
    source = open_files(sorted(map(str, tmp_path.glob("*.npy"))), PartitionReader(3), None)
    part = tmp_path / "a.part"
    options = {"like": ckm.draw_frequencies(60, 3, seed=0), "checkpoint": part, "resume": True}
    with monkeypatch.context() as patch:
        Interrupted(patch, number=1)
        with pytest.raises(KeyboardInterrupt):
            ckm.sketch(source, **options)
    assert from_bytes(part.read_bytes()).place.part == 4
    assert ckm.sketch(source, **options).count == 10


def test_steps_that_no_pass_can_have_made_are_refused(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dask")
    from ckm._sources.engines.dask import DaskSource, open_files

    monkeypatch.setattr(DaskSource, "tasks_at_a_time", lambda self: 3)
    part = tmp_path / "a.part"
    source = open_files(files, PartitionReader(3), None)
    ckm.sketch(source, sketch_size=60, random_state=0, checkpoint=part)
    found = from_bytes(part.read_bytes())
    check_checkpoint(replace(found, place=Place(12)))
    for place in (Place(0), Place(7), Place(24), Place(12, row=1), Place(12, byte=1)):
        with pytest.raises(ValueError, match="no step of 12 files"):
            check_checkpoint(replace(found, place=place))
    for step in (0, -1, True, 2.5, None):
        with pytest.raises(ValueError, match="cannot be the option partitions_per_step"):
            check_checkpoint(replace(found, options=found.options | {"partitions_per_step": step}))
