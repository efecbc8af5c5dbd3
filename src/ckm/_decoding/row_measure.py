"""Where the rows of the data lie, as a decoder recovered it: Gaussians in the data's coordinates.

Rows that are projected vary along the axes as the Gaussians say. Across the axes a sketch holds the
mean and the variance of each column, and no more.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr

from ckm._core.projection import Projection
from ckm._core.sketch import Sketch
from ckm._decoding.coordinates import Coordinates
from ckm._decoding.gaussians import GaussianMeasure
from ckm._util.arrays import FloatArray, Frozen, IntArray

# The standard deviation of a point mass in a density, as a share of that of all rows: known
# outliers and cells of equal rows have none of their own.
POINT_DEVIATION = 0.01
# Numbers in memory at a time.
_BLOCK_NUMBERS = 2**22


@dataclass(frozen=True, eq=False)
class RowMeasure(Frozen):
    """A distribution of rows.

    Parameters
    ----------
    gaussians : GaussianMeasure
        The distribution of the rows, or of their projections, in the data's units.
    projection : Projection or None
        What rows are projected by.
    mean : float64 array (n,)
        The mean of the rows in all columns.
    covariance : float64 array (n,) or (n, n)
        The variances of all columns, if rows are projected.
    """

    gaussians: GaussianMeasure
    projection: Projection | None
    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, sketch: Sketch, found: GaussianMeasure, coordinates: Coordinates) -> "RowMeasure":
        """The distribution of the rows of a sketch, of which `found` was recovered in these
        coordinates.
        """
        gaussians = GaussianMeasure(
            found.shares,
            coordinates.absolute(found.means),
            found.variances * coordinates.step**2,
        )
        return cls(gaussians, sketch.frequencies.projection, sketch.mean, sketch.covariance)

    @cached_property
    def rest(self) -> FloatArray:
        """The variance of each column (n,) that Gaussians along the axes do not have."""
        assert self.projection is not None
        g = self.gaussians
        apart = g.means - g.mean
        along = np.diag(g.shares @ g.variances) + (g.shares[:, None] * apart).T @ apart
        unit = self.projection.lift(np.eye(self.projection.d))
        own = np.einsum("dn,dn->n", unit, along @ unit)
        return np.asarray(np.maximum(self.covariance - own, 0.0))

    def along(self, columns: IntArray) -> GaussianMeasure:
        """The distribution of one or two columns, as Gaussians without correlation."""
        g = self.gaussians
        if self.projection is None:
            return GaussianMeasure(g.shares, g.means[:, columns], g.variances[:, columns])
        unit = self.projection.lift(np.eye(self.projection.d))[:, columns]
        means = self.mean[columns] + (g.means - g.mean) @ unit
        variances = g.variances @ unit**2 + self.rest[columns]
        return GaussianMeasure(g.shares, means, variances)

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Rows (count, n), independent of each other."""
        y = self.gaussians.draw(rng, count)
        if self.projection is None:
            return y
        rows = self.mean + self.projection.lift(y - self.gaussians.mean)
        rows += np.sqrt(self.rest) * rng.standard_normal(rows.shape)
        return np.asarray(rows)

    def draw_of_each(self, rng: np.random.Generator, count: int) -> FloatArray:
        """So many rows of every Gaussian (q, count, n)."""
        g = self.gaussians
        noise = rng.standard_normal((len(g.shares), count, g.means.shape[1]))
        y = g.means[:, None] + np.sqrt(g.variances)[:, None] * noise
        if self.projection is None:
            return np.asarray(y)
        flat = self.projection.lift((y - g.mean).reshape(-1, y.shape[2]))
        flat = self.mean + flat + np.sqrt(self.rest) * rng.standard_normal(flat.shape)
        return np.asarray(flat.reshape(*y.shape[:2], -1))

    def log_density(self, points: Any) -> FloatArray:
        """The logarithm of the density at points (p, n), per unit of each column; at the
        projections of points, per unit of each axis, if rows are projected.
        """
        x = np.asarray(points, np.float64)
        if self.projection is not None:
            x = self.projection.reduce(x)
        return log_density(self.gaussians, x)


def log_density(gaussians: GaussianMeasure, x: FloatArray) -> FloatArray:
    """The logarithm of a mixture's density at points (p, n)."""
    g = gaussians
    variances = np.maximum(g.variances, _least_variance(g))
    with np.errstate(divide="ignore"):
        constant = np.log(g.shares) - 0.5 * np.log(2 * np.pi * variances).sum(axis=1)
    found = np.empty(len(x))
    at_once = max(1, _BLOCK_NUMBERS // variances.size)
    for start in range(0, len(x), at_once):
        part = x[start : start + at_once, None]
        squares = ((part - g.means) ** 2 / variances).sum(axis=2)
        found[start : start + at_once] = logsumexp(constant - squares / 2, axis=1)
    return found


def cumulative(gaussians: GaussianMeasure, x: FloatArray) -> FloatArray:
    """The share (p,) of a distribution of one column that lies below each x."""
    deviations = np.sqrt(np.maximum(gaussians.variances, _least_variance(gaussians)))
    found = np.empty(len(x))
    at_once = max(1, _BLOCK_NUMBERS // len(gaussians.shares))
    for start in range(0, len(x), at_once):
        z = (x[start : start + at_once, None] - gaussians.means[:, 0]) / deviations[:, 0]
        found[start : start + at_once] = ndtr(z) @ gaussians.shares
    return found


def _least_variance(gaussians: GaussianMeasure) -> FloatArray:
    """The variance (n,) that a point mass has in a density."""
    variance = gaussians.variance
    return np.where(variance > 0, POINT_DEVIATION**2 * variance, np.finfo(np.float64).tiny)
