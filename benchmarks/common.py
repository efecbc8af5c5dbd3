"""What every benchmark shares: its options, processes, the environment it ran in, SSE against
scikit-learn, tables and JSON files.
"""

import argparse
import json
import multiprocessing
import os
import platform
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin_min
from threadpoolctl import threadpool_limits

import ckm

PYCLE = ("pycle.sketching", "pycle.compressive_learning")
RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "compressive-kmeans",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "pycle",
    "torch",
    "opencv-python-headless",
    "faiss-cpu",
)
BASELINE_RUNS = 10

console = Console()
# around the files that processes share; set in each of them
_lock: AbstractContextManager[Any] = nullcontext()


class Target(NamedTuple):
    """A figure that was promised, at least or at most, beside the one measured (None: could not
    be).
    """

    what: str
    target: float
    measured: float | None
    at_most: bool = False

    @property
    def holds(self) -> bool | None:
        """Whether the promise is kept."""
        if self.measured is None:
            return None
        return bool(self.measured <= self.target if self.at_most else self.measured >= self.target)

    def cells(self) -> list[Any]:
        """Its row in the table."""
        bound = f"{'<=' if self.at_most else '>='} {self.target:g}"
        measured = None if self.measured is None else f"{self.measured:.5g}"  # 1.0003 is not 1
        return [
            self.what,
            bound,
            measured,
            {True: "yes", False: "NO", None: "not measured"}[self.holds],
        ]


def largest(what: str, bound: float, values: dict[str, Any]) -> Target:
    """The promise that the largest of these values, each of a data set, is at most `bound`; it says
    which set that is.
    """
    if not values:
        return Target(what, bound, None, at_most=True)
    at = max(values, key=lambda name: values[name])
    missed = sum(bool(value > bound) for value in values.values())
    where = f"{at}; {missed} of {len(values)} miss" if missed else at
    return Target(f"{what} ({where})", bound, float(values[at]), at_most=True)


def pooled_median(what: str, bound: float, values: dict[str, np.ndarray]) -> Target:
    """The promise that the median over all runs of all sets is at most `bound`; it also says how
    the sets do one by one.
    """
    if not values:
        return Target(what, bound, None, at_most=True)
    together = np.concatenate(list(values.values()))
    own = {name: float(np.median(v)) for name, v in values.items()}
    at, above = max(own, key=lambda name: own[name]), sum(median > bound for median in own.values())
    sets = f"largest of a set's own {own[at]:.4f}, {at}; {above} of {len(own)} sets above"
    return Target(
        f"{what}, {len(together)} runs ({sets})", bound, float(np.median(together)), at_most=True
    )


def options(description: str, first_seed: int | None = None) -> argparse.ArgumentParser:
    """The options of every script: --quick, and --seeds where the script draws data."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a short run on less data, to see that it works; its figures mean little",
    )
    if first_seed is not None:
        parser.add_argument(
            "--seeds",
            type=int,
            default=first_seed,
            metavar="START",
            help="the first seed (default: %(default)s)",
        )
    return parser


def process_options(parser: argparse.ArgumentParser, count: int, quick_count: int) -> None:
    """The options of scripts that measure many seeds of many sets in processes."""
    parser.add_argument(
        "--count", type=int, help=f"how many seeds (default: {count}, quick: {quick_count})"
    )
    parser.add_argument(
        "--mnist",
        metavar="FOLDER",
        help="where MNIST's idx .gz files are (default: the environment variable MNIST_DIR)",
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.set_defaults(counts=(count, quick_count))


def seeds_of(arguments: argparse.Namespace) -> range:
    """The seeds that were asked for."""
    return range(
        arguments.seeds, arguments.seeds + (arguments.count or arguments.counts[arguments.quick])
    )


class Outcome(NamedTuple):
    """What a task found, and a sentence for each thing that failed."""

    found: Any
    failures: list[str]


def work_all(
    work: Callable[[Any], Outcome], tasks: Sequence[Any], jobs: int, stopped: str = "Stopped."
) -> list[Any]:
    """What every task found, over processes whose BLAS has one thread; each sentence about what
    failed is said once.
    """
    context = multiprocessing.get_context("spawn")
    found, said = [], set()
    with (
        ProcessPoolExecutor(jobs, context, _start_worker, (context.Lock(),)) as executor,
        Progress(console=console) as progress,
    ):
        bar = progress.add_task("Measuring", total=len(tasks))
        try:
            for future in as_completed(
                [executor.submit(_in_one_thread, work, task) for task in tasks]
            ):
                outcome = future.result()
                found.append(outcome.found)
                for sentence in outcome.failures:
                    if sentence not in said:
                        console.print(sentence, markup=False)
                        said.add(sentence)
                progress.advance(bar)
        except KeyboardInterrupt:
            executor.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise SystemExit(stopped) from None
    return found


def _start_worker(shared: Any) -> None:
    """Keep the lock around the files, and load what is loaded once, so that it is in no one's time."""
    global _lock
    _lock = shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, and ends its workers
    X = ckm.datasets.gaussian_mixture(2000, 3, 2, random_state=0).rows
    sketch = ckm.sketch(X, n_clusters=3, random_state=0, n_jobs=1)
    for decoder in ("auto", "clompr"):
        ckm.decode(sketch, 3, decoder=decoder, random_state=0)


