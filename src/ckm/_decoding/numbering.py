"""Which number each centroid has: by weight, or that of the earlier centroid it is matched with.

Centroids that are given, to start from or to be numbered by, are checked here.
"""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from ckm._decoding.solution import Solution
from ckm._decoding.starts import require_init
from ckm._messages import Argument
from ckm._sources.column_request import listed
from ckm._util.arrays import FloatArray, IntArray
from ckm.errors import MismatchError, ParameterError


def heaviest_first(centroids: FloatArray, weights: FloatArray) -> IntArray:
    """The centroids in descending order of their weights, equal ones by their coordinates."""
    values, counts = np.unique(weights, return_counts=True)
    # There may be many columns, and equal weights are rare.
    repeated = set(values[counts > 1].tolist())

    def key(k: int) -> tuple[float, tuple[float, ...]]:
        weight = float(weights[k])
        return -weight, tuple(centroids[k].tolist()) if weight in repeated else ()

    return np.array(sorted(range(len(weights)), key=key), np.intp)


def numbered_as(
    earlier: FloatArray, centroids: FloatArray, weights: FloatArray, units: FloatArray | None
) -> IntArray:
    """The centroids in the order of the earlier ones (k, n) that they are matched with, so that the
    sum of distances, in these units, is smallest.

    Centroids that are left over come last, the heaviest first. Where there are fewer than earlier
    ones, some numbers are gone, and those that are left stay in their order.
    """
    scale = 1.0 if units is None else units
    distances = cdist(earlier / scale, centroids / scale)
    # The rows come in ascending order: matched centroids are in the order of the earlier ones.
    _, matched = linear_sum_assignment(distances)
    by_weight = heaviest_first(centroids, weights)
    is_new = ~np.isin(by_weight, matched)
    return np.concatenate([matched, by_weight[is_new]])


def given_centroids(
    given: Any, n: int, columns: tuple[str, ...] | None, argument: str
) -> FloatArray:
    """Centroids (k, n) that are the value of `argument`: an array or an earlier solution, whose
    columns are found by name.
    """
    if isinstance(given, Solution):
        values = in_columns(given.centroids, given.columns, columns, argument)
    else:
        values = as_centroids(given, argument)
    if values.shape[1] != n:
        raise ParameterError(
            _centres(argument, values),
            f" does not match the number of features of the data {n}; ",
            Argument(argument),
            f" takes an array (K, {n}).",
        )
    return values


def as_centroids(given: Any, argument: str) -> FloatArray:
    """The value of `argument` as float64 (k, n), finite."""
    try:
        values = np.array(given, np.float64)
    except (TypeError, ValueError):
        values = np.empty(())
    if not values.ndim and argument == "init":
        require_init(given, has_rows=True)
    if values.ndim != 2 or 0 in values.shape or not np.isfinite(values).all():
        shown = " ".join(repr(given).split())
        raise ParameterError(
            Argument(argument),
            " must be finite numbers, an array of shape (n_clusters, n_features), or a Solution; "
            f"got {shown if len(shown) < 80 else type(given).__name__}.",
        )
    return values


def require_number(values: FloatArray, K: int, argument: str) -> None:
    """Refuse another number of centroids than of clusters; in scikit-learn's words."""
    if len(values) != K:
        raise ParameterError(
            _centres(argument, values),
            f" does not match the number of clusters {K}; give one centroid for each.",
        )


def in_columns(
    values: FloatArray,
    own: tuple[str, ...] | None,
    columns: tuple[str, ...] | None,
    argument: str,
) -> FloatArray:
    """Centroids in the order of `columns`, found by name if both have names."""
    if own is None or columns is None or own == columns:
        return values
    if set(own) != set(columns):
        raise MismatchError(
            "The centroids of ",
            Argument(argument),
            f" have the columns {listed(own)} where the sketch has {listed(columns)}; give "
            "centroids of the same columns.",
        )
    return np.ascontiguousarray(values[:, [own.index(name) for name in columns]])


def _centres(argument: str, values: FloatArray) -> str:
    what = "initial centers" if argument == "init" else "centroids to match"
    return f"The shape of the {what} {values.shape}"
