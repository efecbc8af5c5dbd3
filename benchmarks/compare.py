"""Is `ckm.compare` right? Its false alarms, its power beside a test on the rows, and what it names.

"level": samples of one distribution are compared; each of the nominal levels must be met.
"power": one column's mean or variance, or one cluster's share, is changed, by as much as a
permutation test of the exact kernel on the rows finds in half to four fifths of the cases. The
kernel is the one whose random features the sketch has, or the Gaussian of the median distance.
Here the changed column, or cluster, must be named first; how often the largest statistic of the
columns' own rows names it is printed beside.

Each task has frequencies, clusters and rows of its own seed. A task that has ended is written to a
log at once: `--resume` goes on from it, and `--minutes` ends with the rates of what there is. Tasks
are in such an order that all settings have about as many.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta as beta_law

import ckm
from benchmarks.compare_rows import law_kernel, permutation_p_value, squared_distances
from benchmarks.harness import CACHE, Target, jobs_option, options, report, sections_option, show
from benchmarks.processes import Outcome, RunLog, work_all

SECTIONS = ("level", "power")
LEVELS = (0.05, 0.01)
# The 99.9 % interval of the rate must meet these multiples of the level.
LEVEL_BAND = (0.5, 1.5)
LEVEL_REPEATS = 10_000
POWER_REPEATS = 1000
# Repeats of a task, which share frequencies.
BATCH = 125
POWER_BATCH = 50
MIN_POWER_RATIO = 0.9
MIN_NAMED = 0.95
# Rows that the frequencies are chosen on.
DESIGN_ROWS = 5000
CLUSTERS = 10
LOG = RunLog(CACHE / "compare.jsonl")

Task = tuple[str, Any, int, int]
Draw = Callable[..., np.ndarray]


class Setting(NamedTuple):
    """What is compared in the section "level"."""

    data: str
    n: int
    m: int
    size_a: int
    size_b: int
    kind: str = "rows"  # "weights" and "decayed" are of weighted rows
    cells: bool = True

    @property
    def name(self) -> str:
        """One line of the table."""
        beside = "" if self.cells else ", sketch only"
        kind = "" if self.kind == "rows" else f", {self.kind}"
        sizes = f"{self.size_a} + {self.size_b}"
        return f"{self.data} n={self.n} m={self.m} {sizes}{kind}{beside}"


class Shift(NamedTuple):
    """What is changed in the section "power", and by how much."""

    data: str
    n: int
    m: int
    size: int
    change: str
    amount: float

    @property
    def name(self) -> str:
        """One line of the table."""
        return f"{self.data} n={self.n} m={self.m} {self.size} rows, {self.change} {self.amount:g}"


SETTINGS = (
    Setting("mixture", 10, 100, 1000, 1000),
    Setting("mixture", 10, 300, 1000, 1000),
    Setting("mixture", 10, 1000, 1000, 1000),
    Setting("mixture", 10, 300, 300, 3000),
    Setting("mixture", 10, 300, 1000, 1000, "weights"),
    Setting("mixture", 10, 300, 1000, 1000, "decayed"),
    Setting("mixture", 10, 200, 1000, 1000, cells=False),
    Setting("student", 3, 100, 1000, 1000),
    Setting("student", 5, 300, 300, 3000),
    Setting("lognormal", 3, 100, 300, 3000),
    Setting("lognormal", 5, 1000, 1000, 1000),
    Setting("lognormal", 5, 100, 1000, 1000, "weights"),
    Setting("lognormal", 5, 100, 1000, 1000, cells=False),
)
SHIFTS = (
    Shift("mixture", 10, 300, 300, "mean", 0.6),
    Shift("mixture", 10, 300, 300, "variance", 1.1),
    Shift("mixture", 10, 300, 300, "share", 0.14),
    Shift("clusters", 2, 100, 300, "mean", 0.48),
    Shift("clusters", 2, 100, 300, "variance", 0.62),
    Shift("clusters", 2, 100, 300, "share", 0.16),
    Shift("gaussian", 5, 100, 300, "mean", 0.29),
    Shift("gaussian", 5, 100, 300, "variance", 0.36),
)


def make_draw(data: str, n: int, seed: int) -> Draw:
    """Return what draws rows (N, n), with a change of some amount: of the mean or the deviation of
    one column, within clusters, or of the share of one cluster.
    """
    rng = np.random.default_rng([seed, 7])
    column = int(rng.integers(n))
    K = {"mixture": CLUSTERS, "clusters": 5}.get(data, 1)
    separation = {"mixture": 1.5, "clusters": 10.0}.get(data, 0.0)
    means = rng.standard_normal((K, n)) * np.sqrt(separation * K ** (1 / n))

    def draw(
        rng: np.random.Generator, size: int, change: str = "none", amount: float = 0.0
    ) -> np.ndarray:
        shares = np.full(K, 1 / K)
        if change == "share":
            shares[0] += amount
            shares /= shares.sum()
        noise = _noise(data, rng, (size, n))
        if change == "variance":
            noise[:, column] *= 1 + amount
        if change == "mean":
            noise[:, column] += amount
        return noise + means[rng.choice(K, p=shares, size=size)]

    draw.column = column  # type: ignore[attr-defined]
    draw.cluster = means[0]  # type: ignore[attr-defined]
    return draw


def _noise(data: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    if data == "student":
        return rng.standard_t(3, size=shape)
    if data == "lognormal":
        return rng.lognormal(size=shape)
    return rng.standard_normal(shape)


def work(ends_at: float, task: Task) -> Outcome:
    """Run some repeats of a setting, from one seed, unless it is too late."""
    if time.time() > ends_at:
        return Outcome(None, ["Some tasks are left out: the time is over."])
    section, setting, seed, repeats = task
    run = _run_levels if section == "level" else _run_power
    try:
        found = run(setting, seed, repeats)
        LOG.append({"task": _key(task), "runs": found})
        return Outcome((setting, found), [])
    except Exception as error:  # reported; the others go on
        return Outcome(None, [f"{setting.name}, seed {seed}: {type(error).__name__}: {error}"])


def _key(task: Task) -> str:
    """Return the name of a task in the log."""
    section, setting, seed, repeats = task
    return f"{section}: {setting.name}, seed {seed}, {repeats} repeats"


def _run_levels(setting: Setting, seed: int, repeats: int) -> list[dict[str, float]]:
    """Return p-values of samples of one distribution."""
    draw = make_draw(setting.data, setting.n, seed)
    rng = np.random.default_rng([seed, 8])
    design = find_design(draw, setting.m, rng, seed, cells=setting.cells)
    found = []
    for _ in range(repeats):
        a = _sketch(draw, setting, setting.size_a, design, rng)
        b = _sketch(draw, setting, setting.size_b, design, rng)
        c = ckm.compare(a, b)
        found.append({"p_value": c.p_value, "p_features": c.p_features})
    return found


def find_design(
    draw: Draw, m: int, rng: np.random.Generator, seed: int, *, cells: bool = True
) -> ckm.Sketch:
    """Return a sketch of some rows, whose frequencies the others have."""
    more = {} if cells else {"cells": 0}
    return ckm.sketch(
        draw(rng, DESIGN_ROWS),
        n_clusters=CLUSTERS if cells else None,
        sketch_size=m,
        random_state=seed,
        n_jobs=1,
        **more,
    )


def _sketch(
    draw: Draw, setting: Setting, size: int, design: ckm.Sketch, rng: np.random.Generator
) -> ckm.Sketch:
    if setting.kind == "weights":
        weights = rng.exponential(size=size)
        return ckm.sketch(draw(rng, size), like=design, sample_weight=weights, n_jobs=1)
    if setting.kind == "decayed":
        total = ckm.sketch(draw(rng, size // 4), like=design, n_jobs=1)
        for _ in range(3):
            total = total.scaled(0.7) + ckm.sketch(draw(rng, size // 4), like=design, n_jobs=1)
        return total
    return ckm.sketch(draw(rng, size), like=design, n_jobs=1)


def _run_power(shift: Shift, seed: int, repeats: int) -> list[dict[str, float]]:
    """Return which tests reject at 5 %, and whether what was changed is named first."""
    draw = make_draw(shift.data, shift.n, seed)
    rng = np.random.default_rng([seed, 9])
    design = find_design(draw, shift.m, rng, seed)
    kernel = law_kernel(design.frequencies)
    found = []
    for _ in range(repeats):
        first = draw(rng, shift.size)
        second = draw(rng, shift.size, shift.change, shift.amount)
        sketches = [ckm.sketch(rows, like=design, n_jobs=1) for rows in (first, second)]
        c = ckm.compare(*sketches)
        squares = squared_distances(np.vstack([first, second]))
        median = np.median(squares[np.triu_indices(len(squares), 1)])
        by_law = permutation_p_value(kernel(squares), shift.size, rng)
        by_median = permutation_p_value(np.exp(-squares / median), shift.size, rng)
        found.append(
            {
                "sketch": c.p_value <= LEVELS[0],
                "features": c.p_features <= LEVELS[0],
                "law": by_law <= LEVELS[0],
                "median": by_median <= LEVELS[0],
                "named": _is_named(c, draw, shift.change),
                "named_by_rows": _is_named_by_rows(first, second, draw, shift.change),
            }
        )
    return found


def _is_named(found: ckm.Comparison, draw: Any, change: str) -> bool:
    if change != "share":
        return found.columns[0].index == draw.column
    first = found.clusters[0]
    gaps = [((c.centroid_a - draw.cluster) ** 2).sum() for c in found.clusters]
    return first is found.clusters[int(np.argmin(gaps))]


def _is_named_by_rows(first: np.ndarray, second: np.ndarray, draw: Any, change: str) -> bool:
    """Whether the largest statistic of all rows is that of the changed column: t of its means, or
    the logarithm of the ratio of its variances. No column is changed with a share.
    """
    variances = np.stack([first.var(axis=0, ddof=1), second.var(axis=0, ddof=1)])
    if change == "mean":
        errors = np.sqrt(variances[0] / len(first) + variances[1] / len(second))
        evidence = np.abs(first.mean(axis=0) - second.mean(axis=0)) / errors
    else:
        evidence = np.abs(np.log(variances[0] / variances[1]))
    return change != "share" and int(evidence.argmax()) == draw.column


def binomial_interval(hits: int, count: int, confidence: float = 0.999) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson for a rate."""
    tail = (1 - confidence) / 2
    low = beta_law.ppf(tail, hits, count - hits + 1) if hits else 0.0
    high = beta_law.ppf(1 - tail, hits + 1, count - hits) if hits < count else 1.0
    return float(low), float(high)


