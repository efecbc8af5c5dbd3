"""The decoder's hot loops: cost and gradients of a mixture of blurred atoms, all atoms at once, in
blocks of frequencies.

Phases are products with Omega, made elsewhere; the rest is compiled, as small leaves on
one-dimensional slices, which is the shape LLVM vectorises.
"""

import numpy as np

from ckm._decoding.operator import Omega
from ckm._util.arrays import Array
from ckm._util.jit import entry, summing

# Polynomials in q = r^2 for cos(2 pi r) and sin(2 pi r) / r on |r| <= 1/2: interpolated at
# Chebyshev points, good to 1e-13.
_TERMS = 12


def _polynomial(function: object) -> tuple[float, ...]:
    nodes = (np.cos(np.pi * (np.arange(64) + 0.5) / 64) + 1) / 8
    fit = np.polynomial.Chebyshev.fit(nodes, function(np.sqrt(nodes)), _TERMS - 1, domain=[0, 0.25])  # type: ignore[operator]
    return tuple(float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11 = _polynomial(
    lambda r: np.cos(2 * np.pi * r)
)
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8, _S9, _S10, _S11 = _polynomial(
    lambda r: np.sin(2 * np.pi * r) / r
)


def cost_and_gradients(
    omega: Omega,
    z_real: Array,
    z_imag: Array,
    blur: Array,
    squares: Array,
    C: Array,
    alpha: Array,
    gradient_C: Array,
    gradient_alpha: Array,
) -> tuple[float, float]:
    """|z - sum_k alpha_k blur a(c_k)|^2, its gradients in C and alpha (written to the last two),
    and its derivative in the width.

    blur (m,) = exp(-width |omega|^2 / 2), squares (m,) = |omega|^2.
    """
    K = len(C)
    begun, sums, gradient_alpha[:] = omega.begin(C), omega.nothing(K), 0
    total, slope = 0.0, 0.0
    for at in omega.blocks(K):
        phases = omega.phases(begun, K, at)
        part, rise = _match(
            phases,
            z_real[at],
            z_imag[at],
            blur[at],
            squares[at],
            alpha,
            gradient_alpha,
            _room(phases),
        )
        omega.add(phases, at, sums)  # they now hold the gradient in the phases
        total, slope = total + part, slope + rise
    gradient_C[:] = omega.end(sums, K)
    return total, slope


def gaussian_cost_and_gradients(
    omega: Omega,
    halves: Array,
    z_real: Array,
    z_imag: Array,
    C: Array,
    alpha: Array,
    widths: Array,
    gradient_C: Array,
    gradient_alpha: Array,
    gradient_widths: Array,
) -> float:
    """The same for atoms that each have a width along each axis, widths (K, n): a(c_k) exp(-sum_d
    widths_kd omega_d^2 / 2).

    halves (n, m) holds Omega^2 / 2 transposed.
    """
    K, total = len(C), 0.0
    begun, sums, gradient_alpha[:], gradient_widths[:] = omega.begin(C), omega.nothing(K), 0, 0
    for at in omega.blocks(K):
        phases, decays = omega.phases(begun, K, at), widths @ halves[:, at]
        total += _match_gaussians(
            phases, decays, z_real[at], z_imag[at], alpha, gradient_alpha, _room(phases)
        )
        omega.add(phases, at, sums)
        gradient_widths += decays @ halves[:, at].T
    gradient_C[:] = omega.end(sums, K)
    return total


def correlations(omega: Omega, points: Array, r_real: Array, r_imag: Array) -> Array:
    """Re <a(c), r> for every row c of `points`."""
    K = len(points)
    begun, totals = omega.begin(np.ascontiguousarray(points)), np.zeros(K)
    for at in omega.blocks(K):
        _correlate(omega.phases(begun, K, at), r_real[at], r_imag[at], totals)
    return totals


def _room(phases: Array) -> Array:
    """Memory for the cosines and sines of every atom, and for real and imaginary part of the
    residual.
    """
    K, size = phases.shape
    return np.empty((2, K + 1, size))


@entry
def _correlate(phases, real, imag, totals):  # type: ignore[no-untyped-def]
    for k in range(len(totals)):
        totals[k] += _along(phases[k], real, imag)


@entry
def _match(phases, z_real, z_imag, blur, squares, alpha, gradient_alpha, room):  # type: ignore[no-untyped-def]
    """One block: adds to the gradient in alpha, turns phases (in turns) into the gradient in them;
    returns square and derivative.
    """
    K = len(alpha)
    cosines, sines, real, imag = room[0], room[1], room[0, K], room[1, K]
    for j in range(len(blur)):
        real[j], imag[j] = 0.0, 0.0
    for k in range(K):
        _add_atom(alpha[k], phases[k], cosines[k], sines[k], real, imag)
    total, slope = _residual(z_real, z_imag, blur, squares, real, imag)
    for k in range(K):
        gradient_alpha[k] -= 2 * _pull(
            4 * np.pi * alpha[k], real, imag, cosines[k], sines[k], phases[k]
        )
    return total, slope


@entry
def _match_gaussians(phases, decays, z_real, z_imag, alpha, gradient_alpha, room):  # type: ignore[no-untyped-def]
    """The same for Gaussians; also turns decays into the gradient in them."""
    K = len(alpha)
    cosines, sines, real, imag = room[0], room[1], room[0, K], room[1, K]
    for j in range(len(z_real)):
        real[j], imag[j] = z_real[j], z_imag[j]
    for k in range(K):
        _subtract_gaussian(alpha[k], phases[k], decays[k], cosines[k], sines[k], real, imag)
    for k in range(K):
        gradient_alpha[k] -= 2 * _pulls(
            alpha[k], real, imag, cosines[k], sines[k], phases[k], decays[k]
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
    """exp(-t), t >= 0: a polynomial at t / 64, squared six times, which vectorises where a call
    would not.
    """
    x = -min(t, 60.0) / 64
    e = 1 + x * (
        1
        + x
        * (
            1 / 2
            + x
            * (
                1 / 6
                + x * (1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x * (1 / 40320)))))
            )
        )
    )
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@summing
def _along(phases, real, imag):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(phases)):
        c, s = _wave(phases[j])
        total += c * real[j] - s * imag[j]
    return total


