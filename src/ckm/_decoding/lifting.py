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
        share = np.zeros((len(centroids), len(mass)))
        share[owners, np.arange(len(mass))] = mass
        weight = share.sum(axis=1, keepdims=True)
        has_cells = weight[:, 0] > 0
        share = share[has_cells] / weight[has_cells]
        around[has_cells] = np.hstack([share @ means for means in cells.wide_means_in_parts()])
        along[has_cells] = share @ means
    return projection.absolute(around + projection.lift(centroids - along))
