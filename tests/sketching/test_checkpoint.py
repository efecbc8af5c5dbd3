"""A pass that is interrupted, in any way, resumes from its checkpoint and ends bit-identical to one
that was not.
"""

import errno
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from by_kernel import FailingKernel
from sketch_files import LEFT_OUT, forge, metadata_of, mutations
from zarr_stores import write_array

import ckm
from ckm._core.storage import serialise
from ckm._sketching.accumulate import State
from ckm._sketching.checkpoint import (
    Checkpoint,
    CheckpointWriter,
    FileRecord,
    from_bytes,
    to_bytes,
)
from ckm._sketching.choose import choose_design
from ckm._sketching.options import PassOptions, SketchOptions
from ckm._sketching.recorded import record_options
from ckm._sketching.run import plan_pass
from ckm._sources import BEGINNING, Chunk, ColumnRequest, Place, Source, open_rows, open_source
from ckm.errors import CheckpointError, OutputError, ParameterError

PATTERN = "part-*.parquet"
OPTIONS: dict[str, Any] = {
    "nan": "drop",
    "sketch_size": 40,
    "scale": 1.0,
    "pool": 30,
    "random_state": 3,
}
# A checkpoint after every chunk.
CHECKPOINT: dict[str, Any] = {"checkpoint": "s.part", "checkpoint_interval": 0.0}


def write_files(folder: Path, count: int, rows: int = 3000) -> None:
    """Write Parquet files of different lengths, in row groups that do not divide them, with a
    missing value in each.
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
    write_files(tmp_path, 6)
    return tmp_path


class Stop(Exception):
    """Interrupts a pass in these tests."""


class FailingFiles(Source):
    """The rows of the files, until reading a file fails."""

    def __init__(self, fails_at: int, error: BaseException) -> None:
        self._files = open_source(PATTERN)
        self._fails_at = fails_at
        self._error = error
        self.columns = self._files.columns
        self.n_features = self._files.n_features
        self.n_rows = self._files.n_rows
        self.parts = self._files.parts

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for chunk in self._files.chunks(start):
            if chunk.start.part >= self._fails_at:
                raise self._error
            yield chunk

    def sample_rows(self, *args: Any) -> Any:
        return self._files.sample_rows(*args)


def interrupt(fails_at: int, error: BaseException, **options: Any) -> None:
    """Sketch the files until the one with number `fails_at`, which cannot be read.

    Reading is ahead of the sums by two tasks per thread, so that one thread gets farthest.
    """
    with pytest.raises(type(error)):
        ckm.sketch(
            FailingFiles(fails_at, error), **(OPTIONS | CHECKPOINT | {"n_jobs": 1} | options)
        )


def resume(**options: Any) -> ckm.Sketch:
    return ckm.sketch(PATTERN, resume=True, **(OPTIONS | CHECKPOINT | options))


@pytest.mark.filterwarnings("ignore:Left out")
@pytest.mark.parametrize(
    "error",
    [Stop(), KeyboardInterrupt(), OSError(errno.EIO, "input/output error")],
    ids=["bug", "ctrl-c", "read error"],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_pass_resumes_bit_for_bit(
    folder: Path, error: BaseException, n_jobs: int
) -> None:
    whole = ckm.sketch(PATTERN, **OPTIONS)
    # With this interval, only the end of the pass writes a checkpoint.
    interrupt(5, error, n_jobs=n_jobs, checkpoint_interval=math.inf)
    kept = from_bytes(Path("s.part").read_bytes())
    assert 0 < kept.sketch.count < whole.count
    assert kept.dropped > 0
    with pytest.warns(ckm.errors.MissingRowsWarning, match=r"Left out 6 of 29,655 rows"):
        resumed = resume(n_jobs=n_jobs)
    assert serialise(resumed) == serialise(whole), "moments and pool included"
    assert serialise(resume()) == serialise(whole), "nothing is left to read after the end"


@pytest.mark.filterwarnings("ignore:Left out")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_pass_whose_kernel_fails_resumes_bit_for_bit(folder: Path, n_jobs: int) -> None:
    request = ColumnRequest()
    source = open_rows(PATTERN, request, nan="drop")
    options = SketchOptions(sketch_size=40, scale=1.0)
    execution = PassOptions(30, 3, n_jobs, "auto", progress=False)
    design = choose_design(source, options, None, execution.seed)
    recorded = record_options(options, execution, request, None, "drop")
    writer = CheckpointWriter("s.part", recorded, source, interval=math.inf)

    def on_state(state: State) -> None:
        s = ckm.Sketch(design.frequencies, state.tally, source.columns, state.pool, state.cells)
        writer.update(s, state)

    failing = replace(plan_pass(source, execution), kernel=FailingKernel(3, Stop()))
    with pytest.raises(Stop), writer:
        failing.run(design, State.empty(design, execution.capacity), on_state)
    assert from_bytes(Path("s.part").read_bytes()).rows > 0
    assert serialise(resume(n_jobs=n_jobs)) == serialise(ckm.sketch(PATTERN, **OPTIONS))


@pytest.mark.filterwarnings("ignore:Left out")
def test_without_a_seed_the_seed_of_the_checkpoint_is_used(folder: Path) -> None:
    interrupt(2, Stop(), random_state=None)
    resumed = resume(random_state=None)
    seed = from_bytes(Path("s.part").read_bytes()).options["random_state"]
    assert serialise(resumed) == serialise(
        ckm.sketch(PATTERN, **(OPTIONS | {"random_state": seed}))
    )


@pytest.mark.filterwarnings("ignore:Left out")
def test_a_pass_whose_frequencies_only_judge_cells_resumes(folder: Path) -> None:
    few = {"n_clusters": 12, "sketch_size": 16, "cells": 60}
    interrupt(5, Stop(), **few)
    whole = ckm.sketch(PATTERN, **(OPTIONS | few))
    assert serialise(resume(**few)) == serialise(whole)
    like = {"like": whole, "n_clusters": 12, "sketch_size": None, "scale": "auto"}
    Path("s.part").unlink()
    interrupt(5, Stop(), **like)
    assert serialise(resume(**like)) == serialise(whole)


_KILLED = """
import warnings, ckm
warnings.simplefilter("ignore")
s = ckm.sketch("part-*.parquet", nan="drop", checkpoint="s.part", checkpoint_interval=0.0,
               resume=True, sketch_size=400, scale=1.0, pool=30, random_state=3)
