"""The objective on the CPU: cost and gradients of a mixture, all atoms at once, in blocks of
frequencies.

Phases are products with Omega (`operator.py`). The rest is compiled: small leaves on
one-dimensional slices, which is the shape that LLVM vectorises.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ckm._decoding.objective import Objective, atoms, blur
from ckm._decoding.operator import Omega
from ckm._util.arrays import ComplexArray, FloatArray
from ckm._util.jit import entry, summing

# Polynomials in q = r^2 for cos(2 pi r) and sin(2 pi r) / r on |r| <= 1/2: interpolated at
# Chebyshev points, good to 1e-13 with 12 terms.
_TERMS = 12


def _polynomial(function: Callable[[FloatArray], FloatArray]) -> tuple[float, ...]:
    nodes = (np.cos(np.pi * (np.arange(64) + 0.5) / 64) + 1) / 8
    values = function(np.sqrt(nodes))
    fit = np.polynomial.Chebyshev.fit(nodes, values, _TERMS - 1, domain=[0, 0.25])
    return tuple(float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11 = _polynomial(
    lambda r: np.cos(2 * np.pi * r)
)
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8, _S9, _S10, _S11 = _polynomial(
    lambda r: np.sin(2 * np.pi * r) / r
)


@dataclass(frozen=True, eq=False)
class CpuObjective(Objective):
    """Mixtures against a sketch z (m,) with the frequencies Omega, by compiled loops."""

    omega: Omega
    z: ComplexArray

    @cached_property
    def _parts(self) -> tuple[FloatArray, FloatArray]:
        """Real and imaginary part of z, each contiguous."""
        return np.ascontiguousarray(self.z.real), np.ascontiguousarray(self.z.imag)

    def blurred_cost(
        self, C: FloatArray, alpha: FloatArray, width: float
    ) -> tuple[float, FloatArray, FloatArray, float]:
        C = np.ascontiguousarray(C, np.float64)
        alpha = np.ascontiguousarray(alpha, np.float64)
        omega = self.omega
        K = len(C)
        z_real, z_imag = self._parts
        decay = blur(omega, width)
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
                decay[block],
                omega.squared_norms[block],
                alpha,
                by_alpha,
                _workspace(phases),
            )
            # The phases now hold the gradient in the phases.
            omega.accumulate(phases, block, sums)
            total += part
            slope += rise
        return total, omega.finish(sums, K), by_alpha, slope

    def gaussian_cost(
        self, C: FloatArray, alpha: FloatArray, widths: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        C = np.ascontiguousarray(C, np.float64)
        alpha = np.ascontiguousarray(alpha, np.float64)
        widths = np.ascontiguousarray(widths, np.float64)
        omega = self.omega
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
            # Phases and exponents now hold the gradients in them.
            omega.accumulate(phases, block, sums)
            by_widths += exponents @ half_squares.T
        return total, omega.finish(sums, K), by_alpha, by_widths

    def residual(self, C: FloatArray, alpha: FloatArray, width: float = 0.0) -> ComplexArray:
        r: ComplexArray = self.z - blur(self.omega, width) * (alpha @ atoms(self.omega, C))
        return r

    def correlations(self, points: FloatArray, r: ComplexArray) -> FloatArray:
        K = len(points)
        r_real = np.ascontiguousarray(r.real)
        r_imag = np.ascontiguousarray(r.imag)
        prepared = self.omega.prepare(np.ascontiguousarray(points))
        totals = np.zeros(K)
        for block in self.omega.blocks(K):
            phases = self.omega.phases(prepared, K, block)
            _correlate(phases, r_real[block], r_imag[block], totals)
        return totals

    def reduced_equations(self, C: FloatArray, width: float = 0.0) -> tuple[FloatArray, FloatArray]:
        phases = 2 * np.pi * self.omega.all_phases(C)
        decay = blur(self.omega, width)
        z_real, z_imag = self._parts
        real = np.vstack([decay * np.cos(phases), z_real])
        imag = np.vstack([decay * -np.sin(phases), z_imag])
        # |b - A alpha| is not changed by the orthogonal factor of [A b].
        R = np.asarray(np.linalg.qr(np.concatenate([real, imag], axis=1).T, mode="r"))
        return R[:, :-1], R[:, -1]


def _workspace(phases: FloatArray) -> FloatArray:
    """Memory for the cosines and sines of every atom, and for real and imaginary part of the
    residual.
    """
    K, size = phases.shape
    return np.empty((2, K + 1, size))


@entry
def _correlate(phases, real, imag, totals):  # type: ignore[no-untyped-def]
    """Add Re <a(c), r> of one block to the totals of every point."""
    for k in range(len(totals)):
        totals[k] += _dot_atom(phases[k], real, imag)


@entry
def _match(  # type: ignore[no-untyped-def]
    phases, z_real, z_imag, blur, squares, alpha, by_alpha, workspace
):
    """One block: add to the gradient in alpha and replace the phases, in turns, by the gradient in
    them; return the squared residual and its derivative in the width.
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
        _add_atom(alpha[k], phases[k], cosines[k], sines[k], real, imag)
    total, slope = _residual(z_real, z_imag, blur, squares, real, imag)
    for k in range(K):
        by_alpha[k] -= 2 * _differentiate_atom(
            4 * np.pi * alpha[k], real, imag, cosines[k], sines[k], phases[k]
        )
    return total, slope


