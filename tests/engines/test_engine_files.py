"""`ckm sketch --engine`: files that workers read, on each engine that is installed."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from partitions import NAMES, assert_same, local_sketch, pieces, values
from typer.testing import CliRunner

import ckm
from ckm._cli.app import app

PACKAGES = {"dask": "dask", "spark": "pyspark", "ray": "ray"}
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}")
    for kind in ("DeprecationWarning", "FutureWarning", "ResourceWarning")
]

X = values()
LOCAL = local_sketch(X)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = []
    for i, part in enumerate(pieces(X, [3, 1000, 1001])):
        paths.append(str(tmp_path / f"{i}.parquet"))
        pq.write_table(
            pa.table(
                {name: part[:, j] for j, name in enumerate(NAMES)} | {"label": ["a"] * len(part)}
            ),
            paths[-1],
        )
    ckm.Sketch.empty(LOCAL.frequencies, NAMES).save(tmp_path / "like.ckm")
    return paths


# In the process of the engine's other tests, which then finds it started, Spark's Java above all.
@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in PACKAGES]
)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    if find_spec(PACKAGES[request.param]) is None:
        pytest.skip(f"{request.param} is not installed")
    yield request.param
    if request.param == "ray":
        import ray

        ray.shutdown()
    # else other tests would find this session, in which no task may fail
    if request.param == "spark":
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        assert session is not None
        session.stop()


def test_the_files_of_a_cluster(files: list[str], tmp_path: Path, engine: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    address = ["--master", "local[2]"] if engine == "spark" else []
    like = str(tmp_path / "like.ckm")
    output = str(tmp_path / "all.ckm")
    done = CliRunner().invoke(
        app, ["sketch", *files, "--like", like, "--engine", engine, *address, "-o", output, "-q"]
    )
    assert done.exit_code == 0, done.output
    assert_same(ckm.load(output), LOCAL)


def test_a_scheduler_at_an_address(files: list[str], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    like = str(tmp_path / "like.ckm")
    output = str(tmp_path / "all.ckm")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, dashboard_address=":0"
    ) as cluster:
        address = cluster.scheduler_address
        done = CliRunner().invoke(
            app,
            [
                "sketch",
                *files,
                "--like",
                like,
                "--engine",
                "dask",
                "--scheduler",
                address,
                "-o",
                output,
                "-q",
            ],
        )
        assert done.exit_code == 0, done.output
        distributed.default_client().close()
    assert_same(ckm.load(output), LOCAL)


def test_arrays_in_files(tmp_path: Path) -> None:
    pytest.importorskip("dask")
    for i, part in enumerate(pieces(X, [1000])):
        np.save(tmp_path / f"{i}.npy", part)
    done = CliRunner().invoke(
        app,
        ["sketch", str(tmp_path), "-m", "60", "--engine", "dask", "-o", str(tmp_path / "all.ckm")],
    )
    assert done.exit_code == 0, done.output
    found = ckm.load(tmp_path / "all.ckm")
    assert_same(found, ckm.sketch(X, like=found))
