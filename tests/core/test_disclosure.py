"""What a sketch without a pool still says of single rows; SECURITY.md warns of it."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import ckm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 3))
ROW = np.array([[0.25, -1.5, 3.0]])
MANY = ckm.sketch(X, sketch_size=40, scale=1.0, random_state=0)


def test_bounds_are_values_of_rows() -> None:
    assert MANY.pool is None
    assert_array_equal(MANY.lower, X.min(axis=0))
    assert_array_equal(MANY.upper, X.max(axis=0))


def test_a_sketch_of_one_row_is_that_row() -> None:
    one = ckm.sketch(ROW, like=MANY)
    assert_array_equal(one.lower, ROW[0])
    assert_array_equal(one.upper, ROW[0])


def test_a_difference_of_sketches_can_be_a_row() -> None:
    difference = ckm.sketch(np.vstack([X, ROW]), like=MANY) - MANY
    assert difference.count == 1
    assert_allclose(difference.mean, ROW[0], atol=1e-9)
    assert_array_equal(difference.z, ckm.sketch(ROW, like=MANY).z)
