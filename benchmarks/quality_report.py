"""What quality.py reports: tables, targets and a plot of relative SSEs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.baselines import BASELINE_RUNS
from benchmarks.data import DEFAULT_RATIO, GROUPS, HEAVY, REAL, SYNTHETIC, DataSet, grid_name
from benchmarks.harness import Target, console, largest, pooled_median, show
from benchmarks.quality_runs import METHODS, POOL, Plan, Run


class Findings:
    """Relative SSEs and seconds by data set, ratio and method."""

    def __init__(self, plan: Plan, runs: Sequence[Run]) -> None:
        self.plan = plan
        self._runs: dict[tuple[str, int | None, str], list[Run]] = {}
        for run in sorted(runs, key=lambda run: run.seed):
            self._runs.setdefault((run.data, run.ratio, run.method), []).append(run)

    def runs(self, data: str, ratio: int, method: str) -> list[Run]:
        """Return the runs, seed by seed."""
        return self._runs.get((data, ratio if METHODS[method].of_sketch_size else None, method), [])

    def relative(self, data: str, ratio: int, method: str) -> np.ndarray:
        """Return the SSEs relative to the baseline, one per seed."""
        return np.array([run.relative for run in self.runs(data, ratio, method)])

    def row(self, names: Sequence[str], ratio: int, method: str) -> list[Any] | None:
        """Return a line of a table: the method over all these sets and seeds together."""
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
        """Return the content of the JSON file."""
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
        """Return the sets that could be loaded: some method has run on them."""
        seen = {data for data, _, _ in self._runs}
        return [name for name in names if name in seen]

    def complete(self, names: Sequence[str], ratio: int, method: str) -> bool:
        """Whether the method finished on each of these sets for every seed.

        A failed run must not pass for a success.
        """
        return bool(names) and all(
            len(self.runs(name, ratio, method)) == len(self.plan.seeds) for name in names
        )


def show_tables(findings: Findings) -> None:
    """Print a table per group and ratio, one per set, and the Gaussian grid cell by cell."""
    plan = findings.plan
    columns = ["method", "runs", "median", "worst", "spread", "seconds"]
    console.print(
        f"SSE relative to the best of {BASELINE_RUNS} k-means++ runs: median, worst run, and "
        "spread (90th minus 10th percentile)."
    )
    console.print(
        "Seconds are a median, and count neither sketching nor sampling, but for `fit`, which has "
        "a size of its own and is timed whole."
    )
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
            found = [findings.row(names, ratio, method) for method in plan.methods]
            rows = [row for row in found if row is not None]
            if rows:
                show(title, columns, rows)
    grid = [data for data in plan.sets if data.group == "gaussian"]
    if grid and "ckm" in plan.methods:
        show(
            "ckm on the Gaussian grid: median / worst relative SSE, and median seconds to decode "
            "at the largest m",
            ["data", *(f"m = {ratio}Kn" for ratio in grid[0].ratios), "seconds"],
            [_grid_row(findings, data) for data in grid],
        )
    ours = [method for method in ("fit", "ckm", "ckm+pool") if method in plan.methods]
    names = findings.available([data.name for data in plan.sets])
    if ours and names:
        show(
            f"Every set by itself, m = {DEFAULT_RATIO}Kn: median / worst relative SSE; the medians "
            "of the targets are over all sets together",
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
    """Bounds on the median over all runs of all sets and on the worst run.

    `rival` names the method whose medians it must be below, set by set.
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
        size = f", m = {self.ratio}Kn" if METHODS[self.method].of_sketch_size else ""
        what = f"{self.what}{size}{absent}"
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
    """Return the promised quality; without a pool, except for the last."""
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
        Promise("synthetic, fit", "synthetic", list(SYNTHETIC), 5, 1.002, 1.008, method="fit"),
        Promise("real, fit", "real", list(REAL), 5, 1.002, 1.008, method="fit"),
        Promise("heavy tails and outliers, fit", "heavy", list(HEAVY), 5, 1.01, 1.03, method="fit"),
    ]
    return [promise for promise in every if not quick or (promise.names and promise.ratio != 3)]


def draw(findings: Findings, path: Path) -> None:
    """Draw a dot at each method's median and a line to its worst run, per data set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plan = findings.plan
    limit = 2.0
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
            at = y + 0.76 * ((i + 0.5) / len(plan.methods) - 0.5)
            colour = METHODS[method].colour
            middle = min(np.median(values), limit) - 1
            worst = min(values.max(), limit) - 1
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
    ticks = [tick for tick in ticks if tick >= axes.get_xlim()[0]]
    axes.set_xticks(ticks, [f"{1 + tick:g}" for tick in ticks], minor=False)
    axes.minorticks_off()
    axes.axvline(0, color="black", linewidth=0.8, zorder=1)
    axes.grid(axis="x", color="#cccccc", linewidth=0.5, zorder=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(
        f"SSE relative to the best of {BASELINE_RUNS} k-means++ runs (clipped at {limit:g})"
    )
    first = plan.seeds[0]
    last = plan.seeds[-1]
    axes.set_title(
        f"m = {DEFAULT_RATIO}Kn, seeds {first}-{last}{', quick' if plan.quick else ''}: "
        "median (dot) to worst run (line)",
        fontsize=10,
    )
    keys = [
        plt.Line2D([], [], color=METHODS[method].colour, marker="o", markersize=4.2, label=method)
        for method in plan.methods
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=120)
