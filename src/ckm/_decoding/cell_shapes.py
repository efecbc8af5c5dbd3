"""Where rows in cells are, and how far from centroids.

If every row went to the centroid that is nearest to the mean of its cell, the mean squared distance
would follow exactly from shares, means and variances of cells. Rows that are nearer to another
centroid gain something, and how much depends on the shape of their cells. The average covariance
within cells is exact: that of all rows without that of the means. Each cell has that shape, and in
part that of the means around it, since rows lie within a cell in the directions in which there are
other cells. Points drawn from such Gaussians show the gain.
"""

from dataclasses import dataclass

import numpy as np

from ckm._core.moments import SecondMoment
from ckm._decoding.placing import Placement
from ckm._decoding.recovered import Weighted
from ckm._kmeans.points import WeightedPoints
from ckm._util.arrays import FloatArray, IntArray

# Cells around a cell whose means say what shape it has.
_NEIGHBOURS = 16
# The part of the variance of a cell in the directions of these. With none of it the SSE of 20
# clusters is 2.6 % too large on MNIST, with 0.3 it is 2.2 % too small on flights
# (`python -m benchmarks.curve --sections sse`).
_SHARE_OF_NEIGHBOURS = 0.2


@dataclass(frozen=True, eq=False)
class ShapedCells:
    """Cells and known outliers, and points that show the shapes of cells.

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

    @classmethod
    def of(
        cls,
        parts: Weighted,
        variances: FloatArray,
        covariance: SecondMoment,
        count: int,
        rng: np.random.Generator,
    ) -> "ShapedCells":
        """About `count` points of cells of these variances along every axis (c,), with outliers
        after them in `parts`; all rows together have this covariance.
        """
        means, shares = parts
        points, owners = _draw(means, shares, variances, covariance, count, rng)
        weights = (shares / np.bincount(owners))[owners]
        within = float(means.shape[1] * shares[: len(variances)] @ variances)
        return cls(
            WeightedPoints(np.ascontiguousarray(means), np.asarray(shares, np.float64)),
            within,
            WeightedPoints(points, weights),
            owners,
        )

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


def _draw(
    means: FloatArray,
    shares: FloatArray,
    variances: FloatArray,
    covariance: SecondMoment,
    count: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, IntArray]:
    """Points (p, n) around the means of cells, in pairs on both sides, then outliers, and the part
    that each belongs to.
    """
    n = means.shape[1]
    pairs = np.ceil(count * shares[: len(variances)] / shares.sum() / 2).astype(int)
    owners = np.repeat(np.arange(len(pairs)), pairs)
    root = _shape_within(means, shares, covariance).root
    deviations = rng.standard_normal((len(owners), n)) @ root.T
    directions = _directions(means[: len(pairs)], shares[: len(pairs)])
    if directions.shape[1]:
        amounts = rng.standard_normal((len(owners), directions.shape[1]))
        towards = np.einsum("pq,pqn->pn", amounts, directions[owners])
        part = _SHARE_OF_NEIGHBOURS
        deviations = np.sqrt(1 - part) * deviations + np.sqrt(part) * towards
    deviations *= np.sqrt(n * variances)[owners, None]
    centres = means[owners]
    points = np.concatenate([centres + deviations, centres - deviations, means[len(pairs) :]])
    outliers = np.arange(len(pairs), len(means))
    return points, np.concatenate([owners, owners, outliers])


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
