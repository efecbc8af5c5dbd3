"""Figure 2: the number of frequencies. SSE relative to k-means over m / (K n), against K (n = 10)
and against n (K = 10), on Gaussian data.

"relative" divides by one run of Lloyd from Range, as the paper does; "to_best" by the best of three
k-means++ runs, which is harder.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import ckm
from experiments.drawing import panels, style
from experiments.experiment import Experiment, Plan, Row, Run, Task, pick, reproduce
from experiments.methods import LABELS, SKETCHES, decoded, judge, lloyd

FIXED = 10  # the other of K and n
# the measure and the bound of the line that is drawn for each decoder
BELOW = {"clompr": ("relative", 2.0), "density": ("to_best", 1.05)}


class Grid(NamedTuple):
    """Sizes to try."""

    N: int
    clusters: tuple[int, ...]
    dimensions: tuple[int, ...]
    ratios: list[int]

    def tasks(self, seed: int) -> list[Task]:
        """Return a task for every K and n; each tries all sketch sizes."""
        pairs = dict.fromkeys(
            [(K, FIXED) for K in self.clusters] + [(FIXED, n) for n in self.dimensions]
        )
        return [
            {"K": K, "n": n, "N": self.N, "ratios": self.ratios, "seed": seed} for K, n in pairs
        ]


QUICK = Grid(20_000, (3, 5, 10), (8, 10, 15), [1, 2, 3, 5])
FULL = Grid(300_000, (5, 10, 20, 30, 40), (2, 4, 6, 10, 20, 30), [1, 2, 3, 4, 5, 6, 8, 10])


def tasks(plan: Plan) -> list[Task]:
    """Return the tasks; a full run includes the quick one."""
    return [
        task
        for seed in plan.seeds
        for grid in (QUICK, FULL)[: 1 + plan.full]
        for task in grid.tasks(seed)
    ]


def work(task: Task) -> list[Run]:
    """Run both decoders at every sketch size, one replicate each."""
    K = task["K"]
    n = task["n"]
    seed = task["seed"]
    X = ckm.datasets.gaussian_mixture(task["N"], K, n, random_state=seed).rows
    once = judge(X, lloyd(X, K, "range", seed)).sse
    best = judge(X, lloyd(X, K, "k++", seed, replicates=3)).sse
    found: list[Run] = [{"method": "lloyd", "ratio": None, "relative": 1.0, "to_best": once / best}]
    for ratio in task["ratios"]:
        for method, sketch in SKETCHES.items():
            seen = sketch(X, K, ratio * K * n, seed, n_jobs=1)
            sse = judge(X, decoded(seen, K, method, seed, n_jobs=1)).sse
            found.append(
                {"method": method, "ratio": ratio, "relative": sse / once, "to_best": sse / best}
            )
    return found


def enough(rows: Sequence[Row], method: str, measure: str, bound: float) -> int | None:
    """Return the smallest m / (K n) from which on the mean stays below the bound, or None."""
    known = sorted(pick(rows, method=method), key=lambda row: row["ratio"], reverse=True)
    smallest = None
    for row in known:
        if row[measure]["mean"] >= bound:
            break
        smallest = row["ratio"]
    return smallest


def draw(rows: list[Row], path: Path) -> None:
    """Draw each decoder against K and against n, at the largest N: a mark per cell, and the line
    where the mean falls below the bound.
    """
    with panels(path, 4, 4.2) as axes:
        for i, (method, (measure, bound)) in enumerate(BELOW.items()):
            for ax, moving, fixed in zip(
                axes[2 * i : 2 * i + 2], ("K", "n"), ("n", "K"), strict=True
            ):
                shown = pick(rows, method=method, **{fixed: FIXED}, N=max(row["N"] for row in rows))
                places = sorted({row[moving] for row in shown})
                colours = [row[measure]["mean"] for row in shown]
                limits = {"vmin": 1, "vmax": 1 + 2 * (bound - 1), "cmap": "RdYlGn_r"}
                marks = ax.scatter(
                    [row[moving] for row in shown],
                    [row["ratio"] for row in shown],
                    c=colours,
                    s=90,
                    **limits,
                )
                line = [
                    enough(pick(shown, **{moving: place}), method, measure, bound)
                    for place in places
                ]
                ax.plot(
                    places,
                    [float("nan") if y is None else y for y in line],
                    **style(method, marker="", label=f"below {bound:g}"),
                )
                ax.set(
                    title=f"{LABELS[method]}, {fixed} = {FIXED}", xlabel=moving, ylabel="m / (K n)"
                )
                ax.legend(fontsize=8)
                reference = "one Lloyd run" if measure == "relative" else "the best of 3 k-means++"
                ax.figure.colorbar(marks, ax=ax, label=f"SSE over {reference}")


def all_cells(rows: Sequence[Row]) -> list[tuple[int, int, int]]:
    """Return every K, n and N that was tried."""
    return list(dict.fromkeys((row["K"], row["n"], row["N"]) for row in rows))


if __name__ == "__main__":
    reproduce(
        Experiment("figure2", "how many frequencies", tasks, work, ("relative", "to_best"), draw)
    )
