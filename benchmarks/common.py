"""What every benchmark shares: its options, the environment it ran in, SSE against scikit-learn, tables and JSON files."""

import argparse
import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin_min

import ckm

PYCLE = ("pycle.sketching", "pycle.compressive_learning")
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("compressive-kmeans", "numpy", "scipy", "numba", "scikit-learn", "pycle")

console = Console()


class Target(NamedTuple):
    """A figure that was promised, at least or at most, beside the one measured (None: could not be)."""

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
        return [self.what, bound, self.measured, {True: "yes", False: "NO", None: "not measured"}[self.holds]]


def options(description: str, first_seed: int | None = None) -> argparse.ArgumentParser:
    """The options of every script: --quick, and --seeds where the script draws data."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a short run on less data, to see that it works; its figures mean little")
    if first_seed is not None:
        parser.add_argument("--seeds", type=int, default=first_seed, metavar="START", help="the first seed (default: %(default)s)")
    return parser


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
        console.print(f"{error.name} is not installed, so its rows are left out; install it with pip install pycle.")
        return None


def pycle_centroids(sketch: ckm.Sketch, n_clusters: int, seed: int) -> np.ndarray:
    """Centroids by pycle's CLOMPR from our sketch, in the data's coordinates."""
    sketching, learning = map(import_module, PYCLE)
    frequencies = sketch.frequencies
    np.random.seed(seed)  # noqa: NPY002  # pycle draws from NumPy's global state
    features = sketching.SimpleFeatureMap("complexExponential", frequencies.omega.T)
    bounds = np.stack([sketch.lower, sketch.upper]) - frequencies.origin
    solver = learning.CLOMP_CKM(features, n_clusters, bounds, np.conj(sketch.z))  # pycle's sign is +i
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


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; floats to three figures."""
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*map(_cell, row))
    console.print(table)


def report(name: str, quick: bool, settings: dict[str, Any], results: Any, targets: Sequence[Target]) -> None:
    """Print the targets and write everything to results/NAME.json (NAME-quick.json for a quick run)."""
    show("Targets", ["what", "target", "measured", "holds"], [target.cells() for target in targets])
    here = environment()
    console.print(f"{here['cpu']}, {here['cores']} cores, Python {here['python']}, {here['date']}")
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}{'-quick' if quick else ''}.json"
    promised = [{**t._asdict(), "holds": t.holds} for t in targets]
    content = {"benchmark": name, "quick": quick, "environment": here, "settings": settings, "targets": promised, "results": results}
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
