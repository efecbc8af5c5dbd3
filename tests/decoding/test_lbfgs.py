"""Descent within bounds: it ends where independent solvers end."""

import numpy as np
import pytest
from scipy.optimize import minimize, nnls, rosen, rosen_der

from ckm._decoding.lbfgs import Limits, descend


@pytest.mark.parametrize("seed", range(3))
def test_nonnegative_least_squares(seed: int) -> None:
    """Many coordinates end at their bound."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(60, 30))
    b = rng.normal(size=60)
    expected, norm = nnls(A, b)

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        r = A @ x - b
        return float(r @ r), 2 * A.T @ r

    found = descend(
        cost, np.full(30, 1.0), np.zeros(30), np.full(30, np.inf), Limits(500, 1e-14, 1e-10)
    )
    assert found.value == pytest.approx(norm**2, rel=1e-10)
    np.testing.assert_allclose(found.x, expected, atol=1e-5)
    assert (expected == 0).sum() > 5
    assert found.value == cost(found.x)[0]


def test_a_curved_valley_within_a_box() -> None:
    lower = np.array([-2.0, -2, 0.5, -2, 0.7])
    upper = np.array([0.8, 2, 2, 2, 0.7])
    evaluations = 0

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal evaluations
        evaluations += 1
        assert (x >= lower).all()
        assert (x <= upper).all()
        return float(rosen(x)), rosen_der(x)

    start = np.array([-1.5, 1, 1, -1, 9])  # the last one is outside
    found = descend(cost, start, lower, upper, Limits(300, 1e-12, 1e-9))
    theirs = minimize(
        rosen,
        np.clip(start, lower, upper),
        jac=rosen_der,
        method="L-BFGS-B",
        bounds=list(zip(lower, upper, strict=True)),
    )
    assert found.value <= theirs.fun * (1 + 1e-6)
    assert evaluations < 2 * theirs.nfev


def test_bounds_that_leave_no_freedom_are_kept() -> None:
    at = np.array([1.0, 2.0])
    found = descend(lambda x: (float(x @ x), 2 * x), at, at, at, Limits(10))
    assert found.x.tolist() == [1.0, 2.0]
    assert found.value == 5


def test_a_cost_above_the_abort_level_ends_after_a_few_steps() -> None:
    evaluations = 0

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal evaluations
        evaluations += 1
        return float(rosen(x)), rosen_der(x)

    free = np.full(10, np.inf)
    start = np.linspace(-2, 2, 10)
    aborted = descend(cost, start, -free, free, Limits(300, abort_above=0.0))
    assert evaluations < 40
    assert descend(cost, start, -free, free, Limits(300)).value < aborted.value / 100


def test_a_cost_at_the_target_ends_the_descent() -> None:
    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(rosen(x)), rosen_der(x)

    free = np.full(10, np.inf)
    start = np.linspace(-2, 2, 10)
    found = descend(cost, start, -free, free, Limits(300, target=1.0))
    assert 1e-3 < found.value <= 1
    again = descend(cost, found.x, -free, free, Limits(300, target=1.0))
    assert again.x.tobytes() == found.x.tobytes()
