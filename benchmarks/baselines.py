"""What results are compared with: the SSE of k-means, and the centroids of pycle's decoder."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin_min

import ckm
from benchmarks.harness import CACHE
from benchmarks.processes import locked, replacing

PYCLE = ("pycle.sketching", "pycle.compressive_learning")
BASELINE_RUNS = 10


def sse(X: np.ndarray, centroids: np.ndarray) -> float:
    """Return SSE = sum_l min_k |x_l - c_k|^2 (equation 1), computed in chunks."""
    _, squares = pairwise_distances_argmin_min(X, centroids, metric="sqeuclidean")
    return float(squares.sum())


def kmeans_sse(X: np.ndarray, n_clusters: int, seed: int) -> float:
    """Return the SSE of the best of five k-means++ runs of scikit-learn."""
    fitted = KMeans(n_clusters, n_init=5, random_state=seed).fit(X)
    return sse(X, fitted.cluster_centers_)


def baseline(key: str, X: np.ndarray, n_clusters: int, quick: bool) -> float:
    """Return the SSE of the best of 10 k-means++ runs, from the cache if it is of the same data."""
    path = CACHE / f"kmeans{'-quick' if quick else ''}.json"
    same = f"{len(X)} x {X.shape[1]}, K = {n_clusters}, variance {X.var(axis=0).sum():.5g}"
    with locked():
        entry = _cached(path).get(key)
    if entry is None or entry["of"] != same:
        runs = (KMeans(n_clusters, n_init=1, random_state=i).fit(X) for i in range(BASELINE_RUNS))
        best = min(runs, key=lambda fitted: fitted.inertia_)
        entry = {"sse": sse(X, best.cluster_centers_), "of": same}
        with locked(), replacing(path) as part:
            entries = _cached(path) | {key: entry}
            part.write_text(json.dumps(entries, indent=0, sort_keys=True) + "\n")
    return float(entry["sse"])


def _cached(path: Path) -> dict[str, Any]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return json.loads(path.read_text()) if path.exists() else {}


def pycle_centroids(sketch: ckm.Sketch, n_clusters: int, seed: int) -> np.ndarray:
    """Return the centroids of pycle's CLOMPR from our sketch, in the data's coordinates."""
    sketching, learning = map(import_module, PYCLE)
    frequencies = sketch.frequencies
    np.random.seed(seed)  # noqa: NPY002  # pycle draws from NumPy's global state
    features = sketching.SimpleFeatureMap("complexExponential", frequencies.omega.T)
    bounds = np.stack([sketch.lower, sketch.upper]) - frequencies.origin
    # pycle's sign is +i
    solver = learning.CLOMP_CKM(features, n_clusters, bounds, np.conj(sketch.z))
    solver.fit_once()
    return frequencies.origin + solver.get_centroids()
