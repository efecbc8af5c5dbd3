"""Ray clusters that lose a node in the middle of a pass."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

from faults import MarkedRows, assert_one_error  # noqa: E402
from partitions import assert_same  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import ckm  # noqa: E402
from ckm import CompressiveKMeans  # noqa: E402
from ckm._sources.engines import ray as engine  # noqa: E402
from ckm.errors import EngineError  # noqa: E402

# Ray's own code, which is not ours to mend.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
STORE_BYTES = 500_000_000
BOUND_SECONDS = 120.0  # within which an error must come; the limit in these tests is two seconds


@contextmanager
def head_node(cpus: int) -> Iterator[Any]:
    """A cluster of one node, on which the driver's own objects are."""
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    options = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args=options)
    try:
        ray.init(cluster.address, log_to_driver=False, logging_level="error")
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def another_node(cluster: Any) -> Callable[[], None]:
    """Add a node of one CPU, and return what kills it."""
    node = cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    return lambda: cluster.remove_node(node, allow_graceful=False)


def as_dataset(table: MarkedRows) -> Any:
    def make(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        (number,) = batch["id"]
        return {"data": table.make(int(number))}

    numbers = ray.data.range(table.partitions, override_num_blocks=table.partitions)
    return numbers.map_batches(make, batch_size=None)


def labels_of(model: CompressiveKMeans, data: Any) -> np.ndarray:
    batches = model.predict(data).select_columns(["cluster"]).iter_batches(batch_size=None)
    return np.concatenate([batch["cluster"] for batch in batches])


def test_a_lost_node_changes_nothing(tmp_path: Path) -> None:
    """Ten million rows: sketch, fit, labels and score, a node lost in each of them."""
    table = MarkedRows(tmp_path, partitions=50, rows=200_000, pause=0.1)
    X = table.all_values()
    local = ckm.sketch(X, sketch_size=60, random_state=0)

    with head_node(cpus=1) as cluster:
        expected = CompressiveKMeans(3, random_state=0).fit(as_dataset(table))
        model = CompressiveKMeans(3, random_state=0)

        def losing(compute: Callable[[Any], Any], after: int = 27) -> Any:
            with table.losing(another_node(cluster), after):
                return compute(as_dataset(table))

        assert_same(losing(lambda data: ckm.sketch(data, like=local.frequencies)), local)
        losing(model.fit, after=77)  # the pilot visits all blocks before
        assert model.sketch_ == expected.sketch_
        assert model.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
        assert np.array_equal(losing(lambda data: labels_of(model, data)), model.predict(X))
        assert losing(model.score) == pytest.approx(model.score(X), rel=1e-12)


def test_without_any_node_there_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "NO_WORKERS_SECONDS", 2.0)
    table = MarkedRows(tmp_path, partitions=50, rows=5000, pause=0.2)
    with head_node(cpus=0) as cluster:
        lose = another_node(cluster)
        data = as_dataset(table)
        started = time.monotonic()
        with (
            pytest.raises(EngineError, match="Ray lost workers and gave up") as caught,
            table.losing(lose, after=8),
        ):
            ckm.sketch(data, like=ckm.draw_frequencies(60, 3, seed=0))
        assert time.monotonic() - started < BOUND_SECONDS
    assert_one_error(caught.value)
