"""Rows of the data that a decoder may start from: a sketch's pool, or rows passed with the call."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ckm._core.pool import distinct_rows
from ckm._core.sketch import Sketch
from ckm._decoding.coordinates import Coordinates
from ckm._messages import Argument
from ckm._util.arrays import BoolArray, FloatArray
from ckm._util.checks import require_float32
from ckm.errors import DataError


class SampledRows(NamedTuple):
    """Distinct rows of the data, in the coordinates of a problem.

    Parameters
    ----------
    values : float64 array (p, n)
        The rows.
    weights : float64 array (p,)
        The weight that each stands for.
    probabilities : float64 array (p,)
        The probability of each to be sampled: all one if no row of the data is missing.
    size : float
        The number of rows drawn uniformly that would say as much.
    unseen : float
        About the share of the data's weight in rows that are unlike all of these.
    """

    values: FloatArray
    weights: FloatArray
    probabilities: FloatArray
    size: float
    unseen: float = 1.0

    @classmethod
    def of(
        cls,
        sketch: Sketch,
        rows: ArrayLike | None = None,
        coordinates: Coordinates | None = None,
    ) -> "SampledRows | None":
        """`rows` if given, else the sketch's pool if it has one; in the units of its design or in
        other coordinates.
        """
        if rows is not None:
            given = _check_rows(sketch, rows)
            values, weights = distinct_rows(given, np.ones(len(given)))
            probabilities = np.zeros(len(values))
            size = float(len(given))
            unseen = 1.0
        elif sketch.pool is not None and len(sketch.pool):
            values, weights, probabilities, size, unseen = sketch.pool.estimate()
            unseen /= sketch.weight
            weights = weights if sketch.pool.is_complete else weights / sketch.weight
        else:
            return None
        return cls(
            (coordinates or Coordinates.of_design(sketch)).relative(values),
            weights,
            probabilities,
            size,
            unseen,
        )

    @property
    def is_complete(self) -> bool:
        """Whether no row of the data is missing."""
        return bool((self.probabilities == 1).all())

    @property
    def shares(self) -> FloatArray:
        """The weights as shares of their sum."""
        return np.asarray(self.weights / self.weights.sum())

    def themselves(self) -> "SampledRows":
        """The rows with the weight that they have in the data, where they stand for no others."""
        return self._replace(weights=self.weights * self.probabilities)

    def only(self, kept: BoolArray) -> "SampledRows":
        """The rows under a mask."""
        return SampledRows(
            self.values[kept], self.weights[kept], self.probabilities[kept], self.size
        )


def _check_rows(sketch: Sketch, rows: ArrayLike) -> FloatArray:
    """The argument `rows` as float64 (p, n), or an error that says what is wrong with it."""
    n = sketch.frequencies.n_features
    try:
        values = np.asarray(rows, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(Argument("rows"), f" must be numbers of shape (p, {n}): {error}.") from None
    if values.ndim != 2 or values.shape[1] != n or not len(values):
        raise DataError(
            Argument("rows"),
            f" must have shape (p, {n}) with p at least 1; got {values.shape}.",
        )
    projection = sketch.frequencies.projection
    values = values if projection is None else projection.reduce(values)
    require_float32(values - sketch.frequencies.origin)
    return values
