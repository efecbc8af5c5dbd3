"""Anchors for cells: a rough k-means on the pilot, with many more centroids than clusters."""

import numpy as np

from ckm._core.cells import Anchors
from ckm._kmeans.init import draw_in_proportion
from ckm._kmeans.lloyd import lloyd
from ckm._kmeans.points import WeightedPoints
from ckm._sketching.pilot import Pilot
from ckm._util.arrays import FloatArray

# Rounds in which seeds are drawn, several at a time, in proportion to their squared distance from
# those of earlier rounds (k-means||: Bahmani et al., 2012).
SEED_ROUNDS = 5
# Lloyd iterations: a cell keeps the mean of its rows, so that its anchor need not be exact.
LLOYD_ITERATIONS = 5
# Pilot rows for each anchor, and at least; bounded by the numbers that they hold.
ROWS_PER_ANCHOR = 20
MIN_ROWS = 2**14
MAX_NUMBERS = 2**25
# Standard deviations beyond which squares overflow in float32.
MAX_DEVIATIONS = 1e15


def anchor_pilot_rows(s: int, n: int) -> int:
    """How many rows a pilot needs to choose s anchors in dimension n."""
    wanted = max(MIN_ROWS, ROWS_PER_ANCHOR * s)
    return min(wanted, max(MIN_ROWS, MAX_NUMBERS // n))


def choose_anchors(
    pilot: Pilot, origin: FloatArray, units: FloatArray | None, s: int, rng: np.random.Generator
) -> Anchors | None:
    """At most s anchors for rows that resemble the pilot; None if there are no rows.

    `units` are those that distances are measured in. The rows of the pilot are in the units of the
    data.
    """
    if not len(pilot):
        return None
    metric = np.ones(len(origin)) if units is None else 1 / units
    points = WeightedPoints((pilot.rows - origin) * metric, pilot.weights)
    if s < len(pilot):
        seeds = _draw_seeds(points, s, rng)
        found = lloyd(points, seeds, tolerance=None, max_iterations=LLOYD_ITERATIONS, empty="stay")
        centroids = found.centroids
        spread = found.error / pilot.weights.sum()
    else:
        centroids = points.values
        spread = 0.0
    deviations = np.sqrt(pilot.weights @ (pilot.rows - origin) ** 2 / pilot.weights.sum())
    values = (centroids / metric).astype(np.float32)
    if pilot.outliers is not None:
        # A cell of their own keeps them apart from the others.
        far = pilot.outliers - origin
        deviation = np.sqrt(((deviations * metric) ** 2).sum())
        is_near_enough = np.abs(far * metric).max(axis=1) < MAX_DEVIATIONS * deviation
        values = np.vstack([values, far[is_near_enough].astype(np.float32)])
    values = np.unique(values, axis=0)
    return Anchors.on_grids(values, metric, deviations, spread)


def _draw_seeds(points: WeightedPoints, s: int, rng: np.random.Generator) -> FloatArray:
    """s of the points, or fewer if they coincide with others."""
    seeds = points.values[:0]
    squares = None
    for left in range(SEED_ROUNDS, 0, -1):
        count = (s - len(seeds)) // left
        if count == 0:
            continue
        masses = points.weights if squares is None else points.weights * squares
        if not masses.sum() > 0:
            break
        drawn = np.unique(draw_in_proportion(masses, rng.random(count)))
        seeds = np.vstack([seeds, points.values[drawn]])
        _, squares = points.nearest(seeds)
    return seeds