s.save("s.ckm")
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Left out")
def test_a_pass_killed_ten_times_ends_bit_identical(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, 20, rows=20_000)
    whole = ckm.sketch(PATTERN, **(OPTIONS | {"sketch_size": 400}))
    chance = random.Random(0)
    for _ in range(10):
        process = subprocess.Popen([sys.executable, "-c", _KILLED])
        before = _modification_time()
        while process.poll() is None and _modification_time() == before:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if Path("s.ckm").exists():  # the pass ended before the signal: start again
            assert Path("s.ckm").read_bytes() == serialise(whole)
            Path("s.ckm").unlink()
            Path("s.part").unlink()
    subprocess.run([sys.executable, "-c", _KILLED], check=True)
    assert Path("s.ckm").read_bytes() == serialise(whole)
    assert not list(tmp_path.glob("*.tmp"))


def _modification_time() -> int:
    try:
        return os.stat("s.part").st_mtime_ns
    except FileNotFoundError:
        return 0


@pytest.mark.filterwarnings("ignore:Left out")
def test_a_full_disk_leaves_the_last_checkpoint(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ckm.sketch(PATTERN, **OPTIONS)
    writes = []
    os_replace = os.replace

    def full(*args: Any) -> None:
        writes.append(args)
        if len(writes) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        os_replace(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OutputError, match="No space left"):
            ckm.sketch(PATTERN, **OPTIONS, **CHECKPOINT)
    assert 0 < from_bytes(Path("s.part").read_bytes()).sketch.count < whole.count
    others = sorted(path.name for path in folder.iterdir() if "part-" not in path.name)
    assert others == ["s.part"], "no incomplete file is left"
    assert serialise(resume()) == serialise(whole)


# Checkpoints that are refused


@pytest.fixture
def interrupted(folder: Path) -> Path:
    """A folder with the checkpoint of an interrupted pass."""
    interrupt(2, Stop())
    return folder


@pytest.mark.parametrize("name", ["part-00.parquet", "part-05.parquet"])
def test_a_missing_file_is_named(interrupted: Path, name: str) -> None:
    (interrupted / name).unlink()
    with pytest.raises(
        CheckpointError,
        match=rf"{name}, which the checkpoint s\.part was made from, is missing",
    ):
        resume()


@pytest.mark.parametrize("name", ["part-00.parquet", "part-05.parquet"])
def test_a_changed_file_is_named(interrupted: Path, name: str) -> None:
    os.utime(interrupted / name, ns=(0, 0))
    with pytest.raises(CheckpointError, match=rf"{name} has changed since"):
        resume()


def test_a_new_file_is_named(interrupted: Path) -> None:
    (interrupted / "part-99.parquet").write_bytes((interrupted / "part-00.parquet").read_bytes())
    with pytest.raises(CheckpointError, match=r"part-99\.parquet is new, or in another order"):
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
        {"metric": "cosine"},
    ],
)
def test_a_changed_option_is_named(interrupted: Path, options: dict[str, Any]) -> None:
    before = (interrupted / "s.part").read_bytes()
    (name,) = options
    with pytest.raises(ParameterError, match=f"was written with {name}="):
        resume(**options)
    assert (interrupted / "s.part").read_bytes() == before


