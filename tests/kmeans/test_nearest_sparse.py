"""Sparse rows get the labels of the same rows made dense, bit for bit; distances agree to 1e-10,
also where a row is at its centroid.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ckm._kmeans.assign import Centroids
from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.nearest import find_nearest
from ckm._kmeans.nearest_sparse import find_nearest_sparse
from ckm._kmeans.polish import polish, polish_centroids
from ckm._sources import open_source
from ckm._sources.arrays import ArraySource
from ckm._sources.settings import ReadSettings
from ckm._sources.sparse import SparseSource
from ckm._util.sparse import SparseRows
from ckm.errors import DataError, NonFiniteError


def sparse_rows(
    N: int, n: int, share: float, seed: int, dtype: type = np.float64
) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(N, n)) * (rng.random((N, n)) < share)
    return sparse.csr_array(dense.astype(dtype))


def search(X: sparse.csr_array, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    labels = np.full(X.shape[0], -7, np.int32)
    squares = np.full(X.shape[0], np.nan)
    assert find_nearest_sparse(SparseRows.of(X), CentroidIndex(C), labels, squares) is None
    return labels, squares


def search_dense(X: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    labels = np.full(len(X), -7, np.int32)
    squares = np.full(len(X), np.nan)
    assert find_nearest(X, CentroidIndex(C), labels, squares) is None
    return labels, squares


@given(
    N=st.sampled_from([1, 7, 200]),
    K=st.sampled_from([1, 2, 7, 8, 9, 20, 64, 90]),
    n=st.sampled_from([1, 3, 40, 300]),
    share=st.sampled_from([0.0, 0.1, 0.9]),
    scale=st.sampled_from([1e-140, 1e-30, 1.0, 1e30, 1e140]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 100),
)
def test_labels_and_distances_equal_those_of_dense_rows(
    N: int, K: int, n: int, share: float, scale: float, dtype: type, seed: int
) -> None:
    if dtype is np.float32:
        scale = float(np.clip(scale, 1e-30, 1e30))
    X = (scale * sparse_rows(N, n, share, seed)).astype(dtype)
    rng = np.random.default_rng(seed + 1)
    C = scale * rng.normal(size=(K, n))
    C[-1] = X[[0]].toarray()
    labels, squares = search(X, C)
    dense_labels, dense_squares = search_dense(X.toarray(), C)
    assert np.array_equal(labels, dense_labels)
    np.testing.assert_allclose(squares, dense_squares, rtol=1e-10)


def test_on_a_lattice_the_first_of_equally_near_centroids_wins() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, size=(2000, 4)).astype(float)
    C = rng.integers(-1, 2, size=(30, 4)).astype(float)
    D = ((X[:, None] - C) ** 2).sum(axis=2)
    assert ((D.min(axis=1)[:, None] == D).sum(axis=1) > 1).mean() > 0.1
    labels, squares = search(sparse.csr_array(X), C)
    assert np.array_equal(labels, D.argmin(axis=1))
    assert np.array_equal(squares, D.min(axis=1))


@pytest.mark.parametrize("gap", [1e-9, 1e-12, 1e-15, 1e-16])
def test_centroids_that_differ_by_less_than_scores_can_tell(gap: float) -> None:
    X = sparse_rows(500, 60, 0.2, 0)
    rng = np.random.default_rng(1)
    c = rng.normal(size=(1, 60))
    C = np.concatenate([c + gap * rng.normal(size=(5, 60)), c, c])
    labels, _ = search(X, C)
    assert np.array_equal(labels, search_dense(X.toarray(), C)[0])
    assert len(np.unique(labels)) > 2


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-4, 1e-2])
def test_the_distance_to_a_centroid_close_by_keeps_its_digits(gap: float) -> None:
    X = sparse_rows(50, 400, 0.1, 2)
    C = X.toarray() + gap * np.random.default_rng(3).normal(size=X.shape)
    labels, squares = search(X, C)
    dense_labels, dense_squares = search_dense(X.toarray(), C)
    assert np.array_equal(labels, dense_labels)
    np.testing.assert_allclose(squares, dense_squares, rtol=1e-10)
    np.testing.assert_allclose(
        Centroids(C).distances(open_source(X)),
        Centroids(C).distances(open_source(X.toarray())),
        rtol=1e-10,
    )


@given(
    seed=st.integers(0, 1000),
    n_jobs=st.sampled_from([1, 2, 5]),
    chunk_bytes=st.sampled_from([1, 1000, 10_000, 10**6]),
    in_units=st.booleans(),
    weighted=st.booleans(),
)
def test_threads_and_chunks_and_zeros_change_nothing(
    seed: int, n_jobs: int, chunk_bytes: int, in_units: bool, weighted: bool
) -> None:
    X = sparse_rows(300, 30, 0.2, seed, np.float32)
    rng = np.random.default_rng(seed)
    weights = rng.random(300) if weighted else None
    centroids = Centroids(rng.normal(size=(6, 30)), 0.5 + rng.random(30) if in_units else None)
    source = SparseSource(X, None, weights, ReadSettings(chunk_bytes=chunk_bytes))
    dense = ArraySource(X.toarray(), None, weights)
    labels, sse = centroids.assign(source, n_jobs=n_jobs)
    expected, dense_sse = centroids.assign(dense, n_jobs=1)
    assert np.array_equal(labels, expected)
    assert np.array_equal(centroids.label(source, n_jobs=n_jobs), expected)
    assert sse == pytest.approx(dense_sse, rel=1e-10)
    assert centroids.sse(source, n_jobs=n_jobs) == sse
    summary = centroids.summarise(source, n_jobs=n_jobs)
    assert np.array_equal(summary.counts, np.bincount(expected, minlength=6))
    np.testing.assert_allclose(summary.sse, centroids.summarise(dense).sse, rtol=1e-10)
    distances = centroids.distances(source, n_jobs=n_jobs)
    np.testing.assert_allclose(distances, centroids.distances(dense), rtol=1e-10)


@given(
    seed=st.integers(0, 1000), n_jobs=st.sampled_from([1, 3]), chunk_bytes=st.integers(1, 40_000)
)
def test_polish_is_that_of_dense_rows_and_bit_identical_for_threads_and_chunks(
    seed: int, n_jobs: int, chunk_bytes: int
) -> None:
    X = sparse_rows(300, 30, 0.2, seed)
    rng = np.random.default_rng(seed)
    weights = rng.random(300)
    C = np.concatenate([rng.normal(size=(5, 30)), np.full((1, 30), 1e3)])
    whole = polish(SparseSource(X, None, weights), C, 4)
    source = SparseSource(X, None, weights, ReadSettings(chunk_bytes=chunk_bytes))
    again = polish(source, C, 4, n_threads=n_jobs)
    assert np.array_equal(whole.centroids, again.centroids)
    assert whole[1:] == again[1:]
    dense = polish(ArraySource(X.toarray(), None, weights), C, 4)
    np.testing.assert_allclose(whole.centroids, dense.centroids, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(whole.sse, dense.sse, rtol=1e-10)
    assert np.array_equal(whole.centroids[-1], C[-1]), "nearest to no row, it stays"


def test_polish_settles_and_knows_units() -> None:
    X = sparse_rows(300, 5, 0.5, 0)
    units = np.array([1.0, 2.0, 3.0, 4.0, 50.0])
    centroids = Centroids(X[:4].toarray(), units)
    found = polish_centroids(centroids, open_source(X), 100, n_jobs=1, progress=False)
    dense = polish_centroids(centroids, open_source(X.toarray()), 100, n_jobs=1, progress=False)
    assert found.settled
    np.testing.assert_allclose(found.centroids, dense.centroids, rtol=1e-10, atol=1e-12)


def test_no_row_is_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix whose rows, made dense, would take 400 GB."""
    n = 10**6
    N = 50_000
    rng = np.random.default_rng(0)
    parts = (rng.random(3 * N), rng.integers(0, n, 3 * N), np.arange(0, 3 * N + 1, 3))
    X = sparse.csr_array(parts, shape=(N, n))
    X.sum_duplicates()
    C = np.zeros((2, n))
    C[1, : n // 2] = 0.01

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("rows were made dense")

    monkeypatch.setattr(SparseRows, "__array__", refuse)
    monkeypatch.setattr(type(X), "toarray", refuse)
    centroids = Centroids(C)
    labels, sse = centroids.assign(open_source(X), n_jobs=1)
    overlap = X @ C[1]
    assert np.array_equal(labels, (overlap > 25).astype(np.int32))
    assert sse == pytest.approx(float((X.data**2).sum()))
    assert polish(open_source(X), C, 1).sse == (pytest.approx(sse),)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_a_row_without_a_finite_distance_is_named(bad: float) -> None:
    X = sparse_rows(200, 8, 0.5, 0).tolil()
    X[150, 3] = bad
    X = X.tocsr()
    centroids = Centroids(np.ones((2, 8)))
    with pytest.raises(NonFiniteError, match=r"150.*column 3"):
        centroids.label(open_source(X))
    with pytest.raises(NonFiniteError, match=r"150.*column 3"):
        centroids.distances(open_source(X))


def test_missing_values_can_be_dropped() -> None:
    X = sparse_rows(200, 8, 0.5, 0).toarray()
    X[150, 3] = X[7, 1] = np.nan
    X[7, 2] = np.inf
    rng = np.random.default_rng(0)
    centroids = Centroids(rng.normal(size=(3, 8)))
    labels, sse = centroids.assign(open_source(sparse.csr_array(X)), nan="drop")
    expected, dense_sse = centroids.assign(open_source(X), nan="drop")
    assert np.array_equal(labels, expected)
    assert np.flatnonzero(labels == -1).tolist() == [7, 150]
    assert sse == pytest.approx(dense_sse, rel=1e-12)


@pytest.mark.parametrize("column", [-1, 3])
def test_columns_that_do_not_exist_are_refused(column: int) -> None:
    rows = SparseRows(np.ones(2), np.array([0, column]), np.array([0, 1, 2]), 3)
    with pytest.raises(DataError, match=f"column {column}, and there are 3"):
        find_nearest_sparse(rows, CentroidIndex(np.ones((1, 3))), np.empty(2, np.int32))
