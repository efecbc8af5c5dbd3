"""Labels equal those of distances in float64, however uncertain float32 scores are; distances are
exact up to rounding in float64.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckm._kmeans.index import PANEL, CentroidIndex
from ckm._kmeans.nearest import find_nearest


def search(X: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    labels = np.full(len(X), -7, np.int32)
    squares = np.full(len(X), np.nan)
    assert find_nearest(X, CentroidIndex(C), labels, squares) is None
    alone = np.full(len(X), -7, np.int32)
    assert find_nearest(X, CentroidIndex(C), alone) is None
    assert np.array_equal(labels, alone), (
        "labels do not depend on whether distances are computed too"
    )
    return labels, squares


def squared_distances(X: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Squared distances (N, K), added up in the order of columns."""
    D = np.zeros((len(X), len(C)))
    for d in range(X.shape[1]):
        D += (X[:, d, None].astype(np.float64) - C[:, d]) ** 2
    return D


@given(
    N=st.sampled_from([1, 2, PANEL - 1, PANEL, PANEL + 1, 3 * PANEL + 5]),
    K=st.sampled_from([1, 2, 5, 6, 7, 12, 40]),
    n=st.sampled_from([1, 2, 3, 15, 16, 17, 40]),
    scale=st.sampled_from([1e-300, 1e-30, 1e-3, 1.0, 1e3, 1e30, 1e120, 1e140]),
    place=st.sampled_from([0.0, 1.0, 1e6]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 100),
)
def test_labels_equal_those_of_distances_in_float64(
    N: int, K: int, n: int, scale: float, place: float, dtype: type, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    if dtype is np.float32:
        scale = float(np.clip(scale, 1e-30, 1e30))
    X = (scale * (rng.normal(size=(N, n)) + place)).astype(dtype)
    C = scale * (rng.normal(size=(K, n)) + place)
    labels, squares = search(X, C)
    D = squared_distances(X, C)
    if scale > 1e-100:
        assert np.array_equal(labels, D.argmin(axis=1))
    np.testing.assert_allclose(squares, D[np.arange(N), labels], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_on_a_lattice_the_first_of_equally_near_centroids_wins(n: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-4, 5, size=(2000, n)).astype(dtype)
    C = rng.integers(-4, 5, size=(30, n)).astype(np.float64)
    D = squared_distances(X, C)
    ties = ((D.min(axis=1)[:, None] == D).sum(axis=1) > 1).mean()
    assert ties > 0.1
    assert np.array_equal(search(X, C)[0], D.argmin(axis=1))


@pytest.mark.parametrize("gap", [1e-6, 1e-9, 1e-12, 1e-15])
def test_centroids_that_are_equal_in_float32(gap: float) -> None:
    rng = np.random.default_rng(0)
    c = rng.normal(size=(1, 8))
    X = 3 * rng.normal(size=(500, 8))
    C = np.concatenate([c + gap * rng.normal(size=(5, 8)), c, c])
    labels, _ = search(X, C)
    assert np.array_equal(labels, squared_distances(X, C).argmin(axis=1))
    assert len(np.unique(labels)) > 2
    assert labels.max() < 6, "of equal centroids the second is never the nearest"


def test_rows_far_from_all_centroids_and_a_centroid_far_from_the_others() -> None:
    rng = np.random.default_rng(0)
    C = np.concatenate([rng.normal(size=(9, 4)), [[1e7, 0, 0, 0]]])
    X = np.concatenate(
        [
            rng.normal(size=(300, 4)),
            1e12 * rng.normal(size=(300, 4)),
            1e25 * rng.normal(size=(300, 4)),
            C,
        ]
    )
    assert np.array_equal(search(X, C)[0], squared_distances(X, C).argmin(axis=1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("row", [0, PANEL - 1, PANEL, 150])
def test_the_first_row_without_a_finite_distance_is_returned(row: int, bad: float) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[row, 1] = X[180, 2] = bad
    for squares in (None, np.empty(200)):
        assert find_nearest(X, CentroidIndex(X[4:8]), np.empty(200, np.int32), squares) == row


def test_inputs_are_not_modified() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    C = rng.normal(size=(5, 3))
    copies = X.copy(), C.copy()
    search(X, C)
    assert np.array_equal(X, copies[0])
    assert X.flags.writeable
    assert np.array_equal(C, copies[1])
    X.flags.writeable = C.flags.writeable = False
    search(X, C)


NARROW = """
import numpy as np
from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.nearest import find_nearest
rng = np.random.default_rng(0)
X, C = rng.normal(size=(500, 21)), rng.normal(size=(23, 21))
labels = np.empty(500, np.int32)
find_nearest(X, CentroidIndex(C), labels)
assert np.array_equal(labels, ((X[:, None] - C) ** 2).sum(axis=2).argmin(axis=1))
"""


@pytest.mark.slow
def test_on_processors_with_shorter_vectors(tmp_path: Path) -> None:
    """In a separate process with its own cache, since numba reads the settings once."""
    generic = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    subprocess.run(
        [sys.executable, "-c", NARROW], check=True, timeout=300, env={**os.environ, **generic}
    )
