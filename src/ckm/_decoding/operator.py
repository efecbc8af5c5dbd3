"""Omega in the coordinates of the decoder, as an operator: a matrix, or the fast transform of
structured frequencies.

Phases are counted in turns. One evaluation of a cost multiplies atoms C (K, n) by Omega^T / 2 pi,
one block of frequencies at a time, and the gradient in the phases back by Omega / 2 pi:

    prepared = omega.prepare(C)
    sums = omega.zeros(K)
    for block in omega.blocks(K):
        phases = omega.phases(prepared, K, block)   # (K, size of the block)
        ...                                         # replace them by the gradient in them
        omega.accumulate(phases, block, sums)
    gradient = omega.finish(sums, K)                # (K, n)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ckm._core import hadamard
from ckm._core.frequencies import Frequencies
from ckm._decoding.settings import DEFAULT, Settings
from ckm._kernels.cpu.llvm import LANES
from ckm._kernels.cpu.transform import passes_of, transform
from ckm._util.arrays import Array, BoolArray, FloatArray, aligned
from ckm._util.jit import entry


class Omega(ABC):
    """The frequencies Omega (m, n) as an operator."""

    settings: Settings

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(m, n)."""

    @property
    def dtype(self) -> Any:
        """The precision that phases are computed in."""
        return np.float64

    @property
    @abstractmethod
    def turns(self) -> FloatArray:
        """Omega / 2 pi as a matrix, transposed (n, m)."""

    @property
    @abstractmethod
    def half_squares(self) -> FloatArray:
        """Omega^2 / 2, elementwise and transposed (n, m)."""

    @property
    @abstractmethod
    def squared_norms(self) -> FloatArray:
        """|omega_j|^2 (m,)."""

    @abstractmethod
    def blocks(self, K: int) -> Iterator[slice]:
        """The blocks of frequencies in which K atoms are evaluated."""

    @abstractmethod
    def prepare(self, C: FloatArray) -> FloatArray:
        """The part of C Omega^T that all blocks share."""

    @abstractmethod
    def phases(self, prepared: FloatArray, K: int, block: slice) -> FloatArray:
        """C Omega^T / 2 pi at the frequencies of a block, (K, size of the block)."""

    @abstractmethod
    def zeros(self, K: int) -> FloatArray:
        """Sums for `accumulate`, all zero."""

    @abstractmethod
    def accumulate(self, G: FloatArray, block: slice, sums: FloatArray) -> None:
        """Add G (K, size of the block) times the frequencies of that block to the sums."""

    @abstractmethod
    def finish(self, sums: FloatArray, K: int) -> FloatArray:
        """The accumulated G Omega / 2 pi, (K, n)."""

    @cached_property
    def in_single(self) -> "Matrix":
        """The frequencies in float32, as a matrix."""
        return Matrix(np.ascontiguousarray(self.turns, np.float32), self.settings)

    def only(self, kept: BoolArray) -> "Matrix":
        """The frequencies under a mask, as a matrix."""
        return Matrix(np.ascontiguousarray(self.turns[:, kept]), self.settings)

    def all_phases(self, C: FloatArray) -> FloatArray:
        """C Omega^T / 2 pi, (K, m)."""
        prepared = self.prepare(np.ascontiguousarray(C))
        return self.phases(prepared, len(C), slice(0, self.shape[0]))

    def back_project(self, G: FloatArray) -> FloatArray:
        """G Omega / 2 pi, (K, n), for G (K, m)."""
        sums = self.zeros(len(G))
        self.accumulate(np.ascontiguousarray(G), slice(0, self.shape[0]), sums)
        return self.finish(sums, len(G))


def omega_of(
    frequencies: Frequencies, settings: Settings = DEFAULT, step: FloatArray | None = None
) -> Omega:
    """The frequencies of a sketch, times one step of the decoder's coordinates along each column
    (n,), by default that of the design, as the faster of the two operators.
    """
    step = frequencies.step if step is None else step
    if frequencies.signs is None or frequencies.n < settings.min_transform_columns:
        return Matrix.of(frequencies.omega * step, settings)
    return Structure.of(frequencies, settings, step)


