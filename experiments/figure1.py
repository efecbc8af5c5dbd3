"""Figure 1: the influence of initialisation. SSE over repetitions for Range, Sample and K++, on
Gaussian data and MNIST.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ckm
from benchmarks import mnist
from experiments.drawing import PAPER, panels, style
from experiments.experiment import Experiment, Plan, Row, Run, Task, one, pick, reproduce
from experiments.methods import (
    LABELS,
    POOL,
    SKETCHES,
    STRATEGIES,
    decoded,
    judge,
    lloyd,
    our_sketch,
    sampled,
)
from experiments.paper import FIGURE_1

K = 10
N_FEATURES = 10
M = 1000


def tasks(plan: Plan) -> list[Task]:
    """Return the tasks: new Gaussian data in every repetition, the same features of MNIST."""
    sizes = (mnist.ORIGINALS, 300_000) if plan.full else (mnist.ORIGINALS,)
    settings: list[Task] = [{"data": "gaussian", "N": 300_000}]
    settings += [{"data": "mnist", "N": size} for size in sizes if mnist.available()]
    return [{**setting, "m": M, "seed": seed} for seed in plan.seeds for setting in settings]


def load(task: Task) -> np.ndarray:
    """Return the rows of a task."""
    if task["data"] == "mnist":
        return mnist.features(task["N"])[0]
    return ckm.datasets.gaussian_mixture(task["N"], K, N_FEATURES, random_state=task["seed"]).rows


def work(task: Task) -> list[Run]:
    """Run every method with every strategy, one replicate each."""
    X = load(task)
    seed = task["seed"]
    rows = sampled(X, seed)
    paper = SKETCHES["clompr"](X, K, M, seed, n_jobs=1)
    ours = {
        strategy: our_sketch(X, K, M, seed, n_jobs=1, pool=pool)
        for strategy, pool in (("range", 0), ("sample", POOL))
    }
    found: list[Run] = []
    for strategy in STRATEGIES:
        fits: dict[str, Any] = {
            "lloyd": partial(lloyd, X, K, strategy, seed),
            "clompr": partial(
                decoded,
                paper,
                K,
                "clompr",
                seed,
                init=strategy,
                rows=None if strategy == "range" else rows,
            ),
        }
        # For our decoder K++ equals Sample: it only uses the rows of the pool.
        if strategy in ours:
            fits["density"] = partial(
                decoded, ours[strategy], K, "density", seed, init=strategy, n_jobs=1
            )
        found += [
            {"method": method, "strategy": strategy, "sse": judge(X, fit()).sse / len(X)}
            for method, fit in fits.items()
        ]
    return found


def draw(rows: list[Row], path: Path) -> None:
    """Draw a panel per data set: means and standard deviations of SSE / N by strategy."""
    sets = list(dict.fromkeys((row["data"], row["N"]) for row in rows))
    with panels(path, len(sets)) as axes:
        for ax, (data, N) in zip(axes, sets, strict=True):
            for i, method in enumerate(LABELS):
                known = [
                    (j, one(pick(rows, data=data, N=N), method=method, strategy=s))
                    for j, s in enumerate(STRATEGIES)
                    if (method, s) != ("density", "k++")
                ]
                places = [j + 0.22 * (i - 1) for j, _ in known]
                means = [row["sse"]["mean"] for _, row in known]
                ax.errorbar(
                    places,
                    means,
                    [row["sse"]["std"] for _, row in known],
                    linestyle="none",
                    capsize=4,
                    **style(method),
                )
                if (data, method) in FIGURE_1:
                    ax.plot(
                        [j + 0.22 * (i - 1) for j in range(3)],
                        FIGURE_1[data, method],
                        **PAPER,
                        label="the paper's mean" * (i == 0),
                    )
            ax.set(title=f"{data}, N = {N:,}", ylabel="SSE / N", ylim=(0, None))
            ax.set_xticks(range(3), STRATEGIES)
        axes[0].legend(fontsize=8)


if __name__ == "__main__":
    reproduce(
        Experiment(
            "figure1", "where the search starts: Range, Sample, K++", tasks, work, ("sse",), draw
        )
    )
