"""SSE over bytes, and over the multiply-adds of a row: m / (K n) from 1 to 20 and cells from none
to 50 per cluster, on the eleven sets of `quality --rivals`.

Every finished run is logged in results/quality-bytes-runs.jsonl under a tag, and does not run
again. The splits of `mix.py` and the defaults are chosen by seeds from 0 on; figures that are
reported start at seed 100.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ckm
from benchmarks import mnist
from benchmarks.baselines import baseline, sse
from benchmarks.data import DataSet, Unavailable, prepare, rival_sets
from benchmarks.harness import (
    RESULTS,
    options,
    process_options,
    report,
    result_path,
    seeds_of,
    show,
)
from benchmarks.mix import row_products, sketch_bytes
from benchmarks.processes import Outcome, RunLog, work_all

RATIOS = (1, 2, 3, 5, 10, 20)  # m / (K n)
CELLS = (0, 2, 5, 10, 20, 50)  # per cluster
QUICK_RATIOS = (1, 5)
QUICK_CELLS = (0, 20)
TICKS = (20, 50, 100, 200, 500, 1000)
COLOURS = ("#999999", "#DDCC77", "#CC6677", "#44AA99", "#0072B2", "#332288")
BUDGETS = (80, 160, 320, 640)  # bytes / (K n)
# Multiply-adds per row / (K n). Those of one pass of k-means are 1.
PRODUCT_BUDGETS = (30, 60, 120, 240)


class Point(NamedTuple):
    """One finished run: sizes, what they cost, and the SSE relative to the baseline."""

    tag: str
    data: str
    seed: int
    ratio: int
    cells: int  # per cluster
    bytes: int
    products: int
    scale: int  # K n, by which bytes and products are divided
    relative: float
    status: str


class Task(NamedTuple):
    """The remaining runs of one data set and seed: pairs of a ratio and a number of cells."""

    data: DataSet
    seed: int
    todo: tuple[tuple[int, int], ...]


def measure(log: RunLog, tag: str, quick: bool, task: Task) -> Outcome:
    """Run a task, and log each run as it ends."""
    try:
        X, K = task.data.load(task.seed, quick)
    except Unavailable as error:
        return Outcome(None, [str(error)])
    best = baseline(task.data.key(task.seed), X, K, quick)
    n = X.shape[1]
    for ratio, per_cluster in task.todo:
        m = ratio * K * n
        cells = per_cluster * K
        sketch = ckm.sketch(
            X, n_clusters=K, sketch_size=m, cells=cells, random_state=task.seed, n_jobs=1
        )
        found = ckm.decode(sketch, K, random_state=task.seed, n_jobs=1)
        point = Point(
            tag,
            task.data.name,
            task.seed,
            ratio,
            per_cluster,
            sketch_bytes(m, cells, n),
            row_products(m, cells, n),
            K * n,
            round(sse(X, found.centroids) / best, 6),
            str(found.status),
        )
        log.append(point._asdict())
    return Outcome(None, [])


def read_points(log: RunLog) -> list[Point]:
    """Return every run in the log."""
    return [Point(**entry) for entry in log.read() if set(entry) == set(Point._fields)]


def tasks_of(
    sets: Sequence[DataSet], seeds: range, quick: bool, done: Sequence[Point]
) -> list[Task]:
    """Return what is left to run, seed by seed."""
    known = {(point.data, point.seed, point.ratio, point.cells) for point in done}
    ratios, cells = (QUICK_RATIOS, QUICK_CELLS) if quick else (RATIOS, CELLS)
    every = [(ratio, c) for ratio in ratios for c in cells]
    left = [
        Task(data, seed, tuple(p for p in every if (data.name, seed, *p) not in known))
        for seed in seeds
        for data in sets
    ]
    return [task for task in left if task.todo]


def medians(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return, for each pair of sizes, the median over sets of the sets' medians, and the worst of
    these, with the median costs.
    """
    found = []
    for ratio, cells in sorted({(p.ratio, p.cells) for p in points}):
        own = [p for p in points if (p.ratio, p.cells) == (ratio, cells)]
        sets = {
            name: float(np.median([p.relative for p in own if p.data == name]))
            for name in sorted({p.data for p in own})
        }
        found.append(
            {
                "ratio": ratio,
                "cells": cells,
                "bytes": float(np.median([p.bytes / p.scale for p in own])),
                "products": float(np.median([p.products / p.scale for p in own])),
                "median": float(np.median(list(sets.values()))),
                "worst": max(sets.values()),
                "sets": sets,
            }
        )
    return found


