"""What every experiment shares: tasks that are done once and remembered, summaries of their runs,
and the options of every script.

An experiment is a list of tasks, each a few numbers that name one repetition of one setting, and a
function that does a task and returns its runs. A task that ended is a line of runs/NAME.jsonl, with
its seed and the versions it was made with, and is not done again: stop and continue at will.
results/quick/NAME.json and results/full/NAME.json hold means and deviations over repetitions; plots
are drawn from these.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mnist
from shared import Outcome, console, environment, locked, replacing, show, work_all

HERE = Path(__file__).parent

Task = dict[str, Any]
Run = dict[str, Any]
Row = dict[str, Any]


class Plan(NamedTuple):
    """How much is asked for."""

    full: bool
    seeds: range

    @property
    def level(self) -> str:
        """The folder that its results go to."""
        return "full" if self.full else "quick"


@dataclass(frozen=True)
class Experiment:
    """A figure: its tasks, in the order they are done in; what does one; which numbers of a run are
    measured; what draws the summary.
    """

    name: str
    about: str
    tasks: Callable[[Plan], list[Task]]
    work: Callable[[Task], list[Run]]
    measures: tuple[str, ...]
    draw: Callable[[list[Row], Path], None]
    timed: bool = False  # one task at a time, with every core
    repetitions: tuple[int, int] = (10, 100)  # quick, full


class Store(NamedTuple):
    """The file that remembers what was done, a line for each task."""

    path: Path

    def read(self) -> dict[str, dict[str, Any]]:
        """What is known of each task, by its key; a line cut short by a crash is passed over."""
        found = {}
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            try:
                entry = json.loads(line)
                found[key_of(entry["task"])] = entry
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def append(self, task: Task, runs: list[Run], seconds: float) -> None:
        """Remember a task that ended, and how long it took."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"task": task, "runs": runs, "seconds": round(seconds, 2), "versions": versions()}
        line = json.dumps(entry, separators=(",", ":"), default=float)
        with locked(), self.path.open("a+") as file:
            # a crash left half a line
            if file.seek(0, 2) and not self.path.read_bytes().endswith(b"\n"):
                file.write("\n")
            file.write(line + "\n")


def key_of(task: Task) -> str:
    """The name of a task."""
    return json.dumps(task, sort_keys=True)


def versions() -> dict[str, str]:
    """Of what runs are made with."""
    return {name: version for name, version in environment()["versions"].items() if version}


def do(work: Callable[[Task], list[Run]], store: Store, deadline: float, task: Task) -> Outcome:
    """Do a task and remember it, unless time is up."""
    if time.time() > deadline:
        return Outcome(False, ["Time is up; the same command continues from here."])
    began = time.perf_counter()
    runs = work(task)
    store.append(task, runs, time.perf_counter() - began)
    return Outcome(True, [])


def do_all(
    experiment: Experiment,
    tasks: Sequence[Task],
    store: Store,
    jobs: int,
    minutes: float | None = None,
) -> int:
    """Do what is not yet done, and say how many tasks are left; no process is started for jobs = 0."""
    known = store.read()
    left = [task for task in tasks if key_of(task) not in known]
    if not left or minutes == 0:
        return len(left)
    for size in sorted({task["N"] for task in left if task.get("data") == "mnist"}):
        mnist.features(size)  # kept on disk before processes start, so that no two of them make it
    work = partial(
        do, experiment.work, store, float("inf") if minutes is None else time.time() + 60 * minutes
    )
    stopped = "Stopped; the same command continues from here."
    try:
        done = work_all(work, left, jobs, stopped) if jobs else [work(task).found for task in left]
    except KeyboardInterrupt:
        raise SystemExit(stopped) from None
    return len(left) - sum(done)


def summarise(entries: Iterable[dict[str, Any]], measures: Sequence[str]) -> list[Row]:
    """A row for each setting and method: how many repetitions, their seeds, and mean, deviation and
    median of every measure.

    A list in a task is what its runs go through; each of them names its own.
    """
    groups: dict[str, list[tuple[int, Run]]] = {}
    for entry in entries:
        setting = {
            name: value
            for name, value in entry["task"].items()
            if name != "seed" and not isinstance(value, list)
        }
        for run in entry["runs"]:
            label = setting | {name: value for name, value in run.items() if name not in measures}
            groups.setdefault(json.dumps(label), []).append((entry["task"]["seed"], run))
    return [json.loads(label) | _statistics(runs, measures) for label, runs in groups.items()]


