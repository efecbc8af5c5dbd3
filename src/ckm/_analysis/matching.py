"""Match a mixture to a sketch: the least weighted residual, by Levenberg and Marquardt's method.

The cost is sum_j u_j |z_j - sum_k weight_k psi_k(omega_j)|^2 with

    psi_k(omega) = exp(-i omega . mean_k - omega^T Sigma_k omega / 2)

and u_j one over the variance of z_j, N / (1 - |z_j|^2): chance then counts alike at every
frequency, and the result has nearly the likelihood of a fit to the rows. psi_k is the exponential
of something linear in the mean and in the covariance, so all derivatives are psi_k times products
of frequencies, whatever the type of the covariances.

Components are moved some at a time where there are many: those of a group are neighbours.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from ckm._analysis.components import Components
from ckm._analysis.expectation import Shape
from ckm._analysis.feature_covariance import mixture_covariance
from ckm._util.arrays import ComplexArray, Float32Array, FloatArray, IntArray

# Numbers that are moved together at most: a step solves as many equations.
MAX_TOGETHER = 1200
# Numbers of a block of the Jacobian: 16 MB in float32.
_BLOCK_NUMBERS = 2**22
# Share of the cost that one of two steps, or a sweep over all groups, must gain for another one to
# follow.
MIN_GAIN = 3e-3
_MAX_STALLED = 2
MAX_STEPS = 20
MAX_SWEEPS = 6
# Steps per group and sweep, where there are several groups.
_GROUP_STEPS = 3
# Steps after which a match is given up if its excess is still above `abort_above`.
_ABORT_CHECK_STEP = 5
# Variance 1 - |z|^2 below which frequencies count alike: they are so low that their residual shows
# what the model lacks rather than chance.
MIN_VARIANCE = 1e-3
# Factors of a covariance within one step, at least and at most along any direction.
_SHRINKAGE = 0.2
_GROWTH = 5.0
# Damping relative to the curvature: at first, at least, the factor after a failure, and where to
# give up.
_FIRST_DAMPING = 1e-3
_MIN_DAMPING = 1e-9
_DAMPING_FACTOR = 10.0
_MAX_DAMPING = 1e5
# Curvature below which the sketch does not depend on anything, and the share of the largest that
# each number has at least.
_MIN_CURVATURE = 1e-200
_RELATIVE_CURVATURE = 1e-12
# Steps that weight all frequencies together, and the ridge on their covariance, as a share of its
# mean variance.
_WHITENED_STEPS = 4
# Frequencies up to which they are made: with as many, they take 0.1 s.
_MAX_WHITENED = 512
_RIDGE = 1e-3
# Weight of a component, at least, as a share of all.
_MIN_WEIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class Target:
    """What a mixture is matched to.

    Parameters
    ----------
    omega : float64 array (m, n)
        The frequencies.
    z : complex array (m,)
        The sketch.
    size : float
        The number N of rows.
    lower, upper : float64 arrays (n,)
        The box that the means stay in.
    noise_variance : float
        E |noise|^2 of the noise of a private release on each number of z.
    whitening : float64 array (2m, 2m) or None
        A root of the precision of all real and imaginary parts together; None if each frequency is
        weighted by its own precision.
    """

    omega: FloatArray
    z: ComplexArray
    size: float
    lower: FloatArray
    upper: FloatArray
    noise_variance: float = 0.0
    whitening: FloatArray | None = None

    @property
    def m(self) -> int:
        """The number of frequencies."""
        return len(self.z)

    @cached_property
    def precision(self) -> FloatArray:
        """u_j, one over the variance of z_j (m,)."""
        chance = np.maximum(1 - np.abs(self.z) ** 2, MIN_VARIANCE) / self.size
        return np.asarray(1 / (chance + self.noise_variance))

    def atoms(self, components: Components) -> ComplexArray:
        """psi_k(omega_j), complex (m, K)."""
        exponents = -1j * (self.omega @ components.means.T)
        exponents -= 0.5 * self._quadratics(components)
        return np.asarray(np.exp(exponents))

    def _quadratics(self, components: Components) -> FloatArray:
        """omega_j^T Sigma_k omega_j (m, K)."""
        if not components.has_matrices:
            return np.asarray(self.omega**2 @ components.covariances.T)
        forms = [
            np.einsum("ji,ji->j", self.omega @ own, self.omega) for own in components.covariances
        ]
        return np.stack(forms, axis=1)

    def residual(self, components: Components) -> ComplexArray:
        """z less the sketch of a mixture, complex (m,)."""
        return np.asarray(self.z - self.atoms(components) @ components.weights)

    def excess(self, residual: ComplexArray) -> float:
        """The mean of u_j |r_j|^2: about one where only chance is left."""
        if self.whitening is not None:
            whitened = self.whitening.T @ np.concatenate([residual.real, residual.imag])
            return float(whitened @ whitened / self.m)
        return float(self.precision @ np.abs(residual) ** 2 / self.m)

    def whitened_at(self, components: Components) -> "Target":
        """The same target, all frequencies weighted together: if rows were drawn from these
        components, chance would move features as their covariance says.
        """
        S = mixture_covariance(
            self.omega,
            components.weights,
            components.means,
            components.covariances,
            limit=_MAX_WHITENED,
        ).matrix
        noise = S / self.size
        ridge = _RIDGE * float(np.trace(noise)) / len(noise)
        noise[np.diag_indices_from(noise)] += self.noise_variance / 2 + ridge
        root = cholesky(noise, lower=True, check_finite=False)
        return replace(self, whitening=np.ascontiguousarray(dtrtri(root, lower=1)[0].T))


class Match(NamedTuple):
    """A mixture that was matched to a sketch.

    Parameters
    ----------
    components : Components
        The mixture.
    excess : float
        The mean of u_j |r_j|^2 of its residual r: about one where only chance is left.
    """

    components: Components
    excess: float


def match(target: Target, start: Components, shape: Shape, *, abort_above: float = np.inf) -> Match:
    """A mixture near `start` whose sketch is that of the data, as closely as its shape allows.

    It is given up early if its excess is still above `abort_above` after a few steps.
    """
    groups = _group(start, shape)
    state = _State(target, start, shape)
    if len(groups) == 1:
        state.descend(groups[0], _ABORT_CHECK_STEP)
        if state.excess <= abort_above:
            state.descend(groups[0], MAX_STEPS - _ABORT_CHECK_STEP)
        return Match(state.components, state.excess)
    everything = np.arange(len(start))
    for _ in range(MAX_SWEEPS):
        before = state.excess
        for group in groups:
            state.descend(group, _GROUP_STEPS)
        state.descend(everything, 2, weights_only=True)
        if before - state.excess < MIN_GAIN * before or state.excess > abort_above:
            break
    return Match(state.components, state.excess)


def refine(target: Target, found: Match, shape: Shape) -> Match:
    """A match after some more steps that weight all frequencies together, as the covariance of
    features says: no other weights come closer to the likelihood of a fit to the rows. It is the
    same match where there are too many frequencies, or where covariances are matrices.
    """
    if target.m > _MAX_WHITENED or shape.has_matrices:
        return found
    state = _State(target.whitened_at(found.components), found.components, shape)
    state.descend(np.arange(len(found.components)), _WHITENED_STEPS)
    return Match(state.components, target.excess(target.residual(state.components)))


def _group(components: Components, shape: Shape) -> list[IntArray]:
    """Components in groups of neighbours, so that each has at most `MAX_TOGETHER` numbers."""
    K = len(components)
    widths = _count_shape_numbers(shape, components.n)
    shared = widths if shape.covariance_type == "tied" else 0
    per_component = 1 + components.n + widths - shared
    size = max(1, (MAX_TOGETHER - shared) // per_component)
    count = -(-K // size)
    if count == 1:
        return [np.arange(K)]
    # In order along the axis on which the means differ most.
    centred = components.means - components.means.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    return [np.asarray(part) for part in np.array_split(np.argsort(centred @ axis), count)]


def _count_shape_numbers(shape: Shape, n: int) -> int:
    if shape.has_matrices:
        return n * (n + 1) // 2
    return 1 if shape.covariance_type == "spherical" else n


class _State:
    """A mixture on its way, with its residual and the damping of its next step."""

    def __init__(self, target: Target, components: Components, shape: Shape) -> None:
        self.target = target
        self.components = components
        self.shape = shape
        self.residual = target.residual(components)
        self.excess = target.excess(self.residual)

    def descend(self, group: IntArray, steps: int, *, weights_only: bool = False) -> None:
        """Steps that move the components of a group, until they gain little."""
        damping = _FIRST_DAMPING
        stalled = 0
        for _ in range(steps):
            before = self.excess
            H, g = self._equations(group, weights_only)
            while damping < _MAX_DAMPING and not self._try(group, H, g, damping, weights_only):
                damping *= _DAMPING_FACTOR
            # One step may gain little because covariances change by limited factors.
            stalled = stalled + 1 if self.excess >= before * (1 - MIN_GAIN) else 0
            if stalled == _MAX_STALLED or damping >= _MAX_DAMPING:
                return
            damping = max(_MIN_DAMPING, damping / _DAMPING_FACTOR)

    def _equations(self, group: IntArray, weights_only: bool) -> tuple[FloatArray, FloatArray]:
        """H = J^T u J and g = J^T u r for the Jacobian J of the sketch in what is moved."""
        target = self.target
        some = _some(self.components, group)
        atoms = target.atoms(some)
        K, n = some.means.shape
        widths = 0 if weights_only else _count_shape_numbers(self.shape, n)
        is_tied = self.shape.covariance_type == "tied"
        p = K if weights_only else K * (1 + n) + (widths if is_tied else K * widths)
        H = np.zeros((p, p))
        g = np.zeros(p)
        size = max(1, _BLOCK_NUMBERS // (2 * p))
        for low in range(0, target.m, size):
            block = slice(low, low + size)
            root = np.ones((target.m, 1))
            if target.whitening is None:
                root = np.sqrt(target.precision[block])[:, None]
            own = root * atoms[block]
            # In float32: a step need not be exact, only the residual that judges it.
            J = np.empty((2, len(own), p), np.float32)
            _fill(J, slice(0, K), own)
            if not weights_only:
                weighted = own * some.weights
                omega = target.omega[block]
                by_width = -0.5 * (weighted.sum(axis=1, keepdims=True) if is_tied else weighted)
                _fill_products(J, slice(K, K + K * n), -1j * weighted, omega)
                products = _frequency_products(omega, self.shape)
                _fill_products(J, slice(K + K * n, p), by_width, products)
            r = root[:, 0] * self.residual[block]
            stacked: FloatArray | Float32Array = J.reshape(-1, p)
            if target.whitening is not None:
                stacked = target.whitening.T @ stacked
            H += stacked.T @ stacked
            own_r = np.concatenate([r.real, r.imag])
            g += stacked.T @ (own_r if target.whitening is None else target.whitening.T @ own_r)
        return H, g

    def _try(
        self, group: IntArray, H: FloatArray, g: FloatArray, damping: float, weights_only: bool
    ) -> bool:
        """Whether a step with this damping lowers the cost; it is made if it does."""
        step = _solve(H, g, damping, len(group))
        if step is None:
            return False
        old = _some(self.components, group)
        new = self._stepped(old, step, weights_only)
        if new is None:
            return False
        residual = (
            self.residual
            + self.target.atoms(old) @ old.weights
            - self.target.atoms(new) @ new.weights
        )
        components = _with(self.components, group, new, self.shape)
        if self.shape.covariance_type == "tied" and len(group) < len(components):
            residual = self.target.residual(components)
        excess = self.target.excess(residual)
        if not excess < self.excess:
            return False
        self.components = components
        self.residual = residual
        self.excess = excess
        return True

    def _stepped(self, old: Components, step: FloatArray, weights_only: bool) -> Components | None:
        """Components after a step: weights positive, means in the box, covariances that change by
        limited factors and stay above the floor.
        """
        K, n = old.means.shape
        weights = np.maximum(old.weights + step[:K], _MIN_WEIGHT)
        weights *= old.weights.sum() / weights.sum()
        if weights_only:
            return Components(weights, old.means, old.covariances)
        means = old.means + step[K : K + K * n].reshape(K, n)
        means = np.clip(means, self.target.lower, self.target.upper)
        moved = old.covariances + _unpack(step[K + K * n :], K, n, self.shape)
        if not np.isfinite(moved).all():
            return None
        return Components(weights, means, _limited(moved, old, self.shape))


def _fill(J: Float32Array, columns: slice, values: ComplexArray) -> None:
    """Write complex values (b, c) into columns of a Jacobian (2, b, p)."""
    J[0, :, columns] = values.real
    J[1, :, columns] = values.imag


def _fill_products(
    J: Float32Array, columns: slice, atoms: ComplexArray, factors: FloatArray
) -> None:
    """Write each atom (b, K) times each factor (b, q) into K q columns of a Jacobian."""
    some = factors.astype(np.float32)[:, None, :]
    for part, values in zip(J, (atoms.real, atoms.imag), strict=True):
        part[:, columns] = (values.astype(np.float32)[:, :, None] * some).reshape(len(some), -1)


def _frequency_products(omega: FloatArray, shape: Shape) -> FloatArray:
    """What the numbers of a covariance are multiplied by in omega^T Sigma omega (b, q)."""
    if shape.covariance_type == "diag":
        return np.asarray(omega**2)
    if shape.covariance_type == "spherical":
        return np.asarray((omega**2).sum(axis=1, keepdims=True))
    i, j = np.triu_indices(omega.shape[1])
    return np.asarray(omega[:, i] * omega[:, j] * np.where(i == j, 1.0, 2.0))


def _unpack(step: FloatArray, K: int, n: int, shape: Shape) -> FloatArray:
    """The change of the covariances that a step says."""
    if shape.covariance_type == "diag":
        return step.reshape(K, n)
    if shape.covariance_type == "spherical":
        return np.repeat(step[:, None], n, axis=1)
    i, j = np.triu_indices(n)
    packed = step.reshape(-1, len(i))
    matrices = np.empty((len(packed), n, n))
    matrices[:, i, j] = packed
    matrices[:, j, i] = packed
    return np.asarray(np.broadcast_to(matrices, (K, n, n)))


def _limited(moved: FloatArray, old: Components, shape: Shape) -> FloatArray:
    """Covariances within limited factors of the old ones and above the floor."""
    if not old.has_matrices:
        own = old.covariances
        return np.maximum(np.clip(moved, _SHRINKAGE * own, _GROWTH * own), shape.floor)
    relative = old.whiteners @ moved @ np.swapaxes(old.whiteners, 1, 2)
    values, vectors = np.linalg.eigh((relative + np.swapaxes(relative, 1, 2)) / 2)
    roots = old.roots @ (vectors * np.sqrt(np.clip(values, _SHRINKAGE, _GROWTH))[:, None, :])
    unit = np.sqrt(shape.floor)
    in_floors = roots / unit[:, None]
    values, vectors = np.linalg.eigh(in_floors @ np.swapaxes(in_floors, 1, 2))
    roots = unit[:, None] * vectors * np.sqrt(np.maximum(values, 1.0))[:, None, :]
    return np.asarray(roots @ np.swapaxes(roots, 1, 2))


def _solve(H: FloatArray, g: FloatArray, damping: float, K: int) -> FloatArray | None:
    """The step of (H + damping diag H) step = g whose first K numbers sum to zero."""
    diagonal = np.diag(H)
    largest = float(diagonal.max())
    if not _MIN_CURVATURE < largest < np.inf:
        # Components so wide that no frequency sees them.
        return None
    scale = 1 / np.sqrt(np.maximum(diagonal, _RELATIVE_CURVATURE * largest))
    matrix = H * scale[:, None] * scale
    matrix[np.diag_indices(len(matrix))] += damping
    ones = np.zeros(len(g))
    ones[:K] = 1.0
    try:
        found = np.linalg.solve(matrix, scale[:, None] * np.stack([g, ones], axis=1))
    except np.linalg.LinAlgError:
        return None
    step, along = (scale[:, None] * found).T
    return np.asarray(step - along * (step[:K].sum() / along[:K].sum()))


def _some(components: Components, group: IntArray) -> Components:
    return Components(
        components.weights[group], components.means[group], components.covariances[group]
    )


def _with(components: Components, group: IntArray, new: Components, shape: Shape) -> Components:
    """The mixture with the components of a group replaced."""
    weights = components.weights.copy()
    means = components.means.copy()
    covariances = components.covariances.copy()
    weights[group] = new.weights
    means[group] = new.means
    covariances[group] = new.covariances
    if shape.covariance_type == "tied":
        covariances[:] = new.covariances[0]
    return Components(weights, means, covariances)
