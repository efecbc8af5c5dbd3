"""What every experiment shares: tasks that run once and are logged, summaries of their runs, and
the options of every script.

An experiment is a list of tasks, each a few numbers that name one repetition of one setting, and a
function that runs a task and returns its runs. A finished task is a line of runs/NAME.jsonl, with
its seed and package versions, and does not run again: stop and continue at any time.
results/quick/NAME.json and results/full/NAME.json hold means and standard deviations over
repetitions; plots are drawn from these.
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

from benchmarks import mnist
from benchmarks.harness import console, environment, jobs_option, mnist_option, show
from benchmarks.processes import Outcome, RunLog, replacing, work_all

HERE = Path(__file__).parent
STOPPED = "Stopped; the same command continues from here."

Task = dict[str, Any]
Run = dict[str, Any]
Row = dict[str, Any]


class Plan(NamedTuple):
    """Which sizes and repetitions to run."""

    full: bool
    seeds: range

    @property
    def level(self) -> str:
        """The folder of the results."""
        return "full" if self.full else "quick"


@dataclass(frozen=True)
class Experiment:
    """A figure: its tasks in order, the function that runs one, the measured numbers of a run, and
    the function that draws the summary.
    """

    name: str
    about: str
    tasks: Callable[[Plan], list[Task]]
    work: Callable[[Task], list[Run]]
    measures: tuple[str, ...]
    draw: Callable[[list[Row], Path], None]
    timed: bool = False  # one task at a time, with every core
    repetitions: tuple[int, int] = (10, 100)  # quick, full


class TaskLog(NamedTuple):
    """The log of finished tasks."""

    log: RunLog

    @classmethod
    def at(cls, path: Path) -> "TaskLog":
        """Return the log in this file."""
        return cls(RunLog(path))

    def read(self) -> dict[str, dict[str, Any]]:
        """Return the entry of each finished task, by the task's key."""
        return {key_of(entry["task"]): entry for entry in self.log.read() if "task" in entry}

    def append(self, task: Task, runs: list[Run], seconds: float) -> None:
        """Add a finished task and how long it took."""
        self.log.append(
            {"task": task, "runs": runs, "seconds": round(seconds, 2), "versions": versions()}
        )


def key_of(task: Task) -> str:
    """Return the name of a task."""
    return json.dumps(task, sort_keys=True)


def versions() -> dict[str, str]:
    """Return the versions of the installed packages that runs depend on."""
    return {name: version for name, version in environment()["versions"].items() if version}


def run_task(
    work: Callable[[Task], list[Run]], log: TaskLog, deadline: float, task: Task
) -> Outcome:
    """Run a task and log it, unless the deadline has passed."""
    if time.time() > deadline:
        return Outcome(False, ["Time is up; the same command continues from here."])
    began = time.perf_counter()
    runs = work(task)
    log.append(task, runs, time.perf_counter() - began)
    return Outcome(True, [])


def run_all(
    experiment: Experiment,
    tasks: Sequence[Task],
    log: TaskLog,
    jobs: int,
    minutes: float | None = None,
) -> int:
    """Run the tasks that are not in the log, and return how many remain.

    With jobs = 0 they run in this process.
    """
    known = log.read()
    left = [task for task in tasks if key_of(task) not in known]
    if not left or minutes == 0:
        return len(left)
    # Fill the cache before processes start, so that no two of them compute the same features.
    for size in sorted({task["N"] for task in left if task.get("data") == "mnist"}):
        mnist.features(size)
    deadline = float("inf") if minutes is None else time.time() + 60 * minutes
    work = partial(run_task, experiment.work, log, deadline)
    try:
        done = work_all(work, left, jobs, STOPPED) if jobs else [work(task).found for task in left]
    except KeyboardInterrupt:
        raise SystemExit(STOPPED) from None
    return len(left) - sum(done)


def summarise(entries: Iterable[dict[str, Any]], measures: Sequence[str]) -> list[Row]:
    """Return one row per setting and method: the number of repetitions, the first and last seed,
    and mean, standard deviation and median of every measure.

    A list in a task is what its runs go through; each run names its own value.
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
            deviation = values.std(ddof=1) if len(values) > 1 else 0.0
            found[measure] = {
                "mean": _short(values.mean()),
                "std": _short(deviation),
                "median": _short(np.median(values)),
            }
    return found


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def pick(rows: Iterable[Row], **values: Any) -> list[Row]:
    """Return the rows that have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in values.items())]


def one(rows: Iterable[Row], **values: Any) -> Row:
    """Return the only row with these values; LookupError if it was not measured."""
    found = pick(rows, **values)
    if len(found) != 1:
        raise LookupError(f"{len(found)} rows with {values}")
    return found[0]


