"""`Components`: K Gaussians with weights, the model that a mixture is.

Covariances are kept as variances (K, n) if they are diagonal, else as matrices (K, n, n). The four
types of scikit-learn are constraints on them: "tied" matrices are all equal, "spherical" variances
are equal along all axes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from ckm._core.laws import FREQUENCIES_PER_PARAMETER
from ckm._messages import Argument
from ckm._util.arrays import FloatArray, Frozen, IntArray, read_only
from ckm.errors import DataError, ParameterError

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")
# Types whose covariances are matrices.
WITH_MATRICES = ("full", "tied")


def check_covariance_type(covariance_type: str) -> str:
    """Refuse an unknown type of covariances."""
    if not isinstance(covariance_type, str) or covariance_type not in COVARIANCE_TYPES:
        known = ", ".join(map(repr, COVARIANCE_TYPES))
        raise ParameterError(
            "There is no ", Argument("covariance_type"), f" {covariance_type!r}; choose {known}."
        )
    return covariance_type


def count_covariance_parameters(covariance_type: str, K: int, n: int) -> int:
    """The numbers that determine the covariances of K components in dimension n."""
    per_matrix = n * (n + 1) // 2
    counts = {"full": K * per_matrix, "tied": per_matrix, "diag": K * n, "spherical": K}
    return counts[covariance_type]


def recommended_size(covariance_type: str, K: int, n: int) -> int:
    """The number m of frequencies that K components ask for: five for each number of their means
    and covariances.
    """
    numbers = K * n + count_covariance_parameters(covariance_type, K, n)
    return FREQUENCIES_PER_PARAMETER * numbers


def count_parameters(covariance_type: str, K: int, n: int) -> int:
    """The free numbers of a mixture: weights that sum to one, means and covariances."""
    return K - 1 + K * n + count_covariance_parameters(covariance_type, K, n)


@dataclass(frozen=True, eq=False)
class Components(Frozen):
    """A mixture of K Gaussians.

    Parameters
    ----------
    weights : float64 array (K,)
        Their shares, which sum to one.
    means : float64 array (K, n)
        Their means.
    covariances : float64 array (K, n) or (K, n, n)
        Their variances along each axis, or their covariance matrices.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray

    def __post_init__(self) -> None:
        for name in ("weights", "means", "covariances"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def n(self) -> int:
        """The dimension."""
        return int(self.means.shape[1])

    @property
    def has_matrices(self) -> bool:
        """Whether covariances are matrices."""
        return self.covariances.ndim == 3

    @property
    def variances(self) -> FloatArray:
        """The variance of each component along each axis (K, n)."""
        if self.has_matrices:
            return np.asarray(np.einsum("kii->ki", self.covariances))
        return self.covariances

    @property
    def matrices(self) -> FloatArray:
        """The covariance matrices (K, n, n)."""
        if self.has_matrices:
            return self.covariances
        return np.asarray(self.covariances[:, :, None] * np.eye(self.n))

    @cached_property
    def roots(self) -> FloatArray:
        """L_k with L_k L_k^T the covariance: lower triangles (K, n, n), or standard deviations
        (K, n).
        """
        if not self.has_matrices:
            return np.sqrt(self.covariances)
        try:
            return np.asarray(np.linalg.cholesky(self.covariances), np.float64)
        except np.linalg.LinAlgError:
            raise DataError(
                "A component has a singular covariance: the data lies in fewer dimensions than it "
                "has columns. Use a larger ",
                Argument("reg_covar"),
                ", a simpler ",
                Argument("covariance_type"),
                ", or fewer components.",
            ) from None

    @cached_property
    def whiteners(self) -> FloatArray:
        """W_k with W_k^T W_k the inverse of the covariance (K, n, n), or its diagonal (K, n)."""
        if not self.has_matrices:
            return 1 / self.roots
        eye = np.eye(self.n)
        return np.stack([solve_triangular(root, eye, lower=True) for root in self.roots])

    @cached_property
    def precisions(self) -> FloatArray:
        """The inverses of the covariances, in the shape of these."""
        if not self.has_matrices:
            return np.asarray(self.whiteners**2)
        return np.asarray(np.swapaxes(self.whiteners, 1, 2) @ self.whiteners)

    @cached_property
    def log_norms(self) -> FloatArray:
        """log(weight_k) - log |2 pi Sigma_k| / 2 (K,), by which log densities begin."""
        diagonals = np.einsum("kii->ki", self.roots) if self.has_matrices else self.roots
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights)
        half = 0.5 * self.n * np.log(2 * np.pi)
        return np.asarray(log_weights - np.log(diagonals).sum(axis=1) - half)

    def log_joint(self, points: FloatArray, variances: FloatArray | None = None) -> FloatArray:
        """log(weight_k) + log N(x; mean_k, Sigma_k), (p, K), for points x (p, n).

        With `variances` (p, n), points are Gaussians of these, and it is the expectation over them.
        """
        found = np.empty((len(points), len(self)))
        for k in range(len(self)):
            deviations = points - self.means[k]
            if self.has_matrices:
                deviations = deviations @ self.whiteners[k].T
            else:
                deviations *= self.whiteners[k]
            found[:, k] = np.einsum("pi,pi->p", deviations, deviations)
        if variances is not None:
            found += variances @ _diagonals(self.precisions).T
        found *= -0.5
        found += self.log_norms
        return found

    def log_density(self, points: FloatArray) -> FloatArray:
        """log sum_k weight_k N(x; mean_k, Sigma_k), (p,), for points x (p, n)."""
        return log_sum(self.log_joint(points))

    def shares(self, points: FloatArray) -> FloatArray:
        """The probability of each component given each point (p, K)."""
        joint = self.log_joint(points)
        joint -= log_sum(joint)[:, None]
        return np.asarray(np.exp(joint))

    def draw(self, rng: np.random.Generator, counts: IntArray) -> FloatArray:
        """Points of each component, `counts` (K,) of them, one component after the other."""
        points = rng.standard_normal((int(counts.sum()), self.n))
        start = 0
        for k, count in enumerate(counts):
            part = slice(start, start + int(count))
            if self.has_matrices:
                points[part] = points[part] @ self.roots[k].T
            else:
                points[part] *= self.roots[k]
            points[part] += self.means[k]
            start += int(count)
        return points

    def moved(self, step: FloatArray, origin: FloatArray) -> "Components":
        """The components of origin + step * x, for x of these."""
        scale = np.outer(step, step) if self.has_matrices else step**2
        return Components(self.weights, origin + step * self.means, self.covariances * scale)

    def in_shape_of(self, covariance_type: str) -> FloatArray:
        """The covariances in scikit-learn's shape for this type."""
        return _in_shape(self.covariances, covariance_type)

    def precisions_in_shape_of(self, covariance_type: str) -> FloatArray:
        """Their inverses in scikit-learn's shape for this type."""
        return _in_shape(self.precisions, covariance_type)


def log_sum(joint: FloatArray) -> FloatArray:
    """log sum_k exp(joint_k) for each row of (p, K)."""
    largest = joint.max(axis=1)
    # A row that is infinitely far from all components has minus infinity everywhere.
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(joint - largest[:, None]).sum(axis=1)) + largest)


def _in_shape(covariances: FloatArray, covariance_type: str) -> FloatArray:
    if covariance_type == "tied":
        return read_only(covariances[0])
    if covariance_type == "spherical":
        return read_only(covariances[:, 0])
    return read_only(covariances)


def _diagonals(values: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("kii->ki", values)) if values.ndim == 3 else values
