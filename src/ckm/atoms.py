"""The objectives of the decoder, with exact gradients: the cost of equation (4) and the correlation of step 1.

A Dirac at c has the sketch a(c) = exp(-i Omega c), an *atom*, whose norm is sqrt(m) whatever c is. Everything here is in the coordinates
of a `Problem`: relative to the sketch's origin and in units of sigma, so that decoding does not depend on the data's place or units.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, nnls

from ckm.readonly import Array
from ckm.sketches import Sketch


@dataclass(frozen=True, eq=False)
class Problem:
    """Find atoms whose mixture has the sketch z.

    Parameters
    ----------
    omega : float64 array (m, n)
        Frequencies, times sigma.
    z : complex array (m,)
        The data's sketch.
    lower, upper : float64 arrays (n,)
        The box that holds the data.
    """

    omega: Array
    z: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, sketch: Sketch) -> "Problem":
        """The problem that a sketch poses."""
        sigma = np.sqrt(sketch.frequencies.scale)
        lower, upper = ((bound - sketch.frequencies.origin) / sigma for bound in (sketch.lower, sketch.upper))
        return cls(sketch.frequencies.omega * sigma, sketch.z, lower, upper)

    @property
    def m(self) -> int:
        """The number of frequencies."""
        return len(self.z)


def atoms(omega: Array, C: Array) -> Array:
    """The sketches of Diracs at the rows of C: exp(-i C Omega^T), complex (K, m)."""
    phases = C @ omega.T
    a: Array = np.cos(phases) - 1j * np.sin(phases)
    return a


def residual(problem: Problem, C: Array, alpha: Array) -> Array:
    """r = z - sum_k alpha_k a(c_k)."""
    r: Array = problem.z - alpha @ atoms(problem.omega, C)
    return r


def correlation(problem: Problem, r: Array, c: Array) -> tuple[float, Array]:
    """Re <a(c)/|a(c)|, r> and its gradient in c (step 1 of Algorithm 1)."""
    phase = problem.omega @ c
    cosine, sine = np.cos(phase), np.sin(phase)
    root_m = np.sqrt(problem.m)
    value = (cosine @ r.real - sine @ r.imag) / root_m
    gradient = -(sine * r.real + cosine * r.imag) @ problem.omega / root_m
    return float(value), gradient


def cost(problem: Problem, C: Array, alpha: Array) -> tuple[float, Array, Array]:
    """|z - sum_k alpha_k a(c_k)|^2 (equation 4) and its gradients in C (K, n) and alpha (K,)."""
    phases = C @ problem.omega.T
    cosines, sines = np.cos(phases), np.sin(phases)
    real = problem.z.real - alpha @ cosines
    imag = problem.z.imag + alpha @ sines
    gradient_alpha = 2 * (sines @ imag - cosines @ real)
    sines *= real
    cosines *= imag
    sines += cosines
    gradient_C = (2 * alpha)[:, None] * (sines @ problem.omega)
    return float(real @ real + imag @ imag), gradient_C, gradient_alpha


def fit_weights(problem: Problem, C: Array) -> Array:
    """argmin over alpha >= 0 of |z - sum_k alpha_k a(c_k)|: non-negative least squares (steps 3 and 4)."""
    A = atoms(problem.omega, C)
    alpha, _ = nnls(np.concatenate([A.real, A.imag], axis=1).T, np.concatenate([problem.z.real, problem.z.imag]))
    return np.asarray(alpha)


def maximise_correlation(problem: Problem, r: Array, start: Array) -> Array:
    """Climb from `start` to a local maximum of the correlation inside the box (step 1)."""

    def descend(c: Array) -> tuple[float, Array]:
        value, gradient = correlation(problem, r, c)
        return -value, -gradient

    box = list(zip(problem.lower, problem.upper, strict=True))
    return np.asarray(minimize(descend, start, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 100}).x)


def minimise_cost(problem: Problem, C: Array, alpha: Array) -> tuple[Array, Array]:
    """Descend the cost over all centroids, kept in the box, and weights, kept non-negative (step 5)."""
    K, n = C.shape

    def descend(x: Array) -> tuple[float, Array]:
        # Weights are counted in units of 1/K, so that a step in them is as long as one in coordinates: half as many evaluations.
        value, gradient_C, gradient_alpha = cost(problem, x[: K * n].reshape(K, n), x[K * n :] / K)
        return value, np.concatenate([gradient_C.ravel(), gradient_alpha / K])

    box = list(zip(problem.lower, problem.upper, strict=True)) * K + [(0, None)] * K
    options = {"maxiter": 200, "maxfun": 400, "ftol": 1e-9, "gtol": 1e-7}
    x = minimize(descend, np.concatenate([C.ravel(), alpha * K]), jac=True, method="L-BFGS-B", bounds=box, options=options).x
    return x[: K * n].reshape(K, n), x[K * n :] / K
