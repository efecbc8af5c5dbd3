"""Ray, on a local cluster of two workers."""

import os
import pickle
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

import partitions  # noqa: E402
from page import run_section, write_events  # noqa: E402
from partitions import (  # noqa: E402
    CUTS,
    DESIGN,
    NAMES,
    SIZE,
    assert_releasable,
    assert_same,
    first_time,
    local_sketch,
    pieces,
    public_weights,
    rows_in,
    values,
)

import ckm  # noqa: E402
from ckm import CompressiveKMeans  # noqa: E402
from ckm.errors import ColumnsWarning, DataError, MissingRowsWarning, NonFiniteError, ParameterError  # noqa: E402

# Ray's own code, which is not ours to mend.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.xdist_group("ray"),
]

X = values()
LOCAL = local_sketch(X)
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error"
    )
    ray.cloudpickle.register_pickle_by_value(partitions)  # workers know nothing of the tests
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def as_tensors(parts: list[np.ndarray]) -> Any:
    return ray.data.from_numpy(parts)


def as_tables(parts: list[np.ndarray]) -> Any:
    return ray.data.from_arrow(
        [pa.table({name: part[:, i] for i, name in enumerate(NAMES)}) for part in parts]
    )


def as_frames(parts: list[np.ndarray]) -> Any:
    return ray.data.from_pandas([pd.DataFrame(part, columns=NAMES) for part in parts])


DATASETS = {"tensors": as_tensors, "tables": as_tables, "frames": as_frames}


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("kind", DATASETS)
def test_the_sketch_is_the_local_one_however_rows_are_in_blocks(kind: str, cuts: str) -> None:
    assert_same(ckm.sketch(DATASETS[kind](pieces(X, CUTS[cuts])), like=LOCAL.frequencies), LOCAL)


def test_the_cpu_of_the_workers() -> None:
    kind = next(iter(DATASETS))
    assert_same(
        ckm.sketch(DATASETS[kind](pieces(X, CUTS["skewed"])), like=LOCAL.frequencies, device="cpu"),
        LOCAL,
    )


def test_files_read_by_ray(tmp_path: Path) -> None:
    for i, part in enumerate(pieces(X, CUTS["skewed"])):
        table = pa.table(
            {name: part[:, j] for j, name in enumerate(NAMES)} | {"label": ["a"] * len(part)}
        )
        pq.write_table(table, tmp_path / f"{i}.parquet")
    with pytest.warns(ColumnsWarning, match="label"):
        found = ckm.sketch(ray.data.read_parquet(str(tmp_path)), like=LOCAL.frequencies)
    assert found.columns == tuple(NAMES)
    assert_same(found, LOCAL)


def test_whole_weights_are_repetition() -> None:
    beta = np.arange(len(X)) % 3
    found = ckm.sketch(
        ray.data.from_pandas(FRAME.assign(times=beta)),
        like=LOCAL.frequencies,
        weight_column="times",
    )
    expected = ckm.sketch(np.repeat(X, beta, axis=0), like=LOCAL.frequencies)
    assert np.array_equal(found.tally.sums, expected.tally.sums)
    assert found.weight == expected.weight


def test_rows_of_a_public_design_are_clipped_and_can_be_released() -> None:
    data = ray.data.from_pandas(FRAME.assign(times=public_weights(X)))
    assert_releasable(ckm.sketch(data, like=DESIGN, weight_column="times"), X)


@pytest.mark.parametrize("kind", DATASETS)
def test_fit_and_predict(kind: str) -> None:
    data = DATASETS[kind](pieces(X, CUTS["skewed"]))
    here = X if kind == "tensors" else FRAME
    model = CompressiveKMeans(3, random_state=0).fit(data)
    assert model.score(here) >= 1.001 * CompressiveKMeans(3, random_state=0).fit(here).score(here)
    assert model.score(data) == pytest.approx(model.score(here))
    labelled = model.predict(data).to_pandas()
    first = np.stack(labelled["data"]) if kind == "tensors" else labelled[NAMES].to_numpy()
    assert len(first) == len(X)
    assert np.array_equal(
        labelled["cluster"], model.predict(first if kind == "tensors" else labelled[NAMES])
    )


