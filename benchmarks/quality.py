"""SSE relative to the best of 10 k-means++ runs: our decoders, the paper's, k-means in its usual
forms, and samples of rows.

Every finished run is kept in results/quality-runs.jsonl under a tag, and a run that is kept is not
made again: stop and continue at will. After a change of the decoder name another --tag, or measure
what changed (--fresh --methods ckm,ckm+pool) and report with a second call. "pool-alone" and
"equal-bytes" are the best of 10 k-means++ runs on those rows, so that they are as good as rows can
be.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans

import ckm
from common import (
    BASELINE_RUNS,
    PYCLE,
    RESULTS,
    Outcome,
    Target,
    baseline,
    console,
    largest,
    locked,
    options,
    peer,
    pooled_median,
    process_options,
    pycle_centroids,
    replacing,
    report,
    seeds_of,
    show,
    sse,
    work_all,
)
from quality_data import (
    DEFAULT_RATIO,
    GROUPS,
    REAL,
    SYNTHETIC,
    DataSet,
    Unavailable,
    data_sets,
    grid_name,
    name_mnist,
    prepare,
    rows_made,
)

POOL = 1000


@dataclass(frozen=True)
class Case:
    """One data set, one seed, one size of sketch."""

    X: np.ndarray
    K: int
    m: int
    seed: int

    @cached_property
    def sketch(self) -> ckm.Sketch:
        """The sketch alone."""
        return self._sketch()

    @cached_property
    def paper(self) -> ckm.Sketch:
        """The paper's sketch: its law, at the scale of its rule."""
        return self._sketch(distribution="adapted-radius")

    @cached_property
    def pooled(self) -> ckm.Sketch:
        """The same sketch with a pool."""
        return self._sketch(pool=POOL)

    @cached_property
    def pool_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows in that pool, which do not depend on m, and the weight that each stands for."""
        return ckm.sketch(
            self.X, sketch_size=1, pool=POOL, random_state=self.seed, n_jobs=1
        ).pool.estimate()[:2]

    def _sketch(self, **options: Any) -> ckm.Sketch:
        return ckm.sketch(
            self.X,
            n_clusters=self.K,
            sketch_size=self.m,
            random_state=self.seed,
            n_jobs=1,
            **options,
        )

    @cached_property
    def equal_bytes(self) -> np.ndarray:
        """As many float32 rows as fit in the bytes of m complex numbers."""
        count = min(16 * self.m // (4 * self.X.shape[1]), len(self.X))
        return self.X[
            np.random.default_rng(self.seed).choice(len(self.X), count, replace=False)
        ].astype(np.float32)


def by_ckm(sketch: ckm.Sketch, K: int, seed: int) -> np.ndarray:
    return ckm.decode(sketch, K, random_state=seed, n_jobs=1).centroids


def by_clompr(sketch: ckm.Sketch, K: int, seed: int) -> np.ndarray:
    return ckm.decode(sketch, K, decoder="clompr", init="range", random_state=seed).centroids


def by_one_kmeans(X: np.ndarray, K: int, seed: int) -> np.ndarray:
    return KMeans(K, init="random", n_init=1, random_state=seed).fit(X).cluster_centers_


def by_best_kmeans(X: np.ndarray, K: int, seed: int) -> np.ndarray:
    return KMeans(K, n_init=10, random_state=seed).fit(X).cluster_centers_


def by_weighted_kmeans(sample: tuple[np.ndarray, np.ndarray], K: int, seed: int) -> np.ndarray:
    rows, weights = sample
    return KMeans(K, n_init=10, random_state=seed).fit(rows, sample_weight=weights).cluster_centers_


def by_minibatch(X: np.ndarray, K: int, seed: int) -> np.ndarray:
    return MiniBatchKMeans(K, random_state=seed).fit(X).cluster_centers_


class Method(NamedTuple):
    """What a method sees of the data (an attribute of Case), how it finds centroids there, and
    whether m matters to it.
    """

    sees: str
    fit: Callable[[Any, int, int], np.ndarray]
    of_sketch_size: bool
    colour: str


METHODS = {
    "ckm": Method("sketch", by_ckm, True, "#0072B2"),
    "ckm+pool": Method("pooled", by_ckm, True, "#56B4E9"),
    "clompr": Method("paper", by_clompr, True, "#D55E00"),
    "pycle": Method("paper", pycle_centroids, True, "#F0A020"),
    "kmeans": Method("X", by_one_kmeans, False, "#999999"),
    "minibatch": Method("X", by_minibatch, False, "#444444"),
    "pool-alone": Method("pool_rows", by_weighted_kmeans, False, "#009E73"),
    "equal-bytes": Method("equal_bytes", by_best_kmeans, True, "#CC79A7"),
}


class Run(NamedTuple):
    """One finished run; `ratio` is m / (K n), None where m does not matter, and `seconds` leaves
    out making the sketch.
    """

    tag: str
    data: str
    seed: int
    ratio: int | None
    method: str
    relative: float
    seconds: float


class Store(NamedTuple):
    """The file that remembers runs, a line each."""

    path: Path

    @classmethod
    def open(cls, quick: bool) -> "Store":
        """Quick runs have a file of their own."""
        return cls(RESULTS / f"quality-runs{'-quick' if quick else ''}.jsonl")

    def read(self) -> list[Run]:
        """Every run; a line cut short by a crash is passed over."""
        found = []
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            try:
                found.append(Run(**json.loads(line)))
            except (ValueError, TypeError):
                continue
        return found

    def append(self, run: Run) -> None:
        """Add a run."""
        with self.path.open("a") as file:
            file.write(_line(run))

    def forget(self, wanted: Callable[[Run], bool]) -> None:
        """Drop the runs that are `wanted` afresh."""
        with replacing(self.path) as part:
            part.write_text("".join(_line(run) for run in self.read() if not wanted(run)))


def _line(run: Run) -> str:
    return json.dumps(run._asdict(), separators=(",", ":")) + "\n"


class Task(NamedTuple):
    """What is left to do for one data set and seed: pairs of a ratio (None where m does not matter)
    and a method.
    """

    data: DataSet
    seed: int
    todo: tuple[tuple[int | None, str], ...]


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    sets: list[DataSet]
    seeds: range
    methods: list[str]
    tag: str
    quick: bool

    def wants(self, run: Run) -> bool:
        """Whether a run belongs to it."""
        names = {data.name for data in self.sets}
        return (
            run.tag == self.tag
            and run.data in names
            and run.seed in self.seeds
            and run.method in self.methods
        )

    def tasks(self, done: Sequence[Run]) -> list[Task]:
        """What is left, seed by seed, so that a run that was stopped knows the same seeds of every
        set.
        """
        known = {(run.data, run.seed, run.ratio, run.method) for run in done}
        every = [
            Task(data, seed, tuple(self._pairs(data))) for seed in self.seeds for data in self.sets
        ]
        left = [
            task._replace(
                todo=tuple(p for p in task.todo if (task.data.name, task.seed, *p) not in known)
            )
            for task in every
        ]
        return [task for task in left if task.todo]

    def _pairs(self, data: DataSet) -> Iterator[tuple[int | None, str]]:
        for method in self.methods:
            yield from (
                (ratio, method)
                for ratio in (data.ratios if METHODS[method].of_sketch_size else (None,))
            )


def work(plan: Plan, store: Store, task: Task) -> Outcome:
    """Do a task, keeping each run as it ends."""
    data, seed = task.data, task.seed
    failures = []
    try:
        X, K = data.load(seed, plan.quick)
    except Unavailable as error:
        return Outcome(None, [str(error)])
    best = baseline(data.key(seed), X, K, plan.quick)
    cases = {
        ratio: Case(X, K, (ratio or DEFAULT_RATIO) * K * X.shape[1], seed) for ratio, _ in task.todo
    }
    for ratio, name in task.todo:
        try:
            seen = getattr(cases[ratio], METHODS[name].sees)
            began = time.perf_counter()
            centroids = METHODS[name].fit(seen, K, seed)
            seconds = time.perf_counter() - began
            relative = sse(X, np.asarray(centroids, np.float64)) / best
        except Exception as error:  # one method's failure is a finding; the others go on
            failures.append(
                f"{name} failed on {data.name}, seed {seed}: {type(error).__name__}: {error}"
            )
            continue
        with locked():
            store.append(
                Run(plan.tag, data.name, seed, ratio, name, round(relative, 6), round(seconds, 4))
            )
    return Outcome(None, failures)


class Findings:
    """Relative SSEs and seconds by data set, ratio and method."""

    def __init__(self, plan: Plan, runs: Sequence[Run]) -> None:
        self.plan = plan
        self._runs: dict[tuple[str, int | None, str], list[Run]] = {}
        for run in sorted(runs, key=lambda run: run.seed):
            self._runs.setdefault((run.data, run.ratio, run.method), []).append(run)

    def runs(self, data: str, ratio: int, method: str) -> list[Run]:
        """What was found, seed by seed."""
        return self._runs.get((data, ratio if METHODS[method].of_sketch_size else None, method), [])

    def relative(self, data: str, ratio: int, method: str) -> np.ndarray:
        """SSEs over the baseline's, one for each seed that was run."""
        return np.array([run.relative for run in self.runs(data, ratio, method)])

    def row(self, names: Sequence[str], ratio: int, method: str) -> list[Any] | None:
        """A line of a table: the method over all these sets and seeds together."""
        runs = [run for name in names for run in self.runs(name, ratio, method)]
        if not runs:
            return None
        values = np.array([run.relative for run in runs])
        low, high = np.percentile(values, [10, 90])
        seconds = float(np.median([run.seconds for run in runs]))
        return [
            method,
            len(runs),
            f"{np.median(values):.4f}",
            f"{values.max():.4f}",
            f"{high - low:.4f}",
            f"{seconds:.3g}",
        ]

    def listed(self) -> list[dict[str, Any]]:
        """For the JSON file."""
        return [
            {
                "data": data,
                "ratio": ratio,
                "method": method,
                "median": float(np.median([run.relative for run in runs])),
                "worst": max(run.relative for run in runs),
                "seconds": float(np.median([run.seconds for run in runs])),
                "relative": {run.seed: run.relative for run in runs},
            }
            for (data, ratio, method), runs in self._runs.items()
        ]

    def available(self, names: Sequence[str]) -> list[str]:
        """The sets that could be loaded: some method has run on them."""
        seen = {data for data, _, _ in self._runs}
        return [name for name in names if name in seen]

    def complete(self, names: Sequence[str], ratio: int, method: str) -> bool:
        """Whether there are such sets and the method ended on each of them for every seed, so that
        a failure cannot pass for a success.
        """
        return bool(names) and all(
            len(self.runs(name, ratio, method)) == len(self.plan.seeds) for name in names
        )


