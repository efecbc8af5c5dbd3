"""Spark, with two workers on this machine: the classic session. `test_spark_connect.py` runs the
other kind.
"""

import os
import pickle
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

pyspark = pytest.importorskip("pyspark")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip(
        "Spark needs Java 17, for example: apt-get install openjdk-17-jre-headless",
        allow_module_level=True,
    )

from page import run_section, write_events  # noqa: E402
from partitions import CUTS, NAMES, SIZE, assert_same, first_time, local_sketch, rows_in, values  # noqa: E402
from pyspark import TaskContext  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

import ckm  # noqa: E402
from ckm import CompressiveKMeans  # noqa: E402
from ckm._sketching.jobs import SketchJob  # noqa: E402
from ckm._sources import open_source  # noqa: E402
from ckm._sources.engines.base import FAN_IN  # noqa: E402
from ckm._sources.engines.spark import _merge_widths  # noqa: E402
from ckm.errors import ColumnsWarning, DataError, MissingRowsWarning, NonFiniteError, ParameterError  # noqa: E402

# Spark's own code, which is not ours to mend.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}")
    for kind in (
        "DeprecationWarning",
        "FutureWarning",
        "ResourceWarning",
        "UserWarning:pyspark",
        "pytest.PytestUnraisableExceptionWarning",
    )
] + [pytest.mark.xdist_group("spark")]

