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
    # The mean of all rows, here and along the axes.
    around = np.tile(columns.first / sketch.weight, (len(centroids), 1))
    along = np.tile(sketch.projected_mean, (len(centroids), 1))
    cells = sketch.cells
    if cells is not None and cells.wide is not None and (cells.mass > 0).any():
        mass, means, _ = cells.statistics()
        means = np.ascontiguousarray(means + sketch.frequencies.origin)
        owners = np.empty(len(means), np.int32)
        find_nearest(means, CentroidIndex(centroids), owners)
        weight = np.bincount(owners, mass, minlength=len(centroids))
        has_cells = weight > 0
        sums = cells.wide_sums(owners, len(centroids))
        around[has_cells] = sums[has_cells] / weight[has_cells, None]
        sums = np.zeros_like(centroids)
        np.add.at(sums, owners, mass[:, None] * means)
        along[has_cells] = sums[has_cells] / weight[has_cells, None]
    return projection.absolute(around + projection.lift(centroids - along))
