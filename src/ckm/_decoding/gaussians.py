"""A measure as a mixture of Gaussians: its characteristic function anywhere, and rows drawn from
it.
"""

from dataclasses import dataclass

import numpy as np

from ckm._decoding.mixture import Mixture
from ckm._util.arrays import ComplexArray, FloatArray, Frozen, read_only

# Phases in memory at a time: 32 MB for each float64 array of that size.
_BLOCK_PHASES = 2**22


@dataclass(frozen=True, eq=False)
class GaussianMeasure(Frozen):
    """Gaussians with axis-aligned covariances, in the coordinates of a problem.

    Parameters
    ----------
    shares : float64 array (q,)
        The weight of each, as a share of all.
    means : float64 array (q, n)
        Their means.
    variances : float64 array (q, n)
        Their variances along each axis; zero for a point.
    """

    shares: FloatArray
    means: FloatArray
    variances: FloatArray

    def __post_init__(self) -> None:
        for name in ("shares", "means", "variances"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))

    @classmethod
    def of(cls, shares: FloatArray, means: FloatArray, variances: FloatArray) -> "GaussianMeasure":
        """The measure of shares that need not sum to one, and of variances (q,), (q, n) or a
        number.
        """
        widths = np.asarray(variances, np.float64)
        if widths.ndim == 1:
            widths = widths[:, None]
        total = shares.sum()
        even = np.full(len(shares), 1 / len(shares))
        return cls(
            shares / total if total > 0 else even, means, np.broadcast_to(widths, means.shape)
        )

    def beside(self, points: FloatArray, shares: FloatArray, left: float) -> "GaussianMeasure":
        """The measure with the weight `left`, and points with these shares beside it."""
        return GaussianMeasure.of(
            np.concatenate([left * self.shares, shares]),
            np.vstack([self.means, points]),
            np.vstack([self.variances, np.zeros(points.shape)]),
        )

    def divided(self, units: FloatArray) -> "GaussianMeasure":
        """The measure in other units (n,)."""
        return GaussianMeasure(self.shares, self.means / units, self.variances / units**2)

    @property
    def mean(self) -> FloatArray:
        """The mean (n,)."""
        return np.asarray(self.shares @ self.means)

    @property
    def variance(self) -> FloatArray:
        """The variance of each column (n,)."""
        spread = self.variances + (self.means - self.mean) ** 2
        return np.asarray(self.shares @ spread)

    def characteristic(self, omega: FloatArray) -> ComplexArray:
        """E exp(-i omega_j . x) at frequencies (p, n), complex (p,): what a sketch at these
        frequencies would be.
        """
        found = np.empty(len(omega), np.complex128)
        count = max(1, _BLOCK_PHASES // len(self.shares))
        for first in range(0, len(omega), count):
            some = omega[first : first + count]
            phases = some @ self.means.T
            fading = np.exp(-0.5 * (some**2 @ self.variances.T))
            found[first : first + count] = (fading * np.cos(phases)) @ self.shares - 1j * (
                fading * np.sin(phases)
            ) @ self.shares
        return found

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Points (count, n), independent of each other."""
        which = rng.choice(len(self.shares), size=count, p=self.shares)
        noise = rng.standard_normal((count, self.means.shape[1]))
        return np.asarray(self.means[which] + np.sqrt(self.variances[which]) * noise)

    def draw_evenly(self, rng: np.random.Generator, count: int) -> FloatArray:
        """The same, with less chance in it: each Gaussian gets its share of the points, and the
        noise comes in opposite pairs.
        """
        return Mixture(self.means, self.shares, self.variances, np.nan).draw(rng, count)
