"""Accounting in zero-concentrated differential privacy (zCDP), rounded to the safe side.

A release is rho-zCDP if the Renyi divergence of order alpha between its laws on neighbouring data
is at most rho alpha, for every alpha > 1 (Bun and Steinke, 2016). It is the unit of account here
because it fits the noise: discrete Gaussian noise of variance sigma^2 on integers that one unit
moves by a vector of length Delta is Delta^2 / 2 sigma^2-zCDP, with a proof for the discrete law and
for every sigma (Canonne, Kamath and Steinke, 2020), while the theorem for the smallest
Gaussian noise (Balle and Wang, 2018) is about continuous noise, which no computer draws. Several
releases of the same data add up: their rho is the sum. At epsilon = 1 and delta = 1e-6 this costs
7 % more noise than the continuous theorem would.

rho-zCDP implies (epsilon, delta)-differential privacy for every alpha > 1 with

    delta = exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1)

(the same paper, Corollary 13). Solved for rho and for epsilon, with x = alpha - 1:

    rho = (epsilon + log(delta alpha) / x - log(x / alpha)) / alpha
    epsilon = alpha rho + log(x / alpha) - log(delta alpha) / x

Every alpha gives a valid pair, so that the search for the best one need not be exact; only the
last evaluation is, in decimal arithmetic of 60 digits, rounded down or up.
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from ckm._messages import Argument
from ckm.errors import ParameterError

# Digits of the last evaluation, and a bound on its relative error: each of its ten operations,
# logarithms among them, is correctly rounded by the decimal module.
_DIGITS = 60
_RELATIVE_ERROR = Decimal("1e-50")
# The search for log(alpha - 1): best orders are from 1 + 1e-10 (epsilon = 1e20) to 1e20.
_LOG_ORDERS = (-25.0, 50.0)
_GRID = 300
_BISECTIONS = 60
# Beyond these, the formulas lose their digits; no one would call it privacy, or data.
_MIN_EPSILON = 1e-12
_MAX_EPSILON = 1e12
_MIN_DELTA = 1e-300


def check_epsilon(epsilon: Any) -> float:
    """`epsilon` as a positive number; ParameterError if it is not."""
    value = _as_number(epsilon)
    if not _MIN_EPSILON <= value <= _MAX_EPSILON:
        raise ParameterError(
            Argument("epsilon"),
            f" must be a positive, finite number (from {_MIN_EPSILON:g} to {_MAX_EPSILON:g}; 1 is "
            f"usual, less is more private); got {epsilon!r}.",
        )
    return value


def check_delta(delta: Any) -> float:
    """`delta` as a number between 0 and 1, both excluded; ParameterError if it is not."""
    value = _as_number(delta)
    if not _MIN_DELTA <= value < 1:
        raise ParameterError(
            Argument("delta"),
            f" must be a number between 0 and 1, both excluded, and well below 1 / (number of "
            f"rows), such as 1e-6; got {delta!r}.",
        )
    return value


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho such that rho-zCDP implies (epsilon, delta)-privacy, rounded down.

    Examples
    --------
    >>> rho = rho_of(1.0, 1e-6)
    >>> round((1 / (2 * rho)) ** 0.5, 2)  # sigma / Delta
    4.53
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    log_delta = math.log(delta)
    x = _best_order(lambda x: (epsilon + (log_delta + math.log1p(x)) / x - _log_share(x)) / (1 + x))
    with localcontext(Context(prec=_DIGITS)):
        alpha = 1 + Decimal(x)
        terms = [
            Decimal(epsilon),
            (Decimal(delta) * alpha).ln() / Decimal(x),
            -(Decimal(x) / alpha).ln(),
        ]
        slack = _RELATIVE_ERROR * sum(map(abs, terms))
        rho = (sum(terms) - slack) / alpha
    return math.nextafter(float(rho), 0.0)


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest epsilon such that rho-zCDP implies (epsilon, delta)-privacy, rounded up.

    Examples
    --------
    >>> round(epsilon_of(2 * rho_of(1.0, 1e-6), 1e-6), 3)  # two releases
    1.451
    """
    rho = check_rho(rho)
    delta = check_delta(delta)
    log_delta = math.log(delta)
    x = _best_order(lambda x: -((1 + x) * rho + _log_share(x) - (log_delta + math.log1p(x)) / x))
    with localcontext(Context(prec=_DIGITS)):
        alpha = 1 + Decimal(x)
        terms = [
            alpha * Decimal(rho),
            (Decimal(x) / alpha).ln(),
            -(Decimal(delta) * alpha).ln() / Decimal(x),
        ]
        epsilon = sum(terms) + _RELATIVE_ERROR * sum(map(abs, terms))
    return max(math.nextafter(float(epsilon), math.inf), _MIN_EPSILON)


def check_rho(rho: Any) -> float:
    """`rho` as a positive number; ParameterError if it is not."""
    value = _as_number(rho)
    if not 0 < value < math.inf:
        raise ParameterError(Argument("rho"), f" must be positive and finite; got {rho!r}.")
    return value


def sum_of_rhos(rhos: list[float]) -> float:
    """The rho of releases of the same data together, rounded up."""
    return rounded_up(sum(map(Fraction, rhos), Fraction(0)))


def variance_for(rho: float, squared_sensitivity: int) -> int:
    """The smallest whole variance of discrete Gaussian noise that is rho-zCDP, for integers that
    one unit moves by a vector of squared length `squared_sensitivity` at most.

    Examples
    --------
    >>> variance_for(0.5, 100)
    100
    """
    return math.ceil(Fraction(squared_sensitivity) / (2 * Fraction(check_rho(rho))))


def rounded_up(value: Fraction) -> float:
    """The smallest float that is at least `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _log_share(x: float) -> float:
    """log(1 - 1/alpha) for alpha = 1 + x."""
    return -math.log1p(1 / x)


def _best_order(gain: Callable[[float], float]) -> float:
    """The x = alpha - 1 at which `gain` is about largest: on a grid of log x, then refined."""
    low, high = _LOG_ORDERS
    step = (high - low) / _GRID
    best = max((low + step * i for i in range(_GRID + 1)), key=lambda u: gain(math.exp(u)))
    low = best - step
    high = best + step
    for _ in range(_BISECTIONS):
        left = low + (high - low) / 3
        right = high - (high - low) / 3
        if gain(math.exp(left)) < gain(math.exp(right)):
            low = left
        else:
            high = right
    return math.exp((low + high) / 2)


def _as_number(value: Any) -> float:
    """`value` as a float; NaN, which every check refuses, if it is not a number."""
    try:
        return math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
