"""Data to try things on: the paper's Gaussian mixture (Section 4.1)."""

from typing import Any, NamedTuple

import numpy as np

from ckm._util.arrays import Array
from ckm._util.checks import check_variance, check_whole_number
from ckm._util.random import seed_of, stream


class Mixture(NamedTuple):
    """Rows (N, n), the cluster each came from (N,), and the clusters' means (K, n)."""

    rows: Array
    labels: Array
    means: Array


def gaussian_mixture(
    n_samples: int = 300_000,
    n_clusters: int = 10,
    n_features: int = 10,
    *,
    separation: float = 1.5,
    dtype: Any = np.float64,
    random_state: Any = None,
) -> Mixture:
    """The paper's artificial data: K unit Gaussians with equal weights, their means drawn from N(0,
    c K^(1/n) I) with c = 1.5.

    >>> gaussian_mixture(1000, 3, 2, random_state=0).rows.shape
    (1000, 2)
    """
    n_samples, n_clusters = (
        check_whole_number(n_samples, "n_samples", 0),
        check_whole_number(n_clusters, "n_clusters", 1),
    )
    n_features, separation = (
        check_whole_number(n_features, "n_features", 1),
        check_variance(separation, "separation"),
    )
    rng = stream(seed_of(random_state), "dataset")
    means = rng.standard_normal((n_clusters, n_features)) * np.sqrt(
        separation * n_clusters ** (1 / n_features)
    )
    labels = rng.integers(n_clusters, size=n_samples)
    rows = rng.standard_normal((n_samples, n_features), dtype=np.float32).astype(dtype)
    for start in range(0, n_samples, 2**16):  # no second copy of the data
        part = slice(start, start + 2**16)
        rows[part] += means[labels[part]].astype(dtype)
    return Mixture(rows, labels, means)