def level_targets(found: dict[Setting, list[dict[str, float]]]) -> list[Target]:
    """Print the rates, and return what must hold of them."""
    lines = []
    missed = []
    for setting, runs in found.items():
        p = np.array([run["p_value"] for run in runs])
        own = np.array([run["p_features"] for run in runs])
        line: list[Any] = [setting.name, len(p)]
        for level in LEVELS:
            hits = int((p <= level).sum())
            low, high = binomial_interval(hits, len(p))
            meets = low <= LEVEL_BAND[1] * level and high >= LEVEL_BAND[0] * level
            missed += [] if meets else [f"{setting.name} at {level:g}"]
            rates = f"{hits / len(p):.4f} ({low:.4f} to {high:.4f})"
            line += [rates, f"{(own <= level).mean():.4f}"]
        lines.append(line)
    columns = ["one distribution", "repeats"]
    for level in LEVELS:
        columns += [f"rejected at {level:g}", "features alone"]
    show("Level", columns, lines)
    what = f"rates of {len(LEVELS) * len(found)} whose interval misses 0.5 to 1.5 times the level"
    where = f" ({'; '.join(missed)})" if missed else ""
    return [Target(what + where, 0, float(len(missed)), at_most=True)]


def power_targets(found: dict[Shift, list[dict[str, float]]]) -> list[Target]:
    """Print the powers, and return what must hold of them."""
    names = ("sketch", "features", "law", "median", "named", "named_by_rows")
    targets = []
    lines = []
    for shift, runs in found.items():
        rates = {name: float(np.mean([run[name] for run in runs])) for name in names}
        lines.append([shift.name, len(runs), *rates.values()])
        best = max(rates["law"], rates["median"])
        ratio = rates["sketch"] / best if best else None
        what = f"power / that on the rows ({best:.2f}): {shift.name}"
        targets.append(Target(what, MIN_POWER_RATIO, ratio))
        target = MIN_NAMED if shift.change != "share" else 0.0
        targets.append(Target(f"named first: {shift.name}", target, rates["named"]))
    columns = ["changed", "repeats", "compare", "features alone", "rows, same kernel"]
    columns += ["rows, median", "named first", "named by rows"]
    show("Power at 5 %", columns, lines)
    return targets


