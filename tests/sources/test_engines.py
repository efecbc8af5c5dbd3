"""Engines that are not installed are not imported, and errors say what to install; what jobs
compute.
"""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ckm
from ckm._cli.app import app
from ckm._core.cells import Design
from ckm._sketching.jobs import PilotJob, SketchJob
from ckm._sketching.options import SketchOptions
from ckm._sources.base import Chunk, Place
from ckm.errors import MismatchError

ENGINES = {"dask": "dask", "spark": "pyspark", "ray": "ray"}


def chunks(X: np.ndarray) -> list[Chunk]:
    return [Chunk(X, None, Place(), Place(row=len(X)))]


def n_bytes(result: object) -> int:
    """The size of what an engine sends."""
    return len(pickle.dumps(result))


def test_no_engine_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, ckm\n"
        "X = np.eye(50, 2) + np.arange(50)[:, None]\n"
        "ckm.CompressiveKMeans(2, random_state=0).fit(X)\n"
        "engines = ('dask', 'distributed', 'pyspark', 'ray')\n"
        "print(*(name for name in engines if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize("engine", ENGINES)
def test_the_error_for_a_missing_engine_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    np.save(tmp_path / "a.npy", np.eye(3))
    monkeypatch.setitem(sys.modules, ENGINES[engine], None)
    done = CliRunner().invoke(
        app,
        [
            "sketch",
            str(tmp_path / "a.npy"),
            "-m",
            "8",
            "--engine",
            engine,
            "-o",
            str(tmp_path / "a.ckm"),
        ],
    )
    assert done.exit_code == 1
    assert f"pip install 'compressive-kmeans[{engine}]'" in done.output


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--engine", "flink"], "There is no 'flink'"),
        (["--master", "local[2]"], "It is for --engine spark"),
        (["--engine", "dask", "--address", "auto"], "It is for --engine ray"),
    ],
)
def test_wrong_engine_options_are_refused(
    tmp_path: Path, options: list[str], sentence: str
) -> None:
    np.save(tmp_path / "a.npy", np.eye(3))
    done = CliRunner().invoke(
        app, ["sketch", str(tmp_path / "a.npy"), "-m", "8", *options, "-o", str(tmp_path / "a.ckm")]
    )
    assert done.exit_code == 2
    assert sentence in done.output


@pytest.mark.parametrize("pool", [0, 7])
def test_results_of_partitions_merge_to_the_sketch_of_all_rows(pool: int) -> None:
    X = np.random.default_rng(0).normal(size=(1000, 4))
    expected = ckm.sketch(X, sketch_size=100, random_state=0)
    job = SketchJob(Design(expected.frequencies), capacity=pool)
    parts = [
        job.of_partition(i, iter(chunks(part))) for i, part in enumerate(np.split(X, [0, 1, 900]))
    ]
    assert max(map(n_bytes, parts)) < 2 * 16 * 100 + pool * 8 * (4 + 3) + 32
    for merged in (job.merge(parts), job.merge([job.merge(parts[2:]), job.merge(parts[:2][::-1])])):
        state = job.state_of(merged)
        assert state.tally.sums.tobytes() == expected.tally.sums.tobytes()
        assert (state.tally.count, state.rows) == (1000, 1000)
        assert (0 if state.pool is None else len(state.pool)) == pool


def test_cells_of_partitions_merge_to_those_of_all_rows() -> None:
    X = np.random.default_rng(0).normal(size=(1000, 4))
    expected = ckm.sketch(X, sketch_size=100, random_state=0)
    job = SketchJob(expected.design)
    parts = [job.of_partition(i, iter(chunks(part))) for i, part in enumerate(np.split(X, [900]))]
    state = job.state_of(job.merge(parts[::-1]))
    assert state.cells.identity() == expected.cells.identity()


def test_sums_for_other_frequencies_are_refused() -> None:
    a, b = (ckm.draw_frequencies(20, 2, scale=1.0, seed=seed) for seed in (0, 1))
    with pytest.raises(MismatchError, match="same version of ckm"):
        SketchJob(Design(b)).state_of(SketchJob(Design(a)).of_partition(0, iter(chunks(np.eye(2)))))


def test_a_pilot_sends_no_row_back() -> None:
    X = np.random.default_rng(0).normal(size=(6000, 2))
    job = PilotJob(SketchOptions(n_clusters=3, cells=0), 2, 30, seed=0)
    pool = job.merge(
        [job.of_partition(i, iter(chunks(part))) for i, part in enumerate(np.array_split(X, 3))]
    )
    assert (len(pool), pool.seen) == (5000, 6000)
    found = job.finish(pool)
    assert n_bytes(found) < 500
    assert found.scale > 0
    assert not any(row.tobytes() in pickle.dumps(found) for row in X)