def best_within(rows: Sequence[dict[str, Any]], cost: str, limits: Sequence[int]) -> list[Any]:
    """Return, for each limit on a cost, the sizes of the least mean logarithm of sets' medians."""
    chosen = []
    for limit in limits:
        possible = [row for row in rows if row[cost] <= limit]
        if possible:
            row = min(possible, key=lambda row: np.log(list(row["sets"].values())).mean())
            chosen.append([limit, row["ratio"], row["cells"], row["median"], row["worst"]])
    return chosen


def show_curves(rows: Sequence[dict[str, Any]]) -> None:
    """Print every pair of sizes, and the best for each limit on bytes and on multiply-adds."""
    show(
        "Median and worst over sets of their medians; bytes and multiply-adds per row in K n",
        ["m / (K n)", "cells / K", "bytes", "multiply-adds", "median", "worst"],
        [
            [
                *(row[name] for name in ("ratio", "cells", "bytes", "products")),
                *(f"{row[name]:.4f}" for name in ("median", "worst")),
            ]
            for row in rows
        ],
    )
    for cost, limits in (("bytes", BUDGETS), ("products", PRODUCT_BUDGETS)):
        show(
            f"The best split of {cost} / (K n)",
            ["at most", "m / (K n)", "cells / K", "median", "worst"],
            [
                [*row[:3], f"{row[3]:.4f}", f"{row[4]:.4f}"]
                for row in best_within(rows, cost, limits)
            ],
        )


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw SSE over bytes and over multiply-adds, a line for each number of cells."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    labels = {"bytes": "bytes / (K n)", "products": "multiply-adds per row / (K n)"}
    for axes, cost in zip(panels, labels, strict=True):
        for cells, colour in zip(sorted({row["cells"] for row in rows}), COLOURS, strict=False):
            line = [row for row in rows if row["cells"] == cells]
            axes.plot(
                [row[cost] for row in line],
                [row["median"] - 1 for row in line],
                marker="o",
                markersize=4,
                color=colour,
                label=f"{cells} K cells" if cells else "no cells",
            )
        axes.set_xscale("log")
        axes.set_xticks(TICKS, [str(tick) for tick in TICKS])
        axes.minorticks_off()
        axes.set_yscale("log")
        axes.set_xlabel(labels[cost])
        axes.grid(color="#dddddd", linewidth=0.5)
    panels[0].set_ylabel("relative SSE - 1, median over sets")
    panels[1].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=120)


def parse() -> argparse.Namespace:
    parser = options("Measure SSE over bytes and multiply-adds per row.", first_seed=100)
    process_options(parser, count=3, quick_count=1)
    parser.add_argument(
        "--tag", default=ckm.__version__, help="the name that runs are logged under"
    )
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    mnist.name_source(arguments.mnist)
    quick = arguments.quick
    seeds = seeds_of(arguments)
    sets = rival_sets(quick)
    log = RunLog(RESULTS / f"quality-bytes-runs{'-quick' if quick else ''}.jsonl")

    def kept() -> list[Point]:
        names = {data.name for data in sets}
        return [
            p
            for p in read_points(log)
            if p.tag == arguments.tag and p.seed in seeds and p.data in names
        ]

    tasks = tasks_of(sets, seeds, quick, kept())
    if tasks:
        prepare(sets)
        work_all(partial(measure, log, arguments.tag, quick), tasks, arguments.jobs)
    rows = medians(kept())
    show_curves(rows)
    settings = {"first_seed": seeds[0], "seeds": len(seeds), "tag": arguments.tag}
    report("quality-bytes", quick, settings, rows, [])
    draw(rows, result_path("quality-bytes", quick, ".png"))


if __name__ == "__main__":
    main()