def show_tables(findings: Findings) -> None:
    """A table for each group and ratio, one for each real set, and the Gaussian grid cell by cell."""
    plan = findings.plan
    columns = ["method", "runs", "median", "worst", "spread", "seconds"]
    console.print(
        f"SSE relative to the best of {BASELINE_RUNS} k-means++ runs: median, worst run, and spread (90th less 10th percentile)."
    )
    console.print("Seconds are a median, and count neither sketching nor sampling.")
    for group in GROUPS:
        sets = [data for data in plan.sets if data.group == group]
        parts = [
            (f"{group}, m = {ratio}Kn", [d.name for d in sets], ratio)
            for ratio in (sets[0].ratios if sets else ())
        ]
        if group != "gaussian":
            parts += [
                (f"{data.name}, m = {DEFAULT_RATIO}Kn", [data.name], DEFAULT_RATIO) for data in sets
            ]
        for title, names, ratio in parts:
            if rows := [
                row for method in plan.methods if (row := findings.row(names, ratio, method))
            ]:
                show(title, columns, rows)
    grid = [data for data in plan.sets if data.group == "gaussian"]
    if grid and "ckm" in plan.methods:
        show(
            "ckm on the Gaussian grid: median / worst relative SSE, median seconds to decode at the largest m",
            ["data", *(f"m = {ratio}Kn" for ratio in grid[0].ratios), "seconds"],
            [_grid_row(findings, data) for data in grid],
        )
    ours = [method for method in ("ckm", "ckm+pool") if method in plan.methods]
    names = findings.available([data.name for data in plan.sets])
    if ours and names:
        show(
            f"Every set by itself, m = {DEFAULT_RATIO}Kn: median / worst relative SSE; the targets' medians are over all sets together",
            ["data", *ours],
            [
                [
                    name,
                    *(
                        _middle_and_worst(findings.relative(name, DEFAULT_RATIO, method))
                        for method in ours
                    ),
                ]
                for name in names
            ],
        )


