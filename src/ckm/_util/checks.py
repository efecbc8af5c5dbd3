"""Checks of arguments and values that several rooms share."""

import math
import operator
from typing import Any

import numpy as np

from ckm._util.arrays import Array
from ckm.errors import NonFiniteError, ParameterError

FREQUENCIES_PER_PARAMETER = 5  # m = 5 K n is enough (Section 4.3)


def check_whole_number(value: Any, name: str, least: int) -> int:
    """`value` as an integer that is at least `least`, or an error that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ParameterError(f"{name} must be a whole number, at least {least}; got {value!r}.")
    return number


def check_variance(value: Any, name: str = "The scale") -> float:
    """`value` as a variance, or an error that names the argument."""
    try:
        scale = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        scale = math.nan
    if not (math.isfinite(scale) and scale > 0):
        raise ParameterError(f"{name} must be a positive, finite variance; got {value!r}.")
    return scale


def check_nan_policy(nan: Any) -> str:
    """What to do with missing values: "error" or "drop"."""
    if nan not in ("error", "drop"):
        raise ParameterError(f"nan must be 'error' or 'drop'; got {nan!r}.")
    return str(nan)


def require_enough_frequencies(m: int, n_clusters: int, n_features: int) -> None:
    """Refuse to look for more unknowns (K centroids and weights) than the sketch has numbers (m
    complex ones).
    """
    unknowns = n_clusters * (n_features + 1)
    if 2 * m < unknowns:
        raise ParameterError(
            f"A sketch of m = {m} frequencies is too small for {n_clusters} clusters in dimension {n_features} ({unknowns} unknowns); "
            f"sketch with sketch_size={FREQUENCIES_PER_PARAMETER * n_clusters * n_features} (5 K n), or ask for fewer clusters."
        )


def first_nonfinite(values: Array) -> tuple[int, int] | None:
    """The row and column of the first value of a 2-D array that is not finite, in row order."""
    finite = np.isfinite(values)
    if finite.all():
        return None
    row, column = divmod(int(np.argmin(finite)), values.shape[1])
    return row, column


def require_float32(x: Array) -> None:
    """Raise `NonFiniteError` at the first value of `x` (N, n) that is not finite in float32."""
    place = first_nonfinite(as_float32(x))
    if place is not None:
        raise NonFiniteError(*place, float(x[place]))


def as_float32(x: Array) -> Array:
    """Cast, letting large values become infinite without a word."""
    with np.errstate(over="ignore"):
        return x.astype(np.float32)
