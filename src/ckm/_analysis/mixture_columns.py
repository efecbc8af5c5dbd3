"""The distributions of single columns under a mixture of Gaussians."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ckm._util.arrays import FloatArray


class MixtureColumns(NamedTuple):
    """Gaussians in the coordinates of frequencies, with widths of their own along each axis."""

    shares: FloatArray  # (Q,)
    means: FloatArray  # (Q, n)
    variances: FloatArray  # (Q, n)

    def distribution(self, grid: FloatArray) -> FloatArray:
        """The distribution function of each column (n, g) at its points of a grid (n, g)."""
        deviations = np.sqrt(np.maximum(self.variances, 1e-12 * grid.var(axis=1)))
        deviations = np.maximum(deviations, np.finfo(float).tiny)
        found = np.zeros(grid.shape)
        for share, mean, deviation in zip(self.shares, self.means, deviations, strict=True):
            found += share * ndtr((grid - mean[:, None]) / deviation[:, None])
        return found

    @property
    def fourth_moments(self) -> FloatArray:
        """The fourth central moment of each column (n,)."""
        squares = (self.means - self.shares @ self.means) ** 2
        terms = squares**2 + 6 * squares * self.variances + 3 * self.variances**2
        return np.asarray(self.shares @ terms)


def mixture_columns(
    shares: FloatArray, means: FloatArray, variances: FloatArray, columns: FloatArray
) -> MixtureColumns:
    """The mixture with widths that give each column its variance (n,), which is known.

    Cells know one variance for all their columns together.
    """
    widths = variances[:, None] if variances.ndim == 1 else variances
    widths = np.broadcast_to(widths, means.shape)
    between = shares @ (means - shares @ means) ** 2
    within = np.maximum(columns - between, 0.0)
    average = shares @ widths
    factors = np.where(average > 0, within / np.where(average > 0, average, 1.0), 0.0)
    return MixtureColumns(shares, means, widths * factors)