def _grid_row(findings: Findings, data: DataSet) -> list[Any]:
    found = [findings.relative(data.name, ratio, "ckm") for ratio in data.ratios]
    seconds = [run.seconds for run in findings.runs(data.name, data.ratios[-1], "ckm")]
    return [
        data.name.removeprefix("gaussian "),
        *map(_middle_and_worst, found),
        float(np.median(seconds)) if seconds else None,
    ]


def _middle_and_worst(values: np.ndarray) -> str | None:
    return f"{np.median(values):.4f} / {values.max():.4f}" if len(values) else None


class Promise(NamedTuple):
    """Bounds on the median over all runs of all sets and on the worst run; `rival` names whose
    medians it must be below, set by set.
    """

    what: str
    group: str
    names: Sequence[str]
    ratio: int
    median: float
    worst: float | None
    method: str = "ckm"
    rival: str | None = None

    def targets(self, findings: Findings) -> list[Target]:
        """As measured on the sets that could be loaded."""
        names = findings.available(self.names)
        absent = (
            f" ({', '.join(name for name in self.names if name not in names)} not loaded)"
            if 0 < len(names) < len(self.names)
            else ""
        )
        what = f"{self.what}, m = {self.ratio}Kn{absent}"
        found = self._over_sets(findings, names, self.method)
        bounds = [pooled_median(f"{what}: median", self.median, found)]
        if self.worst is not None:
            bounds.append(
                largest(
                    f"{what}: worst run", self.worst, {name: v.max() for name, v in found.items()}
                )
            )
        if self.rival is not None:
            theirs = self._over_sets(findings, names, self.rival) if found else {}
            shares = {name: np.median(found[name]) / np.median(v) for name, v in theirs.items()}
            bounds.append(
                largest(f"{what}: largest of the sets' medians / {self.rival}'s", 1.0, shares)
            )
        return bounds

    def _over_sets(
        self, findings: Findings, names: Sequence[str], method: str
    ) -> dict[str, np.ndarray]:
        if not findings.complete(names, self.ratio, method):
            return {}
        return {name: findings.relative(name, self.ratio, method) for name in names}