def test_a_checkpoint_is_only_overwritten_by_resuming(interrupted: Path) -> None:
    with pytest.raises(
        ParameterError,
        match=r"There is a checkpoint s\.part already; continue from it with resume=True",
    ):
        ckm.sketch(PATTERN, **OPTIONS, **CHECKPOINT)


def test_only_files_can_be_read_again(folder: Path) -> None:
    for data in (np.eye(3), [np.eye(3)], iter([np.eye(3)])):
        with pytest.raises(ParameterError, match="needs rows in files"):
            ckm.sketch(data, sketch_size=4, scale=1.0, checkpoint="s.part")
    with pytest.raises(ParameterError, match="name it with checkpoint="):
        ckm.sketch(np.eye(3), sketch_size=4, resume=True)
    with pytest.raises(OutputError, match="does not exist"):
        ckm.sketch(PATTERN, checkpoint="nowhere/s.part", **OPTIONS)


@pytest.mark.parametrize("interval", [-1.0, math.nan, "10", None, True])
def test_the_interval_is_a_number_of_seconds(folder: Path, interval: Any) -> None:
    with pytest.raises(ParameterError, match="checkpoint_interval must be"):
        ckm.sketch(PATTERN, **(OPTIONS | CHECKPOINT | {"checkpoint_interval": interval}))


# Folders of chunks