X = values()
LOCAL = local_sketch(X)
COLUMNS = ", ".join(f"{name} double" for name in NAMES)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2,3]")  # a task may fail twice
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def as_frame(spark: Any, cuts: list[int], rows: np.ndarray = X) -> Any:
    """A data frame with exactly these partitions: each makes its own rows."""
    edges = [0, *cuts, len(rows)]

    def make(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                part = rows[edges[number] : edges[number + 1]]
                yield pa.RecordBatch.from_pydict({name: part[:, i] for i, name in enumerate(NAMES)})

    return spark.range(0, len(edges) - 1, 1, len(edges) - 1).mapInArrow(make, COLUMNS)


def collected(frame: Any) -> dict[str, np.ndarray]:
    table = frame.toArrow()
    return {name: table.column(name).to_numpy() for name in table.column_names}


@pytest.mark.parametrize("cuts", CUTS)
def test_the_sketch_is_the_local_one_however_rows_are_partitioned(spark: Any, cuts: str) -> None:
    frame = as_frame(spark, CUTS[cuts])
    assert frame.rdd.getNumPartitions() == len(CUTS[cuts]) + 1
    found = ckm.sketch(frame, like=LOCAL.frequencies)
    assert found.columns == tuple(NAMES)
    assert_same(found, LOCAL)


def test_past_a_few_partitions_results_are_merged_in_rounds() -> None:
    """Each round leaves at most one result for every `FAN_IN`, and the last task merges at most as
    many.
    """
    for partitions in (1, FAN_IN, FAN_IN + 1, 5000, 10**6):
        widths = _merge_widths(partitions)
        before = partitions
        for width in widths:
            assert width == -(-before // FAN_IN)
            before = width
        assert before <= FAN_IN
    assert _merge_widths(FAN_IN) == []
    assert _merge_widths(None)


@pytest.mark.parametrize("kind", ["vector", "array"])
def test_one_column_may_hold_the_rows(spark: Any, kind: str) -> None:
    from pyspark.ml.feature import VectorAssembler

    frame = as_frame(spark, CUTS["empty"][2:])
    if kind == "vector":
        frame = VectorAssembler(inputCols=NAMES, outputCol="features").transform(frame)
    else:
        frame = frame.withColumn("features", F.array(*NAMES))
    assert_same(ckm.sketch(frame, columns=["features"], like=LOCAL.frequencies), LOCAL)
    model = CompressiveKMeans(3, random_state=0).fit(frame.select("features"))
    labelled = collected(model.predict(frame.select("features")).select("cluster"))
    assert sorted(labelled["cluster"]) == sorted(model.predict(X))


def test_other_columns_are_left_out_and_kept(spark: Any) -> None:
    frame = as_frame(spark, CUTS["even"]).withColumn("a.`label`", F.lit("a"))
    with pytest.warns(ColumnsWarning, match="label"):
        assert_same(ckm.sketch(frame, like=LOCAL.frequencies), LOCAL)
    model = CompressiveKMeans(3, random_state=0)
    with pytest.warns(ColumnsWarning, match="label"):
        model.fit(frame)
    assert model.predict(frame).columns == [*NAMES, "a.`label`", "cluster"]


def test_whole_weights_are_repetition(spark: Any) -> None:
    frame = as_frame(spark, CUTS["skewed"]).withColumn(
        "times", F.when(F.col("east") > 5, 2).otherwise(1)
    )
    found = ckm.sketch(frame, like=LOCAL.frequencies, weight_column="times")
    expected = ckm.sketch(np.repeat(X, np.where(X[:, 0] > 5, 2, 1), axis=0), like=LOCAL.frequencies)
    assert np.array_equal(found.tally.sums, expected.tally.sums)
    assert found.weight == expected.weight


def test_fit_and_predict(spark: Any) -> None:
    frame = as_frame(spark, CUTS["skewed"])
    model = CompressiveKMeans(3, random_state=0, standardize=True).fit(frame)
    table = pa.table({name: X[:, i] for i, name in enumerate(NAMES)})
    here = CompressiveKMeans(3, random_state=0, standardize=True).fit(table)
    np.testing.assert_allclose(
        np.sort(model.cluster_centers_, axis=0), np.sort(here.cluster_centers_, axis=0), atol=0.3
    )
    assert model.score(frame) == pytest.approx(model.score(table))
    found = collected(model.predict(frame))
    assert np.array_equal(
        found["cluster"], model.predict(pa.table({name: found[name] for name in NAMES}))
    )
    assert len(found["cluster"]) == len(X)


def test_frequencies_come_from_the_data_and_the_seed(spark: Any) -> None:
    frame = as_frame(spark, CUTS["even"])
    found, again = (ckm.sketch(frame, sketch_size=SIZE, random_state=0, pool=50) for _ in range(2))
    assert found.frequencies.scale == pytest.approx(LOCAL.frequencies.scale, rel=0.2)
    assert found == again
    assert np.array_equal(found.pool.rows, again.pool.rows)
    assert (len(found.pool), found.pool.seen) == (50, len(X))


def test_a_survey_reads_only_some_partitions(spark: Any) -> None:
    job = SketchJob(LOCAL.design)
    found = open_source(as_frame(spark, CUTS["skewed"])).run(job, np.array([1, 3]))
    assert job.state_of(found).rows == 2 + 100


def test_the_driver_receives_sums_and_no_row(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[bytes] = []
    frame = as_frame(spark, CUTS["even"])
    kind = type(frame)
    collect = kind.collect

    def recording(self: Any) -> Any:
        rows = collect(self)
        received.append(pickle.dumps([[bytes(value) for value in row] for row in rows]))
        return rows

    monkeypatch.setattr(kind, "collect", recording)
    found = ckm.sketch(frame, n_clusters=4, random_state=0)
    assert len(received) == 2  # the survey and the sums
    assert sum(map(len, received)) < 5 * 2 * found.nbytes
    assert rows_in(b"".join(received), X) == 0
    received.clear()
    ckm.sketch(frame, like=found, pool=5)
    assert rows_in(b"".join(received), X) == 5


def test_a_task_that_fails_its_first_attempt_counts_once(spark: Any) -> None:
    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        yield from batches
        # after its rows were handed on
        if context.partitionId() == 2 and context.attemptNumber() == 0:
            raise RuntimeError("lost")

    assert_same(
        ckm.sketch(
            as_frame(spark, CUTS["even"]).mapInArrow(pass_on, COLUMNS), like=LOCAL.frequencies
        ),
        LOCAL,
    )


def test_a_worker_killed_in_the_middle_counts_once(spark: Any, tmp_path: Path) -> None:
    def pass_on(batches: Iterator[Any], marker: Path) -> Iterator[Any]:
        yield from batches
        # after its rows were handed on
        if TaskContext.get().partitionId() == 2 and first_time(marker):
            os.kill(os.getpid(), signal.SIGKILL)

    def losing(name: str) -> Any:
        marker = tmp_path / name
        return as_frame(spark, CUTS["even"]).mapInArrow(
            lambda batches: pass_on(batches, marker), COLUMNS
        )

    assert_same(ckm.sketch(losing("sketch"), like=LOCAL.frequencies), LOCAL)
    table = pa.table({name: X[:, i] for i, name in enumerate(NAMES)})
    model = CompressiveKMeans(3, random_state=0).fit(table)
    found = collected(model.predict(losing("labels")).select("cluster"))
    assert np.array_equal(found["cluster"], model.predict(table))
    assert {path.name for path in tmp_path.iterdir()} == {"sketch", "labels"}


def test_a_missing_value_is_found_with_its_place(spark: Any) -> None:
    bad = X.copy()
    bad[1234, 1] = np.nan
    frame = as_frame(spark, CUTS["even"], bad)
    for options in ({"like": LOCAL.frequencies}, {"sketch_size": SIZE}):
        with pytest.raises(
            NonFiniteError, match="Row 234, column 'north' of partition 2 holds NaN"
        ):
            ckm.sketch(frame, **options)
    with pytest.warns(MissingRowsWarning, match="Left out 1 of 2,500 rows"):
        found = ckm.sketch(frame, like=LOCAL.frequencies, nan="drop")
    assert_same(found, ckm.sketch(np.delete(bad, 1234, axis=0), like=LOCAL.frequencies))


def test_what_cannot_be_done_is_said(spark: Any) -> None:
    frame = as_frame(spark, [])
    with pytest.raises(
        ParameterError, match=r"keep weights in a column, for ckm.sketch\(\.\.\., weight_column=\)"
    ):
        ckm.sketch(frame, sketch_size=SIZE, sample_weight=np.ones(len(X)))
    with pytest.raises(ParameterError, match="these stay with Spark"):
        CompressiveKMeans(3, polish=1).fit(frame)
    with pytest.raises(DataError, match="These rows stay with Spark"):
        CompressiveKMeans(3).partial_fit(frame)
    with pytest.raises(DataError, match="no column holds numbers"):
        ckm.sketch(frame.select(F.lit("a").alias("name")), sketch_size=SIZE)


def test_no_rows_at_all(spark: Any) -> None:
    assert ckm.sketch(as_frame(spark, [0, 0], X[:0]), like=LOCAL.frequencies).count == 0


def test_the_example_of_the_page_runs(spark: Any, tmp_path: Path) -> None:
    write_events(tmp_path / "events")
    run_section("Spark", tmp_path, {"spark": spark})
    labelled = pd.read_parquet(tmp_path / "labelled")
    assert len(labelled) == 2000
    assert set(labelled["cluster"]) == set(range(10))
