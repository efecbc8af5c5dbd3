"""The SSE of given centroids, from cells."""

import numpy as np
import pytest

from ckm._core.moments import SecondMoment
from ckm._decoding.cell_shapes import ShapedCells

MEANS = np.array([[0.0, 0.0], [1.0, 0.0], [6.0, 1.0], [7.0, 0.0], [50.0, 50.0]])
SHARES = np.array([0.3, 0.2, 0.25, 0.2, 0.05])
VARIANCES = np.array([0.2, 0.1, 0.2, 0.3])


def _cells() -> ShapedCells:
    """Four cells, and an outlier."""
    around = MEANS - SHARES @ MEANS
    within = 2 * SHARES[:4] @ VARIANCES
    covariance = (around.T * SHARES) @ around + within * np.diag([0.9, 0.1])
    rng = np.random.default_rng(0)
    return ShapedCells.of((MEANS, SHARES), VARIANCES, SecondMoment(covariance), 2000, rng)


def test_the_error_of_one_centroid_is_exact() -> None:
    C = np.array([[3.0, 2.0]])
    _, shares, mean_square = _cells().measure(C)
    exact = SHARES @ ((MEANS - C) ** 2).sum(axis=1) + 2 * SHARES[:4] @ VARIANCES
    assert mean_square == pytest.approx(exact, rel=1e-12)
    assert shares == pytest.approx([1.0])


def test_whole_cells_are_exact_and_rows_that_cross_gain() -> None:
    cells = _cells()
    whole = SHARES[:4] @ VARIANCES * 2
    _, shares, mean_square = cells.measure(MEANS[[0, 3, 4]] + [[0.5, 0], [-0.5, 0.5], [0, 0]])
    assert mean_square <= whole + SHARES @ np.array([0.25, 0.25, 0.5, 0.5, 0])
    assert shares == pytest.approx([0.5, 0.45, 0.05], abs=0.01)
    # A boundary through the first cell: rows on both sides of it are nearer to their own.
    _, _, split = cells.measure(np.vstack([[[-0.4, 0.0], [0.4, 0.0]], MEANS[1:]]))
    assert split < whole + SHARES[0] * 0.16


def test_points_have_the_shape_that_is_left_of_the_covariance() -> None:
    cells = _cells()
    deviations = cells.points.values - MEANS[cells.owners]
    own = cells.points.weights @ deviations**2
    assert own[0] > 3 * own[1]
    assert own.sum() == pytest.approx(2 * SHARES[:4] @ VARIANCES, rel=0.1)
