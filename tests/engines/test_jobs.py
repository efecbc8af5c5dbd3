"""The jobs of `examples/clusters`, with their configuration files, on clusters of processes as they
would be started by hand.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from partitions import pieces

from ckm.datasets import gaussian_mixture

JOBS = Path(__file__).parents[2] / "examples" / "clusters"
MIXTURE = gaussian_mixture(20_000, 10, 3, random_state=1)
NAMES = ["east", "north", "height"]
BIN = Path(sys.executable).parent


def needs(package: str) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "events"
    folder.mkdir()
    for i, part in enumerate(pieces(MIXTURE.rows, [4000, 4001, 15_000])):
        pq.write_table(pa.table(dict(zip(NAMES, part.T, strict=True))), folder / f"{i}.parquet")
    return folder


@contextmanager
def running(*command: str | Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a program in the background until the block ends."""
    process = subprocess.Popen(
        [*map(str, command)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def finish(command: Sequence[str | Path], environment: dict[str, str], output: Path) -> None:
    """Run the job; its centroids must be those of the clusters."""
    done = subprocess.run(
        [*map(str, command)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert output.read_text().splitlines()[0] == ",".join(NAMES)
    found = np.loadtxt(output, delimiter=",", skiprows=1)
    cost, best = (
        ((MIXTURE.rows[:, None] - C) ** 2).sum(axis=2).min(axis=1).mean()
        for C in (found, MIXTURE.means)
    )
    assert cost < 1.05 * best


def wait_for(path: Path) -> None:
    limit = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < limit, f"{path.name} did not appear"
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_dask(data: Path, tmp_path: Path) -> None:
    needs("distributed")
    scheduler_file = tmp_path / "scheduler.json"
    output = tmp_path / "centroids.csv"
    environment = os.environ | {"DASK_CONFIG": str(JOBS)}
    common = ["--scheduler-file", scheduler_file, "--no-dashboard"]
    with ExitStack() as cluster:
        cluster.enter_context(
            running(BIN / "dask", "scheduler", "--port", "0", *common, environment=environment)
        )
        wait_for(scheduler_file)
        workers = ["--nworkers", "2", "--nthreads", "1", "--local-directory", tmp_path]
        cluster.enter_context(
            running(BIN / "dask", "worker", *workers, *common, environment=environment)
        )
        finish(
            [sys.executable, JOBS / "dask_job.py", scheduler_file, data, output],
            environment,
            output,
        )


def test_dask_reads_its_settings() -> None:
    needs("dask")
    setting = "distributed.scheduler.worker-saturation"
    code = f"import dask, distributed; print(dask.config.get('{setting}'))"
    environment = os.environ | {"DASK_CONFIG": str(JOBS)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    settings = yaml.safe_load((JOBS / "dask.yaml").read_text())
    assert float(done.stdout) == settings["distributed"]["scheduler"]["worker-saturation"]


def test_spark(data: Path, tmp_path: Path) -> None:
    needs("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17, for example: apt-get install openjdk-17-jre-headless")
    output = tmp_path / "centroids.csv"
    local = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = os.environ | local
    # two executors, processes of their own
    cluster = ["--master", "local-cluster[2,1,1024]", "--properties-file", JOBS / "spark.conf"]
    settings = [
        "--conf",
        "spark.ui.enabled=false",
        "--conf",
        f"spark.pyspark.python={sys.executable}",
    ]
    finish(
        [BIN / "spark-submit", *cluster, *settings, JOBS / "spark_job.py", data, output],
        environment,
        output,
    )


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ckm", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def test_ray(data: Path, tmp_path: Path, short: Path) -> None:
    needs("ray")
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid4().hex}
    # A short folder of its own: Ray leaves behind where its last cluster was, and has sockets there
    # whose names must not be long.
    environment = (
        os.environ | secret | {"RAY_TMPDIR": str(short), "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    )
    port = free_port()
    output = tmp_path / "centroids.csv"
    head = [
        "--head",
        "--num-cpus",
        "2",
        "--port",
        str(port),
        "--include-dashboard",
        "false",
        "--block",
    ]
    with running(BIN / "ray", "start", *head, environment=environment):
        limit = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert time.monotonic() < limit, "Ray did not start"
            time.sleep(0.2)
        finish(
            [
                sys.executable,
                JOBS / "ray_job.py",
                f"127.0.0.1:{port}",
                JOBS / "ray.yaml",
                data,
                output,
            ],
            environment,
            output,
        )
