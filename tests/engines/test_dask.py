"""Dask, on all its schedulers: the distributed one is a cluster of two processes."""

import multiprocessing
import os
import pickle
import signal
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
import dask.bag as db  # noqa: E402
import dask.dataframe as dd  # noqa: E402
from page import run_section, write_events  # noqa: E402
from partitions import (  # noqa: E402
    CUTS,
    NAMES,
    SIZE,
    assert_same,
    first_time,
    local_sketch,
    pieces,
    rows_in,
    values,
)

import ckm  # noqa: E402
from ckm import CompressiveKMeans  # noqa: E402
from ckm._sources.engines.base import FAN_IN  # noqa: E402
from ckm._util import parallel  # noqa: E402
from ckm.errors import (  # noqa: E402
    ColumnsWarning,
    DataError,
    MissingRowsWarning,
    NonFiniteError,
    ParameterError,
    ScaleWarning,
)

pytestmark = pytest.mark.xdist_group("dask")  # one cluster

X = values()
LOCAL = local_sketch(X)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Bags would start processes for every test."""
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def as_array(parts: list[np.ndarray]) -> Any:
    return da.concatenate(
        [da.from_delayed(dask.delayed(part), part.shape, part.dtype) for part in parts]
    )


def as_frame(parts: list[np.ndarray]) -> Any:
    return dd.from_delayed(
        [dask.delayed(pd.DataFrame)(part, columns=NAMES) for part in parts],
        meta=pd.DataFrame(X[:0], columns=NAMES),
    )


def as_bag(parts: list[np.ndarray]) -> Any:
    """A partition is a few batches, the first of them empty; an empty partition has none."""
    return db.from_delayed(
        [
            dask.delayed([part[:0], part[:1], part[1:]] if len(part) else [], traverse=False)
            for part in parts
        ]
    )


COLLECTIONS = {"array": as_array, "frame": as_frame, "bag": as_bag}


def here(kind: str) -> Any:
    """All rows in memory, with column names where the collection has them."""
    return pd.DataFrame(X, columns=NAMES) if kind == "frame" else X


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("kind", COLLECTIONS)
def test_the_sketch_is_the_local_one_however_rows_are_partitioned(kind: str, cuts: str) -> None:
    assert_same(ckm.sketch(COLLECTIONS[kind](pieces(X, CUTS[cuts])), like=LOCAL.frequencies), LOCAL)


@pytest.fixture(scope="module")
def processes() -> Iterator[Any]:
    """Two processes of the kind that Dask's scheduler would start for each test."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context) as pool:
        yield pool


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_in_processes(processes: Any, kind: str) -> None:
    with dask.config.set(scheduler="processes", pool=processes):
        assert_same(
            ckm.sketch(COLLECTIONS[kind](pieces(X, CUTS["empty"])), like=LOCAL.frequencies), LOCAL
        )


def test_the_cpu_of_the_workers_of_a_cluster(cluster: Any) -> None:
    with cluster.as_current(), dask.config.set(scheduler=cluster):
        assert_same(
            ckm.sketch(as_array(pieces(X, CUTS["empty"])), like=LOCAL.frequencies, device="cpu"),
            LOCAL,
        )


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_on_a_cluster(cluster: Any, kind: str) -> None:
    with cluster.as_current(), dask.config.set(scheduler=cluster):
        data = COLLECTIONS[kind](pieces(X, CUTS["empty"]))
        assert_same(ckm.sketch(data, like=LOCAL.frequencies), LOCAL)
        model = CompressiveKMeans(3, random_state=0).fit(data)
        labels = model.predict(data)
        assert np.array_equal(model.solution_.predict(data).compute(), labels.compute())
        assert model.solution_.score(data) == pytest.approx(model.score(data), rel=1e-12)
        assert isinstance(labels, da.Array)
        assert np.array_equal(labels.compute(), model.predict(here(kind)))


def test_columns_in_chunks_of_their_own() -> None:
    assert_same(ckm.sketch(da.from_array(X, chunks=(600, 2)), like=LOCAL.frequencies), LOCAL)


def test_a_batch_may_be_a_frame() -> None:
    bag = db.from_sequence(
        [pd.DataFrame(part, columns=NAMES).assign(label="a") for part in pieces(X, [100, 1000])],
        npartitions=2,
    )
    with pytest.warns(ColumnsWarning, match="label"):
        found = ckm.sketch(bag, like=LOCAL.frequencies)
    assert found.columns == tuple(NAMES)
    assert_same(found, LOCAL)


def test_whole_weights_are_repetition() -> None:
    beta = np.arange(len(X)) % 3
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(times=beta), npartitions=5)
    found = ckm.sketch(frame, like=LOCAL.frequencies, weight_column="times")
    expected = ckm.sketch(np.repeat(X, beta, axis=0), like=LOCAL.frequencies)
    assert np.array_equal(found.tally.sums, expected.tally.sums)
    assert found.weight == expected.weight