@entry
def _match_gaussians(  # type: ignore[no-untyped-def]
    phases, exponents, z_real, z_imag, alpha, by_alpha, workspace
):
    """The same for Gaussians; the exponents of their decay are replaced by the gradient in them."""
    K = len(alpha)
    cosines = workspace[0]
    sines = workspace[1]
    real = workspace[0, K]
    imag = workspace[1, K]
    for j in range(len(z_real)):
        real[j] = z_real[j]
        imag[j] = z_imag[j]
    for k in range(K):
        _subtract_gaussian(alpha[k], phases[k], exponents[k], cosines[k], sines[k], real, imag)
    for k in range(K):
        by_alpha[k] -= 2 * _differentiate_gaussian(
            alpha[k], real, imag, cosines[k], sines[k], phases[k], exponents[k]
        )
    return _square(real) + _square(imag)


@summing
def _wave(p):  # type: ignore[no-untyped-def]
    """cos(2 pi p) and sin(2 pi p)."""
    r = p - np.rint(p)
    q = r * r
    c = _C5 + q * (_C6 + q * (_C7 + q * (_C8 + q * (_C9 + q * (_C10 + q * _C11)))))
    s = _S5 + q * (_S6 + q * (_S7 + q * (_S8 + q * (_S9 + q * (_S10 + q * _S11)))))
    c = _C0 + q * (_C1 + q * (_C2 + q * (_C3 + q * (_C4 + q * c))))
    return c, r * (_S0 + q * (_S1 + q * (_S2 + q * (_S3 + q * (_S4 + q * s)))))


@summing
def _decay(t):  # type: ignore[no-untyped-def]
    """exp(-t), t >= 0: a polynomial at t / 64, squared six times.

    This vectorises; a library call would not.
    """
    x = -min(t, 60.0) / 64
    # Horner's scheme, eight terms of the exponential series.
    e = 1 / 720 + x * (1 / 5040 + x * (1 / 40320))
    e = 1 / 6 + x * (1 / 24 + x * (1 / 120 + x * e))
    e = 1 + x * (1 + x * (1 / 2 + x * e))
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@summing
def _dot_atom(phases, real, imag):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(phases)):
        c, s = _wave(phases[j])
        total += c * real[j] - s * imag[j]
    return total


@summing
def _add_atom(a, phases, cosine, sine, real, imag):  # type: ignore[no-untyped-def]
    for j in range(len(phases)):
        c, s = _wave(phases[j])
        cosine[j] = c
        sine[j] = s
        real[j] += a * c
        imag[j] -= a * s


@summing
def _subtract_gaussian(  # type: ignore[no-untyped-def]
    a, phases, exponents, cosine, sine, real, imag
):
    for j in range(len(phases)):
        c, s = _wave(phases[j])
        e = _decay(exponents[j])
        c *= e
        s *= e
        cosine[j] = c
        sine[j] = s
        real[j] -= a * c
        imag[j] += a * s


@summing
def _residual(z_real, z_imag, blur, squares, real, imag):  # type: ignore[no-untyped-def]
    """Replace a model without blur by the residual times the blur; return the squared residual and
    its derivative in the width.
    """
    total = 0.0
    slope = 0.0
    for j in range(len(real)):
        u = real[j] * blur[j]
        v = imag[j] * blur[j]
        a = z_real[j] - u
        b = z_imag[j] - v
        total += a * a + b * b
        slope += squares[j] * (a * u + b * v)
        real[j] = a * blur[j]
        imag[j] = b * blur[j]
    return total, slope


@summing
def _differentiate_atom(a, real, imag, cosine, sine, by_phase):  # type: ignore[no-untyped-def]
    """Write the gradient in an atom's phases; return half that in its weight, negated."""
    total = 0.0
    for j in range(len(by_phase)):
        by_phase[j] = a * (sine[j] * real[j] + cosine[j] * imag[j])
        total += cosine[j] * real[j] - sine[j] * imag[j]
    return total


@summing
def _differentiate_gaussian(  # type: ignore[no-untyped-def]
    a, real, imag, cosine, sine, by_phase, by_exponent
):
    """Write the gradients in an atom's phases and exponents; return half that in its weight,
    negated.
    """
    total = 0.0
    for j in range(len(by_phase)):
        along = cosine[j] * real[j] - sine[j] * imag[j]
        by_phase[j] = 4 * np.pi * a * (sine[j] * real[j] + cosine[j] * imag[j])
        by_exponent[j] = 2 * a * along
        total += along
    return total


@summing
def _square(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(x)):
        total += x[j] * x[j]
    return total