@summing
def _add_atom(a, phases, cosine, sine, real, imag):  # type: ignore[no-untyped-def]
    for j in range(len(phases)):
        c, s = _wave(phases[j])
        cosine[j], sine[j] = c, s
        real[j] += a * c
        imag[j] -= a * s


@summing
def _subtract_gaussian(a, phases, decays, cosine, sine, real, imag):  # type: ignore[no-untyped-def]
    for j in range(len(phases)):
        c, s = _wave(phases[j])
        e = _decay(decays[j])
        c, s = c * e, s * e
        cosine[j], sine[j] = c, s
        real[j] -= a * c
        imag[j] += a * s


@summing
def _residual(z_real, z_imag, blur, squares, real, imag):  # type: ignore[no-untyped-def]
    """From a model without blur to the residual times the blur; returns the residual's square and
    its derivative in the width.
    """
    total, slope = 0.0, 0.0
    for j in range(len(real)):
        u, v = real[j] * blur[j], imag[j] * blur[j]
        a, b = z_real[j] - u, z_imag[j] - v
        total += a * a + b * b
        slope += squares[j] * (a * u + b * v)
        real[j], imag[j] = a * blur[j], b * blur[j]
    return total, slope


@summing
def _pull(a, real, imag, cosine, sine, turning):  # type: ignore[no-untyped-def]
    """What the residual asks of an atom's phase; returns the same for its weight."""
    total = 0.0
    for j in range(len(turning)):
        turning[j] = a * (sine[j] * real[j] + cosine[j] * imag[j])
        total += cosine[j] * real[j] - sine[j] * imag[j]
    return total


@summing
def _pulls(a, real, imag, cosine, sine, turning, shrinking):  # type: ignore[no-untyped-def]
    """What the residual asks of an atom's phase and of its width; returns the same for its weight."""
    total = 0.0
    for j in range(len(turning)):
        along = cosine[j] * real[j] - sine[j] * imag[j]
        turning[j] = 4 * np.pi * a * (sine[j] * real[j] + cosine[j] * imag[j])
        shrinking[j] = 2 * a * along
        total += along
    return total


@summing
def _square(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(x)):
        total += x[j] * x[j]
    return total
