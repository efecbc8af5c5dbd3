"""The SSE of given centroids, from cells."""

import numpy as np
import pytest
from decoding_cases import problem_of_rows

from ckm._core.moments import SecondMoment
from ckm._decoding.cell_shapes import CellShapes, ShapedCells

MEANS = np.array([[0.0, 0.0], [1.0, 0.0], [6.0, 1.0], [7.0, 0.0], [50.0, 50.0]])
SHARES = np.array([0.3, 0.2, 0.25, 0.2, 0.05])
VARIANCES = np.array([0.2, 0.1, 0.2, 0.3])


def _shapes() -> CellShapes:
    """Four cells, and an outlier."""
    around = MEANS - SHARES @ MEANS
    within = 2 * SHARES[:4] @ VARIANCES
    covariance = (around.T * SHARES) @ around + within * np.diag([0.9, 0.1])
    return CellShapes.of((MEANS, SHARES), VARIANCES, SecondMoment(covariance))


def _cells() -> ShapedCells:
    return _shapes().draw(2000, np.random.default_rng(0))


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


def test_a_cell_of_much_variance_has_many_points() -> None:
    variances = np.array([0.2, 0.1, 0.2, 300.0])
    shapes = CellShapes.of((MEANS, SHARES), variances, SecondMoment(np.eye(2)))
    counts = np.bincount(shapes.draw(2000, np.random.default_rng(0)).owners)
    assert counts[3] > 1000
    assert (counts[:3] > 200).all()
    assert counts[4] == 1


@pytest.mark.parametrize("is_towards", [False, True])
def test_the_sketch_says_how_much_of_a_cell_lies_towards_others(is_towards: bool) -> None:
    """Cells on a line, whose rows lie along it or across it."""
    rng = np.random.default_rng(1)
    anchors = np.arange(40.0)
    scales = [0.3, 0.003] if is_towards else [0.003, 0.3]
    deviations = rng.standard_normal((40, 500, 2)) * scales
    deviations -= deviations.mean(axis=1, keepdims=True)
    # Two columns alike, so that the average shape within cells does not say which it is.
    turned = np.where(np.arange(40)[:, None, None] < 20, deviations, deviations[..., ::-1])
    means = np.where(
        np.arange(40)[:, None] < 20,
        np.column_stack([anchors, np.zeros(40)]),
        np.column_stack([np.full(40, 100.0), anchors]),
    )
    rows = (means[:, None] + turned).reshape(-1, 2)
    variances = turned.var(axis=1).mean(axis=1)
    problem = problem_of_rows(rows, 100)
    shapes = CellShapes.of((means, np.full(40, 1 / 40)), variances, problem.covariance)
    found = shapes.explaining(problem, rng).part
    assert found > 0.5 if is_towards else found == pytest.approx(0.2, abs=0.02)
