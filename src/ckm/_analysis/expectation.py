"""Expectation-maximisation: the mixture of K Gaussians of largest likelihood.

On a measure that was recovered from a sketch, whose parts are Gaussians or points: each part goes
to components by its expected log density. And over rows, block by block, in bounded memory.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ckm._analysis.components import WITH_MATRICES, Components, log_sum
from ckm._util.arrays import FloatArray

# Share of all weight below which a component counts as empty, and stays where it is.
_EMPTY = 1e-12


@dataclass(frozen=True)
class Shape:
    """What covariances are to look like.

    Parameters
    ----------
    covariance_type : {"full", "tied", "diag", "spherical"}
        Their type.
    floor : float64 array (n,)
        Added to the variance along each axis, so that none is zero.
    """

    covariance_type: str
    floor: FloatArray

    @property
    def has_matrices(self) -> bool:
        """Whether covariances are matrices."""
        return self.covariance_type in WITH_MATRICES

    def constrain(self, covariances: FloatArray, mass: FloatArray) -> FloatArray:
        """The nearest covariances of this type, given the mass of each component; without the
        floor.
        """
        if self.covariance_type == "tied":
            mean = np.tensordot(mass / mass.sum(), covariances, 1)
            return np.repeat(mean[None], len(mass), axis=0)
        if self.covariance_type == "spherical":
            means = covariances.mean(axis=1, keepdims=True)
            return np.repeat(means, covariances.shape[1], axis=1)
        return covariances

    def lifted(self, covariances: FloatArray) -> FloatArray:
        """Covariances with the floor added to their diagonals."""
        return np.asarray(covariances + (np.diag(self.floor) if self.has_matrices else self.floor))


class Sums(NamedTuple):
    """Sums over rows l, or parts of a measure, with their weights beta_l and their shares r_lk of
    each component; d_lk is their deviation from the mean of component k.

    Parameters
    ----------
    mass : array (K,)
        sum beta_l r_lk
    first : array (K, n)
        sum beta_l r_lk d_lk
    second : array (K, n) or (K, n, n)
        sum beta_l r_lk d_lk d_lk^T, or its diagonal.
    log_likelihood : float
        sum beta_l log sum_k exp(log_joint_lk)
    """

    mass: FloatArray
    first: FloatArray
    second: FloatArray
    log_likelihood: float

    def plus(self, other: "Sums") -> "Sums":
        """The sums over the rows of both."""
        return Sums(
            self.mass + other.mass,
            self.first + other.first,
            self.second + other.second,
            self.log_likelihood + other.log_likelihood,
        )


def sum_points(
    components: Components,
    points: FloatArray,
    beta: FloatArray,
    variances: FloatArray | None = None,
) -> Sums:
    """The E step on points (p, n) of weights beta (p,); with `variances` (p, n), points are
    Gaussians.
    """
    joint = components.log_joint(points, variances)
    log_density = log_sum(joint)
    shares = np.exp(joint - log_density[:, None])
    shares *= beta[:, None]
    K = len(components)
    first = np.empty((K, components.n))
    second = np.empty(components.covariances.shape)
    for k in range(K):
        deviations = points - components.means[k]
        own = shares[:, k]
        first[k] = own @ deviations
        if components.has_matrices:
            second[k] = (deviations * own[:, None]).T @ deviations
            if variances is not None:
                second[k][np.diag_indices(components.n)] += own @ variances
        else:
            second[k] = own @ deviations**2
            if variances is not None:
                second[k] += own @ variances
    return Sums(shares.sum(axis=0), first, second, float(beta @ log_density))


def maximise(components: Components, sums: Sums, shape: Shape) -> Components:
    """The M step: the mixture of largest likelihood for these shares."""
    total = sums.mass.sum()
    is_empty = sums.mass <= _EMPTY * total
    mass = np.where(is_empty, 1.0, sums.mass)
    shifts = sums.first / mass[:, None]
    if components.has_matrices:
        own = sums.second / mass[:, None, None] - shifts[:, :, None] * shifts[:, None, :]
    else:
        own = sums.second / mass[:, None] - shifts**2
    kept = is_empty.reshape(-1, *[1] * (own.ndim - 1))
    own = np.where(kept, components.covariances, own)
    weights = np.maximum(sums.mass, _EMPTY * total)
    covariances = shape.constrain(own, weights)
    if not components.has_matrices:
        covariances = np.maximum(covariances, 0.0)
    means = np.where(is_empty[:, None], components.means, components.means + shifts)
    return Components(weights / weights.sum(), means, shape.lifted(covariances))


class Fitted(NamedTuple):
    """What expectation-maximisation found.

    Parameters
    ----------
    components : Components
        The mixture.
    log_likelihood : float
        The mean log density of the points, before the last step.
    """

    components: Components
    log_likelihood: float


def fit_points(
    start: Components,
    points: FloatArray,
    beta: FloatArray,
    variances: FloatArray | None,
    shape: Shape,
    *,
    max_steps: int,
    tolerance: float,
) -> Fitted:
    """EM from a start, until a step gains less than `tolerance` per unit of weight."""
    components = start
    before = -np.inf
    total = float(beta.sum())
    for _ in range(max_steps):
        sums = sum_points(components, points, beta, variances)
        after = sums.log_likelihood / total
        components = maximise(components, sums, shape)
        if after - before < tolerance:
            break
        before = after
    return Fitted(components, after)