def result_path(level: str, name: str, ending: str = ".json", folder: Path = HERE) -> Path:
    """Return the file of a summary or a plot."""
    return folder / "results" / level / f"{name}{ending}"


def read_summary(level: str, name: str, folder: Path = HERE) -> list[Row]:
    """Return the rows of a summary; an empty list if there is no file."""
    path = result_path(level, name, folder=folder)
    return json.loads(path.read_text())["rows"] if path.exists() else []


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write one line per row, so that files are small and their differences readable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n  ".join(json.dumps(row) for row in content["rows"])
    head = json.dumps({name: value for name, value in content.items() if name != "rows"}, indent=1)
    with replacing(path) as part:
        part.write_text(f'{head[:-2]},\n "rows": [\n  {rows}\n ]\n}}\n')


def options(about: str) -> argparse.ArgumentParser:
    """Return the options of every experiment."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "--full",
        action="store_true",
        help="the sizes and the 100 repetitions of the paper (hours); continues where it stopped",
    )
    mnist_option(parser)
    parser.add_argument(
        "--minutes",
        type=float,
        help="start no task after this many minutes; 0 only summarises finished tasks",
    )
    parser.add_argument(
        "--largest",
        type=float,
        default=float("inf"),
        metavar="N",
        help="leave out data with more rows than this",
    )
    parser.add_argument(
        "--repetitions", type=int, help="number of repetitions (default: 10, full: 100)"
    )
    jobs_option(parser)
    parser.add_argument(
        "--redraw", action="store_true", help="only draw the plot again, from the summary"
    )
    return parser


def reproduce(
    experiment: Experiment, arguments: Sequence[str] | None = None, folder: Path = HERE
) -> None:
    """Run the remaining tasks, summarise and draw: the main function of every experiment."""
    chosen = options(experiment.about).parse_args(arguments)
    mnist.name_source(chosen.mnist)
    plan = Plan(chosen.full, range(chosen.repetitions or experiment.repetitions[chosen.full]))
    summary = result_path(plan.level, experiment.name, folder=folder)
    plot = result_path(plan.level, experiment.name, ".png", folder)
    if not chosen.redraw:
        console.rule(f"{experiment.name}: {experiment.about}")
        tasks = [task for task in experiment.tasks(plan) if task["N"] <= chosen.largest]
        if not tasks:
            console.print("There is nothing to do.")
            return
        write_json(summary, measure(experiment, tasks, chosen, folder))
    rows = read_summary(plan.level, experiment.name, folder)
    if rows:
        experiment.draw(rows, plot)
        root = folder.parent
        console.print(f"Written: {summary.relative_to(root)}, {plot.relative_to(root)}")


def measure(
    experiment: Experiment, tasks: Sequence[Task], arguments: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    """Run the remaining tasks, and summarise all finished ones."""
    log = TaskLog.at(folder / "runs" / f"{experiment.name}.jsonl")
    began = time.perf_counter()
    jobs = 0 if experiment.timed else arguments.jobs
    left = run_all(experiment, tasks, log, jobs, arguments.minutes)
    known = log.read()
    entries = [known[key_of(task)] for task in tasks if key_of(task) in known]
    rows = summarise(entries, experiment.measures)
    print_summary(experiment, rows)
    seconds = time.perf_counter() - began
    console.print(f"{len(entries)} of {len(tasks)} tasks are done, {seconds:.0f} s.")
    made_with = {json.dumps(entry["versions"]): entry["versions"] for entry in entries}
    state = {"experiment": experiment.name, "tasks": len(tasks), "left": left}
    return state | {"environment": environment(), "versions": [*made_with.values()], "rows": rows}


def print_summary(experiment: Experiment, rows: list[Row]) -> None:
    """Print the summary; means alone if there are many measures."""
    written = _mean_and_deviation if len(experiment.measures) <= 3 else _mean
    labels = [
        name
        for name in dict.fromkeys(name for row in rows for name in row)
        if name not in (*experiment.measures, "count", "seeds")
    ]
    cells = [
        [
            *(_cell(row.get(name)) for name in labels),
            row["count"],
            *(written(row.get(measure)) for measure in experiment.measures),
        ]
        for row in rows
    ]
    measures = [measure.replace("_", " ") for measure in experiment.measures]
    show(experiment.name, [*labels, "runs", *measures], cells)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _mean_and_deviation(found: dict[str, float] | None) -> str:
    return "" if found is None else f"{found['mean']:.4g} ± {found['std']:.2g}"


def _mean(found: dict[str, float] | None) -> str:
    return "" if found is None else f"{found['mean']:.3g}"
