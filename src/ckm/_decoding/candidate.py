"""What one run of a decoder found, before it is diagnosed and becomes a `Solution`."""

from typing import NamedTuple

import numpy as np

from ckm._decoding.doubt import Doubt
from ckm._decoding.gaussians import GaussianMeasure
from ckm._util.arrays import FloatArray


class Candidate(NamedTuple):
    """What one run of a decoder found, in the problem's coordinates.

    Parameters
    ----------
    C : float64 array (K, n)
        Centroids.
    alpha : float64 array (K,)
        Their weights, as fitted.
    cost : float
        |z - A p|^2 of the measure p that they were placed on.
    mean_square : float
        The mean squared distance of that measure to them, which decides among equal costs.
    is_doubtful : bool
        Whether other measures would explain the sketch as well.
    known_weights : float64 array (K,) or None
        The weight of each centroid that is due to known rows; None if outliers may have been
        missed.
    is_counted : bool
        Whether the weights are numbers of rows that cells counted there.
    doubt : Doubt
        How far the SSE may be from the smallest, judged by measures that explain the sketch as
        well.
    has_stale_cells : bool
        Whether the sketch has cells that do not explain it: they were not used, unless there are
        too few frequencies to do without (`is_counted`).
    measure : GaussianMeasure or None
        What they were placed on, if it is a distribution of rows.
    """

    C: FloatArray
    alpha: FloatArray
    cost: float
    mean_square: float = 0.0
    is_doubtful: bool = False
    known_weights: FloatArray | None = None
    is_counted: bool = False
    doubt: Doubt = Doubt()
    has_stale_cells: bool = False
    measure: GaussianMeasure | None = None

    @property
    def rank(self) -> tuple[bool, float, float]:
        """What runs are compared by; smaller is better."""
        return self.is_doubtful, self.cost, self.mean_square

    @property
    def weights(self) -> FloatArray:
        """The weights, made to sum to one (equation 2); all equal if none is positive."""
        K = len(self.alpha)
        total = self.alpha.sum()
        return np.asarray(self.alpha / total) if total > 0 else np.full(K, 1 / K)
