"""What every benchmark and experiment shares: options, the environment of a run, targets, tables
and JSON files.
"""

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import ckm

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
# Rebuilt when needed and ignored by git: baselines of k-means, and features of MNIST.
CACHE = Path(__file__).parent / "cache"
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

console = Console()


class Target(NamedTuple):
    """A bound, at least or at most, and the measured value (None: not measured)."""

    what: str
    target: float
    measured: float | None
    at_most: bool = False

    @property
    def holds(self) -> bool | None:
        """Whether the measured value respects the bound."""
        if self.measured is None:
            return None
        if self.at_most:
            return bool(self.measured <= self.target)
        return bool(self.measured >= self.target)

    def cells(self) -> list[Any]:
        """Return the target's row of the table."""
        bound = f"{'<=' if self.at_most else '>='} {self.target:g}"
        # Five figures, so that 1.0003 does not print as 1.
        measured = None if self.measured is None else f"{self.measured:.5g}"
        verdict = {True: "yes", False: "NO", None: "not measured"}[self.holds]
        return [self.what, bound, measured, verdict]


def largest(what: str, bound: float, values: dict[str, Any]) -> Target:
    """Return the target that the largest value is at most `bound`; it names the data set."""
    if not values:
        return Target(what, bound, None, at_most=True)
    at = max(values, key=lambda name: values[name])
    missed = sum(bool(value > bound) for value in values.values())
    where = f"{at}; {missed} of {len(values)} miss" if missed else at
    return Target(f"{what} ({where})", bound, float(values[at]), at_most=True)


def pooled_median(what: str, bound: float, values: dict[str, np.ndarray]) -> Target:
    """Return the target that the median over all runs of all sets is at most `bound`.

    It also says how the sets do one by one.
    """
    if not values:
        return Target(what, bound, None, at_most=True)
    together = np.concatenate(list(values.values()))
    own = {name: float(np.median(v)) for name, v in values.items()}
    at = max(own, key=lambda name: own[name])
    above = sum(median > bound for median in own.values())
    sets = f"largest of a set's own {own[at]:.4f}, {at}; {above} of {len(own)} sets above"
    median = float(np.median(together))
    return Target(f"{what}, {len(together)} runs ({sets})", bound, median, at_most=True)


def options(description: str, first_seed: int | None = None) -> argparse.ArgumentParser:
    """Return the options of every benchmark: --quick, and --seeds where data is drawn."""
    # Statuses are counted where they matter.
    warnings.simplefilter("ignore", ckm.errors.ClustersWarning)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a short run on less data that shows that the script works; its figures mean little",
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
    """Add the options of benchmarks that measure many seeds of many data sets in processes."""
    parser.add_argument(
        "--count", type=int, help=f"number of seeds (default: {count}, quick: {quick_count})"
    )
    mnist_option(parser)
    jobs_option(parser)
    parser.set_defaults(counts=(count, quick_count))


def mnist_option(parser: argparse.ArgumentParser) -> None:
    """Add --mnist."""
    parser.add_argument(
        "--mnist",
        metavar="FOLDER",
        help="folder of MNIST's idx .gz files, or the word openml "
        "(default: the environment variable MNIST_DIR)",
    )


def jobs_option(parser: argparse.ArgumentParser) -> None:
    """Add --jobs."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=2,
        help="number of processes, where nothing is timed (default: %(default)s)",
    )


def sections_option(parser: argparse.ArgumentParser, sections: Sequence[str]) -> None:
    """Add --sections: which parts of the benchmark to run."""

    def listed(text: str) -> list[str]:
        names = [word.strip() for word in text.split(",")]
        unknown = [name for name in names if name not in sections]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"no section {unknown[0]!r}; choose from {', '.join(sections)}"
            )
        return names

    parser.add_argument(
        "--sections",
        type=listed,
        default=list(sections),
        help=f"what to measure (default: {','.join(sections)})",
    )


def seeds_of(arguments: argparse.Namespace) -> range:
    """Return the requested seeds."""
    count = arguments.count or arguments.counts[arguments.quick]
    return range(arguments.seeds, arguments.seeds + count)


def environment() -> dict[str, Any]:
    """Return where and when figures are measured."""
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
    """Import modules of another library; print a sentence and return None if it is missing."""
    try:
        return [import_module(name) for name in modules]
    except ImportError as error:
        package = modules[0].split(".")[0]
        console.print(
            f"{error.name} is not installed, so its rows are left out; "
            f"install it with pip install {package}."
        )
        return None


def timed(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, float]:
    """Return the function's result and the seconds it took."""
    began = time.perf_counter()
    value = function(*arguments, **options)
    return value, time.perf_counter() - began


def best_times(rounds: int, contenders: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the best seconds of each contender over some rounds, in which they take turns."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, work in contenders.items():
            best[name] = min(best[name], timed(work)[1])
    return best


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; floats have four significant digits."""
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*map(_cell, row))
    console.print(table)


def report(
    name: str, quick: bool, settings: dict[str, Any], results: Any, targets: Sequence[Target]
) -> None:
    """Print the targets and write everything to results/NAME.json (NAME-quick.json if quick)."""
    if targets:
        show(
            "Targets",
            ["what", "target", "measured", "holds"],
            [target.cells() for target in targets],
        )
    here = environment()
    console.print(f"{here['cpu']}, {here['cores']} cores, Python {here['python']}, {here['date']}")
    content = {
        "benchmark": name,
        "quick": quick,
        "environment": here,
        "settings": settings,
        "targets": [{**target._asdict(), "holds": target.holds} for target in targets],
        "results": results,
    }
    RESULTS.mkdir(exist_ok=True)
    path = result_path(name, quick)
    path.write_text(json.dumps(content, indent=1) + "\n")
    console.print(f"Written to {RESULTS.name}/{path.name}.")


def result_path(name: str, quick: bool, ending: str = ".json") -> Path:
    """Return the file that a benchmark's results or plot are written to."""
    return RESULTS / f"{name}{'-quick' if quick else ''}{ending}"


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
