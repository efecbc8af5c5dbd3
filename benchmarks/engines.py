"""The same files on local clusters of two workers: ckm on Dask beside dask-ml's KMeans (k-means||),
on Spark beside MLlib's, and on Ray.

Before the clock starts, the data is in the cluster's memory and every method has run once on a few
rows, so that no time includes compilation. Passes over all rows are the known ones: for ckm the
sketch and, where it reads everything, the pilot; for the others their iterations, without the
rounds of k-means||. Bytes are those of results that reach the driver.
"""

import os
import pickle
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ckm
from benchmarks.baselines import sse
from benchmarks.harness import Target, console, options, peer, report, show

K = 10
N_FEATURES = 10
FILES = 8
NAMES = [f"x{i}" for i in range(N_FEATURES)]
Run = dict[str, Any]


class Bytes:
    """Counts the bytes that a function returns."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner = owner
        self._name = name
        self._function = getattr(owner, name)
        self.total = 0

    def __enter__(self) -> "Bytes":
        def counting(*arguments: Any, **options: Any) -> Any:
            result = self._function(*arguments, **options)
            self.total += len(pickle.dumps(result))
            return result

        setattr(self._owner, self._name, counting)
        return self

    def __exit__(self, *failure: object) -> None:
        setattr(self._owner, self._name, self._function)


def write_files(X: np.ndarray, folder: Path) -> None:
    for i, part in enumerate(np.array_split(X, FILES)):
        pq.write_table(
            pa.table({name: part[:, j] for j, name in enumerate(NAMES)}), folder / f"{i}.parquet"
        )


def timed(
    engine: str,
    method: str,
    fit: Callable[[], tuple[np.ndarray, int]],
    X: np.ndarray,
    counter: Bytes | None,
) -> Run:
    """Measure one fit: its seconds, SSE, passes and bytes."""
    before = 0 if counter is None else counter.total
    began = time.perf_counter()
    centroids, passes = fit()
    seconds = time.perf_counter() - began
    moved = None if counter is None else counter.total - before
    return {
        "engine": engine,
        "method": method,
        "seconds": seconds,
        "sse": sse(X, centroids),
        "passes": passes,
        "bytes": moved,
    }


def ours(data: Any, seed: int, passes: int = 1) -> tuple[np.ndarray, int]:
    return ckm.CompressiveKMeans(K, random_state=seed).fit(data).cluster_centers_, passes


@contextmanager
def dask_cluster() -> Iterator[Any]:
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def on_dask(folder: Path, X: np.ndarray, seed: int) -> list[Run]:
    if peer("dask.dataframe", "distributed") is None:
        return []
    import dask.dataframe as dd
    import distributed

    rival = peer("dask_ml.cluster")
    with dask_cluster(), Bytes(distributed.Client, "gather") as counter:
        array = dd.read_parquet(folder).to_dask_array(lengths=True).persist()
        distributed.wait(array)
        runs = []
        few = array.blocks[0][:2000].persist()

        def theirs(data: Any) -> tuple[np.ndarray, int]:
            assert rival is not None
            found = rival[0].KMeans(K, random_state=seed).fit(data)
            return np.asarray(found.cluster_centers_), int(found.n_iter_)

        ours(few, seed)
        runs.append(timed("Dask", "ckm", lambda: ours(array, seed), X, counter))
        if rival is not None:
            theirs(few)
            runs.append(timed("Dask", "dask-ml", lambda: theirs(array), X, counter))
        return runs


def on_spark(folder: Path, X: np.ndarray, seed: int) -> list[Run]:
    if peer("pyspark.sql") is None:
        return []
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
    )
    spark = (
        builder.config("spark.driver.memory", "2g")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    frame = spark.read.parquet(str(folder)).repartition(FILES).cache()
    vectors = (
        VectorAssembler(inputCols=NAMES, outputCol="features")
        .transform(frame)
        .select("features")
        .cache()
    )
    frame.count(), vectors.count()

    def theirs(data: Any) -> tuple[np.ndarray, int]:
        found = KMeans(k=K, seed=seed).fit(data)
        return np.array(found.clusterCenters()), int(found.summary.numIter)

    ours(frame.limit(2000), seed)
    theirs(vectors.limit(2000))
    with Bytes(type(frame), "collect") as counter:
        runs = [timed("Spark", "ckm", lambda: ours(frame, seed), X, counter)]
    runs.append(timed("Spark", "MLlib", lambda: theirs(vectors), X, None))
    spark.stop()
    return runs


def on_ray(folder: Path, X: np.ndarray, seed: int) -> list[Run]:
    if peer("ray") is None:
        return []
    import ray

    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error"
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    data = ray.data.read_parquet(str(folder)).materialize()
    ours(data.limit(2000).materialize(), seed)
    with Bytes(ray, "get") as counter:
        run = timed("Ray", "ckm", lambda: ours(data, seed, passes=2), X, counter)
    ray.shutdown()
    return [run]


ENGINES = {"dask": on_dask, "spark": on_spark, "ray": on_ray}


def targets_of(runs: list[Run]) -> list[Target]:
    """Return the targets: faster than the engine's own k-means, at no larger an SSE."""
    targets = []
    for engine in ("Dask", "Spark"):
        found = {run["method"] == "ckm": run for run in runs if run["engine"] == engine}
        if len(found) == 2:
            rival = found[False]["method"]
            targets.append(
                Target(
                    f"time of {rival} / ckm on {engine}",
                    1.0,
                    found[False]["seconds"] / found[True]["seconds"],
                )
            )
            targets.append(
                Target(
                    f"SSE of ckm / {rival}",
                    1.0,
                    found[True]["sse"] / found[False]["sse"],
                    at_most=True,
                )
            )
    return targets


def main() -> None:
    parser = options("Measure ckm and the engines' own k-means on local clusters.", first_seed=100)
    parser.add_argument(
        "--rows",
        type=int,
        default=2_000_000,
        help="number of rows (default: %(default)s, quick: 50000)",
    )
    parser.add_argument(
        "--engines",
        nargs="+",
        choices=ENGINES,
        default=list(ENGINES),
        help="which engines (default: all)",
    )
    arguments = parser.parse_args()
    rows = 50_000 if arguments.quick else arguments.rows
    X = ckm.datasets.gaussian_mixture(
        rows, K, N_FEATURES, dtype=np.float32, random_state=arguments.seeds
    ).rows
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the engines
        write_files(X, Path(name))
        runs = []
        for engine in arguments.engines:
            runs += ENGINES[engine](Path(name), X, arguments.seeds)
            console.print(f"{engine}: done")
    columns = ["engine", "method", "seconds", "sse", "passes", "bytes"]
    show(
        f"{rows} rows, K = n = {K}, {FILES} files",
        columns,
        [[run[column] for column in columns] for run in runs],
    )
    settings = {
        "rows": rows,
        "n_clusters": K,
        "n_features": N_FEATURES,
        "files": FILES,
        "seed": arguments.seeds,
    }
    report("engines", arguments.quick, settings, runs, targets_of(runs))


if __name__ == "__main__":
    main()
