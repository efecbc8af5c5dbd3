"""Anchors for cells: a rough k-means on the pilot, with many more centroids than clusters."""

from dataclasses import dataclass

import numpy as np

from ckm._core.cells import Anchors
from ckm._kernels.cpu.cells import nearest_anchors
from ckm._kernels.cpu.groups import neighbours_side_by_side
from ckm._kmeans.init import default_trials, draw_in_proportion, kmeans_plus_plus
from ckm._kmeans.points import WeightedPoints
from ckm._sketching.pilot import Pilot
from ckm._util.arrays import Array, Float32Array, FloatArray, LabelArray

# Rounds in which seeds are drawn, several at a time, in proportion to their squared distance from
# those of earlier rounds (k-means||: Bahmani et al., 2012).
SEED_ROUNDS = 5
# Lloyd iterations: a cell keeps the mean of its rows, so that its anchor need not be exact.
LLOYD_ITERATIONS = 5
# Anchors, and pairs of rows and anchors, up to which anchors are few: the cells are large, so that
# it pays to place them well, by greedy k-means++ and more iterations. With 33 cells of Shuttle the
# variance within them was a quarter lower, and the SSE 0.3 %; with 160 of MNIST nothing was gained.
MAX_FEW_ANCHORS = 128
MAX_FEW_PAIRS = 2**20
LLOYD_ITERATIONS_OF_FEW = 15
# Pilot rows for each anchor, and at least; bounded by the numbers that they hold.
ROWS_PER_ANCHOR = 20
MIN_ROWS = 2**14
MAX_NUMBERS = 2**25
# Standard deviations beyond which squares overflow in float32.
MAX_DEVIATIONS = 1e15
# Rows whose differences from their anchors are in memory at a time.
_ROWS_AT_ONCE = 2**14


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
    deviations = np.sqrt(pilot.weights @ (pilot.rows - origin) ** 2 / pilot.weights.sum())
    x = (pilot.rows - origin).astype(np.float32)
    points = _PilotPoints(x, pilot.weights, metric, deviations)
    values: Array = x
    spread = 0.0
    if s < len(pilot):
        values, spread = _improve(points, _draw_seeds(points, s, rng))
    if pilot.outliers is not None:
        # A cell of their own keeps them apart from the others.
        far = pilot.outliers - origin
        deviation = np.sqrt(((deviations * metric) ** 2).sum())
        is_near_enough = np.abs(far * metric).max(axis=1) < MAX_DEVIATIONS * deviation
        values = np.vstack([values, far[is_near_enough].astype(np.float32)])
    return points.anchors_at(np.unique(values, axis=0), spread)


@dataclass(frozen=True)
class _PilotPoints:
    """The rows of a pilot as cells see rows.

    Parameters
    ----------
    x : float32 array (p, n)
        The rows, relative to the origin.
    weights : float64 array (p,)
        Their weights.
    metric : float64 array (n,)
        What columns are multiplied by before distances are measured.
    deviations : float64 array (n,)
        The standard deviation of each column.
    """

    x: Float32Array
    weights: FloatArray
    metric: FloatArray
    deviations: FloatArray

    def anchors_at(self, values: Array, spread: float = 0.0) -> Anchors:
        """Anchors at these points, in an order in which they are searched fast."""
        values = values[neighbours_side_by_side(values * self.metric)]
        return Anchors.on_grids(values, self.metric, self.deviations, spread)

    def are_few(self, s: int) -> bool:
        """Whether s anchors are so few that better ones cost little."""
        return s <= MAX_FEW_ANCHORS and s * len(self.x) <= MAX_FEW_PAIRS

    def seed_greedily(self, s: int, rng: np.random.Generator) -> Float32Array:
        """At most s of the rows, by greedy k-means++."""
        rows = WeightedPoints(np.ascontiguousarray(self.x * self.metric, np.float64), self.weights)
        seeds = kmeans_plus_plus(rows, s, rng, default_trials(s), stop_when_covered=True)
        return np.asarray(seeds / self.metric, np.float32)

    def label(self, anchors: Anchors) -> LabelArray:
        """The number of the anchor nearest to each row."""
        return nearest_anchors(anchors, np.zeros(anchors.n), self.x)

    def nearest(self, anchors: Anchors) -> tuple[LabelArray, FloatArray]:
        """The number of the anchor nearest to each row, and its squared distance."""
        labels = self.label(anchors)
        squares = np.empty(len(labels))
        for start in range(0, len(labels), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            apart = (self.x[part] - anchors.values[labels[part]]) * self.metric
            squares[part] = np.einsum("ij,ij->i", apart, apart)
        return labels, squares

    def means(self, anchors: Anchors) -> FloatArray:
        """The mean of the rows nearest to each anchor; the anchor where there are none."""
        labels = self.label(anchors)
        mass = np.bincount(labels, self.weights, minlength=len(anchors))
        means = np.array(anchors.values, np.float64)
        has_rows = mass > 0
        for d in range(anchors.n):
            sums = np.bincount(labels, self.weights * self.x[:, d], minlength=len(anchors))
            means[has_rows, d] = sums[has_rows] / mass[has_rows]
        return means


def _draw_seeds(points: _PilotPoints, s: int, rng: np.random.Generator) -> Float32Array:
    """s of the points, or fewer if they coincide with others."""
    if points.are_few(s):
        return points.seed_greedily(s, rng)
    seeds = points.x[:0]
    squares = None
    for left in range(SEED_ROUNDS, 0, -1):
        count = (s - len(seeds)) // left
        if count == 0:
            continue
        masses = points.weights if squares is None else points.weights * squares
        if not masses.sum() > 0:
            break
        drawn = np.unique(draw_in_proportion(masses, rng.random(count)))
        seeds = np.vstack([seeds, points.x[drawn]])
        if left > 1:
            # Only the new seeds can be nearer than those before.
            _, own = points.nearest(points.anchors_at(points.x[drawn]))
            squares = own if squares is None else np.minimum(squares, own)
    return seeds


def _improve(points: _PilotPoints, seeds: Float32Array) -> tuple[FloatArray, float]:
    """Where a few Lloyd iterations take the seeds, and the mean squared distance that is left."""
    values: Array = seeds
    iterations = LLOYD_ITERATIONS_OF_FEW if points.are_few(len(seeds)) else LLOYD_ITERATIONS
    for _ in range(iterations):
        values = points.means(points.anchors_at(values))
    _, squares = points.nearest(points.anchors_at(values))
    return values, float(points.weights @ squares / points.weights.sum())
