"""Omega in the coordinates of the decoders, as something to multiply by: a matrix, or the fast
transform of structured frequencies.

Phases are counted in turns. One evaluation of a cost multiplies atoms C (K, n) by Omega^T / 2 pi,
block of frequencies by block, and what it finds out about their phases back by Omega / 2 pi:

    begun, sums = omega.begin(C), omega.nothing(K)
    for at in omega.blocks(K):
        phases = omega.phases(begun, K, at)     # (K, block)
        ...                                     # turn them into the gradient in them
        omega.add(phases, at, sums)
    gradient = omega.end(sums, K)               # (K, n)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ckm._core import hadamard
from ckm._core.frequencies import Frequencies
from ckm._kernels.cpu.llvm import LANES
from ckm._kernels.cpu.transform import passes_of, transform
from ckm._util.arrays import Array, aligned
from ckm._util.jit import entry

_FAST = 64  # dimensions from which the fast transform beats a library's matrix product
_BLOCK = 2**14  # phases a block: with their cosines and sines they stay in cache
_LEAST = 256  # frequencies a block


class Omega(ABC):
    """Frequencies to multiply by."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(m, n)."""

    @property
    @abstractmethod
    def turns(self) -> Array:
        """Omega / 2 pi as a matrix, transposed (n, m)."""

    @property
    @abstractmethod
    def halves(self) -> Array:
        """Omega^2 / 2, transposed (n, m)."""

    @property
    @abstractmethod
    def squares(self) -> Array:
        """|omega_j|^2 (m,)."""

    @abstractmethod
    def blocks(self, K: int) -> Iterator[slice]:
        """Frequencies to take at a time."""

    @abstractmethod
    def begin(self, C: Array) -> Array:
        """What all blocks share."""

    @abstractmethod
    def phases(self, begun: Array, K: int, at: slice) -> Array:
        """Of each atom at the frequencies `at`."""

    @abstractmethod
    def nothing(self, K: int) -> Array:
        """Sums to start from."""

    @abstractmethod
    def add(self, G: Array, at: slice, sums: Array) -> None:
        """Add to the sums what G (K, block) says of the frequencies `at`."""

    @abstractmethod
    def end(self, sums: Array, K: int) -> Array:
        """What was added, times Omega / 2 pi."""

    def only(self, kept: Array) -> "Matrix":
        """Those frequencies alone, without structure."""
        return Matrix(np.ascontiguousarray(self.turns[:, kept]))

    def all_phases(self, C: Array) -> Array:
        """C Omega^T / 2 pi, (K, m)."""
        return self.phases(self.begin(np.ascontiguousarray(C)), len(C), slice(0, self.shape[0]))

    def projections(self, G: Array) -> Array:
        """G Omega / 2 pi, (K, n), for G (K, m)."""
        sums = self.nothing(len(G))
        self.add(np.ascontiguousarray(G), slice(0, self.shape[0]), sums)
        return self.end(sums, len(G))


def omega_of(frequencies: Frequencies) -> Omega:
    """The faster of the two."""
    if frequencies.signs is None or frequencies.n < _FAST:
        return Matrix.of(frequencies.omega * frequencies.step)
    return Structure.of(frequencies)


