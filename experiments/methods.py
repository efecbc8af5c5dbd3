"""Lloyd, the paper's decoder and ours, with the settings of Section 4."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, pairwise_distances_argmin_min

import ckm

STRATEGIES = ("range", "sample", "k++")
SAMPLED_ROWS = 10_000  # rows that Sample and K++ draw from for the paper's decoder
POOL = 1000  # rows of the pool that our decoder has instead
LABELS = {"lloyd": "Lloyd", "clompr": "CKM (paper's decoder)", "density": "CKM (ours)"}
COLOURS = {"lloyd": "#666666", "clompr": "#D55E00", "density": "#0072B2"}
MARKERS = {"lloyd": "s", "clompr": "^", "density": "o"}


class Judged(NamedTuple):
    """The quality of centroids: the SSE (equation 1), and the adjusted Rand index if classes are
    known.
    """

    sse: float
    ari: float | None


def judge(X: np.ndarray, centroids: np.ndarray, classes: np.ndarray | None = None) -> Judged:
    """Assign every row to its nearest centroid, and measure the result."""
    labels, squares = pairwise_distances_argmin_min(X, centroids, metric="sqeuclidean")
    return Judged(
        float(squares.sum()),
        None if classes is None else float(adjusted_rand_score(classes, labels)),
    )


def lloyd(X: np.ndarray, K: int, strategy: str, seed: int, replicates: int = 1) -> np.ndarray:
    """Return the centroids (K, n) of scikit-learn's k-means, the best of its replicates."""
    rng = np.random.default_rng([seed, STRATEGIES.index(strategy)])
    lower = X.min(axis=0)
    upper = X.max(axis=0)
    starts: dict[str, Callable[[], Any]] = {
        "range": lambda: rng.uniform(lower, upper, (K, X.shape[1])),
        "sample": lambda: "random",
        "k++": lambda: "k-means++",
    }
    runs = (
        KMeans(K, init=starts[strategy](), n_init=1, random_state=int(rng.integers(2**31))).fit(X)
        for _ in range(replicates)
    )
    return min(runs, key=lambda fitted: fitted.inertia_).cluster_centers_


def paper_sketch(X: np.ndarray, m: int, seed: int, **options: Any) -> ckm.Sketch:
    """Return the paper's sketch: its law of frequencies, at the scale that its rule gives."""
    return ckm.sketch(
        X, sketch_size=m, distribution="adapted-radius", cells=0, random_state=seed, **options
    )


def our_sketch(X: np.ndarray, K: int, m: int, seed: int, **options: Any) -> ckm.Sketch:
    """Return a sketch of the same size with our law of frequencies."""
    return ckm.sketch(X, n_clusters=K, sketch_size=m, cells=0, random_state=seed, **options)


SKETCHES: dict[str, Callable[..., ckm.Sketch]] = {
    "clompr": lambda X, K, m, seed, **options: paper_sketch(X, m, seed, **options),
    "density": our_sketch,
}


def decoded(sketch: ckm.Sketch, K: int, method: str, seed: int, **options: Any) -> np.ndarray:
    """Return the centroids (K, n) decoded from the sketch, of the replicate with the lowest cost.

    Searches start from Range unless `init` is given.
    """
    options.setdefault("init", "range")
    with warnings.catch_warnings():
        # The experiments include sketches that are too small.
        warnings.simplefilter("ignore", ckm.errors.SmallSketchWarning)
        return ckm.decode(sketch, K, decoder=method, random_state=seed, **options).centroids


def sampled(X: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows that Sample and K++ draw from."""
    return X[np.random.default_rng(seed).choice(len(X), min(SAMPLED_ROWS, len(X)), replace=False)]
