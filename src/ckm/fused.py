"""The decoder's hot loops: cost and gradients of a mixture of blurred atoms, all atoms at once, in blocks of frequencies.

Written as small leaves on one-dimensional slices, which is the shape LLVM vectorises.
"""

import numpy as np
from numba import njit

_BLOCK = 256  # frequencies a block: the cosines and sines of all atoms stay in cache
_WIDE = 16  # dimensions from which a library's matrix product is faster than sweeps of our own

# Polynomials in q = r^2 for cos(2 pi r) and sin(2 pi r) / r on |r| <= 1/2: interpolated at Chebyshev points, good to 1e-13.
_TERMS = 12


def _polynomial(function: object) -> tuple[float, ...]:
    nodes = (np.cos(np.pi * (np.arange(64) + 0.5) / 64) + 1) / 8
    fit = np.polynomial.Chebyshev.fit(nodes, function(np.sqrt(nodes)), _TERMS - 1, domain=[0, 0.25])  # type: ignore[operator]
    return tuple(float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11 = _polynomial(lambda r: np.cos(2 * np.pi * r))
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8, _S9, _S10, _S11 = _polynomial(lambda r: np.sin(2 * np.pi * r) / r)

# Decoding promises the same bits for any number of threads, not on every machine: sums may be reordered.
_leaf = njit(nogil=True, cache=True, fastmath=True, inline="never")


@_leaf
def _add(a, x, y):  # type: ignore[no-untyped-def]
    for j in range(len(x)):
        y[j] += a * x[j]


@_leaf
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@_leaf
def _products(C, rows, start, stop, out):  # type: ignore[no-untyped-def]
    """out = C @ rows[:, start:stop]."""
    K, n = C.shape
    if n >= _WIDE:
        np.dot(C, np.ascontiguousarray(rows[:, start:stop]), out)
        return
    out[:] = 0.0
    for k in range(K):
        for d in range(n):
            _add(C[k, d], rows[d, start:stop], out[k])


@_leaf
def _add_projections(G, rows, start, stop, out):  # type: ignore[no-untyped-def]
    """out += G @ rows[:, start:stop].T."""
    K, n = out.shape
    if n >= _WIDE:
        out += np.dot(G, np.ascontiguousarray(rows[:, start:stop]).T)
        return
    for k in range(K):
        for d in range(n):
            out[k, d] += _dot(G[k], rows[d, start:stop])


@_leaf
def _waves(p, cosine, sine):  # type: ignore[no-untyped-def]
    """cos(2 pi p) and sin(2 pi p)."""
    for j in range(len(p)):
        r = p[j] - np.rint(p[j])
        q = r * r
        c = _C5 + q * (_C6 + q * (_C7 + q * (_C8 + q * (_C9 + q * (_C10 + q * _C11)))))
        s = _S5 + q * (_S6 + q * (_S7 + q * (_S8 + q * (_S9 + q * (_S10 + q * _S11)))))
        cosine[j] = _C0 + q * (_C1 + q * (_C2 + q * (_C3 + q * (_C4 + q * c))))
        sine[j] = r * (_S0 + q * (_S1 + q * (_S2 + q * (_S3 + q * (_S4 + q * s)))))


@_leaf
def _phase_gradient(a, real, imag, cosine, sine, g):  # type: ignore[no-untyped-def]
    for j in range(len(g)):
        g[j] = a * (sine[j] * real[j] + cosine[j] * imag[j])


@_leaf
def _residual(z_real, z_imag, blur, squares, model_real, model_imag, real, imag):  # type: ignore[no-untyped-def]
    """The residual of one block, times the blur; returns its square and the derivative in the width."""
    total, slope = 0.0, 0.0
    for j in range(len(real)):
        u, v = model_real[j] * blur[j], model_imag[j] * blur[j]
        a, b = z_real[j] - u, z_imag[j] - v
        total += a * a + b * b
        slope += squares[j] * (a * u + b * v)
        real[j], imag[j] = a * blur[j], b * blur[j]
    return total, slope


@_leaf
def cost_and_gradients(turns, z_real, z_imag, blur, squares, C, alpha, gradient_C, gradient_alpha):  # type: ignore[no-untyped-def]
    """|z - sum_k alpha_k blur a(c_k)|^2, its gradients in C and alpha (written to the last two), and its derivative in the width.

    turns (n, m) holds Omega / 2 pi transposed, blur (m,) = exp(-width |omega|^2 / 2), squares (m,) = |omega|^2.
    """
    m = turns.shape[1]
    K = len(alpha)
    room, cosines, sines = np.empty(K * _BLOCK), np.empty((K, _BLOCK)), np.empty((K, _BLOCK))
    u, v, real, imag = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    gradient_C[:] = 0.0
    gradient_alpha[:] = 0.0
    total, slope = 0.0, 0.0
    for start in range(0, m, _BLOCK):
        stop = min(start + _BLOCK, m)
        size = stop - start
        P = room[: K * size].reshape((K, size))
        _products(C, turns, start, stop, P)
        u[:size] = 0.0
        v[:size] = 0.0
        for k in range(K):
            _waves(P[k], cosines[k, :size], sines[k, :size])
            _add(alpha[k], cosines[k, :size], u[:size])
            _add(-alpha[k], sines[k, :size], v[:size])
        part, rise = _residual(
            z_real[start:stop], z_imag[start:stop], blur[start:stop], squares[start:stop], u[:size], v[:size], real[:size], imag[:size]
        )
        total += part
        slope += rise
        for k in range(K):
            c, s = cosines[k, :size], sines[k, :size]
            gradient_alpha[k] += 2 * (_dot(s, imag[:size]) - _dot(c, real[:size]))
            _phase_gradient(4 * np.pi * alpha[k], real[:size], imag[:size], c, s, P[k])
        _add_projections(P, turns, start, stop, gradient_C)
    return total, slope


@_leaf
def _decay(t, cosine, sine):  # type: ignore[no-untyped-def]
    """Multiply both by exp(-t), t >= 0: a polynomial at t / 64, squared six times, which vectorises where a call would not."""
    for j in range(len(t)):
        x = -min(t[j], 60.0) / 64
        e = 1 + x * (1 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x * (1 / 40320))))))))
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        cosine[j] *= e
        sine[j] *= e


