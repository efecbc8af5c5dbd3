"""What each step and each constant of the decoder is worth: the SSE and the decoding time without
it, or with half and twice its value, relative to the decoder as it is.

Sketches are the same for all decoders, on seeds that nothing else is reported on. The decoder as it
is runs several times on each of them, with other seeds of its own: how much these runs differ is
the noise. A change counts where it is above the noise, and above 0.1 % of the SSE.

`--table` writes the tables of docs/decoder.md from the last results and measures nothing.
"""

import argparse
import time
from collections.abc import Sequence
from functools import cache, partial
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ckm
from benchmarks import mnist
from benchmarks.ablation_changes import KINDS, STEPS, Change, constants
from benchmarks.ablation_table import update_page
from benchmarks.data import HEAVY, REAL, DataSet, Unavailable, anisotropic, gaussian
from benchmarks.harness import (
    CACHE,
    console,
    jobs_option,
    mnist_option,
    options,
    report,
    show,
)
from benchmarks.processes import Outcome, RunLog, replacing, work_all
from ckm._decoding.api import Run as Decoding
from ckm._decoding.density import by_density
from ckm._decoding.sample import SampledRows
from ckm._kmeans.assign import Centroids
from ckm._sources.arrays import ArraySource

SEEDS = 50
COUNT = 3
# Runs of the decoder as it is on each sketch, with seeds of its own.
REPEATS = 6
# Of a decoder that lacks a step, likewise.
STEP_REPEATS = 3
POOL = 1000
# Separation of clusters that are so small beside the data that stages matter (the paper: 1.5).
TIGHT = 100.0
FOLDER = CACHE / "ablation"
# Every finished decoding, for --resume.
LOG = RunLog(FOLDER / "runs.jsonl")


class Case(NamedTuple):
    """A data set, what its sketches hold, and whether constants are changed on it too."""

    name: str
    kind: str
    data: DataSet
    has_constants: bool = True

    def rows_path(self, seed: int) -> Path:
        """Return where its rows are kept, in float32, with K."""
        return FOLDER / f"{self.data.key(seed)}.npz"

    def sketch_path(self, seed: int) -> Path:
        """Return where its sketch is kept."""
        return FOLDER / f"{self.data.key(seed)} {self.kind} {seed}.ckm"


def tight(n_samples: int, seed: int) -> tuple[np.ndarray, int]:
    """Return fifty clusters that are small beside the data."""
    drawn = ckm.datasets.gaussian_mixture(n_samples, 50, 3, separation=TIGHT, random_state=seed)
    return drawn.rows, 50


def _made(name: str, make: Any) -> DataSet:
    return DataSet(name, "real" if name in REAL else "synthetic", (), make)


# Constants are many: the sets that they are changed on decode quickly, or search for longest.
CASES = (
    Case("gaussian", "sketch", _made("gaussian", partial(gaussian, 10, 10)), has_constants=False),
    Case("K = 30", "sketch", _made("gaussian K=30", partial(gaussian, 30, 3)), has_constants=False),
    Case("tight", "sketch", _made("tight", tight)),
    Case("anisotropic", "sketch", _made("anisotropic", anisotropic)),
    Case("MNIST", "sketch", _made("mnist-pca16", REAL["mnist-pca16"]), has_constants=False),
    Case("china.jpg", "sketch", _made("china.jpg", REAL["china.jpg"])),
    Case("lognormal", "heavy", _made("lognormal", HEAVY["lognormal"])),
    Case("shuttle", "heavy", _made("shuttle", REAL["shuttle"])),
    Case("MNIST, pool", "pool", _made("mnist-pca16", REAL["mnist-pca16"])),
    Case("shuttle, pool", "pool", _made("shuttle", REAL["shuttle"])),
    Case("MNIST, cells", "cells", _made("mnist-pca16", REAL["mnist-pca16"])),
    Case("china.jpg, cells", "cells", _made("china.jpg", REAL["china.jpg"])),
    Case("lognormal, cells", "cells", _made("lognormal", HEAVY["lognormal"])),
    Case("K = 30, cells", "cells", _made("gaussian K=30", partial(gaussian, 30, 3))),
    Case("MNIST, stale cells", "stale", _made("mnist-pca16", REAL["mnist-pca16"])),
    Case("china.jpg, stale cells", "stale", _made("china.jpg", REAL["china.jpg"])),
)


