"""Figure 3: MNIST's spectral features at three sizes, 1 and 5 replicates. SSE / N, and the adjusted
Rand index to the true digits.
"""

from pathlib import Path

from benchmarks import mnist
from experiments.drawing import PAPER, panels, style
from experiments.experiment import Experiment, Plan, Row, Run, Task, pick, reproduce
from experiments.methods import LABELS, SKETCHES, decoded, judge, lloyd
from experiments.paper import FIGURE_3_ARI, FIGURE_3_SSE, SIZES

K = 10
M = 1000
REPLICATES = (1, 5)


def tasks(plan: Plan) -> list[Task]:
    """Return the tasks; a quick run has the original images and one replicate only."""
    if not mnist.available():
        return []
    sizes, replicates = (SIZES, list(REPLICATES)) if plan.full else (SIZES[:1], [1])
    return [
        {"data": "mnist", "N": size, "m": M, "replicates": replicates, "seed": seed}
        for seed in plan.seeds
        for size in sizes
    ]


def work(task: Task) -> list[Run]:
    """Run every method; Lloyd ranks its replicates by SSE, CKM by the sketch's cost."""
    (X, classes) = mnist.features(task["N"])
    seed = task["seed"]
    sketches = {method: sketch(X, K, M, seed, n_jobs=1) for method, sketch in SKETCHES.items()}
    found: list[Run] = []
    for replicates in task["replicates"]:
        centroids = {"lloyd": lloyd(X, K, "range", seed, replicates)}
        centroids |= {
            method: decoded(seen, K, method, seed, n_init=replicates, n_jobs=1)
            for method, seen in sketches.items()
        }
        for method, C in centroids.items():
            sse, ari = judge(X, C, classes)
            found.append(
                {"method": method, "replicates": replicates, "sse": sse / len(X), "ari": ari}
            )
    return found


def draw(rows: list[Row], path: Path) -> None:
    """Draw two panels; the paper's means are black dashes."""
    sizes = [size for size in SIZES if pick(rows, N=size)]
    with panels(path, 2, 7) as axes:
        for ax, measure, paper, title in zip(
            axes,
            ("sse", "ari"),
            (FIGURE_3_SSE, FIGURE_3_ARI),
            ("SSE / N", "adjusted Rand index"),
            strict=True,
        ):
            for i, method in enumerate(LABELS):
                for j, replicates in enumerate(REPLICATES):
                    shift = 0.26 * (i - 1) + 0.11 * (j - 0.5)
                    known = [
                        (k + shift, row[measure])
                        for k, size in enumerate(sizes)
                        for row in pick(rows, N=size, method=method, replicates=replicates)
                    ]
                    if not known:
                        continue
                    look = style(
                        method,
                        fillstyle=("none", "full")[j],
                        label=f"{LABELS[method]}, {replicates} replicate{'s' * j}",
                    )
                    ax.errorbar(
                        *zip(*[(x, y["mean"], y["std"]) for x, y in known], strict=True),
                        linestyle="none",
                        capsize=3,
                        **look,
                    )
                    if (method, replicates) in paper:
                        means = [paper[method, replicates][SIZES.index(size)][0] for size in sizes]
                        ax.plot(
                            [k + shift for k in range(len(sizes))],
                            means,
                            **PAPER,
                            label="the paper's mean" * (i + j == 0),
                        )
            ax.set(title=title, xlim=(-0.5, len(sizes) - 0.5))
            ax.set_xticks(range(len(sizes)), [f"N = {size:,}" for size in sizes])
        axes[0].legend(fontsize=8)


if __name__ == "__main__":
    reproduce(Experiment("figure3", "MNIST, 1 and 5 replicates", tasks, work, ("sse", "ari"), draw))
