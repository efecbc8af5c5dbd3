"""Dask clusters that lose workers in the middle of a pass."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
from faults import MarkedRows, assert_one_error  # noqa: E402
from partitions import assert_same  # noqa: E402

import ckm  # noqa: E402
from ckm import CompressiveKMeans  # noqa: E402
from ckm.errors import EngineError  # noqa: E402

pytestmark = pytest.mark.xdist_group("dask")
NO_WORKERS = "distributed.scheduler.no-workers-timeout"
BOUND_SECONDS = 60.0  # within which an error must come; the limit in these tests is two seconds


def as_array(table: MarkedRows) -> Any:
    make = dask.delayed(table.make, pure=False)
    shape = (table.rows, 3)
    return da.concatenate(
        [da.from_delayed(make(number), shape, float) for number in range(table.partitions)]
    )


@contextmanager
def with_nannies() -> Iterator[Callable[[], None]]:
    """Two workers that are started again when they die; yields what kills one of them."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield lambda: os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)


@contextmanager
def without_nannies() -> Iterator[Callable[[], None]]:
    """Two workers, each of which is gone once it dies; yields what kills one of them."""
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        program = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
        options = ["--no-nanny", "--no-dashboard", "--nthreads", "1"]
        workers = [subprocess.Popen(program + options, stderr=subprocess.DEVNULL) for _ in range(2)]
        left = list(workers)
        try:
            client.wait_for_workers(2, timeout=60)
            yield lambda: left.pop().kill()
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


CLUSTERS = {"restarted": with_nannies, "gone": without_nannies}


@pytest.fixture
def large(tmp_path: Path) -> MarkedRows:
    return MarkedRows(tmp_path, partitions=50, rows=200_000, pause=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_lost_worker_changes_nothing(cluster: str, large: MarkedRows) -> None:
    """Ten million rows: sketch, fit, labels and score, a worker lost in each of them."""
    X = large.all_values()
    local = ckm.sketch(X, sketch_size=60, random_state=0)
    model = CompressiveKMeans(3, random_state=0)
    with dask.config.set(scheduler="threads"):
        expected = CompressiveKMeans(3, random_state=0).fit(as_array(large))
    labels = expected.predict(X)
    score = expected.score(X)

    def in_a_cluster(compute: Callable[[Any], Any]) -> Any:
        with CLUSTERS[cluster]() as lose, large.losing(lose, after=27):
            return compute(as_array(large))

    assert_same(in_a_cluster(lambda data: ckm.sketch(data, like=local.frequencies)), local)
    in_a_cluster(model.fit)
    assert model.sketch_ == expected.sketch_
    assert model.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
    assert np.array_equal(in_a_cluster(lambda data: model.predict(data).compute()), labels)
    assert in_a_cluster(model.score) == pytest.approx(score, rel=1e-12)


def test_without_any_worker_there_is_one_error(tmp_path: Path) -> None:
    table = MarkedRows(tmp_path, partitions=20, rows=5000, pause=0.2)
    frequencies = ckm.draw_frequencies(60, 3, seed=0)
    with without_nannies() as lose, dask.config.set({NO_WORKERS: "2s"}):

        def lose_both() -> None:
            lose()
            lose()

        started = time.monotonic()
        with (
            pytest.raises(EngineError, match="Dask lost workers and gave up") as caught,
            table.losing(lose_both, after=4),
        ):
            ckm.sketch(as_array(table), like=frequencies)
    assert time.monotonic() - started < BOUND_SECONDS
    assert_one_error(caught.value)


@pytest.mark.slow
def test_a_partition_that_kills_every_worker_is_one_error(tmp_path: Path) -> None:
    def die() -> np.ndarray:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    frequencies = ckm.draw_frequencies(60, 3, seed=0)
    with with_nannies():
        data = da.from_delayed(dask.delayed(die)(), (10, 3), float)
        with pytest.raises(EngineError, match="Dask lost workers and gave up") as caught:
            ckm.sketch(data, like=frequencies)
    assert_one_error(caught.value)