def main() -> None:
    parser = options("Measure level, power and naming of ckm.compare.", first_seed=100)
    parser.add_argument("--repeats", type=int, help="of each setting (default: 10 000 and 1000)")
    parser.add_argument("--settings", default="", help="only those whose names contain this text")
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin no task after these")
    parser.add_argument("--resume", action="store_true", help="go on from the log of the last run")
    jobs_option(parser)
    sections_option(parser, SECTIONS)
    arguments = parser.parse_args()
    found = _run_all(arguments)
    levels = {key: runs for key, runs in found.items() if isinstance(key, Setting) and runs}
    powers = {key: runs for key, runs in found.items() if isinstance(key, Shift) and runs}
    targets = level_targets(levels) if levels else []
    targets += power_targets(powers) if powers else []
    results = [{"name": key.name, "runs": runs} for key, runs in (levels | powers).items()]
    name = "-".join(["compare", *(s for s in SECTIONS if arguments.sections == [s])])
    summary = [_summary(entry) for entry in results]
    report(name, arguments.quick, {"first_seed": arguments.seeds}, summary, targets)


def _run_all(arguments: Any) -> dict[Any, list[dict[str, float]]]:
    """Return the runs of each setting, those of the log among them."""
    ends_at = time.time() + 60 * arguments.minutes
    found: dict[Any, list[dict[str, float]]] = {s: [] for s in (*SETTINGS, *SHIFTS)}
    if not arguments.resume:
        LOG.path.unlink(missing_ok=True)
    known = {entry["task"]: entry["runs"] for entry in LOG.read()}
    left = []
    for task in _tasks(arguments):
        runs = known.get(_key(task))
        if runs is None:
            left.append(task)
        else:
            found[task[1]] += runs
    for part in work_all(partial(work, ends_at), left, arguments.jobs):
        if part is not None:
            found[part[0]] += part[1]
    return found


def _summary(entry: dict[str, Any]) -> dict[str, Any]:
    """Return rates in place of all p-values."""
    runs = entry["runs"]
    rates = {}
    for name in runs[0]:
        values = np.array([run[name] for run in runs], float)
        if name.startswith("p_"):
            rates[name] = {f"{level:g}": float((values <= level).mean()) for level in LEVELS}
        else:
            rates[name] = float(values.mean())
    return {"name": entry["name"], "repeats": len(runs), **rates}


def _tasks(arguments: Any) -> Sequence[Task]:
    tasks = list[Task]()
    for section, settings, usual, batch in (
        ("level", SETTINGS, LEVEL_REPEATS, BATCH),
        ("power", SHIFTS, POWER_REPEATS, POWER_BATCH),
    ):
        if section not in arguments.sections:
            continue
        repeats = arguments.repeats or (20 if arguments.quick else usual)
        for setting in settings:
            if arguments.settings not in setting.name:
                continue
            for i in range(0, repeats, batch):
                seed = arguments.seeds + i // batch
                tasks.append((section, setting, seed, min(batch, repeats - i)))
    return sorted(tasks, key=lambda task: task[2])


if __name__ == "__main__":
    main()
