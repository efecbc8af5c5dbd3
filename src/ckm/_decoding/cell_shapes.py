"""Where rows in cells are, and how far from centroids.

If every row went to the centroid that is nearest to the mean of its cell, the mean squared distance
would follow exactly from shares, means and variances of cells. Rows that are nearer to another
centroid gain something, and how much depends on the shape of their cells. The average covariance
within cells is exact: that of all rows without that of the means. Each cell has that shape, and in
part that of the means around it, since rows lie within a cell in the directions in which there are
other cells; the sketch says how large that part is. Points drawn from such Gaussians show the gain.
"""

from dataclasses import dataclass, replace

import numpy as np

from ckm._core.moments import SecondMoment
from ckm._decoding.placing import Placement
from ckm._decoding.problem import Problem
from ckm._decoding.recovered import Weighted
from ckm._kmeans.points import WeightedPoints
from ckm._util.arrays import ComplexArray, FloatArray, IntArray

# Cells around a cell whose means say what shape it has.
_NEIGHBOURS = 16
# The part of the variance of a cell in the directions of these: at least the first, and so much
# more for each part that explains the sketch best. That is 0.0 on flights, 0.1 on MNIST, 0.1 to 0.3
# on Gaussian clusters, and 0.5 on MNIST's spectral features. With 0.2 for all data, the SSE of 20
# clusters is 1 to 2 % too large on spectral features; with 0.4, 2 % too small on flights (seeds 0
# to 13).
_LEAST_PART = 0.2
_PART_PER_EXPLAINED = 0.4
# Frequencies that are asked for it, and what it is without them, with a standard deviation.
_ASKED_FREQUENCIES = 64
_USUAL_PART = 0.1
_PART_DEVIATION = 0.2


@dataclass(frozen=True, eq=False)
class CellShapes:
    """Gaussians of cells, with known outliers after them.

    Parameters
    ----------
    means, shares : float64 arrays (c + o, n) and (c + o,)
        The means of cells and the outliers, with their shares.
    variances : float64 array (c,)
        The variance of each cell, the sum over axes.
    within : SecondMoment
        The average covariance within cells, divided by its trace.
    directions : float64 array (c, q, n)
        The way from each cell to those around it; their squared lengths sum to one.
    part : float
        The part of the variance of a cell in these directions.
    """

    means: FloatArray
    shares: FloatArray
    variances: FloatArray
    within: SecondMoment
    directions: FloatArray
    part: float = _LEAST_PART + _PART_PER_EXPLAINED * _USUAL_PART

    @classmethod
    def of(cls, parts: Weighted, variances: FloatArray, covariance: SecondMoment) -> "CellShapes":
        """Those of cells of these variances along every axis (c,), with outliers after them in
        `parts`; all rows together have this covariance.
        """
        means, shares = parts
        c = len(variances)
        return cls(
            np.ascontiguousarray(means),
            np.asarray(shares, np.float64),
            means.shape[1] * variances,
            _shape_within(means, shares, covariance),
            _directions(means[:c], shares[:c]),
        )

    def explaining(self, problem: Problem, rng: np.random.Generator) -> "CellShapes":
        """The same with the part of the variance that explains the sketch best."""
        chosen = np.arange(problem.m)
        if problem.m > _ASKED_FREQUENCIES:
            chosen = np.sort(rng.choice(problem.m, _ASKED_FREQUENCIES, replace=False))
        omega = 2 * np.pi * np.asarray(problem.omega.turns.T[chosen], np.float64)
        before, after = self._sketches(omega)
        change = after - before
        residual = problem.z[chosen] - before
        # Least squares, with a normal distribution of parts before the sketch is asked.
        doubt = problem.noise / problem.m / 2 / _PART_DEVIATION**2
        wanted = (residual * change.conj()).real.sum() + doubt * _USUAL_PART
        explained = wanted / max((np.abs(change) ** 2).sum() + doubt, np.finfo(float).tiny)
        part = _LEAST_PART + _PART_PER_EXPLAINED * float(np.clip(explained, 0.0, 1.0))
        return replace(self, part=part)

    def _sketches(self, omega: FloatArray) -> tuple[ComplexArray, ComplexArray]:
        """The sketch (m,) if all cells have the average shape, and if their variance is in the
        directions of other cells alone.
        """
        c, _, n = self.directions.shape
        waves = np.exp(-1j * (self.means @ omega.T))
        waves *= (self.shares / self.shares.sum())[:, None]
        root = self.within.root
        average = ((omega @ root) ** 2).sum(axis=1)
        along = (self.directions.reshape(-1, n) @ omega.T).reshape(c, -1, len(omega))
        towards = np.einsum("cqm,cqm->cm", along, along)
        outliers = waves[c:].sum(axis=0)
        halves = self.variances[:, None] / 2
        before, after = (
            outliers + np.einsum("cm,cm->m", waves[:c], np.exp(-halves * squares))
            for squares in (average, towards)
        )
        return before, after

    def draw(self, count: int, rng: np.random.Generator) -> "ShapedCells":
        """About `count` points around the means of cells, in pairs on both sides, and the
        outliers.
        """
        c, q, n = self.directions.shape
        pairs = self._pairs(count)
        owners = np.repeat(np.arange(c), pairs)
        deviations = rng.standard_normal((len(owners), n)) @ self.within.root.T
        if q:
            amounts = rng.standard_normal((len(owners), q))
            towards = np.einsum("pq,pqn->pn", amounts, self.directions[owners])
            deviations = np.sqrt(1 - self.part) * deviations + np.sqrt(self.part) * towards
        deviations *= np.sqrt(self.variances)[owners, None]
        centres = self.means[owners]
        points = np.concatenate([centres + deviations, centres - deviations, self.means[c:]])
        owners = np.concatenate([owners, owners, np.arange(c, len(self.means))])
        weights = (self.shares / np.bincount(owners))[owners]
        within = float(self.shares[:c] @ self.variances)
        parts = WeightedPoints(self.means, self.shares)
        return ShapedCells(parts, within, WeightedPoints(points, weights), owners)

    def _pairs(self, count: int) -> IntArray:
        """How many of about `count` / 2 pairs of points each cell gets (c,).

        Half of them go where rows are, half where the variance within cells is: a few wide cells
        may have most of it, and then most of what rows gain across their borders.
        """
        shares = self.shares[: len(self.variances)]
        parts = shares / shares.sum()
        squares = shares * self.variances
        if squares.sum() > 0:
            parts = (parts + squares / squares.sum()) / 2
        return np.asarray(np.ceil(count / 2 * parts), np.int64)


