"""From the few coordinates in which wide rows were sketched back to all of their columns.

A centroid has its decoded position along the axes. Across them it has that of the rows around it,
which the cells have summed in all columns; without such sums, that of the mean of all rows.
"""

import numpy as np

from ckm._core.sketch import Sketch
from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.nearest import find_nearest
from ckm._util.arrays import FloatArray


def lift_centroids(sketch: Sketch, centroids: FloatArray) -> FloatArray:
    """Centroids in the columns of the data (K, n), given those of the frequencies (K, d)."""
    projection = sketch.frequencies.projection
    columns = sketch.tally.columns
    if projection is None or columns is None:
        return centroids
    K = len(centroids)
    # The mean of all rows, here and along the axes.
    mean = columns.first / sketch.weight
    along = np.tile(sketch.projected_mean, (K, 1))
    cells = sketch.cells
    if cells is None or cells.wide is None or not (cells.mass > 0).any():
        around = np.tile(mean, (K, 1))
    else:
        mass, means, _ = cells.statistics()
        means = np.ascontiguousarray(means + sketch.frequencies.origin)
        owners = np.empty(len(means), np.int32)
        find_nearest(means, CentroidIndex(centroids), owners)
        weight = np.bincount(owners, mass, minlength=K)
        has_cells = weight > 0
        divisor = np.where(has_cells, weight, 1.0)[:, None]
        # In place: there may be many columns.
        around = cells.wide_sums(owners, K)
        around /= divisor
        around[~has_cells] = mean
        sums = np.zeros_like(centroids)
        np.add.at(sums, owners, mass[:, None] * means)
        along[has_cells] = (sums / divisor)[has_cells]
    around += projection.lift(centroids - along)
    return projection.absolute(around)
