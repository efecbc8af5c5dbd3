"""Thousands of anchors: groups of them are passed over, and no bit changes."""

from unittest.mock import patch

import numpy as np
import pytest

from ckm._core.cells import Anchors
from ckm._kernels.cpu import groups
from ckm._kernels.cpu.cells import nearest_anchors
from ckm._kernels.cpu.groups import Groups, neighbours_side_by_side

ORIGIN = {n: np.full(n, 3.0) for n in (1, 2, 5, 20)}


def anchors_at(values: np.ndarray, *, ordered: bool = True) -> Anchors:
    values = values.astype(np.float32)
    if ordered:
        values = values[neighbours_side_by_side(values)]
    n = values.shape[1]
    metric = np.linspace(1, 1.5, n)
    return Anchors.on_grids(values, metric, np.ones(n), 1.0)


def by_the_specification(anchors: Anchors, X: np.ndarray) -> np.ndarray:
    """The nearest anchor by comparison with all of them, which other tests hold to the oracle."""
    with patch.object(groups, "MIN_ANCHORS", 10**9):
        # Anchors of their own: what was prepared for the others is not used again.
        copy = Anchors(
            anchors.values,
            anchors.metric,
            anchors.exponents,
            anchors.square_exponent,
            anchors.spread,
        )
        return nearest_anchors(copy, ORIGIN[anchors.n], X)


@pytest.mark.parametrize("n", [1, 2, 5, 20])
@pytest.mark.parametrize("ordered", [True, False])
def test_groups_give_the_labels_of_comparing_with_all(n: int, ordered: bool) -> None:
    rng = np.random.default_rng(n)
    centres = 4 * rng.normal(size=(60, n))
    anchors = anchors_at(
        centres[rng.integers(60, size=3000)] + rng.normal(size=(3000, n)), ordered=ordered
    )
    X = 3 + centres[rng.integers(60, size=2000)] + rng.normal(size=(2000, n))
    assert Groups.of(anchors).anchors.shape == (47, n, groups.GROUP)
    np.testing.assert_array_equal(
        nearest_anchors(anchors, ORIGIN[n], X), by_the_specification(anchors, X)
    )


def test_of_equals_the_first_in_whatever_group_it_is() -> None:
    """A grid of anchors, each of them many times, and rows halfway between them."""
    rng = np.random.default_rng(0)
    anchors = anchors_at(rng.integers(-4, 5, size=(4000, 2)), ordered=False)
    X = 3 + rng.integers(-9, 10, size=(1000, 2)) / 2
    found = nearest_anchors(anchors, ORIGIN[2], X)
    np.testing.assert_array_equal(found, by_the_specification(anchors, X))
    values = anchors.values.astype(float) * anchors.metric
    squares = (((X - 3) * anchors.metric)[:, None] - values) ** 2
    np.testing.assert_array_equal(found, squares.sum(axis=2).argmin(axis=1))


@pytest.mark.parametrize("distance", [1e3, 1e9, 1e30])
def test_rows_and_anchors_far_away(distance: float) -> None:
    """Rows whose squares are beyond float32 too."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2000, 5))
    X = 3 + rng.normal(size=(500, 5))
    X[::7] *= distance
    far = anchors_at(np.vstack([values, min(distance, 1e14) * rng.normal(size=(30, 5))]))
    near = anchors_at(values)
    for anchors in (near, far):
        np.testing.assert_array_equal(
            nearest_anchors(anchors, ORIGIN[5], X), by_the_specification(anchors, X)
        )


def test_neighbours_side_by_side_is_an_order() -> None:
    points = np.random.default_rng(0).normal(size=(2500, 4))
    order = neighbours_side_by_side(points)
    assert sorted(order) == list(range(2500))
    whole = np.ptp(points, axis=0).prod()
    parts = [np.ptp(points[order[i : i + 64]], axis=0).prod() for i in range(0, 2500, 64)]
    assert max(parts) < whole / 10
