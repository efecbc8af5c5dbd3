"""Nearest centroids, distances and SSE (equation 1)."""

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckm._kmeans.assign import Centroids
from ckm._sources.arrays import ArraySource
from ckm._sources.blocks import BLOCK_ROWS


def assign(
    X: np.ndarray, C: np.ndarray, weights: np.ndarray | None = None, n_jobs: int = 1
) -> tuple[np.ndarray, float]:
    """Labels and SSE of an array."""
    return Centroids(C).assign(ArraySource(X, weights=weights), n_jobs=n_jobs)


def distances(X: np.ndarray, C: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    return Centroids(C).distances(ArraySource(X), n_jobs=n_jobs)


@given(
    count=st.integers(0, 40),
    K=st.integers(1, 9),
    n=st.integers(1, 5),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from([np.float32, np.float64]),
    weighted=st.booleans(),
)
def test_against_plain_numpy_and_the_oracle(
    count: int, K: int, n: int, seed: int, dtype: type, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, n)).astype(dtype)
    C = rng.normal(size=(K, n))
    w = rng.uniform(0, 2, size=count) if weighted else None
    for array in (X, C):
        array.flags.writeable = False
    D = np.sqrt(((X[:, None, :].astype(np.float64) - C) ** 2).sum(axis=2))
    labels, sse = assign(X, C, w)
    assert np.array_equal(labels, D.argmin(axis=1))
    assert labels.dtype == np.int32
    assert sse == pytest.approx(
        oracle.sse(X.tolist(), C.tolist(), None if w is None else w.tolist()), rel=1e-12, abs=1e-300
    )
    np.testing.assert_allclose(distances(X, C), D, rtol=1e-12)


def test_of_equally_near_centroids_the_first_is_chosen() -> None:
    X = np.array([[0.0], [1.0], [5.0]])
    assert assign(X, np.array([[-1.0], [1.0], [1.0], [-1.0]]))[0].tolist() == [0, 1, 1]
    assert assign(X, np.ones((3, 1)))[0].tolist() == [0, 0, 0]


def test_threads_change_nothing() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * BLOCK_ROWS + 1, 2))
    C = rng.normal(size=(7, 2))
    w = rng.uniform(size=3 * BLOCK_ROWS + 1)
    one = assign(X, C, w, n_jobs=1)
    for n_jobs in (2, 4):
        labels, sse = assign(X, C, w, n_jobs=n_jobs)
        assert np.array_equal(labels, one[0])
        assert sse == one[1]
        assert np.array_equal(distances(X, C, n_jobs=n_jobs), distances(X, C))


def test_distances_far_from_zero_lose_no_precision() -> None:
    """The terms of |x|^2 - 2 x c + |c|^2 would cancel at 1e8."""
    X = np.array([[1e8 + 0.25], [1e8 - 0.5]])
    C = np.array([[1e8], [1e8 + 1]])
    assert distances(X, C).tolist() == [[0.25, 0.75], [0.5, 1.5]]
