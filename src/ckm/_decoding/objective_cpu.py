"""The objective on the CPU: cost and gradients of a mixture, all atoms at once, in blocks of
frequencies.

Phases are products with Omega (`operator.py`). The rest is compiled: small leaves on
one-dimensional slices, which is the shape that LLVM vectorises. They compute in the precision of
Omega: float32 vectors hold twice as many numbers and need half the terms of a polynomial.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ckm._decoding.atom_loops import (
    add_atom,
    blur_residual,
    differentiate_atom,
    differentiate_gaussian,
    square,
    subtract_gaussian,
)
from ckm._decoding.objective import Objective, blur
from ckm._decoding.operator import Omega
from ckm._decoding.waves import wave
from ckm._util.arrays import Array, ComplexArray, FloatArray
from ckm._util.jit import entry, summing


@dataclass(frozen=True, eq=False)
class CpuObjective(Objective):
    """Mixtures against a sketch z (m,) with the frequencies Omega, by compiled loops in the
    precision of Omega.
    """

    omega: Omega
    z: ComplexArray

    @cached_property
    def _parts(self) -> tuple[Array, Array]:
        """Real and imaginary part of z, each contiguous."""
        dtype = self.omega.dtype
        return np.ascontiguousarray(self.z.real, dtype), np.ascontiguousarray(self.z.imag, dtype)

    def blurred_cost(
        self, C: FloatArray, alpha: FloatArray, width: float
    ) -> tuple[float, FloatArray, FloatArray, float]:
        omega = self.omega
        C = np.ascontiguousarray(C, omega.dtype)
        alpha = np.ascontiguousarray(alpha, omega.dtype)
        K = len(C)
        z_real, z_imag = self._parts
        fading = blur(omega, width)
        squares = omega.squared_norms
        prepared = omega.prepare(C)
        sums = omega.zeros(K)
        by_alpha = np.zeros(K)
        total = 0.0
        slope = 0.0
        for block in omega.blocks(K):
            phases = omega.phases(prepared, K, block)
            part, rise = _match(
                phases,
                z_real[block],
                z_imag[block],
                fading[block],
                squares[block],
                alpha,
                by_alpha,
                _workspace(phases),
            )
            # The phases now hold the derivative in the phases.
            omega.accumulate(phases, block, sums)
            total += part
            slope += rise
        by_C = 4 * np.pi * alpha[:, None] * omega.finish(sums, K)
        return total, by_C, -2 * by_alpha, slope

    def gaussian_cost(
        self, C: FloatArray, alpha: FloatArray, widths: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        omega = self.omega
        C = np.ascontiguousarray(C, omega.dtype)
        alpha = np.ascontiguousarray(alpha, omega.dtype)
        widths = np.ascontiguousarray(widths, omega.dtype)
        K = len(C)
        z_real, z_imag = self._parts
        prepared = omega.prepare(C)
        sums = omega.zeros(K)
        by_alpha = np.zeros(K)
        by_widths = np.zeros(C.shape)
        total = 0.0
        for block in omega.blocks(K):
            phases = omega.phases(prepared, K, block)
            half_squares = omega.half_squares[:, block]
            exponents = widths @ half_squares
            total += _match_gaussians(
                phases,
                exponents,
                z_real[block],
                z_imag[block],
                alpha,
                by_alpha,
                _workspace(phases),
            )
            # Phases and exponents now hold the derivatives in them.
            omega.accumulate(phases, block, sums)
            by_widths += exponents @ half_squares.T
        by_C = 4 * np.pi * alpha[:, None] * omega.finish(sums, K)
        return total, by_C, -2 * by_alpha, 2 * alpha[:, None] * by_widths

    def residual(self, C: FloatArray, alpha: FloatArray, width: float = 0.0) -> ComplexArray:
        omega = self.omega
        K = len(C)
        alpha = np.ascontiguousarray(alpha, omega.dtype)
        prepared = omega.prepare(np.ascontiguousarray(C, omega.dtype))
        model = np.zeros(len(self.z), np.complex128)
        for block in omega.blocks(max(K, 1)):
            phases = omega.phases(prepared, K, block)
            sums = np.zeros((2, phases.shape[1]), phases.dtype)
            _sum_atoms(phases, alpha, sums)
            model[block] = sums[0] + 1j * sums[1]
        r: ComplexArray = self.z - blur(omega, width) * model
        return r

    def correlations(self, points: FloatArray, r: ComplexArray) -> FloatArray:
        K = len(points)
        r_real = np.ascontiguousarray(r.real, self.omega.dtype)
        r_imag = np.ascontiguousarray(r.imag, self.omega.dtype)
        prepared = self.omega.prepare(np.ascontiguousarray(points, self.omega.dtype))
        totals = np.zeros(K)
        for block in self.omega.blocks(K):
            phases = self.omega.phases(prepared, K, block)
            _correlate(phases, r_real[block], r_imag[block], totals)
        return totals

    def correlation_slopes(
        self, points: FloatArray, r: ComplexArray
    ) -> tuple[FloatArray, FloatArray]:
        omega = self.omega
        K = len(points)
        r_real = np.ascontiguousarray(r.real, omega.dtype)
        r_imag = np.ascontiguousarray(r.imag, omega.dtype)
        prepared = omega.prepare(np.ascontiguousarray(points, omega.dtype))
        sums = omega.zeros(K)
        totals = np.zeros(K)
        for block in omega.blocks(K):
            phases = omega.phases(prepared, K, block)
            _correlate_slopes(phases, r_real[block], r_imag[block], totals)
            omega.accumulate(phases, block, sums)
        return totals, -2 * np.pi * omega.finish(sums, K)

    def reduced_equations(self, C: FloatArray, width: float = 0.0) -> tuple[FloatArray, FloatArray]:
        phases = 2 * np.pi * self.omega.all_phases(C)
        fading = blur(self.omega, width)
        z_real, z_imag = self._parts
        real = np.vstack([fading * np.cos(phases), z_real])
        imag = np.vstack([fading * -np.sin(phases), z_imag])
        # |b - A alpha| is not changed by the orthogonal factor of [A b].
        R = np.asarray(np.linalg.qr(np.concatenate([real, imag], axis=1).T, mode="r"))
        return R[:, :-1], R[:, -1]


def _workspace(phases: FloatArray) -> FloatArray:
    """Memory for the cosines and sines of every atom, and for real and imaginary part of the
    residual.
    """
    K, size = phases.shape
    return np.empty((2, K + 1, size), phases.dtype)


@entry
def _correlate(phases, real, imag, totals):  # type: ignore[no-untyped-def]
    """Add Re <a(c), r> of one block to the totals of every point."""
    for k in range(len(totals)):
        totals[k] += _dot_atom(phases[k], real, imag)


@entry
def _correlate_slopes(phases, real, imag, totals):  # type: ignore[no-untyped-def]
    """The same, and replace the phases by the derivative in them, negated and per radian."""
    for k in range(len(totals)):
        totals[k] += _differentiate_correlation(real, imag, phases[k])


@entry
def _sum_atoms(phases, alpha, sums):  # type: ignore[no-untyped-def]
    """Add real and imaginary part of sum_k alpha_k a(c_k) to two lines of sums."""
    for k in range(len(alpha)):
        _add_wave(alpha[k], phases[k], sums[0], sums[1])


@entry
def _match(  # type: ignore[no-untyped-def]
    phases, z_real, z_imag, blur, squares, alpha, by_alpha, workspace
):
    """One block: add Re <a_k, r> to `by_alpha`, and replace the phases, in turns, by the gradient
    in them divided by 4 pi alpha_k; return the squared residual and its derivative in the width.
    """
    K = len(alpha)
    cosines = workspace[0]
    sines = workspace[1]
    real = workspace[0, K]
    imag = workspace[1, K]
    for j in range(len(blur)):
        real[j] = 0.0
        imag[j] = 0.0
    for k in range(K):
        add_atom(alpha[k], phases[k], cosines[k], sines[k], real, imag)
    total, slope = blur_residual(z_real, z_imag, blur, squares, real, imag)
    for k in range(K):
        by_alpha[k] += differentiate_atom(real, imag, cosines[k], sines[k], phases[k])
    return total, slope


@entry
def _match_gaussians(  # type: ignore[no-untyped-def]
    phases, exponents, z_real, z_imag, alpha, by_alpha, workspace
):
    """The same for Gaussians; the exponents of their decay are replaced by the gradient in them
    divided by 2 alpha_k.
    """
    K = len(alpha)
    cosines = workspace[0]
    sines = workspace[1]
    real = workspace[0, K]
    imag = workspace[1, K]
    for j in range(len(z_real)):
        real[j] = z_real[j]
        imag[j] = z_imag[j]
    for k in range(K):
        subtract_gaussian(alpha[k], phases[k], exponents[k], cosines[k], sines[k], real, imag)
    for k in range(K):
        by_alpha[k] += differentiate_gaussian(
            real, imag, cosines[k], sines[k], phases[k], exponents[k]
        )
    return square(real) + square(imag)


@summing
def _dot_atom(phases, real, imag):  # type: ignore[no-untyped-def]
    total = real.dtype.type(0)
    for j in range(len(phases)):
        c, s = wave(phases[j])
        total += c * real[j] - s * imag[j]
    return total


@summing
def _differentiate_correlation(real, imag, phases):  # type: ignore[no-untyped-def]
    total = real.dtype.type(0)
    for j in range(len(phases)):
        c, s = wave(phases[j])
        total += c * real[j] - s * imag[j]
        phases[j] = s * real[j] + c * imag[j]
    return total


@summing
def _add_wave(a, phases, real, imag):  # type: ignore[no-untyped-def]
    for j in range(len(phases)):
        c, s = wave(phases[j])
        real[j] += a * c
        imag[j] -= a * s
