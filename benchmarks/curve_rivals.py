"""The usual ways to choose the number of clusters, with the rows at hand."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import calinski_harabasz_score, silhouette_score
from sklearn.mixture import GaussianMixture

# Rows that the silhouette, which compares all pairs, is computed on.
SILHOUETTE_ROWS = 2000
# Uniform sets of the gap statistic, and their rows at most.
REFERENCES = 5
GAP_ROWS = 5000
RIVALS = ("silhouette", "Calinski-Harabasz", "gap statistic", "BIC")


def choose_by_indices(X: np.ndarray, K_max: int, seed: int) -> dict[str, int]:
    """Return what silhouette and Calinski-Harabasz choose, from 2 on, by runs of k-means."""
    silhouettes = []
    ratios = []
    for K in range(2, K_max + 1):
        labels = KMeans(K, n_init=2, random_state=seed).fit(X).labels_
        silhouettes.append(
            silhouette_score(X, labels, sample_size=SILHOUETTE_ROWS, random_state=seed)
        )
        ratios.append(calinski_harabasz_score(X, labels))
    return {
        "silhouette": 2 + int(np.argmax(silhouettes)),
        "Calinski-Harabasz": 2 + int(np.argmax(ratios)),
    }


def choose_by_gap(X: np.ndarray, K_max: int, seed: int) -> int:
    """Return the choice of the gap statistic (Tibshirani, Walther and Hastie, 2001): the first K
    whose gap is at least the next one less its standard error.
    """
    rng = np.random.default_rng(seed)
    X = X[rng.permutation(len(X))[:GAP_ROWS]]
    low = X.min(axis=0)
    high = X.max(axis=0)
    own = _log_errors(X, K_max, seed)
    others = np.array(
        [
            _log_errors(rng.uniform(low, high, size=X.shape), K_max, seed + i)
            for i in range(REFERENCES)
        ]
    )
    gaps = others.mean(axis=0) - own
    errors = others.std(axis=0) * np.sqrt(1 + 1 / REFERENCES)
    is_enough = gaps[:-1] >= gaps[1:] - errors[1:]
    return 1 + int(np.argmax(is_enough)) if is_enough.any() else K_max


def choose_by_bic(X: np.ndarray, K_max: int, seed: int) -> int:
    """Return the number of full Gaussians with the smallest BIC."""
    values = [
        GaussianMixture(K, random_state=seed, reg_covar=1e-6 * X.var()).fit(X).bic(X)
        for K in range(1, K_max + 1)
    ]
    return 1 + int(np.argmin(values))


def _log_errors(X: np.ndarray, K_max: int, seed: int) -> np.ndarray:
    return np.log(
        [KMeans(K, n_init=1, random_state=seed).fit(X).inertia_ for K in range(1, K_max + 1)]
    )