def test_frequencies_come_from_the_data() -> None:
    """The survey is another sample than the local one, and should see the same data."""
    found = ckm.sketch(da.from_array(X, chunks=(100, 3)), sketch_size=SIZE, random_state=0)
    assert found.frequencies.scale == pytest.approx(LOCAL.frequencies.scale, rel=0.2)
    np.testing.assert_allclose(found.frequencies.origin, LOCAL.frequencies.origin, atol=0.5)
    assert found == ckm.sketch(da.from_array(X, chunks=(100, 3)), sketch_size=SIZE, random_state=0)


def test_a_survey_that_found_hardly_any_rows_looks_everywhere() -> None:
    """All rows are in one of a hundred partitions, which a sample of some misses for most seeds."""
    for seed in range(3):
        array = as_array([*([X[:0]] * 60), X, *([X[:0]] * 39)])
        assert ckm.sketch(
            array, sketch_size=SIZE, random_state=seed
        ).frequencies.scale == pytest.approx(LOCAL.frequencies.scale, rel=0.2)


def test_standardised_columns() -> None:
    wide = X * [1.0, 1000.0, 0.01]
    model = CompressiveKMeans(3, standardize=True, random_state=0).fit(
        da.from_array(wide, chunks=(400, 3))
    )
    np.testing.assert_allclose(model.sketch_.frequencies.units, wide.std(axis=0), rtol=0.05)
    assert np.array_equal(
        model.predict(da.from_array(wide, chunks=(400, 3))).compute(), model.predict(wide)
    )
    assert model.score(da.from_array(wide, chunks=(400, 3))) == pytest.approx(model.score(wide))


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_fit_and_predict(kind: str) -> None:
    data = COLLECTIONS[kind](pieces(X, CUTS["skewed"]))
    model = CompressiveKMeans(3, random_state=0).fit(data)
    assert model.score(here(kind)) >= 1.001 * CompressiveKMeans(3, random_state=0).fit(X).score(X)
    assert not hasattr(model, "labels_")
    assert np.array_equal(
        CompressiveKMeans(3, random_state=0).fit_predict(data).compute(),
        model.predict(data).compute(),
    )
    assert model.score(data) == pytest.approx(model.score(here(kind)))


