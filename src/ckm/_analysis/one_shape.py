"""K Gaussians of one shape and of different sizes: what clusters are taken for when their number is
asked for.

The shape is not fitted. The covariance of all rows is known exactly, so that of rows within
clusters is what their means leave of it, W = cov - sum_k alpha_k (mu_k - mean) (mu_k - mean)^T.
Everything is in the frame in which W is the identity; there a component has a mean, a share and a
width, the multiple of W that its covariance is.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from ckm._decoding.gaussians import GaussianMeasure
from ckm._decoding.problem import Problem
from ckm._util.arrays import BoolArray, FloatArray, IntArray

# Least variance of W along an axis, as a share of the largest, so that columns that are constant or
# nearly copies of others divide by something.
_MIN_SHAPE = 1e-3
# Least and largest width of a component, in multiples of W.
MIN_WIDTH = 1e-3
MAX_WIDTH = 50.0
# Rounds of expectation-maximisation, after each of which W is computed anew, and steps of each.
# With one round, overlapping clusters keep the narrow shape that k-means leaves.
_ROUNDS = 2
_STEPS = 4
# Points on the way from one component to another at which the density is compared.
_WAY_POINTS = 9


@dataclass(frozen=True, eq=False)
class OneShapeMixture:
    """K Gaussians N(mu_k, width_k W) with shares.

    Parameters
    ----------
    means : float64 array (K, n)
        Their means, in the frame in which W is the identity.
    shares : float64 array (K,)
        Their shares of the weight.
    widths : float64 array (K,)
        The multiple of W that the covariance of each is.
    root : float64 array (n, n)
        From the frame to the coordinates of the problem: W = root root^T.
    """

    means: FloatArray
    shares: FloatArray
    widths: FloatArray
    root: FloatArray

    def close_groups(self, gap: float) -> IntArray:
        """The number of the group of each component (K,): those closer than `gap` mean deviations
        are in one group.
        """
        deviations = np.sqrt(self.widths)
        gaps = np.sqrt(self._squares) / ((deviations[:, None] + deviations) / 2)
        return _connected(gaps < gap)

    def groups(self, valley: float) -> IntArray:
        """The number of the group of each component (K,): those between which the density does
        not fall below `valley` times the lower of their own densities are in one group.

        The points a + t (b - a) on the way from one mean to another have squared distances to the
        mean c that follow from those between means: (1 - t) |a - c|^2 + t |b - c|^2
        - t (1 - t) |a - b|^2.
        """
        D = self._squares
        own = self._log_density(D)
        lowest = np.full(D.shape, np.inf)
        for t in np.linspace(0, 1, _WAY_POINTS + 2)[1:-1]:
            squares = (1 - t) * D[:, None] + t * D - t * (1 - t) * D[:, :, None]
            np.minimum(lowest, self._log_density(squares), out=lowest)
        return _connected(lowest - np.minimum(own[:, None], own) > np.log(valley))

    @property
    def _squares(self) -> FloatArray:
        """The squared distances between means (K, K)."""
        return np.asarray(((self.means[:, None] - self.means) ** 2).sum(axis=2))

    def _log_density(self, squares: FloatArray) -> FloatArray:
        """The logarithm of the density (...) at points with these squared distances to the means
        (..., K), up to a constant.
        """
        n = self.means.shape[1]
        shares = np.maximum(self.shares, np.finfo(float).tiny)
        logs = np.log(shares) - n / 2 * np.log(self.widths) - squares / (2 * self.widths)
        largest = logs.max(axis=-1)
        return np.asarray(largest + np.log(np.exp(logs - largest[..., None]).sum(axis=-1)))


def _connected(is_joined: BoolArray) -> IntArray:
    """The number of the connected part that each vertex of a graph is in."""
    return np.asarray(connected_components(is_joined, directed=False)[1], np.int64)


def tied_components(
    problem: Problem, C: FloatArray, shares: FloatArray, widths: FloatArray
) -> OneShapeMixture:
    """Components with means C (K, n) in the coordinates of the problem, and the shape that these
    leave.
    """
    total = max(float(shares.sum()), np.finfo(float).tiny)
    root, inverse = _frame(problem, C, shares / total)
    return OneShapeMixture(C @ inverse.T, shares, widths, root)


def one_component(problem: Problem) -> OneShapeMixture:
    """One Gaussian, with the data's mean and covariance."""
    return tied_components(problem, problem.mean[None], np.ones(1), np.ones(1))


def fit_components(
    problem: Problem, measure: GaussianMeasure, C: FloatArray, shares: FloatArray
) -> OneShapeMixture:
    """K components that a recovered measure suggests, by expectation-maximisation from centroids C
    (K, n) and their shares (K,).

    A Gaussian of the measure belongs to components as a whole: few of them overlap two.
    """
    widths = np.ones(len(C))
    for _ in range(_ROUNDS):
        root, inverse = _frame(problem, C, shares)
        points = measure.means @ inverse.T
        # The second moment around a component has the Gaussian's own variance, too.
        squares = (points**2).sum(axis=1) + measure.variances @ (inverse**2).sum(axis=0)
        means = C @ inverse.T
        around = _squares_around(points, squares, means)
        for _ in range(_STEPS):
            parts = _responsibilities(around, shares, widths, points.shape[1])
            parts *= measure.shares
            shares = parts.sum(axis=1)
            mass = np.maximum(shares, np.finfo(float).tiny)
            means = (parts @ points) / mass[:, None]
            around = _squares_around(points, squares, means)
            widths = np.einsum("kq,kq->k", parts, around) / mass / points.shape[1]
            widths = widths.clip(MIN_WIDTH, MAX_WIDTH)
        C = means @ root.T
    return tied_components(problem, C, shares, widths)


def _responsibilities(
    around: FloatArray, shares: FloatArray, widths: FloatArray, n: int
) -> FloatArray:
    """The share of each Gaussian of a measure that belongs to each component (K, q), from its
    second moment around the mean of each.
    """
    logs = around / (-2 * widths[:, None])
    logs += (np.log(np.maximum(shares, np.finfo(float).tiny)) - n / 2 * np.log(widths))[:, None]
    logs -= logs.max(axis=0)
    parts = np.exp(logs, out=logs)
    parts /= parts.sum(axis=0)
    return parts


def _squares_around(points: FloatArray, squares: FloatArray, means: FloatArray) -> FloatArray:
    """Second moments around means (K, q), of Gaussians with these second moments (q,)."""
    around = squares - 2 * means @ points.T
    around += (means**2).sum(axis=1)[:, None]
    return np.maximum(around, 0.0, out=around)


def _frame(problem: Problem, C: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A root of W, the covariance within clusters around C, and the inverse of the root."""
    D = C - problem.mean
    if problem.covariance.is_full:
        within = problem.covariance.matrix - (shares[:, None] * D).T @ D
    else:
        within = np.diag(problem.covariance.diagonal - shares @ D**2)
    values, axes = np.linalg.eigh(within)
    largest = max(float(values[-1]), np.finfo(float).tiny)
    deviations = np.sqrt(np.maximum(values, _MIN_SHAPE * largest))
    return axes * deviations, (axes / deviations).T
