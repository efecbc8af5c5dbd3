"""Fit K Gaussians of one shape to a sketch: Gauss-Newton steps on the whitened residual.

J is ill-conditioned, because chance moves some combinations of frequencies thousands of times less
than others: a descent along gradients ends at several times its minimum once there are many rows.
Near the minimum the sketch of the components is linear in their parameters, and two or three steps
of least squares reach it (Levenberg, 1944; Marquardt, 1963).

The shape W follows the means and shares (`one_shape`), and so do the derivatives: in the frame in
which W is the identity, with a_kj the atoms, D_k the means around that of the data and
h_j = sum_k alpha_k t_k a_kj,

    d psi_j / d mu_k    = alpha_k (-i a_kj + h_j (omega_j . D_k)) omega_j
    d psi_j / d alpha_k = a_kj + h_j ((omega_j . D_k)^2 - sum_l alpha_l (omega_j . D_l)^2) / 2
    d psi_j / d t_k     = -alpha_k a_kj |omega_j|^2 / 2
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ckm._analysis.one_shape import MAX_WIDTH, MIN_WIDTH, OneShapeMixture, tied_components
from ckm._decoding.problem import Problem
from ckm._util.arrays import ComplexArray, FloatArray

# Steps at most, and those tried with more and more damping before the fit ends.
_STEPS = 8
_TRIALS = 5
# Damping of the first step, as a share of the curvature along each parameter, and the factor by
# which it grows after a step that does not help and shrinks after one that does.
_DAMPING = 1e-3
_DAMPING_FACTOR = 10.0
_MIN_DAMPING = 1e-6
# Gain of a step, as a share of J, that ends the fit.
_GAIN = 1e-3
# A fit ends, too, where so many more steps that gain as much would not be enough.
_MORE_STEPS = 4.0
# Standard deviations within clusters that a mean may move in one step, and the factor by which a
# width may change.
_MAX_MOVE = 1.0
_MAX_GROWTH = 2.0


@dataclass(frozen=True, eq=False)
class Target:
    """The numbers that are fitted.

    Parameters
    ----------
    problem : Problem
        The sketch, whose moments give the shape.
    omega : float64 array (s, n)
        The frequencies, in the coordinates of the problem.
    z : complex array (s,)
        The sketch there.
    whitening : float64 array (2s, 2s)
        The transpose of a root of the precision: J = |r whitening|^2.
    fits_means : bool
        Whether means are fitted, and not shares and widths alone.
    """

    problem: Problem
    omega: FloatArray
    z: ComplexArray
    whitening: FloatArray
    fits_means: bool


def misfit(target: Target, components: OneShapeMixture) -> float:
    """J of these components."""
    return FittedPoint(target, components).value


def fit(target: Target, start: OneShapeMixture, enough: float) -> tuple[OneShapeMixture, float]:
    """Components near `start` of a smaller J, and that J.

    A fit ends once J is at most `enough`, or where it is far from getting there.
    """
    point = FittedPoint(target, start)
    damping = _DAMPING
    for _ in range(_STEPS):
        found, damping = _step(target, point, damping)
        gain = point.value - found.value
        point = found
        is_far = point.value - _MORE_STEPS * gain > enough
        if point.value <= enough or gain <= _GAIN * point.value or is_far:
            break
    return point.components, point.value


def _step(target: Target, point: "FittedPoint", damping: float) -> tuple["FittedPoint", float]:
    """A better point, or the same one, and the damping of the next step."""
    rows = point.derivatives() @ target.whitening
    curvature = rows @ rows.T
    slope = rows @ point.whitened
    diagonal = np.diagonal(curvature)
    floor = np.finfo(float).eps * diagonal.max()
    for _ in range(_TRIALS):
        damped = curvature + np.diag(damping * diagonal + floor)
        try:
            step = cho_solve(cho_factor(damped, check_finite=False), slope, check_finite=False)
        except LinAlgError:
            damping *= _DAMPING_FACTOR
            continue
        found = FittedPoint(target, point.moved(step))
        if found.value < point.value:
            return found, max(damping / _DAMPING_FACTOR, _MIN_DAMPING)
        damping *= _DAMPING_FACTOR
    return point, damping


class FittedPoint:
    """Components, and their sketch against the target."""

    def __init__(self, target: Target, components: OneShapeMixture) -> None:
        self._target = target
        self.components = components
        self._omega = target.omega @ components.root
        self._half_squares = (self._omega**2).sum(axis=1) / 2
        phases = components.means @ self._omega.T
        fading = np.exp(-components.widths[:, None] * self._half_squares)
        self._real = fading * np.cos(phases)
        self._imaginary = -fading * np.sin(phases)
        shares = components.shares
        r_real = target.z.real - shares @ self._real
        r_imaginary = target.z.imag - shares @ self._imaginary
        self.whitened = np.concatenate([r_real, r_imaginary]) @ target.whitening
        self.value = float(self.whitened @ self.whitened)

    def derivatives(self) -> FloatArray:
        """Derivatives of the sketch by means, shares and widths (p, 2s), as in the module's
        formulas.
        """
        target = self._target
        omega = self._omega
        components = self.components
        K, n = components.means.shape
        s = len(omega)
        shares = components.shares[:, None]
        by = np.empty((K * n + 2 * K, 2, s))
        D = components.means - np.linalg.solve(components.root, target.problem.mean)
        is_full = target.problem.covariance.is_full
        along = D @ omega.T
        squares = along**2 if is_full else D**2 @ (omega**2).T
        # W is of shares that sum to one.
        squares = squares - components.shares @ squares / components.shares.sum()
        # -i a has the real part Im a and the imaginary part -Re a.
        turned = (self._imaginary, -self._real)
        for part, atoms in enumerate((self._real, self._imaginary)):
            h = (components.shares * components.widths) @ atoms
            by_means = by[: K * n, part].reshape(K, n, s)
            if is_full:
                np.multiply((shares * (turned[part] + h * along))[:, None], omega.T, out=by_means)
            else:
                np.multiply((shares * turned[part])[:, None], omega.T, out=by_means)
                by_means += (shares * D)[:, :, None] * (h * omega.T**2)
            by[K * n : -K, part] = atoms + h * squares / 2
            by[-K:, part] = -shares * atoms * self._half_squares
        chosen = by if target.fits_means else by[K * n :]
        return chosen.reshape(len(chosen), 2 * s)

    def moved(self, step: FloatArray) -> OneShapeMixture:
        """The components after a step, within bounds."""
        components = self.components
        K, n = components.means.shape
        means = components.means
        if self._target.fits_means:
            means = means + step[: K * n].reshape(K, n).clip(-_MAX_MOVE, _MAX_MOVE)
        shares = (components.shares + step[-2 * K : -K]).clip(0, 1)
        widths = components.widths
        widths = (widths + step[-K:]).clip(widths / _MAX_GROWTH, widths * _MAX_GROWTH)
        return tied_components(
            self._target.problem,
            means @ components.root.T,
            shares,
            widths.clip(MIN_WIDTH, MAX_WIDTH),
        )
