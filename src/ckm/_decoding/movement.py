"""How far centroids move from seed to seed, judged from the distribution that was recovered.

On rows drawn from it, k-means from the centroids is compared with a search that does not know them.
Where the two end at the same place, the data determines the centroids; where a search is as good
and ends elsewhere, so may the next seed. Both see the same rows, so that chance in drawing them
cancels.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from ckm._decoding.gaussians import GaussianMeasure
from ckm._kmeans.breathing import place
from ckm._kmeans.lloyd import lloyd
from ckm._kmeans.points import WeightedPoints
from ckm._util.arrays import FloatArray

# Rows of a draw, in all and per cluster.
_ROWS = 1000
_ROWS_PER_CLUSTER = 100
# Share of the SSE by which a search may be worse and still count: the best of the many searches of
# a decoder varies by as much from one draw to the next.
_EQUAL_ERROR = 0.01


def seed_movement(
    gaussians: GaussianMeasure, C: FloatArray, searches: int, rng: np.random.Generator
) -> FloatArray:
    """The RMS distance (K,) that each centroid of C (K, n) moves, over so many searches."""
    K = len(C)
    squares = np.zeros(K)
    for _ in range(searches):
        rows = gaussians.draw_evenly(rng, max(_ROWS, _ROWS_PER_CLUSTER * K))
        points = WeightedPoints(np.ascontiguousarray(rows), np.ones(len(rows)))
        own = lloyd(points, C)
        other, _, mean_square = place(points.values, None, K, rng, n_init=2)
        if mean_square * len(rows) <= (1 + _EQUAL_ERROR) * own.error:
            distances = cdist(own.centroids, other)
            squares += distances[linear_sum_assignment(distances)] ** 2
    return np.sqrt(squares / searches)