@dataclass(frozen=True, eq=False)
class Matrix(Omega):
    """Any frequencies, in turns and transposed (n, m): float64 or float32."""

    values: Array
    settings: Settings = DEFAULT

    @classmethod
    def of(cls, omega: FloatArray, settings: Settings = DEFAULT) -> "Matrix":
        """The frequencies of an array (m, n), in radians."""
        return cls(np.ascontiguousarray(omega.T / (2 * np.pi)), settings)

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.values.shape
        return m, n

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def turns(self) -> FloatArray:
        return self.values

    @cached_property
    def half_squares(self) -> FloatArray:
        return 2 * np.pi**2 * self.values**2

    @cached_property
    def squared_norms(self) -> FloatArray:
        return np.asarray(4 * np.pi**2 * (self.values**2).sum(axis=0))

    def blocks(self, K: int) -> Iterator[slice]:
        step = max(self.settings.min_block_frequencies, self.settings.block_phases // K)
        return (slice(start, start + step) for start in range(0, self.values.shape[1], step))

    def prepare(self, C: FloatArray) -> FloatArray:
        return C

    def phases(self, prepared: FloatArray, K: int, block: slice) -> FloatArray:
        return np.asarray(prepared @ self.values[:, block])

    def zeros(self, K: int) -> FloatArray:
        return np.zeros((K, len(self.values)))

    def accumulate(self, G: FloatArray, block: slice, sums: FloatArray) -> None:
        sums += G @ self.values[:, block].T

    def finish(self, sums: FloatArray, K: int) -> FloatArray:
        return sums


@dataclass(frozen=True, eq=False)
class Structure(Omega):
    """Structured frequencies, in the notation of `ckm._core.hadamard`: factors (1 + 2 blocks, p) of
    the rounds, and lengths in turns (m,).

    LANES atoms at a time lie along vectors: prepared atoms and sums are (p, LANES) for each LANES
    atoms, after the first round.
    """

    factors: FloatArray
    lengths: FloatArray
    n: int
    settings: Settings = DEFAULT

    @classmethod
    def of(
        cls,
        frequencies: Frequencies,
        settings: Settings = DEFAULT,
        step: FloatArray | None = None,
    ) -> "Structure":
        """The frequencies of a sketch, times a step along each column (n,)."""
        factors = frequencies.factors.astype(np.float64)
        factors[0, : frequencies.n] *= frequencies.step if step is None else step
        return cls(factors, frequencies.turns.astype(np.float64), frequencies.n, settings)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.lengths), self.n

    @property
    def turns(self) -> FloatArray:
        return np.concatenate([part.T for part in self._rows()], axis=1)

    @cached_property
    def half_squares(self) -> FloatArray:
        return np.concatenate([2 * np.pi**2 * part.T**2 for part in self._rows()], axis=1)

    @cached_property
    def squared_norms(self) -> FloatArray:
        return np.concatenate([4 * np.pi**2 * (part**2).sum(axis=1) for part in self._rows()])

    def _rows(self) -> Iterator[FloatArray]:
        """Omega / 2 pi, block by block.

        The whole matrix would take the memory that the transform saves, so it is never kept.
        """
        p = self.factors.shape[1]
        m = len(self.lengths)
        for j in range(0, m, p):
            own = self.factors[[0, 1 + 2 * (j // p), 2 + 2 * (j // p)]]
            yield self.lengths[j : j + p, None] * hadamard.rows(own, min(p, m - j), self.n)

    @cached_property
    def _plan(self) -> tuple[Array, Array, Array, Array]:
        """What the compiled loops need: factors, padded lengths, ones, passes of the transform."""
        rounds, p = self.factors.shape
        padding = np.zeros(rounds // 2 * p - len(self.lengths))
        return (
            self.factors.ravel(),
            np.concatenate([self.lengths, padding]),
            np.ones(p),
            passes_of(p),
        )

    def _workspace(self) -> FloatArray:
        return aligned((self.factors.shape[1], LANES), np.float64)

    def blocks(self, K: int) -> Iterator[slice]:
        p = self.factors.shape[1]
        m = len(self.lengths)
        step = p * max(1, self.settings.block_phases // (K * p))
        return (slice(start, min(start + step, m)) for start in range(0, m, step))

    def prepare(self, C: FloatArray) -> FloatArray:
        prepared = self.zeros(len(C))
        _first_round(C, self._plan, prepared)
        return prepared

    def phases(self, prepared: FloatArray, K: int, block: slice) -> FloatArray:
        phases = np.empty((K, block.stop - block.start))
        _take_phases(prepared, self._plan, self._workspace(), block.start, phases)
        return phases

    def zeros(self, K: int) -> FloatArray:
        sums = aligned((-(-K // LANES) * self.factors.shape[1], LANES), np.float64)
        sums[:] = 0
        return sums

    def accumulate(self, G: FloatArray, block: slice, sums: FloatArray) -> None:
        _accumulate(G, self._plan, self._workspace(), block.start, sums)

    def finish(self, sums: FloatArray, K: int) -> FloatArray:
        projections = np.empty((K, self.n))
        _last_round(sums, self._plan, projections)
        return projections


@entry
def _first_round(C, plan, prepared):  # type: ignore[no-untyped-def]
    """H D_1 C^T."""
    factors, _, ones, passes = plan
    K, n = C.shape
    p = len(ones)
    for k in range(K):
        for d in range(n):
            prepared[k // LANES * p + d, k % LANES] = C[k, d]
    for start in range(0, len(prepared), p):
        transform(prepared, start, factors, 0, prepared, start, p, passes)


@entry
def _take_phases(prepared, plan, workspace, first, phases):  # type: ignore[no-untyped-def]
    """H D_3 H D_2 times the prepared atoms, and times the lengths, for the frequencies from `first`
    on.
    """
    factors, lengths, _, passes = plan
    K, size = phases.shape
    p = len(workspace)
    for k in range(0, K, LANES):
        for j in range(0, size, p):
            d = p + 2 * (first + j)
            transform(prepared, k // LANES * p, factors, d, workspace, 0, p, passes)
            transform(workspace, 0, factors, d + p, workspace, 0, p, passes)
            for a in range(min(LANES, K - k)):
                for i in range(min(p, size - j)):
                    phases[k + a, j + i] = lengths[first + j + i] * workspace[i, a]


@entry
def _accumulate(G, plan, workspace, first, sums):  # type: ignore[no-untyped-def]
    """The transpose of `_take_phases`, added to the sums."""
    factors, lengths, _, passes = plan
    K, size = G.shape
    p = len(workspace)
    for k in range(0, K, LANES):
        for j in range(0, size, p):
            d = p + 2 * (first + j)
            for i in range(p):
                for a in range(LANES):
                    workspace[i, a] = G[k + a, j + i] if k + a < K and j + i < size else 0.0
            transform(workspace, 0, lengths, first + j, workspace, 0, p, passes)
            transform(workspace, 0, factors, d + p, workspace, 0, p, passes)
            for i in range(p):
                for a in range(LANES):
                    sums[k // LANES * p + i, a] += factors[d + i] * workspace[i, a]


@entry
def _last_round(sums, plan, projections):  # type: ignore[no-untyped-def]
    """D_1 H times the sums."""
    factors, _, ones, passes = plan
    K, n = projections.shape
    p = len(ones)
    for start in range(0, len(sums), p):
        transform(sums, start, ones, 0, sums, start, p, passes)
    for k in range(K):
        for d in range(n):
            projections[k, d] = factors[d] * sums[k // LANES * p + d, k % LANES]
