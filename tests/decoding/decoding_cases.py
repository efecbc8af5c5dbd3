"""Problems, mixtures, data and errors that tests of the decoder share."""

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

import ckm
from ckm._core.moments import SecondMoment
from ckm._decoding.operator import Matrix
from ckm._decoding.problem import Problem
from ckm._kmeans.assign import Centroids
from ckm._sources.arrays import ArraySource


def random_problem(seed: int, m: int, n: int) -> Problem:
    """A random sketch of m random frequencies, in a box of side 6."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(2, m)) / 2
    return Problem(
        Matrix.of(rng.normal(size=(m, n))),
        z[0] + 1j * z[1],
        np.full(n, -3.0),
        np.full(n, 3.0),
        np.zeros(n),
        SecondMoment(np.eye(n)),
        size=1000,
        trusted=np.ones(n, bool),
    )


def problem_of_rows(rows: np.ndarray, m: int, weights: np.ndarray | None = None) -> Problem:
    """What m frequencies of scale one, bounds and moments say of rows (N, n)."""
    beta = np.ones(len(rows)) if weights is None else weights
    omega = np.random.default_rng(0).normal(size=(m, rows.shape[1]))
    mean = beta @ rows / beta.sum()
    return Problem(
        Matrix.of(omega),
        beta @ np.exp(-1j * rows @ omega.T) / beta.sum(),
        rows.min(axis=0),
        rows.max(axis=0),
        mean,
        SecondMoment.of_points(rows - mean, beta, full=True),
        size=len(rows),
        trusted=np.ones(rows.shape[1], bool),
    )


problems = st.builds(
    lambda seed, m, n: random_problem(seed, m, n),
    seed=st.integers(0, 10**6),
    m=st.integers(1, 30),
    n=st.integers(1, 5),
)


def random_mixture(problem: Problem, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres (K, n) in the box, and weights (K,)."""
    rng = np.random.default_rng([problem.m, K])
    return rng.uniform(-3, 3, size=(K, problem.n)), rng.uniform(0, 1, size=K)


def frequencies(problem: Problem) -> np.ndarray:
    """Omega (m, n)."""
    return 2 * np.pi * problem.omega.turns.T


def matched_error(means: np.ndarray, centroids: np.ndarray) -> float:
    """The largest distance from a mean to its own centroid."""
    distances = cdist(means, centroids)
    return float(distances[linear_sum_assignment(distances)].max())


def relative_sse(X: np.ndarray, centroids: np.ndarray) -> float:
    """The SSE of these centroids relative to that of the best of five runs of k-means."""
    best = KMeans(len(centroids), n_init=5, random_state=0).fit(X)
    return Centroids(centroids).sse(ArraySource(X)) / best.inertia_


def problem_and_mixture(n: int, seed: int) -> tuple[Problem, np.ndarray, np.ndarray, np.ndarray]:
    """A problem, with a diagonal covariance if n is large, and a mixture of four atoms."""
    rng = np.random.default_rng(seed)
    problem = Problem.of(
        ckm.sketch(rng.gamma(2, size=(2000, n)), sketch_size=300, random_state=seed, cells=0)
    )
    assert problem.covariance.is_full == (n < 20)
    return (
        problem,
        rng.normal(size=(4, n)),
        rng.uniform(0.1, 0.4, size=4),
        rng.uniform(0.1, 2, size=(4, n)),
    )


def far_clusters() -> np.ndarray:
    """Four clusters of nearly all rows, and two of ten and of six rows that have most of the
    variance.
    """
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 0, 0], [6, 0, 0], [0, 6, 0], [0, 0, 6]])
    bulk = means[rng.integers(4, size=40_000)] + rng.normal(size=(40_000, 3))
    far = np.array([[500.0, 0, 0], [0, -400, 200]])[[0] * 10 + [1] * 6] + 5 * rng.normal(
        size=(16, 3)
    )
    return np.vstack([far, bulk])