@dataclass(frozen=True, eq=False)
class Matrix(Omega):
    """Any frequencies, in turns and transposed (n, m)."""

    values: Array

    @classmethod
    def of(cls, omega: Array) -> "Matrix":
        """Those of an array (m, n), in radians."""
        return cls(np.ascontiguousarray(omega.T / (2 * np.pi)))

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.values.shape
        return m, n

    @property
    def turns(self) -> Array:
        return self.values

    @cached_property
    def halves(self) -> Array:
        return 2 * np.pi**2 * self.values**2

    @cached_property
    def squares(self) -> Array:
        return np.asarray(4 * np.pi**2 * (self.values**2).sum(axis=0))

    def blocks(self, K: int) -> Iterator[slice]:
        step = max(_LEAST, _BLOCK // K)
        return (slice(start, start + step) for start in range(0, self.values.shape[1], step))

    def begin(self, C: Array) -> Array:
        return C

    def phases(self, begun: Array, K: int, at: slice) -> Array:
        return np.asarray(begun @ self.values[:, at])

    def nothing(self, K: int) -> Array:
        return np.zeros((K, len(self.values)))

    def add(self, G: Array, at: slice, sums: Array) -> None:
        sums += G @ self.values[:, at].T

    def end(self, sums: Array, K: int) -> Array:
        return sums


@dataclass(frozen=True, eq=False)
class Structure(Omega):
    """Structured frequencies, in the notation of `ckm._core.hadamard`: factors (1 + 2 blocks, p) of
    the rounds, and lengths in turns (m,).

    LANES atoms at a time lie along vectors: what is begun, and sums, are (p, LANES) for each LANES
    atoms, after the first round.
    """

    factors: Array
    lengths: Array
    n: int

    @classmethod
    def of(cls, frequencies: Frequencies) -> "Structure":
        """Those of a sketch."""
        factors = frequencies.factors.astype(np.float64)
        factors[0, : frequencies.n] *= frequencies.step
        return cls(factors, frequencies.turns.astype(np.float64), frequencies.n)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.lengths), self.n

    @property
    def turns(self) -> Array:
        return np.concatenate([part.T for part in self._rows()], axis=1)

    @cached_property
    def halves(self) -> Array:
        return np.concatenate([2 * np.pi**2 * part.T**2 for part in self._rows()], axis=1)

    @cached_property
    def squares(self) -> Array:
        return np.concatenate([4 * np.pi**2 * (part**2).sum(axis=1) for part in self._rows()])

    def _rows(self) -> Iterator[Array]:
        """Omega / 2 pi, block by block: all of it would take the memory that the transform does
        without, and is not kept.
        """
        p, m = self.factors.shape[1], len(self.lengths)
        for j in range(0, m, p):
            own = self.factors[[0, 1 + 2 * (j // p), 2 + 2 * (j // p)]]
            yield self.lengths[j : j + p, None] * hadamard.rows(own, min(p, m - j), self.n)

    @cached_property
    def _plan(self) -> tuple[Array, Array, Array, Array]:
        (rounds, p), m = self.factors.shape, len(self.lengths)
        return (
            self.factors.ravel(),
            np.concatenate([self.lengths, np.zeros(rounds // 2 * p - m)]),
            np.ones(p),
            passes_of(p),
        )

    def _room(self) -> Array:
        return aligned((self.factors.shape[1], LANES), np.float64)

    def blocks(self, K: int) -> Iterator[slice]:
        p, m = self.factors.shape[1], len(self.lengths)
        step = p * max(1, _BLOCK // (K * p))
        return (slice(start, min(start + step, m)) for start in range(0, m, step))

    def begin(self, C: Array) -> Array:
        begun = self.nothing(len(C))
        _begin(C, self._plan, begun)
        return begun

    def phases(self, begun: Array, K: int, at: slice) -> Array:
        phases = np.empty((K, at.stop - at.start))
        _take_phases(begun, self._plan, self._room(), at.start, phases)
        return phases

    def nothing(self, K: int) -> Array:
        sums = aligned((-(-K // LANES) * self.factors.shape[1], LANES), np.float64)
        sums[:] = 0
        return sums

    def add(self, G: Array, at: slice, sums: Array) -> None:
        _add_back(G, self._plan, self._room(), at.start, sums)

    def end(self, sums: Array, K: int) -> Array:
        projections = np.empty((K, self.n))
        _end(sums, self._plan, projections)
        return projections


@entry
def _begin(C, plan, begun):  # type: ignore[no-untyped-def]
    """H D_1 C^T."""
    (factors, _, ones, passes), (K, n) = plan, C.shape
    p = len(ones)
    for k in range(K):
        for d in range(n):
            begun[k // LANES * p + d, k % LANES] = C[k, d]
    for start in range(0, len(begun), p):
        transform(begun, start, factors, 0, begun, start, p, passes)


@entry
def _take_phases(begun, plan, room, first, phases):  # type: ignore[no-untyped-def]
    """H D_3 H D_2 times what is begun, and times the lengths, for the frequencies from `first` on."""
    (factors, lengths, _, passes), (K, size), p = plan, phases.shape, len(room)
    for k in range(0, K, LANES):
        for j in range(0, size, p):
            d = p + 2 * (first + j)
            transform(begun, k // LANES * p, factors, d, room, 0, p, passes)
            transform(room, 0, factors, d + p, room, 0, p, passes)
            for a in range(min(LANES, K - k)):
                for i in range(min(p, size - j)):
                    phases[k + a, j + i] = lengths[first + j + i] * room[i, a]


@entry
def _add_back(G, plan, room, first, sums):  # type: ignore[no-untyped-def]
    """The transpose of that."""
    (factors, lengths, _, passes), (K, size), p = plan, G.shape, len(room)
    for k in range(0, K, LANES):
        for j in range(0, size, p):
            d = p + 2 * (first + j)
            for i in range(p):
                for a in range(LANES):
                    room[i, a] = G[k + a, j + i] if k + a < K and j + i < size else 0.0
            transform(room, 0, lengths, first + j, room, 0, p, passes)
            transform(room, 0, factors, d + p, room, 0, p, passes)
            for i in range(p):
                for a in range(LANES):
                    sums[k // LANES * p + i, a] += factors[d + i] * room[i, a]


@entry
def _end(sums, plan, projections):  # type: ignore[no-untyped-def]
    """D_1 H times the sums."""
    (factors, _, ones, passes), (K, n) = plan, projections.shape
    p = len(ones)
    for start in range(0, len(sums), p):
        transform(sums, start, ones, 0, sums, start, p, passes)
    for k in range(K):
        for d in range(n):
            projections[k, d] = factors[d] * sums[k // LANES * p + d, k % LANES]
