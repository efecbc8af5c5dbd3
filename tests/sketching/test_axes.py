"""Principal axes of a sample: those of a full decomposition, whatever the rows are held as."""

import numpy as np
import pytest
from scipy import sparse

from ckm._sketching.axes import _orthonormal, choose_projection, column_moments
from ckm._util.sparse import SparseRows


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """The smallest cosine between the spans of orthonormal lines."""
    return float(np.linalg.svd(a.astype(np.float64) @ b.astype(np.float64).T)[1].min())


@pytest.mark.parametrize("rank", [3, 8])
def test_orthonormal_columns_span_the_same_space(rank):
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(500, rank)) * 2.0 ** -np.arange(rank)
    columns = (factors @ rng.normal(size=(rank, 8))).astype(np.float32)
    found = _orthonormal(columns).astype(np.float64)
    assert found.shape[1] == rank
    assert np.abs(found.T @ found - np.eye(rank)).max() < 1e-6
    rest = columns - found @ (found.T @ columns)
    assert np.abs(rest).max() < 1e-5 * np.abs(columns).max()


def test_axes_of_sparse_rows_are_those_of_a_full_decomposition():
    rng = np.random.default_rng(0)
    X = np.zeros((600, 400))
    # Most columns are zero in every row, as of hashed words.
    used = np.sort(rng.choice(400, 90, replace=False))
    factors = rng.normal(size=(600, 5)) * [9, 7, 6, 5, 4]
    X[:, used] = factors @ rng.normal(size=(5, 90)) + rng.normal(size=(600, 90))
    X *= rng.random(X.shape) < 0.7
    rows = SparseRows.of(sparse.csr_array(X))
    found = choose_projection(rows, column_moments(rows), 5, 4, np.random.default_rng(1))
    dense = choose_projection(X, column_moments(X), 5, 4, np.random.default_rng(1))
    principal = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:5]
    assert overlap(found.axes, principal) > 0.99
    assert overlap(dense.axes, principal) > 0.99
    assert not found.axes[:, np.setdiff1d(np.arange(400), used)].any()
    assert found.kept == pytest.approx(dense.kept, rel=1e-3)


def test_rows_that_vary_along_fewer_axes_than_asked_for():
    X = np.zeros((100, 80))
    X[:, :3] = np.random.default_rng(0).normal(size=(100, 3))
    rows = SparseRows.of(sparse.csr_array(X))
    found = choose_projection(rows, column_moments(rows), 6, 4, np.random.default_rng(1))
    assert 3 <= found.d <= 6
    assert np.allclose(found.axes @ found.axes.T, np.eye(found.d), atol=1e-6)
    assert found.kept == pytest.approx(1.0)