def _in_one_thread(work: Callable[[Any], Outcome], task: Any) -> Outcome:
    with threadpool_limits(1):
        return work(task)


def locked() -> AbstractContextManager[Any]:
    """Around reading and writing files that other processes of this run use too."""
    return _lock


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write beside `path`; it takes that name once it is whole."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def environment() -> dict[str, Any]:
    """Where and when the figures were measured."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": _cpu_model(),
        "cores": cores,
        "python": platform.python_version(),
        "versions": versions,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def peer(*modules: str) -> list[ModuleType] | None:
    """These modules of another library; None, said in a sentence, where it is not installed."""
    try:
        return [import_module(name) for name in modules]
    except ImportError as error:
        console.print(
            f"{error.name} is not installed, so its rows are left out; install it with pip install {modules[0].split('.')[0]}."
        )
        return None


def pycle_centroids(sketch: ckm.Sketch, n_clusters: int, seed: int) -> np.ndarray:
    """Centroids by pycle's CLOMPR from our sketch, in the data's coordinates."""
    sketching, learning = map(import_module, PYCLE)
    frequencies = sketch.frequencies
    np.random.seed(seed)  # noqa: NPY002  # pycle draws from NumPy's global state
    features = sketching.SimpleFeatureMap("complexExponential", frequencies.omega.T)
    bounds = np.stack([sketch.lower, sketch.upper]) - frequencies.origin
    # pycle's sign is +i
    solver = learning.CLOMP_CKM(features, n_clusters, bounds, np.conj(sketch.z))
    solver.fit_once()
    return frequencies.origin + solver.get_centroids()


def sse(X: np.ndarray, centroids: np.ndarray) -> float:
    """SSE = sum_l min_k |x_l - c_k|^2 (equation 1), in chunks."""
    _, squares = pairwise_distances_argmin_min(X, centroids, metric="sqeuclidean")
    return float(squares.sum())


def kmeans_sse(X: np.ndarray, n_clusters: int, seed: int) -> float:
    """What SSEs are divided by: the best of five k-means++ runs of scikit-learn."""
    fitted = KMeans(n_clusters, n_init=5, random_state=seed).fit(X)
    return sse(X, fitted.cluster_centers_)


def baseline(key: str, X: np.ndarray, n_clusters: int, quick: bool) -> float:
    """The SSE of the best of 10 k-means++ runs, from the file that keeps them where it was computed
    on the same data.
    """
    path = RESULTS / "cache" / f"kmeans{'-quick' if quick else ''}.json"
    same = f"{len(X)} x {X.shape[1]}, K = {n_clusters}, variance {X.var(axis=0).sum():.5g}"
    with locked():
        entry = _kept(path).get(key)
    if entry is None or entry["of"] != same:
        runs = (KMeans(n_clusters, n_init=1, random_state=i).fit(X) for i in range(BASELINE_RUNS))
        best = min(runs, key=lambda fitted: fitted.inertia_)
        entry = {"sse": sse(X, best.cluster_centers_), "of": same}
        with locked(), replacing(path) as part:
            part.write_text(json.dumps(_kept(path) | {key: entry}, indent=0, sort_keys=True) + "\n")
    return float(entry["sse"])


def _kept(path: Path) -> dict[str, Any]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return json.loads(path.read_text()) if path.exists() else {}


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; floats to three figures."""
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*map(_cell, row))
    console.print(table)


def report(
    name: str, quick: bool, settings: dict[str, Any], results: Any, targets: Sequence[Target]
) -> None:
    """Print the targets, where there are some, and write everything to results/NAME.json
    (NAME-quick.json for a quick run).
    """
    if targets:
        show(
            "Targets",
            ["what", "target", "measured", "holds"],
            [target.cells() for target in targets],
        )
    here = environment()
    console.print(f"{here['cpu']}, {here['cores']} cores, Python {here['python']}, {here['date']}")
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}{'-quick' if quick else ''}.json"
    promised = [{**t._asdict(), "holds": t.holds} for t in targets]
    content = {
        "benchmark": name,
        "quick": quick,
        "environment": here,
        "settings": settings,
        "targets": promised,
        "results": results,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    console.print(f"Written to {RESULTS.name}/{path.name}.")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