def test_a_pool_is_a_sample_of_all_partitions() -> None:
    pool = ckm.sketch(
        as_array(pieces(X, CUTS["one-row"])), like=LOCAL.frequencies, pool=200, random_state=0
    ).pool
    assert pool is not None
    assert (len(pool), pool.seen) == (200, len(X))
    places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in pool.rows]
    assert len(set(places)) == 200
    # 6 are expected from the partitions of one row
    assert 0 < sum(place < 69 for place in places) < 30


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All that comes back to the driver, as bytes."""
    seen: list[bytes] = []
    compute = dask.compute

    def recording(*arguments: Any, **options: Any) -> Any:
        results = compute(*arguments, **options)
        seen.append(pickle.dumps(results))
        return results

    monkeypatch.setattr(dask, "compute", recording)
    return seen


@pytest.mark.parametrize("count", [4, 3 * FAN_IN])
def test_the_driver_receives_sums_and_no_row(received: list[bytes], count: int) -> None:
    array = as_array(np.array_split(X, count))
    found = ckm.sketch(array, n_clusters=4, random_state=0)
    assert sum(map(len, received)) < count * 2 * found.nbytes
    assert rows_in(b"".join(received), X) == 0
    received.clear()
    ckm.sketch(array, like=found, pool=5)
    assert rows_in(b"".join(received), X) == 5


def test_a_worker_killed_in_the_middle_counts_once(cluster: Any, tmp_path: Path) -> None:
    def partition(number: int, part: np.ndarray) -> np.ndarray:
        time.sleep(0.05)
        if number == 5 and first_time(tmp_path / "killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    with cluster.as_current(), dask.config.set(scheduler=cluster):
        parts = [
            da.from_delayed(dask.delayed(partition)(i, part), part.shape, part.dtype)
            for i, part in enumerate(np.array_split(X, 12))
        ]
        assert_same(ckm.sketch(da.concatenate(parts), like=LOCAL.frequencies), LOCAL)
    assert (tmp_path / "killed").exists()


def test_a_task_uses_the_thread_it_runs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a task started threads of its own")

    monkeypatch.setattr(parallel, "ThreadPoolExecutor", refuse)
    ckm.sketch(da.from_array(X, chunks=(300, 3)), like=LOCAL.frequencies)


def test_a_missing_value_is_found_with_its_place() -> None:
    bad = X.copy()
    bad[1234, 1] = np.nan
    frame = dd.from_pandas(pd.DataFrame(bad, columns=NAMES), npartitions=5)
    for options in ({"like": LOCAL.frequencies}, {"sketch_size": SIZE}):
        with pytest.raises(
            NonFiniteError, match="Row 234, column 'north' of partition 2 holds NaN"
        ):
            ckm.sketch(frame, **options)
    with pytest.warns(MissingRowsWarning, match="Left out 1 of 2,500 rows"):
        found = ckm.sketch(frame, like=LOCAL.frequencies, nan="drop")
    assert_same(found, ckm.sketch(np.delete(bad, 1234, axis=0), like=LOCAL.frequencies))


def test_no_rows_at_all() -> None:
    with pytest.warns(ScaleWarning):
        assert ckm.sketch(da.empty((0, 3)), sketch_size=SIZE).count == 0
    assert ckm.sketch(as_frame([X[:0], X[:0]]), like=LOCAL.frequencies) == ckm.sketch(
        pd.DataFrame(X[:0], columns=NAMES), like=LOCAL.frequencies
    )


def test_what_cannot_be_done_is_said() -> None:
    array = da.from_array(X, chunks=(500, 3))
    with pytest.raises(
        ParameterError, match=r"keep weights in a column, for ckm.sketch\(\.\.\., weight_column=\)"
    ):
        ckm.sketch(array, sketch_size=SIZE, sample_weight=np.ones(len(X)))
    with pytest.raises(
        ParameterError, match="polish=1 visits all rows again, and these stay with Dask"
    ):
        CompressiveKMeans(3, polish=1).fit(array)
    with pytest.raises(DataError, match="These rows stay with Dask"):
        CompressiveKMeans(3).partial_fit(array)
    with pytest.raises(DataError, match="two dimensions"):
        ckm.sketch(da.zeros(10), sketch_size=SIZE)
    with pytest.raises(DataError, match="The bag has no batch"):
        ckm.sketch(db.from_sequence([[]], npartitions=1), sketch_size=SIZE)
    with pytest.raises(ParameterError, match="checkpoint needs rows in files"):
        ckm.sketch(array, sketch_size=SIZE, checkpoint="x.part")


def test_nothing_is_computed_before_labels_are_asked_for() -> None:
    model = CompressiveKMeans(3, random_state=0).fit(X)

    def explode() -> np.ndarray:
        raise AssertionError("computed")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = model.predict(da.from_delayed(dask.delayed(explode)(), (4, 3), float))
    assert labels.shape == (4,)
    assert labels.dtype == np.int32


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_unit_rows_are_sketched_and_labelled_by_workers(kind: str) -> None:
    rows = COLLECTIONS[kind](pieces(X, CUTS["skewed"]))
    local = ckm.sketch(here(kind), n_clusters=3, metric="cosine", random_state=0)
    assert_same(ckm.sketch(rows, like=local), local)
    own = ckm.sketch(rows, n_clusters=3, metric="cosine", random_state=0)
    assert_same(ckm.sketch(here(kind), like=own), own)
    solution = ckm.decode(local, 3, random_state=0)
    assert np.array_equal(solution.predict(rows).compute(), solution.predict(here(kind)))
    assert solution.score(rows) == pytest.approx(solution.score(here(kind)), rel=1e-12)


def test_wide_rows_are_projected_by_workers() -> None:
    rng = np.random.default_rng(0)
    wide = (4 * rng.normal(size=(3, 80)))[rng.integers(3, size=2000)] + rng.normal(size=(2000, 80))
    rows = COLLECTIONS["array"](pieces(wide, CUTS["skewed"]))
    local = ckm.sketch(wide, n_clusters=3, random_state=0)
    assert_same(ckm.sketch(rows, like=local), local)
    own = ckm.sketch(rows, n_clusters=3, random_state=0)
    assert own.frequencies.projection is not None
    assert_same(ckm.sketch(wide, like=own), own)
    solution = ckm.decode(own, 3, random_state=0)
    assert np.array_equal(solution.predict(rows).compute(), solution.predict(wide))


# The name of a folder is a column, of text.
@pytest.mark.filterwarnings("ignore::ckm.errors.ColumnsWarning")
def test_the_examples_of_the_page_run(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_events(tmp_path / "events")
    names = run_section("Dask", tmp_path, {}, cluster.scheduler.address)
    with names["client"]:
        assert len(names["labels"].compute()) == 2000
    for day in ("01", "02"):
        write_events(tmp_path / "days" / "events" / f"day={day}")
    names = run_section("When something is lost", tmp_path / "days", {"ckm": ckm, "dd": dd})
    assert names["total"].count == 4000
