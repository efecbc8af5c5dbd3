"""An outlook of the paper: kernel k-means by random Fourier features (Chitta, Jin and Jain, 2012),
its k-means step replaced.

A disc within a ring: no two centroids of the plane separate them, a Gaussian kernel does. D
features of each row stand for the kernel.
"""

from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from drawing import curve, panels
from harness import Experiment, Plan, Row, Run, Task, reproduce
from methods import LABELS, SKETCHES, decoded, judge, lloyd

K, GAMMA, RATIO = 2, 0.7, 5
DISC, RING, WIDTH = 0.8, 2.0, 0.2  # radii, and the ring's deviation


# N and the numbers D of features tried within a task: quick, full
SIZES = ((10_000, [10, 30, 60]), (100_000, [10, 30, 100, 300]))


def tasks(plan: Plan) -> list[Task]:
    """A full run has the quick one in it."""
    return [
        {"N": N, "features": D, "seed": seed}
        for seed in plan.seeds
        for N, D in SIZES[: 1 + plan.full]
    ]


def disc_and_ring(n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the plane (N, 2), and which of the two each is of."""
    classes, angles = rng.integers(2, size=n_samples), rng.uniform(0, 2 * np.pi, n_samples)
    radii = np.where(
        classes == 0,
        DISC * np.sqrt(rng.uniform(size=n_samples)),
        RING + WIDTH * rng.standard_normal(n_samples),
    )
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1), classes


def work(task: Task) -> list[Run]:
    """One replicate of each."""
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
    """Adjusted Rand index over D."""
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