def test_frequencies_come_from_the_data_and_the_seed() -> None:
    data = as_tensors(pieces(X, CUTS["even"]))
    found = ckm.sketch(data, sketch_size=SIZE, random_state=0, pool=50)
    again = ckm.sketch(data, sketch_size=SIZE, random_state=0, pool=50)
    assert found.frequencies.scale == pytest.approx(LOCAL.frequencies.scale, rel=0.2)
    assert found == again
    assert np.array_equal(found.pool.rows, again.pool.rows)
    assert (len(found.pool), found.pool.seen) == (50, len(X))


def test_the_driver_receives_sums_and_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[bytes] = []
    get = ray.get

    def recording(*arguments: Any, **options: Any) -> Any:
        result = get(*arguments, **options)
        received.append(pickle.dumps(result))
        return result

    monkeypatch.setattr(ray, "get", recording)
    parts = np.array_split(X, 20)
    data = as_tensors(parts)
    received.clear()
    found = ckm.sketch(data, n_clusters=4, random_state=0)
    assert received
    assert rows_in(b"".join(received), X) == 0
    sums = [part for part in received if LOCAL.tally.lower.tobytes() in part]
    assert sum(map(len, sums)) < len(parts) * 2 * found.nbytes
    received.clear()
    ckm.sketch(data, like=found, pool=5)
    assert rows_in(b"".join(received), X) == 5


def test_a_worker_killed_in_the_middle_counts_once(tmp_path: Path) -> None:
    marker = tmp_path / "killed"

    def pass_on(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if (batch["data"][0] == X[1500]).all() and first_time(marker):
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    data = as_tensors(pieces(X, CUTS["even"])).map_batches(pass_on, batch_size=None)
    assert_same(ckm.sketch(data, like=LOCAL.frequencies), LOCAL)
    assert marker.exists()


def test_a_missing_value_is_found_with_its_place() -> None:
    bad = X.copy()
    bad[1234, 1] = np.nan
    data = as_tables(pieces(bad, [1000]))
    for options in ({"like": LOCAL.frequencies}, {"sketch_size": SIZE}):
        with pytest.raises(NonFiniteError, match="Row 234, column 'north' of a block holds NaN"):
            ckm.sketch(data, **options)
    with pytest.warns(MissingRowsWarning, match="Left out 1 of 2,500 rows"):
        found = ckm.sketch(data, like=LOCAL.frequencies, nan="drop")
    assert_same(found, ckm.sketch(np.delete(bad, 1234, axis=0), like=LOCAL.frequencies))


def test_what_cannot_be_done_is_said() -> None:
    data = as_tensors([X])
    with pytest.raises(
        ParameterError, match=r"keep weights in a column, for ckm.sketch\(\.\.\., weight_column=\)"
    ):
        ckm.sketch(data, sketch_size=SIZE, sample_weight=np.ones(len(X)))
    with pytest.raises(ParameterError, match="these stay with Ray"):
        CompressiveKMeans(3, polish=1).fit(data)
    with pytest.raises(DataError, match="These rows stay with Ray"):
        CompressiveKMeans(3).partial_fit(data)
    with pytest.raises(DataError, match="no column holds numbers"):
        ckm.sketch(ray.data.from_items([{"name": "a"}]), sketch_size=SIZE)


def test_an_error_of_the_first_chunk_is_a_result() -> None:
    """Ray would repeat the task, and wrap the error."""
    from ckm._sources.column_request import ColumnChoice
    from ckm._sources.engines.base import Failure, GuardedJob, Job, PartitionReader, from_bytes
    from ckm._sources.engines.ray import _Partition

    class Count(Job):
        def of_partition(self, number: int, chunks: Iterator[Any]) -> Any:
            return sum(len(chunk.rows) for chunk in chunks)

        def merge(self, parts: Any) -> Any:
            return sum(parts)

    reader = PartitionReader(1, ColumnChoice(["a"], "w"))
    partition = _Partition(GuardedJob(Count()), reader, None)
    for weight, expected in ((1.0, int), (-1.0, Failure)):
        block = pa.table({"a": [1.0, 2.0], "w": [1.0, weight]})
        (result,) = partition(block).column("part").to_pylist()
        assert isinstance(from_bytes(result), expected)


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    write_events(tmp_path / "events")
    run_section("Ray", tmp_path, {})
    labelled = pd.read_parquet(tmp_path / "labelled")
    assert len(labelled) == 2000
    assert set(labelled["cluster"]) == set(range(10))
