"""Spark applications that lose executors in the middle of a pass."""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pyspark = pytest.importorskip("pyspark")
psutil = pytest.importorskip("psutil")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip(
        "Spark needs Java 17, for example: apt-get install openjdk-17-jre-headless",
        allow_module_level=True,
    )

from faults import NAMES, WAIT_SECONDS, MarkedRows, assert_one_error  # noqa: E402
from partitions import assert_same  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import ckm  # noqa: E402
from ckm import CompressiveKMeans  # noqa: E402
from ckm.errors import EngineError  # noqa: E402

# Spark's own code, which is not ours to mend.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    *(
        pytest.mark.filterwarnings(f"ignore::{kind}")
        for kind in (
            "DeprecationWarning",
            "FutureWarning",
            "ResourceWarning",
            "UserWarning:pyspark",
            "pytest.PytestUnraisableExceptionWarning",
        )
    ),
]
COLUMNS = ", ".join(f"{name} double" for name in NAMES)


@contextmanager
def two_executors(**settings: str) -> Iterator[Any]:
    """An application whose two executors are processes of one core each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    common = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
        "spark.log.level": "OFF",
    }
    for name, value in (common | settings).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def executors() -> list[Any]:
    """The processes of the executors that run now."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it may end in between
            if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                found.append(process)
    return found


def lose_one() -> None:
    executors()[0].kill()


def as_frame(session: Any, table: MarkedRows) -> Any:
    def make(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                part = table.make(number)
                yield pa.RecordBatch.from_arrays(list(part.T.copy()), NAMES)

    return session.range(0, table.partitions, 1, table.partitions).mapInArrow(make, COLUMNS)


def test_a_lost_executor_changes_nothing(tmp_path: Path) -> None:
    """Ten million rows: sketch, fit, labels and score, an executor lost in each of them."""
    table = MarkedRows(tmp_path, partitions=50, rows=200_000, pause=0.1)
    X = table.all_values()
    here = pa.table(dict(zip(NAMES, X.T, strict=True)))
    local = ckm.sketch(X, sketch_size=60, random_state=0)
    with two_executors() as session:
        expected = CompressiveKMeans(3, random_state=0).fit(as_frame(session, table))
        model = CompressiveKMeans(3, random_state=0)

        def losing(compute: Callable[[Any], Any], after: int = 27) -> Any:
            with table.losing(lose_one, after):
                return compute(as_frame(session, table))

        assert_same(losing(lambda data: ckm.sketch(data, like=local.frequencies)), local)
        losing(model.fit, after=77)  # rows that the pilot leaves out are made for it too
        assert model.sketch_ == expected.sketch_
        assert model.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
        found = losing(lambda data: model.predict(data).select("cluster").toArrow())
        assert np.array_equal(found.column("cluster").to_numpy(), model.predict(here))
        assert losing(model.score) == pytest.approx(model.score(here), rel=1e-12)


def test_a_partition_that_kills_every_worker_is_one_error() -> None:
    def die(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        os.kill(os.getpid(), signal.SIGKILL)

    with two_executors() as session:
        data = (
            session.range(0, 4, 1, 4)
            .selectExpr("double(id) as east")
            .mapInArrow(die, "east double")
        )
        with pytest.raises(EngineError, match="Spark lost workers and gave up") as caught:
            ckm.sketch(data, like=ckm.draw_frequencies(60, 1, seed=0))
    assert_one_error(caught.value)


def test_without_any_executor_there_is_one_error(tmp_path: Path) -> None:
    """The master starts an executor again only so often."""
    table = MarkedRows(tmp_path, partitions=50, rows=5000, pause=0.2)
    over = threading.Event()

    def lose_all() -> None:
        limit = time.monotonic() + WAIT_SECONDS
        while not over.wait(0.2) and time.monotonic() < limit:
            for process in executors():
                with suppress(psutil.Error):
                    process.kill()

    def sketch(frame: Any) -> None:
        try:
            ckm.sketch(frame, like=ckm.draw_frequencies(60, 3, seed=0))
        finally:
            over.set()

    with two_executors(**{"spark.deploy.maxExecutorRetries": "1"}) as session:
        frame = as_frame(session, table)
        with (
            table.losing(lose_all, after=4),
            pytest.raises(EngineError, match="Spark lost workers and gave up") as caught,
        ):
            sketch(frame)
    assert_one_error(caught.value)
