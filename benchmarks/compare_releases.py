"""The level of `ckm.compare` on private releases: how often it rejects one distribution.

Rows of both samples are drawn from one mixture of Gaussians, sketched with a public design, and
released. Each task has frequencies, clusters and rows of its own seed; the noise of a release comes
from the operating system, so that no run repeats another.
"""

from typing import Any, NamedTuple

import numpy as np

import ckm
from benchmarks.compare import LEVEL_BAND, binomial_interval, make_draw
from benchmarks.harness import Target, jobs_option, options, report, show
from benchmarks.processes import Outcome, work_all

LEVELS = (0.1, 0.05, 0.01)
DELTA = 1e-6
REPEATS = 1000
# Repeats of a task, which share frequencies and clusters.
BATCH = 25
# Public bounds of every column.
REACH = 12.0


class Setting(NamedTuple):
    """What is compared."""

    data: str
    n: int
    m: int
    size_a: int
    size_b: int
    epsilon: float

    @property
    def name(self) -> str:
        """One line of the table."""
        sizes = f"{self.size_a} + {self.size_b}"
        return f"{self.data} n={self.n} m={self.m} {sizes} epsilon={self.epsilon:g}"


class Task(NamedTuple):
    """Some repeats of a setting, from one seed."""

    setting: Setting
    seed: int
    repeats: int


SETTINGS = (
    Setting("clusters", 2, 100, 2000, 2000, 0.3),
    Setting("clusters", 2, 100, 2000, 2000, 1.0),
    Setting("clusters", 2, 100, 2000, 2000, 3.0),
    Setting("clusters", 2, 100, 1000, 5000, 0.3),
    Setting("mixture", 5, 200, 2000, 2000, 0.3),
    Setting("mixture", 5, 200, 2000, 2000, 1.0),
    Setting("mixture", 5, 200, 2000, 2000, 3.0),
    Setting("mixture", 5, 200, 1000, 5000, 1.0),
)


def work(task: Task) -> Outcome:
    """Return p-values of releases of one distribution."""
    setting, seed, repeats = task
    draw = make_draw(setting.data, setting.n, seed)
    rng = np.random.default_rng([seed, 10])
    bounds = (np.full(setting.n, -REACH), np.full(setting.n, REACH))
    design = ckm.public_frequencies(bounds, sketch_size=setting.m, seed=seed)
    found = []
    for _ in range(repeats):
        pair = [
            ckm.release(ckm.sketch(draw(rng, size), like=design, n_jobs=1), setting.epsilon, DELTA)
            for size in (setting.size_a, setting.size_b)
        ]
        found.append(ckm.compare(*pair).p_value)
    return Outcome((setting, found), [])


def level_targets(found: dict[Setting, list[float]]) -> list[Target]:
    """Print the rates, and return what must hold of them."""
    lines = []
    missed = []
    for setting, values in found.items():
        p = np.array(values)
        line: list[Any] = [setting.name, len(p), float(p.mean())]
        for level in LEVELS:
            hits = int((p <= level).sum())
            low, high = binomial_interval(hits, len(p))
            meets = low <= LEVEL_BAND[1] * level and high >= LEVEL_BAND[0] * level
            missed += [] if meets else [f"{setting.name} at {level:g}"]
            line.append(f"{hits / len(p):.4f} ({low:.4f} to {high:.4f})")
        lines.append(line)
    rejected = [f"rejected at {level:g}" for level in LEVELS]
    show("Level", ["one distribution", "repeats", "mean p", *rejected], lines)
    what = f"rates of {len(LEVELS) * len(found)} whose interval misses 0.5 to 1.5 times the level"
    where = f" ({'; '.join(missed)})" if missed else ""
    return [Target(what + where, 0, float(len(missed)), at_most=True)]


def _summary(setting: Setting, values: list[float]) -> dict[str, Any]:
    p = np.array(values)
    rates = {f"{level:g}": float((p <= level).mean()) for level in LEVELS}
    return {"name": setting.name, "repeats": len(p), "mean": float(p.mean()), "rates": rates}


def main() -> None:
    parser = options("Measure the level of ckm.compare on releases.", first_seed=100)
    parser.add_argument("--repeats", type=int, help=f"of each setting (default: {REPEATS})")
    parser.add_argument("--settings", default="", help="only those whose names contain this text")
    jobs_option(parser)
    arguments = parser.parse_args()
    repeats = arguments.repeats or (BATCH if arguments.quick else REPEATS)
    found: dict[Setting, list[float]] = {
        setting: [] for setting in SETTINGS if arguments.settings in setting.name
    }
    tasks = [
        Task(setting, arguments.seeds + i // BATCH, min(BATCH, repeats - i))
        for i in range(0, repeats, BATCH)
        for setting in found
    ]
    for part in work_all(work, tasks, arguments.jobs):
        if part is not None:
            found[part[0]] += part[1]
    targets = level_targets(found)
    summary = [_summary(setting, values) for setting, values in found.items()]
    what = {"first_seed": arguments.seeds, "delta": DELTA}
    report("compare-releases", arguments.quick, what, summary, targets)


if __name__ == "__main__":
    main()
