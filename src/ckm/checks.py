"""Checks of single arguments, shared by every room."""

import math
import operator
from typing import Any

from ckm.errors import ParameterError


def whole_number(value: Any, name: str, least: int) -> int:
    """`value` as an integer that is at least `least`, or an error that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ParameterError(f"{name} must be a whole number, at least {least}; got {value!r}.")
    return number


def positive_variance(value: Any, name: str = "The scale") -> float:
    """`value` as a variance, or an error that names the argument."""
    try:
        scale = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        scale = math.nan
    if not (math.isfinite(scale) and scale > 0):
        raise ParameterError(f"{name} must be a positive, finite variance; got {value!r}.")
    return scale