class Task(NamedTuple):
    """A change, by its place in `changes()`, the name of a case, a seed, and which repeat."""

    change: int
    case: str
    seed: int
    repeat: int = 0


class Run(NamedTuple):
    """One decoding."""

    change: str
    case: str
    seed: int
    repeat: int
    sse: float
    seconds: float


@cache
def changes() -> list[Change]:
    """Return the decoder as it is, then every change."""
    return [Change("none", KINDS), *STEPS, *constants()]


def prepare(case: Case, seeds: Sequence[int], quick: bool) -> bool:
    """Keep the rows of a case, where they are not kept yet, and sketch them; False if the data is
    not available.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        rows = case.rows_path(seed)
        if not rows.exists():
            try:
                X, K = case.data.load(seed, quick)
            except Unavailable as error:
                console.print(str(error), markup=False)
                return False
            with replacing(rows) as part, part.open("wb") as file:
                np.savez(file, X=np.ascontiguousarray(X, np.float32), K=K)
        make_sketch(*load_rows(rows), case.kind, seed).save(case.sketch_path(seed))
    return True


def make_sketch(X: np.ndarray, K: int, kind: str, seed: int) -> ckm.Sketch:
    """Return a sketch; stale cells are those of the first fifth of rows, sorted by a column."""
    chosen: dict[str, Any] = {"n_clusters": K, "random_state": seed, "n_jobs": 1}
    if kind not in ("cells", "stale"):
        return ckm.sketch(X, **chosen, cells=0, pool=POOL if kind == "pool" else 0)
    if kind == "cells":
        return ckm.sketch(X, **chosen)
    first = X[np.argsort(X[:, 0], kind="stable")[: len(X) // 5]]
    return ckm.sketch(X, like=ckm.sketch(first, **chosen), n_jobs=1)


@cache
def load_rows(path: Path) -> tuple[np.ndarray, int]:
    """Return X and K."""
    with np.load(path) as kept:
        return kept["X"], int(kept["K"])


def work(until: float, task: Task) -> Outcome:
    """Decode a sketch with one change, and log it; nothing after the time `until`."""
    if time.time() > until:
        return Outcome(None, [])
    outcome = decode(task)
    if outcome.found is not None:
        LOG.append(outcome.found._asdict())
    return outcome


def decode(task: Task) -> Outcome:
    """Decode a sketch with one change."""
    change = changes()[task.change]
    (case,) = (case for case in CASES if case.name == task.case)
    X, K = load_rows(case.rows_path(task.seed))
    sketch = ckm.load(case.sketch_path(task.seed))
    decoding = Decoding(
        name="density",
        search=by_density,
        K=K,
        init="auto",
        rows=SampledRows.of(sketch),
        seed=task.seed + 1000 * task.repeat,
    )
    try:
        with change.applied() as settings:
            began = time.process_time()
            found = decoding.decode(sketch, settings=settings)
            seconds = time.process_time() - began
    except Exception as error:  # reported; the others go on
        return Outcome(None, [f"{change.name}, {case.name}: {type(error).__name__}: {error}"])
    value = Centroids(found.centroids).sse(ArraySource(X), n_jobs=1)
    return Outcome(Run(change.name, *task[1:], value, round(seconds, 4)), [])


def compile_all(cases: Sequence[Case], seed: int) -> None:
    """Decode one sketch of each kind, also in float64, so that no measured time includes
    compilation.
    """
    names = [change.name for change in changes()]
    for case in {case.kind: case for case in cases}.values():
        for name in ("none", "descents in float64"):
            decode(Task(names.index(name), case.name, seed))


def touches(change: Change, case: Case) -> bool:
    """Return whether a change is measured on a case."""
    return case.kind in change.kinds and (case.has_constants or change.constant is None)


def all_tasks(cases: Sequence[Case], seeds: Sequence[int]) -> list[Task]:
    """Return every decoding: those of the usual decoder, then of every change, then the repeats of
    steps, so that a run cut short has all changes.
    """
    phases: tuple[list[Task], ...] = ([], [], [])
    for seed in seeds:
        for i, change in enumerate(changes()):
            for case in (case for case in cases if touches(change, case)):
                task = Task(i, case.name, seed)
                if i == 0:
                    phases[0].extend(task._replace(repeat=k) for k in range(REPEATS))
                    continue
                phases[1].append(task)
                if change.constant is None:
                    phases[2].extend(task._replace(repeat=k) for k in range(1, STEP_REPEATS))
    return [task for phase in phases for task in phase]


def _key(run: Run) -> tuple[str, str, int, int]:
    return run.change, run.case, run.seed, run.repeat


class Effect(NamedTuple):
    """What a change does to one case: shares of the SSE and of the time, each beside what noise
    explains.
    """

    change: str
    case: str
    runs: int
    sse: float
    time: float
    sse_noise: float
    time_noise: float


def effects(runs: Sequence[Run]) -> list[Effect]:
    """Return the median over seeds and repeats of the relative change, for every change and case.

    Each run is compared with the usual one of the same sketch and seed: one that is not touched by
    the change has the same bits.
    """
    usual = {(run.case, run.seed, run.repeat): run for run in runs if run.change == "none"}
    pairs: dict[tuple[str, str], list[tuple[Run, Run]]] = {}
    for run in runs:
        if run.change != "none":
            pair = (run, usual[run.case, run.seed, run.repeat])
            pairs.setdefault((run.change, run.case), []).append(pair)
    return [
        Effect(change, case, len(own), *_median(own), *_noise(own, usual))
        for (change, case), own in pairs.items()
    ]


def _median(pairs: Sequence[tuple[Run, Run]]) -> tuple[float, float]:
    """Return the median SSE and time of first runs relative to second ones, less one."""
    values = np.median([a.sse / b.sse - 1 for a, b in pairs])
    seconds = np.median([a.seconds / b.seconds - 1 for a, b in pairs])
    return round(float(values), 6), round(float(seconds), 4)


def _noise(
    pairs: Sequence[tuple[Run, Run]], usual: dict[tuple[str, int, int], Run]
) -> tuple[float, float]:
    """Return how far two repeats of the usual decoder are apart, at most: medians over the seeds of
    these pairs.
    """
    places = {(run.case, run.seed) for run, _ in pairs}
    medians = [
        _median([(usual[*place, i], usual[*place, j]) for place in places])
        for i, j in permutations(range(REPEATS), 2)
    ]
    values, seconds = np.abs(medians).max(axis=0)
    return float(values), float(seconds)


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = options(__doc__.split("\n\n", maxsplit=1)[0], SEEDS)
    parser.add_argument("--count", type=int, default=COUNT, help="number of seeds")
    parser.add_argument(
        "--minutes", type=float, default=np.inf, help="start no decoding after this time"
    )
    parser.add_argument("--resume", action="store_true", help="continue a run that was cut short")
    parser.add_argument(
        "--table", action="store_true", help="write the tables of docs/decoder.md, and stop"
    )
    mnist_option(parser)
    jobs_option(parser)
    return parser.parse_args()


def main() -> None:
    """Measure every change, and show those that matter most."""
    chosen = arguments()
    if chosen.table:
        update_page()
        return
    mnist.name_source(chosen.mnist)
    seeds = range(chosen.seeds, chosen.seeds + (1 if chosen.quick else chosen.count))
    cases = [case for case in CASES if not chosen.quick or case.kind == "cells"]
    cases = [case for case in cases if prepare(case, seeds, quick=False)]
    compile_all(cases, seeds[0])
    kinds = {case.name: case.kind for case in cases}
    until = time.time() + 60 * chosen.minutes
    tasks = all_tasks(cases, seeds)
    if not chosen.resume:
        LOG.path.unlink(missing_ok=True)
    done = {_key(run): run for run in (Run(**entry) for entry in LOG.read())}
    missing = [task for task in tasks if (changes()[task.change].name, *task[1:]) not in done]
    done |= {_key(run): run for run in work_all(partial(work, until), missing, chosen.jobs) if run}
    runs = [run for run in done.values() if run.seed in seeds and run.case in kinds]
    found = effects(runs)
    worst = sorted(found, key=lambda effect: -effect.sse)[:30]
    show("What raises the SSE most", Effect._fields, worst)
    usual = [run._asdict() for run in runs if run.change == "none"]
    report(
        "ablation",
        chosen.quick,
        {
            "seeds": list(seeds),
            "repeats": REPEATS,
            "decodings": len(runs),
            "asked": len(tasks),
            "kinds": kinds,
        },
        {"usual": usual, "effects": [effect._asdict() for effect in found]},
        [],
    )


if __name__ == "__main__":
    main()
