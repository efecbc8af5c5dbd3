"""Data with a known number of clusters, or none: what `curve.py` asks the number of."""

from collections.abc import Callable

import numpy as np

import ckm

DIMENSIONS = (2, 3, 5, 10, 20, 30)
# Standard deviations between the two closest means of separate clusters.
GAP = 5.0
WIDE_GAP = 6.0
# Draws after which the separation grows, where clusters do not get apart.
PATIENCE = 20
GROWTH = 1.3

Made = tuple[np.ndarray, int]


def separate_means(rng: np.random.Generator, gap: float) -> np.ndarray:
    """Return the means of 3 to 20 clusters of the paper's generator, none closer than `gap`.

    Means are drawn again until they are; after some draws with a larger separation.
    """
    K = int(rng.integers(3, 21))
    n = int(rng.choice(DIMENSIONS))
    separation = 1.5
    draws = 0
    while True:
        seed = int(rng.integers(2**30))
        made = ckm.datasets.gaussian_mixture(0, K, n, separation=separation, random_state=seed)
        squares = ((made.means[:, None] - made.means) ** 2).sum(axis=2)
        if np.sqrt(squares[~np.eye(K, dtype=bool)].min()) >= gap:
            return made.means
        draws += 1
        if draws % PATIENCE == 0:
            separation *= GROWTH


def separated(N: int, rng: np.random.Generator) -> Made:
    """Return unit Gaussians at least 5 standard deviations apart."""
    means = separate_means(rng, GAP)
    return means[rng.integers(len(means), size=N)] + _noise(rng, N, means), len(means)


def overlapping(N: int, rng: np.random.Generator) -> Made:
    """Return the paper's data as it is, in few columns, where clusters overlap."""
    K = int(rng.integers(3, 13))
    n = int(rng.choice([2, 3, 5, 10]))
    seed = int(rng.integers(2**30))
    return ckm.datasets.gaussian_mixture(N, K, n, random_state=seed).rows, K


def uniform(N: int, rng: np.random.Generator) -> Made:
    """Return a box."""
    n = int(rng.choice([2, 3, 5, 10]))
    return rng.uniform(size=(N, n)) * rng.uniform(0.5, 2, size=n), 1


def one_gaussian(N: int, rng: np.random.Generator) -> Made:
    """Return one Gaussian, half of the time with correlated columns."""
    n = int(rng.choice([2, 3, 5, 10, 20]))
    root = rng.standard_normal((n, n)) if rng.random() < 0.5 else np.eye(n)
    return rng.standard_normal((N, n)) @ root, 1


def balls(N: int, rng: np.random.Generator) -> Made:
    """Return uniform balls, of unit variance along each axis."""
    means = separate_means(rng, WIDE_GAP)
    n = means.shape[1]
    rows = _noise(rng, N, means)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= rng.uniform(size=(N, 1)) ** (1 / n) * np.sqrt(n + 2)
    return means[rng.integers(len(means), size=N)] + rows, len(means)


def heavy_tails(N: int, rng: np.random.Generator) -> Made:
    """Return Student's t with 5 degrees of freedom, of unit variance."""
    means = separate_means(rng, WIDE_GAP)
    rows = rng.standard_t(5, size=(N, means.shape[1])) * np.sqrt(3 / 5)
    return means[rng.integers(len(means), size=N)] + rows, len(means)


def elongated(N: int, rng: np.random.Generator) -> Made:
    """Return Gaussians with axes of their own, the largest variance ten times the smallest."""
    means = separate_means(rng, WIDE_GAP)
    K, n = means.shape
    variances = np.geomspace(1, 10, n)
    rows = _noise(rng, N, means) * np.sqrt(variances / variances.mean())
    labels = rng.integers(K, size=N)
    for k in range(K):
        axes = np.linalg.qr(rng.standard_normal((n, n))).Q
        rows[labels == k] = rows[labels == k] @ axes.T
    return means[labels] + rows, K


def unequal(N: int, rng: np.random.Generator) -> Made:
    """Return Gaussians whose weights fall from 0.5 to 0.02, with different widths."""
    means = separate_means(rng, WIDE_GAP)
    K = len(means)
    weights = np.geomspace(0.5, 0.02, K)
    labels = rng.choice(K, N, p=weights / weights.sum())
    widths = rng.uniform(0.5, 1.2, size=K)
    return means[labels] + widths[labels, None] * _noise(rng, N, means), K


def _noise(rng: np.random.Generator, N: int, means: np.ndarray) -> np.ndarray:
    return rng.standard_normal((N, means.shape[1]))


KINDS: dict[str, Callable[[int, np.random.Generator], Made]] = {
    "separated": separated,
    "overlapping": overlapping,
    "uniform": uniform,
    "one Gaussian": one_gaussian,
    "balls": balls,
    "heavy tails": heavy_tails,
    "elongated": elongated,
    "unequal": unequal,
}
# Kinds without clusters, of which one or no clear number is the truth.
CLUSTERLESS = ("uniform", "one Gaussian")


def make(kind: str, seed: int, N: int) -> Made:
    """Return rows and the true number of clusters."""
    return KINDS[kind](N, np.random.default_rng([list(KINDS).index(kind), seed]))
