"""The measure that cells describe: one Gaussian per cell, with the cell's share, mean and variance.

A cell knows its variance over all columns together. How much of it belongs to which column follows
from the sketch, which knows the variance of each column over all rows, and so what is left of it
within cells: a column never gets more than that.

The sketch decides whether to trust it. Rows that resemble the sample that the anchors were chosen
on lie in small cells, whose Gaussians explain the sketch nearly as well as the rows do. If the data
has changed since, cells are wide, and their sketch is not the data's.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ckm._core.cells import Anchors
from ckm._core.sketch import Sketch
from ckm._decoding.coordinates import Coordinates
from ckm._decoding.objective import Objective
from ckm._decoding.sample import SampledRows
from ckm._kernels.cpu.cells import nearest_anchors
from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.nearest import find_nearest
from ckm._util.arrays import FloatArray, LabelArray

# Share of the rows in cells that may be wide without the rows having moved. On sets with heavy
# tails the others were 0.8 to 1.2 times as wide as in the sample, those of moved rows 1.7 and more.
TAIL_SHARE = 0.02
# Points per row of a cell, at most, where many clusters are refined. With one, centroids follow the
# chance of the draw as much as those of other rows of the same distribution would: 0.3 % of the SSE
# for 500 clusters of 1000 rows each.
POINTS_PER_ROW = 4
# Points that fall in a cell, at least, for its rows to be described by them.
MIN_HITS = 4
# Standard deviations of the Gaussians that points within cells are drawn from, in those of the
# cells. At 1 points are too dense in the middle of cells: where the heavy tail of two million
# customers is cut, centroids were up to 0.009 standard deviations from the means of their rows, at
# 1.25 up to 0.004 (three million points each).
OVERLAP = 1.25
# Bits of the variance of a column to which its part within cells is known.
CAP_BITS = 30
# Steps in which the caps of axes are found: each moves them to where variances agree, if no others
# move.
_CAP_STEPS = 20


@dataclass(frozen=True, eq=False)
class CellMeasure:
    """Gaussians in the coordinates of a problem, one for each cell that has rows.

    Parameters
    ----------
    shares : float64 array (c,)
        The weight of each, as a share of all.
    means : float64 array (c, n)
        Their means.
    variances : float64 array (c,)
        Their variances along every axis.
    anchors : float64 array (c, n)
        The anchors of the cells, in steps of the design.
    rows : float64 array (c,)
        The number of rows of each, or their weight.
    expected_variance : float
        The mean variance along an axis within cells, in the sample that the anchors were chosen on.
    coordinates : Coordinates
        What these coordinates are in the data's.
    caps : float64 array (n,)
        The largest variance of a cell along each axis; infinite for axes that take what is left.
    """

    shares: FloatArray
    means: FloatArray
    variances: FloatArray
    anchors: FloatArray
    rows: FloatArray
    expected_variance: float
    coordinates: Coordinates
    caps: FloatArray

    @classmethod
    def of(cls, sketch: Sketch, coordinates: Coordinates | None = None) -> "CellMeasure | None":
        """The measure of a sketch's cells, if it has some with rows; in the units of its design or
        in other coordinates.
        """
        coordinates = coordinates or Coordinates.of_design(sketch)
        cells = sketch.cells
        if cells is None or not (cells.mass > 0).any():
            return None
        frequencies = sketch.frequencies
        mass, means, variances = cells.statistics()
        # The variance of all columns together, in units of sigma^2, shared among the axes.
        per_axis = 1 / (frequencies.n * frequencies.scale)
        anchors = cells.anchors.values[np.asarray(cells.mass > 0, bool)]
        shares = mass / mass.sum()
        means = means / frequencies.step
        variances = variances * per_axis
        total = sketch.central_moment.scaled(frequencies.step).diagonal
        between = shares @ (means - shares @ means) ** 2
        # On a grid, because the last bits of moments depend on the order of rows.
        within = np.maximum(total - between, 0.0)
        grid = 2.0 ** np.round(np.log2(np.maximum(total, np.finfo(float).tiny)) - CAP_BITS)
        caps = find_caps(shares, variances, np.rint(within / grid) * grid)
        # Cells have their variances in the units of the design.
        squared = coordinates.stretch**2
        stretched = (share_variances(variances, caps) * squared).mean(axis=1)
        before = float(shares @ variances)
        widening = float(shares @ stretched) / before if before > 0 else 1.0
        return cls(
            shares,
            means * coordinates.stretch,
            stretched,
            anchors / frequencies.step,
            mass,
            cells.anchors.spread * per_axis * widening,
            coordinates,
            caps * squared,
        )

    @cached_property
    def axis_variances(self) -> FloatArray:
        """The variance of each cell along each axis (c, n)."""
        return share_variances(self.variances, self.caps)

    @property
    def variance_within(self) -> float:
        """The mean variance along an axis within cells."""
        return float(self.shares @ self.variances)

    @property
    def widening(self) -> float:
        """The variance within cells relative to that in the sample the anchors were chosen on.

        The widest cells with `TAIL_SHARE` of the rows are left out: those of heavy tails are wider
        in all rows than in a sample, which hardly holds their outermost ones.
        """
        widest = np.argsort(-self.variances, kind="stable")
        bulk = widest[np.searchsorted(np.cumsum(self.shares[widest]), TAIL_SHARE) :]
        within = float(self.shares[bulk] @ self.variances[bulk])
        return within / self.expected_variance if within > 0 < self.expected_variance else 1.0

    def variance_beyond(self, limit: float) -> float:
        """The part of the variance within cells, summed over all axes, that is in cells of a
        variance above `limit`.
        """
        is_wide = self.variances > limit
        n = self.means.shape[1]
        return float(n * self.shares[is_wide] @ self.variances[is_wide])

    def cost(self, objective: Objective, others: SampledRows | None = None) -> float:
        """|z - A p|^2 of this measure p, together with other rows if given."""
        means = self.means
        shares = self.shares
        widths = self.axis_variances
        if others is not None:
            means = np.vstack([means, others.values])
            shares = np.concatenate([shares, others.weights])
            widths = np.vstack([widths, np.zeros(others.values.shape)])
        return objective.gaussian_cost(means, shares, widths)[0]

    def without(self, rows: SampledRows) -> "CellMeasure":
        """The measure of the other rows, once these are known. Shares sum to what is left."""
        # Cells hold rows in float32. For outliers the rounding is larger than a cell is wide.
        step = self.coordinates.step
        values = (rows.values * step).astype(np.float32) / step
        owners = np.empty(len(values), np.int32)
        in_design = np.ascontiguousarray(values / self.coordinates.stretch)
        find_nearest(in_design, CentroidIndex(self.anchors), owners)
        shares = self.shares - _sums(owners, rows.weights, len(self.shares))
        first = self.shares[:, None] * self.means
        np.subtract.at(first, owners, rows.weights[:, None] * values)
        n = self.means.shape[1]
        squares = self.shares * (n * self.variances + (self.means**2).sum(axis=1))
        squares -= _sums(owners, rows.weights * (values**2).sum(axis=1), len(shares))
        # What rounding leaves of a cell whose rows are all known.
        kept = shares > 0.5 / self.rows.sum()
        shares = shares[kept]
        means = first[kept] / shares[:, None]
        variances = squares[kept] / shares - (means**2).sum(axis=1)
        return replace(
            self,
            shares=shares,
            means=means,
            variances=np.maximum(variances, 0.0) / n,
            anchors=self.anchors[kept],
            rows=self.rows[kept],
        )

    def draw_lines(self, rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray]:
        """About `count` points of another measure with these cells, and their weights: each cell is
        a Gaussian along a line in a random direction.
        """
        pairs = np.ceil(count * self.shares / self.shares.sum() / 2).astype(int)
        owners = np.repeat(np.arange(len(pairs), dtype=np.int32), 2 * pairs)
        directions = np.sqrt(self.axis_variances) * rng.standard_normal(self.means.shape)
        total = self.axis_variances.sum(axis=1)
        lengths = (directions**2).sum(axis=1)
        directions *= np.sqrt(total / np.where(lengths > 0, lengths, 1.0))[:, None]
        along = np.repeat(rng.standard_normal(len(owners) // 2), 2)
        along[1::2] *= -1
        # The points of a cell have its variance.
        squares = _sums(owners, along**2, len(pairs)) / (2 * pairs)
        along /= np.sqrt(squares)[owners]
        points = directions[owners]
        points *= along[:, None]
        points += self.means[owners]
        return points, (self.shares / (2 * pairs))[owners]

    def draw(
        self, rng: np.random.Generator, count: int, needs: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """About `count` points (p, n) and their weights (p,).

        The points of a cell have its mean and variance. Cells share the points like their weights,
        or like their `needs` (c,), which sum to one or less. A cell has at least one point, and no
        more than it has rows.
        """
        numbers = self._numbers(rng, count, needs, np.ceil(self.rows))
        owners = np.repeat(np.arange(len(numbers)), numbers)
        deviations = rng.standard_normal((len(owners), self.means.shape[1]))
        starts = np.concatenate([[0], np.cumsum(numbers)[:-1]]).astype(int)
        centre = np.add.reduceat(deviations, starts, axis=0) / numbers[:, None]
        # Taking the mean away takes one of so many parts of the variance with it.
        factors = np.sqrt(self.axis_variances * (numbers / np.maximum(numbers - 1, 1))[:, None])
        deviations *= factors[owners]
        deviations += (self.means - factors * centre)[owners]
        return deviations, (self.shares / numbers)[owners]

    def draw_within(
        self, rng: np.random.Generator, count: int, needs: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """About `count` points and their weights, each in the cell of its nearest anchor, as rows
        are. The Gaussian of a cell reaches over its borders.

        Points are drawn from all Gaussians, made wider so that they overlap, and belong to the
        cells that they fall in, where they are moved and scaled together until they have the mean
        and variance of the cell. `needs` are as for `draw`.
        """
        numbers = self._numbers(rng, count, needs, np.ceil(POINTS_PER_ROW * self.rows))
        drawn_from = np.repeat(np.arange(len(numbers)), numbers)
        points = rng.standard_normal((len(drawn_from), self.means.shape[1]))
        points *= OVERLAP * np.sqrt(self.axis_variances)[drawn_from]
        points += self.means[drawn_from]
        owners = self._cells_of(points)
        is_hit = np.bincount(owners, minlength=len(numbers)) >= MIN_HITS
        # A cell that few points fall in keeps its own.
        owners = np.where(is_hit[drawn_from] & is_hit[owners], owners, drawn_from)
        # The points of a cell share its weight like the densities of the Gaussians they are from.
        parts = (self.shares / numbers)[drawn_from]
        mass = _sums(owners, parts, len(numbers))
        parts /= mass[owners]
        points -= _column_sums(owners, parts[:, None] * points, len(numbers))[owners]
        own = _sums(owners, parts * np.einsum("ij,ij->i", points, points), len(numbers))
        wanted = self.axis_variances.sum(axis=1)
        points *= np.sqrt(wanted / np.where(own > 0, own, np.inf))[owners, None]
        points += self.means[owners]
        return points, self.shares[owners] * parts

    def _numbers(
        self, rng: np.random.Generator, count: int, needs: FloatArray | None, most: FloatArray
    ) -> LabelArray:
        """How many of about `count` points are drawn from each cell (c,)."""
        expected = count * (self.shares / self.shares.sum() if needs is None else needs)
        return np.asarray(np.floor(expected + rng.random(len(expected))).clip(1, most), np.int32)

    def _cells_of(self, points: FloatArray) -> LabelArray:
        """The number of the cell that each point falls in."""
        n = self.anchors.shape[1]
        anchors = Anchors.on_grids(self.anchors, np.ones(n), np.ones(n), 0.0)
        return nearest_anchors(anchors, np.zeros(n), points / self.coordinates.stretch)


def share_variances(variances: FloatArray, caps: FloatArray) -> FloatArray:
    """Share the variance of each cell (c,), the mean over n axes, among the axes (c, n): evenly,
    but none gets more than its cap, and others then have the rest. One cap is infinite.

    >>> share_variances(np.array([1.0, 5.0]), np.array([0.5, np.inf, np.inf]))
    array([[0.5 , 1.25, 1.25],
           [0.5 , 7.25, 7.25]])
    """
    n = len(caps)
    order = np.argsort(caps)
    ordered = caps[order]
    # With the first k axes at their caps, each of the others has this level.
    capped = np.concatenate([[0.0], np.cumsum(ordered[:-1])])
    levels = np.maximum(n * variances[:, None] - capped, 0.0) / np.arange(n, 0, -1)
    # So many axes are at their caps as have a cap below the level.
    k = (levels >= ordered).sum(axis=1)
    level = levels[np.arange(len(levels)), np.minimum(k, n - 1)]
    return np.asarray(np.minimum(level[:, None], caps))


def find_caps(shares: FloatArray, variances: FloatArray, within: FloatArray) -> FloatArray:
    """Caps (n,) with which the cells together have at most the variance `within` (n,) along each
    axis that they would exceed it in.
    """
    mean = float(shares @ variances) / float(shares.sum())
    widest = within >= within.max()
    caps = np.where(widest | (within >= mean), np.inf, within)
    for _ in range(_CAP_STEPS):
        is_capped = np.isfinite(caps)
        together = shares @ share_variances(variances, caps) / shares.sum()
        ratio = within / np.where(together > 0, together, 1.0)
        # Axes that the others push above their variance are capped too.
        is_exceeded = ~is_capped & ~widest & (ratio < 1)
        caps = np.where(is_capped, np.where(is_capped, caps, 0.0) * ratio, caps)
        caps[is_exceeded] = within[is_exceeded]
    return caps


def _column_sums(owners: LabelArray, values: FloatArray, count: int) -> FloatArray:
    return np.stack([_sums(owners, column, count) for column in values.T], axis=1)


def _sums(owners: LabelArray, values: FloatArray, count: int) -> FloatArray:
    return np.bincount(owners, values, minlength=count).astype(np.float64)