@_leaf
def _pulls(a, real, imag, cosine, sine, turning, shrinking):  # type: ignore[no-untyped-def]
    """What the residual asks of an atom's phase and of its width; returns the same for its weight."""
    total = 0.0
    for j in range(len(turning)):
        along = cosine[j] * real[j] - sine[j] * imag[j]
        turning[j] = 4 * np.pi * a * (sine[j] * real[j] + cosine[j] * imag[j])
        shrinking[j] = 2 * a * along
        total += along
    return total


@_leaf
def gaussian_cost_and_gradients(turns, halves, z_real, z_imag, C, alpha, widths, gradient_C, gradient_alpha, gradient_widths):  # type: ignore[no-untyped-def]
    """The same for atoms that each have a width along each axis, widths (K, n): a(c_k) exp(-sum_d widths_kd omega_d^2 / 2).

    halves (n, m) holds Omega^2 / 2 transposed.
    """
    m = turns.shape[1]
    K = len(alpha)
    room, more, cosines, sines = np.empty(K * _BLOCK), np.empty(K * _BLOCK), np.empty((K, _BLOCK)), np.empty((K, _BLOCK))
    real, imag = np.empty(_BLOCK), np.empty(_BLOCK)
    gradient_C[:] = 0.0
    gradient_alpha[:] = 0.0
    gradient_widths[:] = 0.0
    total = 0.0
    for start in range(0, m, _BLOCK):
        stop = min(start + _BLOCK, m)
        size = stop - start
        P, T = room[: K * size].reshape((K, size)), more[: K * size].reshape((K, size))
        _products(C, turns, start, stop, P)
        _products(widths, halves, start, stop, T)
        u, v = real[:size], imag[:size]
        u[:] = z_real[start:stop]
        v[:] = z_imag[start:stop]
        for k in range(K):
            c, s = cosines[k, :size], sines[k, :size]
            _waves(P[k], c, s)
            _decay(T[k], c, s)
            _add(-alpha[k], c, u)
            _add(alpha[k], s, v)
        total += _dot(u, u) + _dot(v, v)
        for k in range(K):
            gradient_alpha[k] -= 2 * _pulls(alpha[k], u, v, cosines[k, :size], sines[k, :size], P[k], T[k])
        _add_projections(P, turns, start, stop, gradient_C)
        _add_projections(T, halves, start, stop, gradient_widths)
    return total
