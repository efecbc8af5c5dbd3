"""An outlook of the paper: random projections before sketching (Boutsidis, Zouzias and Drineas,
2010).

Rows of 32 columns are projected to d = O(log K) before they are sketched, so m = 5Kd frequencies
do; a second pass assigns each row to its nearest centroid there and averages the rows themselves,
which lifts the centroids back. The SSE counts in all 32 columns.
"""

from pathlib import Path

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

import ckm
from benchmarks.harness import timed
from experiments.drawing import curve, panels
from experiments.experiment import Experiment, Plan, Row, Run, Task, reproduce
from experiments.methods import SKETCHES, decoded, judge, lloyd

K = 10
N_FEATURES = 32
RATIO = 5


# N and the dimensions d tried within a task: quick, full
SIZES = ((20_000, [3, 6, 12]), (200_000, [3, 6, 9, 12, 18, 24]))


def tasks(plan: Plan) -> list[Task]:
    """Return the tasks; a full run includes the quick one."""
    return [
        {"N": N, "n": N_FEATURES, "dimensions": d, "seed": seed}
        for seed in plan.seeds
        for N, d in SIZES[: 1 + plan.full]
    ]


def work(task: Task) -> list[Run]:
    """Project, sketch, decode and lift; and the same without a projection."""
    seed = task["seed"]
    X = ckm.datasets.gaussian_mixture(task["N"], K, N_FEATURES, random_state=seed).rows
    best = judge(X, lloyd(X, K, "k++", seed, replicates=3)).sse
    rng = np.random.default_rng(seed)
    found: list[Run] = []
    for d in [*task["dimensions"], N_FEATURES]:
        P = rng.standard_normal((N_FEATURES, d)) / np.sqrt(d)
        for method in SKETCHES:
            fit = lifted if d < N_FEATURES else direct
            C, seconds = timed(fit, X, P, method, seed)
            found.append(
                {"method": method, "d": d, "relative": judge(X, C).sse / best, "seconds": seconds}
            )
    return found


def direct(X: np.ndarray, P: np.ndarray, method: str, seed: int) -> np.ndarray:
    """Return centroids without projection, from m = 5Kn frequencies."""
    sketch = SKETCHES[method](X, K, RATIO * K * X.shape[1], seed, n_jobs=1)
    return decoded(sketch, K, method, seed, n_jobs=1)


def lifted(X: np.ndarray, P: np.ndarray, method: str, seed: int) -> np.ndarray:
    """Find centroids of the projected rows, and return the mean of the rows nearest to each.

    A centroid without rows becomes the mean of all rows.
    """
    projected = X @ P
    labels = pairwise_distances_argmin(projected, direct(projected, P, method, seed))
    counts = np.bincount(labels, minlength=K)
    sums = np.stack([np.bincount(labels, column, K) for column in X.T], axis=1)
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], X.mean(axis=0))


def draw(rows: list[Row], path: Path) -> None:
    """Draw SSE and time over d."""
    with panels(path, 2) as axes:
        for ax, measure, title in zip(
            axes,
            ("relative", "seconds"),
            ("SSE over the best of 3 k-means++", "seconds, all included"),
            strict=True,
        ):
            for method in SKETCHES:
                curve(ax, rows, "d", measure, method)
            ax.axvline(np.log2(K), color="black", linestyle=":", label="log₂ K")
            ax.set(
                title=title,
                xlabel=f"dimensions d after projection ({N_FEATURES}: none)",
                xscale="log",
            )
            ax.legend(fontsize=8)


if __name__ == "__main__":
    about = "random projections before sketching, centroids lifted by a second pass"
    reproduce(
        Experiment(
            "outlook_projection",
            about,
            tasks,
            work,
            ("relative", "seconds"),
            draw,
            repetitions=(3, 20),
        )
    )
