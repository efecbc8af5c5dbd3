"""An outlook of the paper: spectral clustering with its k-means step replaced, on images that need
no download.

Scikit-learn's 8 x 8 digits and, for more of them, deformed ones; the graph of 10 nearest
neighbours, eigenvectors of its Laplacian.
"""

from functools import cache
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

from benchmarks import spectral
from benchmarks.deform import Deformation, enlarged
from experiments.drawing import curve, panels
from experiments.experiment import Experiment, Plan, Row, Run, Task, reproduce
from experiments.methods import LABELS, SKETCHES, decoded, judge, lloyd

K = 10
M = 1000
ORIGINALS = 1797
LARGEST = 16
SMALL = Deformation(shift=0.1, bend=0.13, smoothness=1.2)  # for images of eight pixels


def tasks(plan: Plan) -> list[Task]:
    """Return the tasks: the original images, and a few times as many."""
    sizes = (ORIGINALS, 5000, 20_000) if plan.full else (ORIGINALS, 5000)
    return [{"N": N, "m": M, "seed": seed} for seed in plan.seeds for N in sizes]


@cache
def features(n_images: int) -> tuple[np.ndarray, np.ndarray]:
    """Return spectral features (N, 10) and classes (N,)."""
    digits = load_digits()
    grey = (digits.images * (255 / LARGEST)).astype(np.uint8)
    pixels = (
        np.concatenate([*enlarged(grey, n_images, settings=SMALL)])
        .reshape(n_images, -1)
        .astype(np.float32)
    )
    graph = sparse.csr_array(kneighbors_graph(pixels, spectral.NEIGHBOURS))
    return spectral.embedding(graph.maximum(graph.T)), digits.target[
        np.arange(n_images) % len(grey)
    ]


def work(task: Task) -> list[Run]:
    """Run each method once."""
    (X, classes) = features(task["N"])
    seed = task["seed"]
    centroids = {"lloyd": lloyd(X, K, "range", seed)}
    centroids |= {
        method: decoded(make(X, K, M, seed, n_jobs=1), K, method, seed, n_jobs=1)
        for method, make in SKETCHES.items()
    }
    judged = {method: judge(X, C, classes) for method, C in centroids.items()}
    return [
        {"method": method, "sse": sse / len(X), "ari": ari} for method, (sse, ari) in judged.items()
    ]


def draw(rows: list[Row], path: Path) -> None:
    """Draw SSE / N and adjusted Rand index over the number of images."""
    with panels(path, 2) as axes:
        for ax, measure, title in zip(
            axes, ("sse", "ari"), ("SSE / N", "adjusted Rand index"), strict=True
        ):
            for method in LABELS:
                curve(ax, rows, "N", measure, method)
            ax.set(title=title, xlabel="images", xscale="log")
            ax.legend(fontsize=8)


if __name__ == "__main__":
    about = "spectral clustering of small digits, its k-means step replaced"
    reproduce(
        Experiment(
            "outlook_spectral", about, tasks, work, ("sse", "ari"), draw, repetitions=(3, 20)
        )
    )