def promises(quick: bool) -> list[Promise]:
    """What quality is promised; sketch only, but for the last."""
    few, dimensions = ((5, 10), (2, 10)) if quick else ((5, 10, 20), (2, 5, 10, 30))
    up_to_20 = [grid_name(K, n) for K in few for n in dimensions]
    at_50 = [] if quick else [grid_name(50, n) for n in dimensions]
    high = [grid_name(K, n) for K in few for n in dimensions if n >= 10]
    every = [
        Promise("Gaussian, K <= 20", "gaussian", up_to_20, 5, 1.002, 1.015),
        Promise("Gaussian, K = 50", "gaussian", at_50, 5, 1.005, 1.03),
        Promise("Gaussian, K <= 20", "gaussian", up_to_20, 3, 1.005, 1.03),
        Promise("Gaussian, K <= 20, n >= 10", "gaussian", high, 2, 1.01, None),
        Promise("unbalanced, anisotropic, outliers", "synthetic", list(SYNTHETIC), 5, 1.02, 1.06),
        Promise("real", "real", list(REAL), 5, 1.035, 1.10, rival="equal-bytes"),
        Promise(
            f"real, pool of {POOL}",
            "real",
            list(REAL),
            5,
            1.01,
            1.03,
            method="ckm+pool",
            rival="pool-alone",
        ),
    ]
    return [promise for promise in every if not quick or (promise.names and promise.ratio != 3)]


