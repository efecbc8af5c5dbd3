"""The contestants of end_to_end.py: what fits K centroids to rows in memory."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import ckm

K = 10
N_FEATURES = 10
M = 500
LARGEST = 10_000_000  # rows

Parts = dict[str, float]  # seconds of each part of a fit


class Fitted(NamedTuple):
    """Centroids, and the seconds of each part of the fit, if it has parts."""

    centroids: np.ndarray
    parts: Parts


def by_ckm(X: np.ndarray, seed: int) -> Fitted:
    began = time.perf_counter()
    sketch = ckm.sketch(X, n_clusters=K, sketch_size=M, random_state=seed)
    sketched = time.perf_counter()
    centroids = ckm.decode(sketch, K, random_state=seed).centroids
    return Fitted(centroids, {"sketch": sketched - began, "decode": time.perf_counter() - sketched})


def by_estimator(X: np.ndarray, seed: int) -> Fitted:
    return Fitted(
        ckm.CompressiveKMeans(K, sketch_size=M, random_state=seed).fit(X).cluster_centers_, {}
    )


def by_kmeans(n_init: int, X: np.ndarray, seed: int) -> Fitted:
    from sklearn.cluster import KMeans

    return Fitted(KMeans(K, n_init=n_init, random_state=seed).fit(X).cluster_centers_, {})


def by_minibatch(X: np.ndarray, seed: int) -> Fitted:
    from sklearn.cluster import MiniBatchKMeans

    return Fitted(MiniBatchKMeans(K, random_state=seed).fit(X).cluster_centers_, {})


def by_faiss(limits: dict[str, int], X: np.ndarray, seed: int) -> Fitted:
    import faiss

    fitted = faiss.Kmeans(N_FEATURES, K, seed=seed % 2**31, **limits)
    fitted.train(X)
    return Fitted(fitted.centroids, {})


def by_pycle(X: np.ndarray, seed: int) -> Fitted:
    from pycle import compressive_learning, sketching
    from threadpoolctl import threadpool_limits

    began = time.perf_counter()
    np.random.seed(seed)  # noqa: NPY002  # pycle draws from NumPy's global state
    scale = sketching.estimate_Sigma(X, M // 5, n0=min(len(X), 5000))
    features = sketching.SimpleFeatureMap(
        "complexExponential", sketching.drawFrequencies("adaptedRadius", N_FEATURES, M, scale)
    )
    z = sketching.computeSketch(X, features)
    sketched = time.perf_counter()
    # Several BLAS threads make many small products many times slower.
    with threadpool_limits(1):
        solver = compressive_learning.CLOMP_CKM(
            features, K, np.stack([X.min(axis=0), X.max(axis=0)]).astype(np.float64), z
        )
        solver.fit_once()
    return Fitted(
        solver.get_centroids(),
        {"sketch": sketched - began, "decode": time.perf_counter() - sketched},
    )


class Contestant(NamedTuple):
    """How it fits, the most rows it gets (more would take minutes), and its colour."""

    fit: Callable[[np.ndarray, int], Fitted]
    most: int
    colour: str


CONTESTANTS = {
    "ckm": Contestant(by_ckm, LARGEST, "#0072B2"),
    "ckm fit": Contestant(by_estimator, LARGEST, "#56B4E9"),
    "KMeans(n_init=1)": Contestant(lambda X, seed: by_kmeans(1, X, seed), LARGEST, "#999999"),
    "KMeans(n_init=5)": Contestant(lambda X, seed: by_kmeans(5, X, seed), LARGEST, "#444444"),
    # Its stopping rule rarely triggers on many rows: nine minutes for 5e6.
    "MiniBatchKMeans": Contestant(by_minibatch, 1_000_000, "#CC79A7"),
    "faiss, all points": Contestant(
        lambda X, seed: by_faiss({"max_points_per_centroid": len(X)}, X, seed), LARGEST, "#009E73"
    ),
    "faiss, its sample": Contestant(lambda X, seed: by_faiss({}, X, seed), LARGEST, "#90D0B0"),
    "pycle": Contestant(by_pycle, 1_000_000, "#F0A020"),
}
