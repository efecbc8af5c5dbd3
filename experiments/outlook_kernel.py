"""An outlook of the paper: kernel k-means by random Fourier features (Chitta, Jin and Jain, 2012),
its k-means step replaced.

A disc within a ring: no two centroids of the plane separate them, a Gaussian kernel does. D
features of each row stand for the kernel.
"""

from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from experiments.drawing import curve, panels
from experiments.experiment import Experiment, Plan, Row, Run, Task, reproduce
from experiments.methods import LABELS, SKETCHES, decoded, judge, lloyd

K = 2
GAMMA = 0.7
RATIO = 5
# radii, and the ring's deviation
DISC = 0.8
RING = 2.0
WIDTH = 0.2


# N and the numbers D of features tried within a task: quick, full
SIZES = ((10_000, [10, 30, 60]), (100_000, [10, 30, 100, 300]))


def tasks(plan: Plan) -> list[Task]:
    """Return the tasks; a full run includes the quick one."""
    return [
        {"N": N, "features": D, "seed": seed}
        for seed in plan.seeds
        for N, D in SIZES[: 1 + plan.full]
    ]


def disc_and_ring(n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the plane (N, 2) and their classes: 0 is the disc, 1 the ring."""
    classes = rng.integers(2, size=n_samples)
    angles = rng.uniform(0, 2 * np.pi, n_samples)
    radii = np.where(
        classes == 0,
        DISC * np.sqrt(rng.uniform(size=n_samples)),
        RING + WIDTH * rng.standard_normal(n_samples),
    )
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1), classes


def work(task: Task) -> list[Run]:
    """Run each method once."""
    seed = task["seed"]
    rows, classes = disc_and_ring(task["N"], np.random.default_rng(seed))
    found: list[Run] = []
    for D in task["features"]:
        X = RBFSampler(gamma=GAMMA, n_components=D, random_state=seed).fit_transform(rows)
        centroids = {"lloyd": lloyd(X, K, "range", seed)}
        for method, make in SKETCHES.items():
            centroids[method] = decoded(
                make(X, K, RATIO * K * D, seed, n_jobs=1), K, method, seed, n_jobs=1
            )
        found += [
            {"method": method, "D": D, "ari": judge(X, C, classes).ari}
            for method, C in centroids.items()
        ]
    plain = judge(rows, lloyd(rows, K, "k++", seed, replicates=5), classes).ari
    return [*found, {"method": "plain k-means", "D": None, "ari": plain}]


def draw(rows: list[Row], path: Path) -> None:
    """Draw the adjusted Rand index over D."""
    with panels(path, 1, 6) as (ax,):
        for method in LABELS:
            curve(ax, rows, "D", "ari", method)
        plain = next(row["ari"]["mean"] for row in rows if row["method"] == "plain k-means")
        ax.axhline(plain, color="black", linestyle=":", label="k-means on the plane")
        ax.set(
            title="a disc within a ring",
            xlabel="random Fourier features D",
            ylabel="adjusted Rand index",
            xscale="log",
        )
        ax.legend(fontsize=8)


if __name__ == "__main__":
    reproduce(
        Experiment(
            "outlook_kernel",
            "kernel k-means by random Fourier features",
            tasks,
            work,
            ("ari",),
            draw,
            repetitions=(3, 20),
        )
    )
