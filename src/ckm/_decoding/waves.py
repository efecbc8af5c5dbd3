"""cos, sin and exp(-t) for compiled loops, as polynomials: these vectorise where library calls do
not.

Each has two versions, for float64 and for float32 numbers, and compiled code takes the one of its
argument's type.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ckm._util.arrays import FloatArray

# Chebyshev points that functions are interpolated at: more than terms, so that rounding averages.
_NODES = 64
_OPTIONS: Any = {"fastmath": True, "forceinline": True, "nogil": True, "error_model": "numpy"}


def _polynomial(
    function: Callable[[FloatArray], FloatArray], terms: int, end: float, number: Any = float
) -> tuple[Any, ...]:
    """Coefficients of the polynomial that interpolates a function on [0, end] at Chebyshev
    points.
    """
    angles = np.pi * (np.arange(_NODES) + 0.5) / _NODES
    values = function(end / 2 * (np.cos(angles) + 1))
    # A sum for each coefficient: as many terms on every machine, where a least-squares fit may leave
    # exactly zero of the last one.
    slope = 2 / end
    total = np.zeros(terms)
    previous = np.zeros(terms)
    chebyshev = np.eye(terms)[0]
    for k in range(terms):
        factor = 2 if k else 1
        total += factor / _NODES * math.fsum(values * np.cos(k * angles)) * chebyshev
        # T_(k+1) = 2 t T_k - T_(k-1) with t = slope q - 1, from T_0 = 1 and T_1 = t.
        by_q = np.concatenate([[0.0], chebyshev[:-1]])
        following = factor * (slope * by_q - chebyshev) - previous
        previous = chebyshev
        chebyshev = following
    return tuple(number(c) for c in total)


def _cosine(q: FloatArray) -> FloatArray:
    return np.asarray(np.cos(2 * np.pi * np.sqrt(q)))


def _sine(q: FloatArray) -> FloatArray:
    return np.asarray(np.sin(2 * np.pi * np.sqrt(q)) / np.sqrt(q))


def _loss(x: FloatArray) -> FloatArray:
    """(exp(-x) - 1) / x."""
    return np.asarray(np.expm1(-x) / x)


# Polynomials in q = r^2 for cos(2 pi r) and sin(2 pi r) / r on |r| <= 1/2: good to 1e-13 with 12
# terms, and to the rounding of float32 with 7.
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11 = _polynomial(_cosine, 12, 0.25)
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8, _S9, _S10, _S11 = _polynomial(_sine, 12, 0.25)
_c0, _c1, _c2, _c3, _c4, _c5, _c6 = _polynomial(_cosine, 7, 0.25, np.float32)
_s0, _s1, _s2, _s3, _s4, _s5, _s6 = _polynomial(_sine, 7, 0.25, np.float32)
# A polynomial in x = t / 32 for (exp(-x) - 1) / x, t <= 18: exp(-18) is below the rounding of one.
_e0, _e1, _e2, _e3, _e4 = _polynomial(_loss, 5, 18 / 32, np.float32)
_ONE = np.float32(1)
_TWO = np.float32(2)
_MAX_T = np.float32(18)
_SHARE = np.float32(1 / 32)


def wave(p: Any) -> Any:
    """cos(2 pi p) and sin(2 pi p)."""
    raise NotImplementedError("only compiled code calls this")


def decay(t: Any) -> Any:
    """exp(-t), t >= 0."""
    raise NotImplementedError("only compiled code calls this")


@overload(wave, jit_options=_OPTIONS)
def _compile_wave(p):  # type: ignore[no-untyped-def]
    def in_double(p):  # type: ignore[no-untyped-def]
        r = p - np.rint(p)
        q = r * r
        c = _C5 + q * (_C6 + q * (_C7 + q * (_C8 + q * (_C9 + q * (_C10 + q * _C11)))))
        s = _S5 + q * (_S6 + q * (_S7 + q * (_S8 + q * (_S9 + q * (_S10 + q * _S11)))))
        c = _C0 + q * (_C1 + q * (_C2 + q * (_C3 + q * (_C4 + q * c))))
        return c, r * (_S0 + q * (_S1 + q * (_S2 + q * (_S3 + q * (_S4 + q * s)))))

    def in_single(p):  # type: ignore[no-untyped-def]
        r = p - np.rint(p)
        q = r * r
        c = _c0 + q * (_c1 + q * (_c2 + q * (_c3 + q * (_c4 + q * (_c5 + q * _c6)))))
        s = _s0 + q * (_s1 + q * (_s2 + q * (_s3 + q * (_s4 + q * (_s5 + q * _s6)))))
        return c, r * s

    return in_single if p == types.float32 else in_double


@overload(decay, jit_options=_OPTIONS)
def _compile_decay(t):  # type: ignore[no-untyped-def]
    def in_double(t):  # type: ignore[no-untyped-def]
        # A polynomial at t / 64, squared six times: Horner's scheme, eight terms of the series.
        x = -min(t, 60.0) / 64
        e = 1 / 720 + x * (1 / 5040 + x * (1 / 40320))
        e = 1 / 6 + x * (1 / 24 + x * (1 / 120 + x * e))
        e = 1 + x * (1 + x * (1 / 2 + x * e))
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        return e * e

    def in_single(t):  # type: ignore[no-untyped-def]
        # y = exp(-t / 32) - 1, then (1 + y)^2 - 1 = y (y + 2) five times: squaring 1 + y itself
        # would double its rounding each time.
        x = min(t, _MAX_T) * _SHARE
        y = x * (_e0 + x * (_e1 + x * (_e2 + x * (_e3 + x * _e4))))
        y *= y + _TWO
        y *= y + _TWO
        y *= y + _TWO
        y *= y + _TWO
        y *= y + _TWO
        return _ONE + y

    return in_single if t == types.float32 else in_double
