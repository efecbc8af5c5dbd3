"""Models that tests fit, and how they are compared."""

from typing import Any

import numpy as np

from ckm import CompressiveKMeans


def model(**options: Any) -> CompressiveKMeans:
    return CompressiveKMeans(**({"n_clusters": 3, "random_state": 0} | options))


def distances(X: np.ndarray, C: np.ndarray) -> np.ndarray:
    return np.sqrt(((X[:, None, :] - C) ** 2).sum(axis=2))


def assert_same_fit(a: CompressiveKMeans, b: CompressiveKMeans) -> None:
    assert a.cluster_centers_.tobytes() == b.cluster_centers_.tobytes()
    assert a.weights_.tobytes() == b.weights_.tobytes()
