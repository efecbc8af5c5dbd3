"""Are statuses honest? Every result far above k-means must carry one, and good results none.

"failures": the battery of `failures.py`, each sketched with and without cells and a pool. Each
result above 1.05 times the SSE of k-means must have a status other than "ok".
"alarms": the sets of `quality.py` at m = 5Kn. A status is a false alarm where the SSE is below
1.05; at most one run in 20 may have one.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

import ckm
from benchmarks import mnist
from benchmarks.baselines import baseline, sse
from benchmarks.data import DEFAULT_RATIO, Unavailable, data_sets, prepare
from benchmarks.failures import FAILURES, POOL, Made
from benchmarks.harness import (
    Target,
    options,
    process_options,
    report,
    sections_option,
    seeds_of,
    show,
)
from benchmarks.processes import Outcome, work_all

# A result above it is bad: a better decoder would improve it by more than a few per cent.
BAD = 1.05
MAX_ALARMS = 0.05
# Name -> cells, pool.
VARIANTS = {
    "sketch": (False, False),
    "pool": (False, True),
    "cells": (True, False),
    "fit": (True, True),
}
SECTIONS = ("failures", "alarms")


class Task(NamedTuple):
    """A section, the name of a failure or data set, its group, a seed and a variant."""

    section: str
    data: str
    group: str
    seed: int
    variant: str


class Run(NamedTuple):
    """One decoded sketch."""

    section: str
    data: str
    group: str
    seed: int
    variant: str
    relative: float
    statuses: list[str]
    message: str

    @property
    def is_bad(self) -> bool:
        """Whether the SSE is far above that of k-means."""
        return self.relative > BAD

    @property
    def is_silent(self) -> bool:
        """Whether the status is "ok"."""
        return not self.statuses


def work(quick: bool, task: Task) -> Outcome:
    """Sketch, decode and compare with k-means."""
    try:
        made, key = _make(task, quick)
    except Unavailable as error:
        return Outcome(None, [str(error)])
    best = baseline(key, made.X, made.K, quick)
    cells, pool = VARIANTS[task.variant]
    try:
        sketch = made.sketch(task.seed, cells=cells, pool=pool)
        found = ckm.decode(sketch, made.K, random_state=task.seed, n_jobs=1)
    except Exception as error:  # reported; the others go on
        return Outcome(None, [f"{task.data}, seed {task.seed}: {type(error).__name__}: {error}"])
    statuses = [finding.status.value for finding in found.findings]
    relative = round(_ratio(sse(made.X, found.centroids), best), 6)
    return Outcome(Run(*task, relative, statuses, found.message), [])


def _ratio(value: float, best: float) -> float:
    """SSE / SSE of k-means; one if both are rounding."""
    return 1.0 if max(value, best) < 1e-6 else value / max(best, np.finfo(float).tiny)


def _make(task: Task, quick: bool) -> tuple[Made, str]:
    """Return the data of a task, and a name for its rows."""
    if task.section == "failures":
        return FAILURES[task.data](task.seed), f"failure {task.data} seed={task.seed}"
    (data,) = (data for data in data_sets([task.group], quick) if data.name == task.data)
    X, K = data.load(task.seed, quick)
    return Made(X, K, {"sketch_size": DEFAULT_RATIO * K * X.shape[1]}), data.key(task.seed)


def targets(runs: Sequence[Run], sections: Sequence[str]) -> list[Target]:
    """Return what must hold."""
    found = []
    if "failures" in sections:
        bad = [run for run in runs if run.section == "failures" and run.is_bad]
        what = f"failures above {BAD} with a status, of {len(bad)}"
        found.append(Target(what, 1.0, _share([not run.is_silent for run in bad])))
    if "alarms" in sections:
        for variant in VARIANTS:
            good = [
                run
                for run in runs
                if run.section == "alarms" and run.variant == variant and not run.is_bad
            ]
            what = f"{variant}: good results with a status, of {len(good)}"
            share = _share([not run.is_silent for run in good])
            found.append(Target(what, MAX_ALARMS, share, at_most=True))
        bad = [run for run in runs if run.section == "alarms" and run.is_bad]
        what = f"quality's sets above {BAD} with a status, of {len(bad)}"
        found.append(Target(what, 1.0, _share([not run.is_silent for run in bad])))
    return found


def _share(values: Sequence[bool]) -> float | None:
    return float(np.mean(values)) if values else None


def show_tables(runs: Sequence[Run]) -> None:
    """Print one line per set and variant, and the sentences of every bad result."""
    keys = dict.fromkeys((run.section, run.data, run.variant) for run in runs)
    lines = []
    for key in keys:
        same = [run for run in runs if (run.section, run.data, run.variant) == key]
        relative = [run.relative for run in same]
        seen = dict.fromkeys("+".join(run.statuses) or "ok" for run in same)
        lines.append([*key[1:], f"{np.median(relative):.4g}", f"{max(relative):.4g}", *_join(seen)])
    show("Relative SSE and statuses", ["data", "variant", "median", "worst", "statuses"], lines)
    silent = [
        [run.data, run.variant, run.seed, run.relative]
        for run in runs
        if run.is_bad and run.is_silent
    ]
    show(f"Above {BAD} without a status", ["data", "variant", "seed", "relative"], silent)
    told = {(status, run.message): None for run in runs if run.is_bad for status in run.statuses}
    first = dict(reversed(told))
    show("What is said, an example of each status", ["status", "message"], list(first.items()))


def _join(seen: dict[str, None]) -> list[str]:
    return [", ".join(seen)]


def main() -> None:
    parser = options("Compare statuses with the SSE that they speak of.", first_seed=100)
    process_options(parser, count=10, quick_count=1)
    sections_option(parser, SECTIONS)
    parser.add_argument("--variants", default=",".join(VARIANTS), help="default: %(default)s")
    parser.add_argument("--data", help="only sets whose names contain this text")
    arguments = parser.parse_args()
    mnist.name_source(arguments.mnist)
    seeds = seeds_of(arguments)
    sets = data_sets(["gaussian", "synthetic", "real"], arguments.quick)
    chosen = [("failures", name, "") for name in FAILURES]
    chosen += [("alarms", data.name, data.group) for data in sets]
    tasks = [
        Task(section, name, group, seed, variant)
        for seed in seeds
        for section, name, group in chosen
        for variant in arguments.variants.split(",")
        if section in arguments.sections and (arguments.data or "") in name
    ]
    prepare(sets)
    found = work_all(partial(work, arguments.quick), tasks, arguments.jobs)
    done = {run[:5]: run for run in found if run is not None}
    runs = [done[task] for task in tasks if task in done]
    show_tables(runs)
    settings = {"pool": POOL, "first_seed": seeds[0], "seeds": len(seeds)}
    name = "-".join(["statuses", *(s for s in SECTIONS if arguments.sections == [s])])
    results = [run._asdict() for run in runs]
    report(name, arguments.quick, settings, results, targets(runs, arguments.sections))


if __name__ == "__main__":
    main()
