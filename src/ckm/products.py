"""Products with structured frequencies, in float64, for decoders: the fast transform instead of a matrix of m n numbers.

In the notation of `ckm.hadamard`, all in turns: phases = C B^T diag(t), and back, G diag(t) B.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from ckm.frequencies import Frequencies
from ckm.kernels.scratch import aligned
from ckm.kernels.transform import passes_of, transform
from ckm.kernels.vocabulary import HALF
from ckm.readonly import Array

_compiled = njit(nogil=True, cache=True, error_model="numpy")


@dataclass(frozen=True, eq=False)
class Structure:
    """m frequencies in dimension n, as factors (1 + 2 blocks, p) of each round, the first cut off after n, and turns (m,).

    HALF atoms at a time lie along vectors.
    """

    factors: Array
    turns: Array
    n: int

    @classmethod
    def of(cls, frequencies: Frequencies) -> "Structure":
        """The structure of these frequencies, in the coordinates of the decoders."""
        factors = frequencies.factors.astype(np.float64)
        factors[0, : frequencies.n] *= frequencies.step
        return cls(factors, frequencies.turns.astype(np.float64), frequencies.n)

    @property
    def p(self) -> int:
        """The length of the transform."""
        return int(self.factors.shape[1])

    @cached_property
    def _plan(self) -> tuple[Array, Array, Array, Array]:
        turns = np.zeros(len(self.factors) // 2 * self.p)
        turns[: len(self.turns)] = self.turns
        return self.factors.ravel(), turns, np.ones(self.p), passes_of(self.p)

    def phases(self, C: Array) -> Array:
        """C Omega^T / 2 pi, (K, m)."""
        phases = np.empty((len(C), len(self.turns)))
        _multiply(np.ascontiguousarray(C, np.float64), self._plan, aligned((2 * self.p, HALF), np.float64), phases)
        return phases

    def projections(self, G: Array) -> Array:
        """G Omega / 2 pi, (K, n)."""
        projections = np.empty((len(G), self.n))
        _multiply_back(np.ascontiguousarray(G, np.float64), self._plan, aligned((2 * self.p, HALF), np.float64), projections)
        return projections


@_compiled
def _multiply(C, plan, room, phases):  # type: ignore[no-untyped-def]
    (factors, turns, _, passes), (K, n), m, p = plan, C.shape, phases.shape[1], len(room) // 2
    for k in range(0, K, HALF):
        size = min(HALF, K - k)
        for d in range(p):
            for a in range(HALF):
                room[d, a] = C[k + a, d] if d < n and a < size else 0.0
        transform(room, 0, factors, 0, room, 0, p, passes)
        for j in range(0, m, p):
            transform(room, 0, factors, p + 2 * j, room, p, p, passes)
            transform(room, p, factors, 2 * p + 2 * j, room, p, p, passes)
            for a in range(size):
                for i in range(min(p, m - j)):
                    phases[k + a, j + i] = turns[j + i] * room[p + i, a]


@_compiled
def _multiply_back(G, plan, room, projections):  # type: ignore[no-untyped-def]
    (factors, turns, ones, passes), (K, m), n, p = plan, G.shape, projections.shape[1], len(room) // 2
    for k in range(0, K, HALF):
        size = min(HALF, K - k)
        for i in range(p):
            for a in range(HALF):
                room[i, a] = 0.0
        for j in range(0, m, p):
            for i in range(p):
                for a in range(HALF):
                    room[p + i, a] = G[k + a, j + i] if a < size and j + i < m else 0.0
            transform(room, p, turns, j, room, p, p, passes)
            transform(room, p, factors, 2 * p + 2 * j, room, p, p, passes)
            for i in range(p):
                for a in range(HALF):
                    room[i, a] += factors[p + 2 * j + i] * room[p + i, a]
        transform(room, 0, ones, 0, room, 0, p, passes)
        for a in range(size):
            for d in range(n):
                projections[k + a, d] = factors[d] * room[d, a]
