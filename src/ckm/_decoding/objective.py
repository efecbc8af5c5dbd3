"""The objective of equation (4), |z - sum_k alpha_k a(c_k)|^2, behind one interface.

A Dirac at c has the sketch a(c) = exp(-i Omega c), an *atom*, whose norm is sqrt(m) for every c. A
cluster has width: a Gaussian of variance w around c has the *blurred* atom
a(c) exp(-w |omega|^2 / 2). Everything is in the coordinates of a `Problem`: relative to the
sketch's origin and in units of sigma.

`CpuObjective` and `GpuObjective` evaluate mixtures of many atoms; `Problem.objective` chooses
between them once per problem.
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.optimize import lsq_linear, nnls

from ckm._decoding.operator import Omega
from ckm._util.arrays import ComplexArray, FloatArray


class Objective(ABC):
    """Costs of mixtures against one sketch z (m,), with exact gradients."""

    @abstractmethod
    def blurred_cost(
        self, C: FloatArray, alpha: FloatArray, width: float
    ) -> tuple[float, FloatArray, FloatArray, float]:
        """|z - sum_k alpha_k a(c_k) exp(-width |omega|^2 / 2)|^2 and its gradients in C (K, n),
        alpha (K,) and the width.
        """

    @abstractmethod
    def gaussian_cost(
        self, C: FloatArray, alpha: FloatArray, widths: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """|z - sum_k alpha_k a(c_k) exp(-widths_k . omega^2 / 2)|^2 and its gradients in C (K, n),
        alpha (K,) and the widths (K, n).
        """

    @abstractmethod
    def residual(self, C: FloatArray, alpha: FloatArray, width: float = 0.0) -> ComplexArray:
        """r = z - sum_k alpha_k a(c_k) exp(-width |omega|^2 / 2), (m,)."""

    @abstractmethod
    def correlations(self, points: FloatArray, r: ComplexArray) -> FloatArray:
        """Re <a(c), r> for every row c of `points`."""

    @abstractmethod
    def correlation_slopes(
        self, points: FloatArray, r: ComplexArray
    ) -> tuple[FloatArray, FloatArray]:
        """Re <a(c), r> for every row c of `points`, and the gradient of each in c."""

    @abstractmethod
    def reduced_equations(self, C: FloatArray, width: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """A (K + 1, K) and b with |b - A alpha| = |z - sum_k alpha_k a(c_k)| for all alpha, instead
        of 2 m equations.
        """

    def cost(self, C: FloatArray, alpha: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """|z - sum_k alpha_k a(c_k)|^2 (equation 4) and its gradients in C and alpha."""
        return self.blurred_cost(C, alpha, 0.0)[:3]

    def fit_weights(self, C: FloatArray, width: float = 0.0) -> FloatArray:
        """argmin over alpha >= 0 of |z - sum_k alpha_k a(c_k)| (steps 3 and 4 of Algorithm 1)."""
        return solve_nonnegative(*self.reduced_equations(C, width))


def solve_nonnegative(A: FloatArray, b: FloatArray) -> FloatArray:
    """argmin over alpha >= 0 of |b - A alpha|."""
    try:
        return np.asarray(nnls(A, b)[0])
    except RuntimeError:
        # It gives up where columns of A are nearly the same.
        return np.asarray(lsq_linear(A, b, bounds=(0, np.inf)).x)


def atoms(omega: Omega, C: FloatArray) -> ComplexArray:
    """The sketches of Diracs at the rows of C: exp(-i C Omega^T), complex (K, m)."""
    phases = 2 * np.pi * omega.all_phases(C)
    a: ComplexArray = np.cos(phases) - 1j * np.sin(phases)
    return a


def blur(omega: Omega, width: float) -> FloatArray:
    """What a Gaussian of this variance does to an atom: exp(-width |omega_j|^2 / 2), (m,)."""
    return np.asarray(np.exp(-0.5 * width * omega.squared_norms))


def correlation(omega: Omega, r: ComplexArray, c: FloatArray) -> tuple[float, FloatArray]:
    """Re <a(c)/|a(c)|, r> and its gradient in c (step 1 of Algorithm 1)."""
    phase = 2 * np.pi * omega.all_phases(c[None])[0]
    cosine = np.cos(phase)
    sine = np.sin(phase)
    root_m = np.sqrt(omega.shape[0])
    value = (cosine @ r.real - sine @ r.imag) / root_m
    by_phase = sine * r.real + cosine * r.imag
    gradient = omega.back_project(by_phase[None])[0] * (-2 * np.pi / root_m)
    return float(value), gradient