def _statistics(runs: list[tuple[int, Run]], measures: Sequence[str]) -> Row:
    seeds = sorted(seed for seed, _ in runs)
    found: Row = {"count": len(runs), "seeds": [seeds[0], seeds[-1]]}
    for measure in measures:
        values = np.array([run[measure] for _, run in runs if run.get(measure) is not None], float)
        if len(values):
            spread = values.std(ddof=1) if len(values) > 1 else 0.0
            found[measure] = {
                "mean": _short(values.mean()),
                "std": _short(spread),
                "median": _short(np.median(values)),
            }
    return found


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def pick(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def one(rows: Iterable[Row], **wanted: Any) -> Row:
    """The only such row; LookupError where it was not measured."""
    found = pick(rows, **wanted)
    if len(found) != 1:
        raise LookupError(f"{len(found)} rows with {wanted}")
    return found[0]


def result_path(level: str, name: str, ending: str = ".json") -> Path:
    """Where a summary or a plot is."""
    return HERE / "results" / level / f"{name}{ending}"


def read_summary(level: str, name: str) -> list[Row]:
    """The rows of a summary; none where there is no file."""
    path = result_path(level, name)
    return json.loads(path.read_text())["rows"] if path.exists() else []


def write_json(path: Path, content: dict[str, Any]) -> None:
    """A line for each row, so that files are small and their differences can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n  ".join(json.dumps(row) for row in content["rows"])
    head = json.dumps({name: value for name, value in content.items() if name != "rows"}, indent=1)
    with replacing(path) as part:
        part.write_text(f'{head[:-2]},\n "rows": [\n  {rows}\n ]\n}}\n')


def options(about: str) -> argparse.ArgumentParser:
    """The options of every script."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "--full",
        action="store_true",
        help="the sizes and the 100 repetitions of the paper (hours); it continues where it stopped",
    )
    parser.add_argument(
        "--mnist",
        metavar="FOLDER",
        help="where MNIST's idx .gz files are, or the word openml (default: the environment variable MNIST_DIR)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="begin nothing new after this many minutes; 0 only summarises what is done",
    )
    parser.add_argument(
        "--largest",
        type=float,
        default=float("inf"),
        metavar="N",
        help="leave data of more rows out",
    )
    parser.add_argument("--repetitions", type=int, help="how many (default: 10, full: 100)")
    parser.add_argument(
        "--jobs",
        type=int,
        default=2,
        help="processes, where nothing is timed (default: %(default)s)",
    )
    parser.add_argument(
        "--redraw", action="store_true", help="only draw the plot again, from the summary"
    )
    return parser


def reproduce(experiment: Experiment) -> None:
    """The main function of every script: do what is left, summarise, draw."""
    arguments = options(experiment.about).parse_args()
    mnist.name_source(arguments.mnist)
    plan = Plan(
        arguments.full, range(arguments.repetitions or experiment.repetitions[arguments.full])
    )
    summary, plot = (
        result_path(plan.level, experiment.name),
        result_path(plan.level, experiment.name, ".png"),
    )
    if not arguments.redraw:
        console.rule(f"{experiment.name}: {experiment.about}")
        tasks = [task for task in experiment.tasks(plan) if task["N"] <= arguments.largest]
        if not tasks:
            console.print("So there is nothing to do.")
            return
        write_json(summary, measure(experiment, tasks, arguments))
    rows = read_summary(plan.level, experiment.name)
    if rows:
        experiment.draw(rows, plot)
        console.print(
            f"Written: {summary.relative_to(HERE.parent)}, {plot.relative_to(HERE.parent)}"
        )


def measure(
    experiment: Experiment, tasks: Sequence[Task], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Do what is left, and summarise all that is known of these tasks."""
    store, began = Store(HERE / "runs" / f"{experiment.name}.jsonl"), time.perf_counter()
    left = do_all(
        experiment, tasks, store, 0 if experiment.timed else arguments.jobs, arguments.minutes
    )
    known = store.read()
    entries = [known[key_of(task)] for task in tasks if key_of(task) in known]
    rows = summarise(entries, experiment.measures)
    tell(experiment, rows)
    console.print(
        f"{len(entries)} of {len(tasks)} tasks are done, {time.perf_counter() - began:.0f} s."
    )
    made_with = {json.dumps(entry["versions"]): entry["versions"] for entry in entries}
    state = {"experiment": experiment.name, "tasks": len(tasks), "left": left}
    return state | {"environment": environment(), "versions": [*made_with.values()], "rows": rows}


def tell(experiment: Experiment, rows: list[Row]) -> None:
    """Print the summary; means alone where there are many measures."""
    written = _spread if len(experiment.measures) <= 3 else _mean
    labels = [
        name
        for name in dict.fromkeys(name for row in rows for name in row)
        if name not in (*experiment.measures, "count", "seeds")
    ]
    cells = [
        [
            *(_cell(row.get(name)) for name in labels),
            row["count"],
            *(written(row.get(m)) for m in experiment.measures),
        ]
        for row in rows
    ]
    show(
        experiment.name,
        [*labels, "runs", *(measure.replace("_", " ") for measure in experiment.measures)],
        cells,
    )


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)


def _spread(found: dict[str, float] | None) -> str:
    return "" if found is None else f"{found['mean']:.4g} ± {found['std']:.2g}"


def _mean(found: dict[str, float] | None) -> str:
    return "" if found is None else f"{found['mean']:.3g}"
