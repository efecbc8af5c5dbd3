"""Doubt is what other plausible measures would gain, and nothing where they agree."""

import numpy as np
import pytest

import ckm
from ckm._decoding.cells import CellMeasure
from ckm._decoding.doubt import compare_measure, compare_members
from ckm._decoding.settings import DEFAULT

CENTRES = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])


def member(centres: np.ndarray, rng: np.random.Generator, p: int = 3000) -> np.ndarray:
    """Points around centres, in opposite pairs."""
    noise = np.repeat(rng.standard_normal((p // 2, 2)), 2, axis=0)
    noise[1::2] *= -1
    return np.repeat(centres, p // len(centres), axis=0) + noise


def test_members_that_agree_raise_no_doubt() -> None:
    rng = np.random.default_rng(0)
    doubt = compare_members([member(CENTRES, rng) for _ in range(4)], CENTRES, 2.0, DEFAULT)
    assert abs(doubt.regret) < 0.005
    assert doubt.disagreement < 0.05


@pytest.mark.parametrize("shift", [0.5, 1.0])
@pytest.mark.parametrize("count", [3, 12])
def test_members_that_moved_gain_the_squares_of_their_shifts(shift: float, count: int) -> None:
    """Around centres that moved by d, the mean square 2 grows by d^2, and Lloyd's algorithm takes
    that back. Centroids in the middle of M members are closer to these than to another one: d^2 is
    the variance of a sample of M.
    """
    rng = np.random.default_rng(1)
    angles = 2 * np.pi * np.arange(count) / count
    moves = shift * np.column_stack([np.cos(angles), np.sin(angles)])
    members = [member(CENTRES + move, rng) for move in moves]
    doubt = compare_members(members, CENTRES, 2 + shift**2, DEFAULT)
    variance = shift**2 * count / (count - 1)
    assert doubt.regret == pytest.approx(variance / (2 + shift**2), rel=0.1)


def test_doubt_is_a_share_of_the_whole_sse() -> None:
    """Outliers that are known have a part of it that is not in doubt."""
    rng = np.random.default_rng(2)
    members = [member(CENTRES + rng.normal(size=2), rng) for _ in range(3)]
    part = compare_members(members, CENTRES, 4.0, DEFAULT)
    whole = compare_members(members, CENTRES, 40.0, DEFAULT)
    assert whole.regret == pytest.approx(part.regret / 10)
    assert whole.disagreement == pytest.approx(part.disagreement / 10)


def test_members_of_different_widths_disagree() -> None:
    rng = np.random.default_rng(3)
    narrow, wide = (factor * member(CENTRES, rng) for factor in (1.0, 2.0))
    doubt = compare_members([narrow, wide], CENTRES, 2.0, DEFAULT)
    assert doubt.disagreement > 0.5


def test_points_without_variance_raise_no_doubt() -> None:
    points = np.repeat(CENTRES, 10, axis=0)
    assert compare_members([points, points], CENTRES, 0.0, DEFAULT) == (0, 0)
    assert compare_measure(points, np.ones(30), CENTRES, DEFAULT) == (0, 0)


def test_lines_have_the_moments_of_their_cells() -> None:
    X = np.random.default_rng(4).gamma(2, size=(20_000, 3))
    cells = CellMeasure.of(ckm.sketch(X, n_clusters=5, random_state=0))
    assert cells is not None
    points, weights = cells.draw_lines(np.random.default_rng(0), 2000)
    assert 2000 <= len(points) <= 2000 + 2 * len(cells.shares)
    np.testing.assert_allclose(weights.sum(), 1)
    np.testing.assert_allclose(weights @ points, cells.shares @ cells.means)
    within = cells.shares @ (3 * cells.variances + (cells.means**2).sum(axis=1))
    np.testing.assert_allclose(weights @ (points**2).sum(axis=1), within)


def test_few_wide_cells_leave_centroids_open() -> None:
    """With as many cells as clusters, rows may lie in any direction around each mean."""
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(20_000, 2))
    regrets = []
    for count in (12, 200):
        cells = CellMeasure.of(ckm.sketch(X, n_clusters=8, cells=count, random_state=0))
        assert cells is not None
        C = ckm.decode(ckm.sketch(X, n_clusters=8, random_state=0), 8, random_state=0).centroids
        C = (C - X.mean(axis=0)) / cells.coordinates.step + cells.shares @ cells.means
        points, weights = cells.draw_lines(rng, 4000)
        regrets.append(compare_measure(points, weights, C, DEFAULT).regret)
    assert regrets[0] > DEFAULT.max_cell_regret > 3 * regrets[1]
