"""What a decoder recovered from a sketch, before any centroid is placed: one value, on which
centroids for any number of clusters can be placed.
"""

from dataclasses import dataclass
from enum import StrEnum

from ckm._decoding.cells import CellMeasure
from ckm._decoding.gaussians import GaussianMeasure
from ckm._decoding.mixture import Mixture
from ckm._decoding.sample import SampledRows
from ckm._util.arrays import FloatArray

# Points (p, n) and their weights (p,).
Weighted = tuple[FloatArray, FloatArray]


class Branch(StrEnum):
    """Which way a measure was recovered."""

    ROWS = "rows"  # all rows of the data are in the pool, or all distinct ones
    MEAN = "mean"  # one cluster: nothing was searched for
    CELLS = "cells"  # one Gaussian per cell, and outliers that are known from the pool
    SEPARATE = "separate"  # K atoms of one width that hardly overlap
    TIGHT = "tight"  # more atoms of one width, which explain all that the sketch says
    ENSEMBLE = "ensemble"  # several mixtures, with outliers beside them that are known or
    # reconstructed


# Those that know of no row where it is.
FROM_FREQUENCIES = (Branch.SEPARATE, Branch.TIGHT, Branch.ENSEMBLE)


@dataclass(frozen=True, eq=False)
class Recovered:
    """A measure that explains a sketch, in the coordinates of its problem.

    Parameters
    ----------
    branch : Branch
        Which way it was recovered.
    K : int
        The number of clusters that it was recovered for. Centroids for fewer can be placed on it.
    few : points (p, n) and weights (p,)
        Few points that show where the data lies: the means of atoms or cells.
    many : points (p, n) and weights (p,)
        Many points drawn from it.
    gaussians : GaussianMeasure
        The measure as a mixture of Gaussians: one per cell, or all atoms of all members. Known
        rows are Gaussians without a width.
    cost : float
        |z - A p|^2 of this measure p.
    members : tuple of float64 arrays (p, n)
        Points of each of the measures that it is the average of, if it is one: what else the data
        might be.
    left : float
        The share of the weight that members have; outliers have the rest.
    outliers : SampledRows or None
        Outliers that are known from the pool.
    cells : CellMeasure or None
        The measure of the cells without these outliers, if it was taken.
    atoms : Mixture or None
        The K atoms of one width, if they explain the sketch.
    has_stale_cells : bool
        Whether the sketch has cells that do not explain it.
    reconstructed : tuple of points (p, n) and shares (p,)
        Outliers that are reconstructed from bounds and second moments: those of the measure, and
        what else they might be.
    rows : SampledRows or None
        Sampled rows, which say most of columns that the frequencies do not see.
    """

    branch: Branch
    K: int
    few: Weighted
    many: Weighted
    gaussians: GaussianMeasure
    cost: float
    members: tuple[FloatArray, ...] = ()
    left: float = 1.0
    outliers: SampledRows | None = None
    cells: CellMeasure | None = None
    atoms: Mixture | None = None
    has_stale_cells: bool = False
    reconstructed: tuple[Weighted, ...] = ()
    rows: SampledRows | None = None
