"""What a release spends is rounded to the safe side, and adds up."""

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

from ckm._core.accounting import epsilon_of, rho_of, sum_of_rhos, variance_for
from ckm._core.budget import Budget
from ckm.errors import MismatchError, ParameterError


def delta_of(rho, epsilon):
    """The smallest delta of the conversion, over orders on a fine grid."""
    alpha = 1 + np.exp(np.linspace(-15, 30, 200_001))
    exponent = (alpha - 1) * (alpha * rho - epsilon) + alpha * np.log1p(-1 / alpha)
    return np.exp((exponent - np.log(alpha - 1)).min())


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-6), (1, 1e-9), (10, 1e-5)])
def test_rho_is_the_largest_that_implies_epsilon_and_delta(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert delta_of(rho, epsilon) == pytest.approx(delta, rel=1e-6)
    assert epsilon <= epsilon_of(rho, delta) <= epsilon * (1 + 1e-14)


def test_the_known_noise_at_epsilon_one():
    assert math.sqrt(0.5 / rho_of(1.0, 1e-6)) == pytest.approx(4.53, abs=0.005)


def smallest_log_delta(rho, epsilon):
    """The logarithm of the smallest delta of the conversion, in the digits of the context."""

    def log_delta(u):
        x = u.exp()
        decay = x * ((1 + x) * Decimal(rho) - Decimal(epsilon))
        return decay + (1 + x) * (x / (1 + x)).ln() - u

    best = min(map(Decimal, range(-25, 50)), key=log_delta)
    low, high = best - 1, best + 1
    for _ in range(100):
        left, right = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, right) if log_delta(left) < log_delta(right) else (left, high)
    return log_delta(low)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1, 1e3, 1e9])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.5])
def test_rounding_is_to_the_safe_side(epsilon, delta):
    """By the conversion in 80 digits: rho is small enough, and hardly more would be too much."""
    rho = rho_of(epsilon, delta)
    with localcontext(Context(prec=80)):
        asked = Decimal(delta).ln()
        assert smallest_log_delta(rho, epsilon) <= asked
        assert smallest_log_delta(rho * (1 + 1e-12), epsilon) > asked
        assert smallest_log_delta(rho, epsilon_of(rho, delta)) <= asked


def test_noise_is_a_whole_variance_that_is_enough():
    assert variance_for(0.5, 10**30 + 1) == 10**30 + 1
    assert variance_for(0.3, 7) == 12


def test_releases_of_the_same_data_add_up():
    day = Budget.of(1.0, 1e-6)
    week = day.together(day).together(day)
    assert week.rho >= sum_of_rhos([day.rho] * 3) == pytest.approx(3 * day.rho)
    assert 1.7 < week.epsilon < 3
    assert week.epsilon == epsilon_of(week.rho, 1e-6)
    assert day.together(Budget.of(1.0, 1e-9)).delta == 1e-6


def test_releases_of_disjoint_data_do_not():
    strict = Budget.of(0.1, 1e-9)
    loose = Budget.of(1.0, 1e-6)
    assert strict.largest(loose) == loose
    both = Budget.of(1.0, 1e-9).largest(Budget.of(0.1, 1e-6))
    assert both.rho == rho_of(1.0, 1e-9)
    assert both.delta == 1e-6
    assert 0.1 < both.epsilon < 1


def test_units_do_not_mix():
    user = Budget.of(1.0, 1e-6, "user", 5)
    assert user.together(Budget.of(1.0, 1e-6, "user", 7)).max_rows_per_user == 7
    for combine in (user.together, user.largest):
        with pytest.raises(MismatchError, match="each user, the other each row"):
            combine(Budget.of(1.0, 1e-6))


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None, True])
def test_epsilon_must_be_positive(epsilon):
    with pytest.raises(ParameterError, match="epsilon must be a positive, finite number"):
        Budget.of(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2, math.nan, "1e-6", None])
def test_delta_must_be_between_0_and_1(delta):
    with pytest.raises(ParameterError, match="delta must be a number between 0 and 1"):
        Budget.of(1.0, delta)


@pytest.mark.parametrize(
    ("unit", "cap", "message"),
    [
        ("person", None, "unit must be 'row' or 'user'; got 'person'"),
        ("row", 3, "max_rows_per_user=3 is for unit='user'"),
        ("user", None, "max_rows_per_user must be a whole number, at least 1; got None"),
        ("user", 0, "max_rows_per_user must be a whole number, at least 1; got 0"),
    ],
)
def test_units_are_checked(unit, cap, message):
    with pytest.raises(ParameterError, match=message):
        Budget.of(1.0, 1e-6, unit, cap)