def write_store(path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = zarr.open(str(path), mode="w", shape=(50_000, 3), chunks=(1000, 3), dtype="f8")
    rows[:] = rng.normal(size=(50_000, 3))


def chunk_files(store: Path) -> list[Path]:
    """The files of a store that hold rows, not its metadata."""
    files = (path for path in store.rglob("*") if path.is_file())
    return sorted(p for p in files if "json" not in p.name and not p.name.startswith(".z"))


def rewrite_rows(store: Path) -> None:
    zarr.open(str(store), mode="r+")[45_000:] = 7.0


def replace_keeping_size_and_folder_times(store: Path) -> None:
    target = chunk_files(store)[-1]
    info = target.parent.stat()
    data = bytearray(target.read_bytes())
    data[-1] ^= 1
    target.write_bytes(data)
    os.utime(target, ns=(1, 1))
    os.utime(target.parent, ns=(info.st_atime_ns, info.st_mtime_ns))


def remove_a_chunk(store: Path) -> None:
    chunk_files(store)[-1].unlink()


def swap_two_chunks(store: Path) -> None:
    first = chunk_files(store)[0]
    last = chunk_files(store)[-1]
    kept = first.with_name("kept")
    first.rename(kept)
    last.rename(first)
    kept.rename(last)


@pytest.fixture
def sketched_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Zarr store, and the checkpoint of a pass over it."""
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "rows.zarr"
    write_store(store)
    ckm.sketch("rows.zarr", **OPTIONS, **CHECKPOINT)
    return store


@pytest.mark.parametrize(
    "change",
    [rewrite_rows, replace_keeping_size_and_folder_times, remove_a_chunk, swap_two_chunks],
)
def test_a_changed_store_is_named(sketched_store: Path, change: Any) -> None:
    change(sketched_store)
    with pytest.raises(CheckpointError, match=r"rows\.zarr has changed since"):
        ckm.sketch("rows.zarr", resume=True, **OPTIONS, **CHECKPOINT)


def test_an_unchanged_store_is_resumed(sketched_store: Path) -> None:
    resumed = ckm.sketch("rows.zarr", resume=True, **OPTIONS, **CHECKPOINT)
    assert serialise(resumed) == serialise(ckm.sketch("rows.zarr", **OPTIONS))


def test_an_array_that_is_not_in_a_file_has_no_checkpoint() -> None:
    rows = write_array({}, np.zeros((10, 2)), (5, 2))
    with pytest.raises(ParameterError, match="A checkpoint needs rows in files"):
        ckm.sketch(rows, sketch_size=4, scale=1.0, checkpoint="s.part")


def test_changed_weights_are_named(folder: Path) -> None:
    name = "part-00.parquet"
    weights = np.ones(3000)
    given = OPTIONS | CHECKPOINT
    with pytest.warns(ckm.errors.MissingRowsWarning):
        ckm.sketch(name, sample_weight=weights, **given)
    weights[7] = 2
    with pytest.raises(ParameterError, match="was written with sample_weight="):
        ckm.sketch(name, sample_weight=weights, resume=True, **given)


def test_weights_beside_several_files_have_no_checkpoint(folder: Path) -> None:
    with pytest.raises(ParameterError, match=r"needs their weights in the files.*weight_column="):
        ckm.sketch(PATTERN, sample_weight=np.ones(29_655), **OPTIONS, **CHECKPOINT)
    assert not Path("s.part").exists()


# Two processes


def test_a_checkpoint_belongs_to_one_pass_at_a_time(folder: Path) -> None:
    recorded = {"random_state": 3}
    with CheckpointWriter("s.part", recorded, open_source(PATTERN)):
        with pytest.raises(OutputError, match=r"Cannot write s\.part: this process is writing it"):
            ckm.sketch(PATTERN, **OPTIONS, **CHECKPOINT)
        with pytest.raises(OutputError, match="is writing it"):
            resume()
    interrupt(2, Stop())
    with pytest.raises(ParameterError, match="was written with pool="):
        resume(pool=31)
    with pytest.warns(ckm.errors.MissingRowsWarning):
        assert resume().count
    assert not list(folder.glob("*.lock")), "errors release the lock, too"


# Damaged files


def small_checkpoint() -> bytes:
    s = ckm.sketch(
        np.random.default_rng(0).normal(size=(8, 2)),
        sketch_size=4,
        scale=1.0,
        pool=3,
        random_state=0,
    )
    files = (
        FileRecord("a.csv", 120, 1_700_000_000_000_000_000),
        FileRecord("b.csv", 80, 1_700_000_000_000_000_001),
    )
    asked = SketchOptions(sketch_size=4, scale=1.0)
    execution = PassOptions(3, 0, None, "auto", progress=False)
    options = record_options(asked, execution, ColumnRequest(), None, "drop")
    return to_bytes(Checkpoint(s, options, files, Place(1, 4, 70), blocks=2, rows=9, dropped=1))


DATA = small_checkpoint()
KEY = "ckm-checkpoint"
METADATA = metadata_of(DATA, KEY)
SECTION: dict[str, Any] = METADATA["checkpoint"]
OPTIONS_OF_PASS: dict[str, Any] = SECTION["options"]


def refused(data: bytes) -> str:
    with pytest.raises(CheckpointError) as found:
        from_bytes(data, "s.part")
    return str(found.value)


def test_a_checkpoint_survives_writing_and_reading() -> None:
    checkpoint = from_bytes(DATA)
    assert to_bytes(checkpoint) == DATA
    assert checkpoint.files[1] == FileRecord("b.csv", 80, 1_700_000_000_000_000_001)
    assert checkpoint.place == Place(1, 4, 70)
    assert (checkpoint.blocks, checkpoint.rows, checkpoint.dropped) == (2, 9, 1)


def test_damage_is_named() -> None:
    assert "s.part is empty; remove this checkpoint and start again" in refused(b"")
    assert "truncated" in refused(DATA[:30])
    assert "damaged" in refused(DATA[:-1])
    assert "checksum" in refused(DATA.replace(b'\\"rows\\":9', b'\\"rows\\":8'))
    assert "later version" in refused(forge(DATA, {"version": 3}, key=KEY))


def test_the_format_of_earlier_versions_is_refused() -> None:
    """A checkpoint of version 1 was a line of JSON followed by a sketch."""
    line = b'{"asked":{"pool":3},"blocks":2,"ckm-checkpoint":1,"sha256":"00"}\n'
    sentence = refused(line + serialise(from_bytes(DATA).sketch))
    assert "s.part was written by an earlier version of ckm" in sentence
    assert "start again" in sentence


def test_a_sketch_is_not_a_checkpoint() -> None:
    sketch = serialise(from_bytes(DATA).sketch)
    assert "is a safetensors file, but not a checkpoint" in refused(sketch)


@pytest.mark.parametrize(
    "metadata",
    [
        {"version": 1},
        {"version": "2"},
        {"more": 1},
        {"checkpoint": LEFT_OUT},
        {"checkpoint": None},
        {"checkpoint": []},
        {"checkpoint": SECTION | {"rows": -1}},
        {"checkpoint": SECTION | {"rows": "9"}},
        {"checkpoint": SECTION | {"blocks": 2.5}},
        {"checkpoint": SECTION | {"dropped": True}},
        {"checkpoint": SECTION | {"place": [1, 4]}},
        {"checkpoint": SECTION | {"place": [1, 4, 70, 0]}},
        {"checkpoint": SECTION | {"files": [["a.csv", 120]]}},
        {"checkpoint": SECTION | {"files": [["a.csv", "120", 0]]}},
        {"checkpoint": SECTION | {"options": []}},
        {"checkpoint": SECTION | {"options": OPTIONS_OF_PASS | {"scale": float("nan")}}},
        {"checkpoint": SECTION | {"more": 1}},
        {"checkpoint": {name: SECTION[name] for name in SECTION if name != "place"}},
        {"sketch": LEFT_OUT},
        {"sketch": METADATA["sketch"] | {"count": 7}},
        {"sketch": METADATA["sketch"] | {"version": 4}},
    ],
)
def test_forged_metadata_with_a_valid_checksum_are_refused(metadata: dict[str, Any]) -> None:
    refused(forge(DATA, metadata, key=KEY))


FILES = SECTION["files"]


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ({"files": []}, "no file number 1 among 0"),
        ({"files": FILES[:1]}, "no file number 1 among 1"),
        ({"files": [["", 120, 0], FILES[1]]}, "name of a file is empty"),
        ({"files": [["a\0.csv", 120, 0], FILES[1]]}, "null character"),
        ({"files": [[7, 120, 0], FILES[1]]}, "7 is not the name of a file"),
        ({"files": [["a.csv", -1, 0], FILES[1]]}, "size must be a whole number"),
        ({"files": [["a.csv", 120.0, 0], FILES[1]]}, "size must be a whole number"),
        ({"files": [["a.csv", 2**63, 0], FILES[1]]}, "cannot have 9223372036854775808 bytes"),
        ({"files": [["a.csv", 120, 2**64], FILES[1]]}, "cannot have the time"),
        ({"files": [["a.csv", 120, "0"], FILES[1]]}, "cannot have the time"),
        ({"place": [2, 4, 70]}, "no file number 2"),
        ({"place": [1, 10, 70]}, "9 rows cannot end at row 10"),
        ({"place": [0, 8, 70]}, "9 rows cannot end at row 8"),
        ({"place": [1, 0, 70]}, "9 rows cannot end at row 0"),
        ({"place": [1, 4, 81]}, r"row 4 of b\.csv cannot end at byte 81"),
        ({"place": [1, 4, 3]}, r"row 4 of b\.csv cannot end at byte 3"),
        ({"files": [FILES[0], ["b.npy", 80, 0]]}, r"rows of b\.npy are not found by bytes"),
        ({"rows": 8}, "a sketch of 8 rows cannot be that of 7"),
        ({"rows": 10}, "a sketch of 8 rows cannot be that of 9"),
        ({"dropped": 10}, "10 of 9 rows cannot have been dropped"),
        ({"dropped": 0}, "a sketch of 8 rows cannot be that of 9"),
        ({"blocks": 0}, "9 rows cannot have been read in 0 blocks"),
        ({"blocks": 10}, "9 rows cannot have been read in 10 blocks"),
    ],
)
def test_progress_that_no_pass_can_have_made_is_refused(
    section: dict[str, Any], reason: str
) -> None:
    with pytest.raises(CheckpointError, match=reason):
        from_bytes(forge(DATA, {"checkpoint": SECTION | section}, key=KEY))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"more": 1}, "the options more are missing or not known"),
        ({"pool": "3"}, "'3' cannot be the option pool"),
        ({"pool": 4}, "the pool is not that of the rows so far"),
        ({"pool": 0}, "the pool is not that of the rows so far"),
        ({"n_clusters": 0}, "0 cannot be the option n_clusters"),
        ({"n_clusters": 5}, "too small for 5 clusters"),
        ({"sketch_size": 5}, "has 4 frequencies"),
        ({"sketch_size": True}, "True cannot be the option sketch_size"),
        ({"sketch_size": None}, "The size of the sketch is not known"),
        ({"scale": 2.0}, "has the scale 1"),
        ({"scale": "large"}, "'large' cannot be the option scale"),
        ({"distribution": "x"}, "no frequency distribution 'x'"),
        ({"distribution": "gaussian"}, "has 'multiscale'"),
        ({"standardize": 0}, "0 cannot be the option standardize"),
        ({"standardize": True}, "columns that are not standardized"),
        ({"metric": "l1"}, "metric must be 'euclidean' or 'cosine'"),
        ({"metric": "cosine"}, "has 'euclidean'"),
        ({"sample_weight": "ab"}, "'ab' cannot be the option sample_weight"),
        ({"sample_weight": "0" * 64}, "sums of weighted rows cannot be integers"),
        ({"sample_weight": "0" * 64, "weight_column": "w"}, "cannot come from two places"),
        ({"like": "0" * 64}, "not those of the sketch that was given"),
        ({"columns": "ab"}, "'ab' cannot be the option columns"),
        ({"columns": ["a", "b"]}, r"the columns are None, and \['a', 'b'\] were asked for"),
        ({"weight_column": 3}, "3 cannot be the option weight_column"),
        ({"nan": "keep"}, "nan must be 'error', 'drop' or 'impute'"),
        ({"nan": "error"}, "1 of 9 rows cannot have been dropped"),
        ({"device": "tpu"}, "no device 'tpu'"),
        ({"random_state": -1}, "random_state must be"),
        ({"random_state": None}, "None cannot be the option random_state"),
        ({"random_state": 1}, "not those that the options ask for"),
    ],
)
def test_options_that_no_pass_can_have_had_are_refused(
    options: dict[str, Any], reason: str
) -> None:
    section = SECTION | {"options": OPTIONS_OF_PASS | options}
    with pytest.raises(CheckpointError, match=reason):
        from_bytes(forge(DATA, {"checkpoint": section}, key=KEY))


def test_a_checkpoint_of_more_rows_than_its_files_have_is_refused(interrupted: Path) -> None:
    path = interrupted / "s.part"
    data = path.read_bytes()
    section = metadata_of(data, KEY)["checkpoint"]
    part, row, byte = section["place"]
    more = {
        "place": [part, row + 10**6, byte],
        "rows": section["rows"] + 10**6,
        "dropped": section["dropped"] + 10**6,
    }
    path.write_bytes(forge(data, {"checkpoint": section | more}, key=KEY))
    with pytest.raises(CheckpointError, match=r"of 1,00\d,\d+ rows, and its files have 29,655"):
        resume()


def test_forged_tensors_with_a_valid_checksum_are_refused() -> None:
    refused(forge(DATA, tensors={"lower": np.array([np.nan, 0.0])}, key=KEY))
    refused(forge(DATA, tensors={"sums": LEFT_OUT}, key=KEY))


def test_ten_thousand_mutations_are_refused() -> None:
    for spoilt in mutations(DATA, 10_000):
        refused(spoilt)
