"""Second moments: full and diagonal ones agree on the diagonal after every operation."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from ckm._core.moments import SecondMoment, has_full_moment, second_moment_shape

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(50, 3)) @ np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 3.0]])
SHARES = RNG.dirichlet(np.ones(50))
V = np.array([1.0, -2.0, 0.5])
KEPT = np.array([True, False, True])

FULL = SecondMoment(np.cov(POINTS.T))
DIAGONAL = SecondMoment(np.diag(FULL.values).copy())


def test_the_full_moment_takes_at_most_a_quarter_of_the_numbers_of_a_sketch() -> None:
    assert has_full_moment(12, 3)
    assert not has_full_moment(11, 3)
    assert second_moment_shape(12, 3) == (3, 3)
    assert second_moment_shape(11, 3) == (3,)


@pytest.mark.parametrize(
    "operation",
    [
        lambda moment: moment,
        lambda moment: moment - moment / 3,
        lambda moment: moment.scaled(np.array([1.0, 2.0, 4.0])),
        lambda moment: moment.plus_outer(V),
        lambda moment: moment.minus_outer(V),
        lambda moment: moment.masked(KEPT),
        lambda moment: moment.replaced(KEPT, np.ones(3)),
        lambda moment: SecondMoment.of_points(POINTS, full=moment.is_full),
        lambda moment: SecondMoment.of_points(POINTS, SHARES, full=moment.is_full),
    ],
)
def test_full_and_diagonal_agree(operation: Callable[[SecondMoment], SecondMoment]) -> None:
    full = operation(FULL)
    diagonal = operation(DIAGONAL)
    assert full.is_full
    assert not diagonal.is_full
    np.testing.assert_allclose(full.diagonal, diagonal.diagonal, rtol=1e-13, atol=1e-14)
    assert full.trace == pytest.approx(diagonal.trace)
    np.testing.assert_allclose(np.diag(full.matrix), np.diag(diagonal.matrix), rtol=1e-13)


@pytest.mark.parametrize("moment", [FULL, DIAGONAL], ids=["full", "diagonal"])
def test_the_root_squared_is_the_matrix(moment: SecondMoment) -> None:
    np.testing.assert_allclose(moment.root @ moment.root.T, moment.matrix, rtol=1e-12, atol=1e-12)


def test_columns_that_are_not_kept_are_uncorrelated() -> None:
    replaced = FULL.replaced(KEPT, np.full(3, 7.0))
    assert replaced.values[1].tolist() == [0.0, 7.0, 0.0]
    assert np.array_equal(replaced.values[np.ix_(KEPT, KEPT)], FULL.values[np.ix_(KEPT, KEPT)])


def test_a_moment_is_frozen_and_leaves_its_array_as_it_was() -> None:
    values = np.eye(2)
    moment = SecondMoment(values)
    assert values.flags.writeable
    for frozen in (moment, pickle.loads(pickle.dumps(moment))):
        with pytest.raises(ValueError, match="read-only"):
            frozen.values[0, 0] = 2.0