def draw(findings: Findings, path: Path) -> None:
    """Data sets down the y axis; a dot at each method's median and a whisker to its worst run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plan, limit = findings.plan, 2.0
    names = [
        data.name
        for data in plan.sets
        if any(findings.runs(data.name, DEFAULT_RATIO, method) for method in plan.methods)
    ]
    figure, axes = plt.subplots(figsize=(9, 1.6 + 0.42 * len(names)), layout="constrained")
    for y, name in enumerate(names):
        axes.axhspan(y - 0.5, y + 0.5, color="#f3f3f3" if y % 2 else "white", zorder=0)
        for i, method in enumerate(plan.methods):
            values = findings.relative(name, DEFAULT_RATIO, method)
            if not len(values):
                continue
            at, colour = y + 0.76 * ((i + 0.5) / len(plan.methods) - 0.5), METHODS[method].colour
            middle, worst = min(np.median(values), limit) - 1, min(values.max(), limit) - 1
            axes.plot([middle, worst], [at, at], color=colour, linewidth=1.2, zorder=2)
            axes.plot(
                middle,
                at,
                ">" if np.median(values) > limit else "o",
                color=colour,
                markersize=4.2,
                zorder=3,
                clip_on=False,
            )
    ticks = [-0.1, -0.03, -0.01, -0.003, 0, 0.003, 0.01, 0.03, 0.1, 0.3, 1]
    lowest = (
        min(
            (
                findings.relative(n, DEFAULT_RATIO, m).min(initial=1)
                for n in names
                for m in plan.methods
            ),
            default=1,
        )
        - 1
    )
    axes.set_xscale("symlog", linthresh=0.003, linscale=0.7)
    axes.set_xlim(min(-0.001, 1.3 * lowest), limit - 1)
    axes.set_xticks(
        ticks := [t for t in ticks if t >= axes.get_xlim()[0]],
        [f"{1 + t:g}" for t in ticks],
        minor=False,
    )
    axes.minorticks_off()
    axes.axvline(0, color="black", linewidth=0.8, zorder=1)
    axes.grid(axis="x", color="#cccccc", linewidth=0.5, zorder=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(
        f"SSE relative to the best of {BASELINE_RUNS} k-means++ runs (clipped at {limit:g})"
    )
    first, last = plan.seeds[0], plan.seeds[-1]
    axes.set_title(
        f"m = {DEFAULT_RATIO}Kn, seeds {first}-{last}{', quick' if plan.quick else ''}: median (dot) to worst run (line)",
        fontsize=10,
    )
    keys = [
        plt.Line2D([], [], color=METHODS[method].colour, marker="o", markersize=4.2, label=method)
        for method in plan.methods
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=120)


def parse() -> argparse.Namespace:
    parser = options(
        "Measure SSE against the best of 10 k-means++ runs, on data made and real.", first_seed=100
    )
    process_options(parser, count=10, quick_count=2)
    parser.add_argument("--groups", default=",".join(GROUPS), help="of data (default: %(default)s)")
    parser.add_argument(
        "--methods",
        default=",".join(m for m in METHODS if m != "pycle"),
        help="default: %(default)s",
    )
    parser.add_argument(
        "--pycle", action="store_true", help="also pycle, which takes a minute a run"
    )
    parser.add_argument(
        "--tag",
        default=ckm.__version__,
        help="the name runs are kept under (default: the version, %(default)s)",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="forget the runs kept for these seeds, groups, methods and tag",
    )
    arguments = parser.parse_args()
    for option, known in (("groups", GROUPS), ("methods", METHODS)):
        chosen = [word.strip() for word in getattr(arguments, option).split(",")]
        if unknown := [word for word in chosen if word not in known]:
            parser.error(f"--{option} has no {unknown[0]!r}; choose from {', '.join(known)}")
        setattr(arguments, option, [word for word in known if word in chosen])
    return arguments


def main() -> None:
    arguments = parse()
    name_mnist(arguments.mnist)
    methods = [m for m in METHODS if m in arguments.methods or (m == "pycle" and arguments.pycle)]
    if "pycle" in methods and peer(*PYCLE) is None:
        methods.remove("pycle")
    seeds = seeds_of(arguments)
    plan = Plan(
        data_sets(arguments.groups, arguments.quick), seeds, methods, arguments.tag, arguments.quick
    )
    store = Store.open(arguments.quick)
    if arguments.fresh:
        store.forget(plan.wants)
    kept = [run for run in store.read() if plan.wants(run)]
    if kept:
        console.print(
            f"{len(kept)} runs are kept from before under the tag {plan.tag}; --fresh forgets them."
        )
    if tasks := plan.tasks(kept):
        prepare([task.data for task in tasks])
        work_all(
            partial(work, plan, store),
            tasks,
            arguments.jobs,
            "Stopped; the same command continues from here.",
        )

    findings = Findings(plan, [run for run in store.read() if plan.wants(run)])
    show_tables(findings)
    targets = [
        t
        for p in promises(plan.quick)
        if p.group in arguments.groups and p.method in methods
        for t in p.targets(findings)
    ]
    settings = {
        "N": rows_made(plan.quick),
        "pool": POOL,
        "first_seed": seeds[0],
        "seeds": len(seeds),
        "methods": methods,
        "tag": plan.tag,
    }
    # a part leaves the whole alone
    name = (
        "quality"
        if len(arguments.groups) == len(GROUPS)
        else f"quality-{'-'.join(arguments.groups)}"
    )
    report(name, plan.quick, settings, findings.listed(), targets)
    draw(findings, RESULTS / f"{name}{'-quick' if plan.quick else ''}.png")


if __name__ == "__main__":
    main()
