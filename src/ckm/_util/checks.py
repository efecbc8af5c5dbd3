"""Checks of arguments and values that several packages share."""

import math
import operator
from typing import Any

import numpy as np

from ckm._messages import Argument
from ckm._util.arrays import Array, Float32Array
from ckm._util.sparse import SparseRows
from ckm.errors import DataError, NonFiniteError, ParameterError

# Variances that rows of float32 numbers can have, with a margin.
MIN_VARIANCE = 1e-90
MAX_VARIANCE = 1e90
# Metrics: distances between rows as they are, or between rows divided by their lengths.
EUCLIDEAN = "euclidean"
COSINE = "cosine"


def check_whole_number(value: Any, name: str, least: int) -> int:
    """`value` as an integer of at least `least`; ParameterError for the argument `name` if not."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ParameterError(
            Argument(name), f" must be a whole number, at least {least}; got {value!r}."
        )
    return number


def check_variance(value: Any, name: str = "scale") -> float:
    """`value` as a variance that float32 rows can have; ParameterError for `name` if not."""
    try:
        variance = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        variance = math.nan
    if not (math.isfinite(variance) and variance > 0):
        raise ParameterError(
            Argument(name), f" must be a positive, finite variance; got {value!r}."
        )
    if not MIN_VARIANCE <= variance <= MAX_VARIANCE:
        raise ParameterError(
            Argument(name),
            f" must be a variance from {MIN_VARIANCE:g} to {MAX_VARIANCE:g}; got {value!r}. "
            "Rescale the data so that it is.",
        )
    return variance


def check_nan_policy(nan: Any) -> str:
    """The treatment of missing values, known to be "error" or "drop"."""
    if nan not in ("error", "drop"):
        raise ParameterError(Argument("nan"), f" must be 'error' or 'drop'; got {nan!r}.")
    return str(nan)


def check_nan_of_sketch(nan: Any) -> str:
    """The same before a sketch is made, where missing values may also be filled in."""
    if nan not in ("error", "drop", "impute"):
        raise ParameterError(Argument("nan"), f" must be 'error', 'drop' or 'impute'; got {nan!r}.")
    return str(nan)


def check_metric(metric: Any) -> str:
    """What distances are measured between, known to be "euclidean" or "cosine"."""
    if not isinstance(metric, str) or metric not in (EUCLIDEAN, COSINE):
        raise ParameterError(
            Argument("metric"), f" must be {EUCLIDEAN!r} or {COSINE!r}; got {metric!r}."
        )
    return metric


def first_nonfinite(values: Any) -> tuple[int, int] | None:
    """The row and column of the first value of a 2-D array that is not finite, in row order."""
    if isinstance(values, SparseRows):
        numbers = values.numbers()
        bad = np.flatnonzero(~np.isfinite(values.values[numbers]))
        if not len(bad):
            return None
        rows = values.owners()[bad]
        return int(rows[0]), int(values.columns[numbers][bad[rows == rows[0]]].min())
    finite = np.isfinite(values)
    if finite.all():
        return None
    row, column = divmod(int(np.argmin(finite)), values.shape[1])
    return row, column


def refuse_masked(data: Any, what: str | Argument) -> None:
    """Raise `DataError` if an array, or one in a list, has masked values: NumPy would use what is
    under the mask. `what` is the data's name in the message.
    """
    parts = data if isinstance(data, (list, tuple)) else [data]
    for part in parts:
        if isinstance(part, np.ma.MaskedArray) and np.ma.getmaskarray(part).any():
            raise DataError(
                what,
                " has masked values, which are missing; fill them, or drop such rows, first.",
            )


def require_float32(x: Array) -> None:
    """Raise `NonFiniteError` at the first value of `x` (N, n) that is not finite in float32."""
    place = first_nonfinite(as_float32(x))
    if place is not None:
        raise NonFiniteError(*place, float(x[place]))


def as_float32(x: Array) -> Float32Array:
    """Cast to float32; values that are too large become infinite without a warning."""
    with np.errstate(over="ignore"):
        return x.astype(np.float32)