@dataclass(frozen=True, eq=False)
class ShapedCells:
    """Cells and known outliers, and points drawn from them.

    Parameters
    ----------
    parts : WeightedPoints
        The means of cells and the outliers, with their shares.
    within : float
        The mean squared distance of rows from the means of their cells.
    points : WeightedPoints
        Points drawn from cells, and the outliers.
    owners : int array (p,)
        The part that each belongs to.
    """

    parts: WeightedPoints
    within: float
    points: WeightedPoints
    owners: IntArray

    def measure(self, C: FloatArray) -> Placement:
        """Centroids (K, n), their shares, and the mean squared distance to the nearest."""
        nearest, squares = self.parts.nearest(C)
        shares = self.parts.weights
        total = float(shares.sum())
        mass = np.bincount(nearest, shares, minlength=len(C))
        labels, own_squares = self.points.nearest(C)
        whole = nearest[self.owners]
        moved = np.flatnonzero(labels != whole)
        weights = self.points.weights[moved]
        before = ((self.points.values[moved] - C[whole[moved]]) ** 2).sum(axis=1)
        gain = float(weights @ (before - own_squares[moved]))
        mass += np.bincount(labels[moved], weights, minlength=len(C))
        mass -= np.bincount(whole[moved], weights, minlength=len(C))
        mean_square = (float(shares @ squares) + self.within - gain) / total
        return C, np.maximum(mass, 0.0) / total, max(mean_square, 0.0)


def _shape_within(means: FloatArray, shares: FloatArray, covariance: SecondMoment) -> SecondMoment:
    """The covariance within cells, divided by its trace."""
    around = means - shares @ means / shares.sum()
    between = (around.T * shares) @ around / shares.sum()
    within = covariance - SecondMoment(between if covariance.is_full else np.diag(between))
    if not within.trace > 0:
        return SecondMoment(np.full(means.shape[1], 1 / means.shape[1]))
    return within / within.trace


def _directions(means: FloatArray, shares: FloatArray) -> FloatArray:
    """The way from each cell to those around it (c, q, n); squared lengths sum to one."""
    count = min(_NEIGHBOURS, len(means) - 1)
    squares = (means**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * means @ means.T
    np.fill_diagonal(distances, np.inf)
    around = np.argpartition(distances, max(count - 1, 0), axis=1)[:, :count]
    ways = (means[around] - means[:, None]) * np.sqrt(shares[around])[:, :, None]
    lengths = np.einsum("cqn,cqn->c", ways, ways)
    return np.asarray(ways / np.sqrt(np.where(lengths > 0, lengths, 1.0))[:, None, None])
