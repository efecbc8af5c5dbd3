"""The equations of the paper as literal loops, which kernels and decoders are compared with.

They are slow and simple, and import nothing from `ckm`.
"""

import cmath
import math
from collections.abc import Sequence

Vector = Sequence[float]


def inner(a: Vector, b: Vector) -> float:
    """a^T b."""
    total = 0.0
    for d in range(len(a)):
        total += a[d] * b[d]
    return total


def sse(X: Sequence[Vector], C: Sequence[Vector], beta: Vector | None = None) -> float:
    """Equation (1): sum_l beta_l min_k |x_l - c_k|^2."""
    total = 0.0
    for i, x in enumerate(X):
        nearest = math.inf
        for c in C:
            difference = [a - b for a, b in zip(x, c, strict=True)]
            nearest = min(nearest, inner(difference, difference))
        total += nearest * (1.0 if beta is None else beta[i])
    return total


def sketch(
    X: Sequence[Vector], omega: Sequence[Vector], origin: Vector, beta: Vector | None = None
) -> list[complex]:
    """Equation (3): z_j = sum_l beta_l exp(-i omega_j^T (x_l - origin)) / sum_l beta_l."""
    beta = [1.0] * len(X) if beta is None else beta
    centred = [[a - b for a, b in zip(x, origin, strict=True)] for x in X]
    z = []
    for w in omega:
        total = 0j
        for x, b in zip(centred, beta, strict=True):
            total += b * cmath.exp(-1j * inner(w, x))
        z.append(total / sum(beta))
    return z


def atom(omega: Sequence[Vector], c: Vector) -> list[complex]:
    """The sketch of a Dirac at c."""
    return [cmath.exp(-1j * inner(w, c)) for w in omega]


def cost(
    z: Sequence[complex], omega: Sequence[Vector], C: Sequence[Vector], alpha: Vector
) -> float:
    """Equations (2) and (4): |z - sum_k alpha_k a(c_k)|^2."""
    total = 0.0
    for j, w in enumerate(omega):
        r = z[j]
        for c, a in zip(C, alpha, strict=True):
            r -= a * cmath.exp(-1j * inner(w, c))
        total += abs(r) ** 2
    return total


def correlation(r: Sequence[complex], omega: Sequence[Vector], c: Vector) -> float:
    """Step 1 of Algorithm 1: Re <a(c)/|a(c)|, r>."""
    a = atom(omega, c)
    norm = math.sqrt(sum(abs(value) ** 2 for value in a))
    total = 0j
    for j in range(len(r)):
        total += a[j].conjugate() * r[j]
    return total.real / norm
