"""The objective in float32: one compiled call per evaluation, panel by panel.

The decoder evaluates a mixture thousands of times, mostly of some tens of atoms, in less than a
tenth of a millisecond each: with matrix products, half of that went around the calls and through
memory. A panel is `PANEL` frequencies, whose phases, waves and derivatives stay in the cache
between the steps. The products with Omega are the loops that compare rows with centroids
(`ckm._kernels.cpu.nearest`), with frequencies in the place of rows, and sums over frequencies keep
`LANES` of them apart until the end.
"""

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import types

from ckm._decoding.atom_loops import (
    add_atom,
    blur_residual,
    differentiate_atom,
    differentiate_gaussian,
    square,
    subtract_gaussian,
)
from ckm._decoding.objective_cpu import CpuObjective
from ckm._decoding.waves import decay
from ckm._kernels.cpu.llvm import (
    FLOATS,
    LANES,
    data_pointers,
    fma,
    has_feature,
    i64,
    intrinsic,
    length,
    load,
    loop,
    store,
    variable,
)
from ckm._kernels.cpu.nearest import PANEL, TILE, score_all
from ckm._util.arrays import Array, Float32Array, FloatArray, aligned_arrays
from ckm._util.jit import entry, leaf, summing

# Columns whose sums are added up beside each other: those of 6 x 4 fit 32 registers of 512 bits.
_BESIDE = 4
# Numbers of all centres (K n), LANES sums for each: beyond 2 x 16 MB, matrix products take over.
_MAX_NUMBERS = 2**18

_last = threading.local()  # the workspace of each thread's last call


@dataclass(frozen=True, eq=False)
class PanelObjective(CpuObjective):
    """Mixtures against a sketch z (m,), with the frequencies Omega in float32."""

    @cached_property
    def _panels(self) -> tuple[Array, ...]:
        """`_Panels`, as a plain tuple."""
        z = np.stack([self.z.real, self.z.imag])
        return tuple(
            _Panels(
                _in_panels(self.omega.turns),
                _in_panels(self.omega.half_squares),
                _in_panels(np.vstack([z, self.omega.squared_norms])),
            )
        )

    def blurred_cost(
        self, C: FloatArray, alpha: FloatArray, width: float
    ) -> tuple[float, FloatArray, FloatArray, float]:
        if C.size > _MAX_NUMBERS:
            return super().blurred_cost(C, alpha, width)
        by_C = np.empty(C.shape)
        by_alpha = np.empty(len(C))
        workspace = _workspace_for(C, alpha)
        half = np.float32(width / 2)
        total, slope = _blurred_cost(self._panels, len(self.z), half, workspace, by_C, by_alpha)
        return total, by_C, by_alpha, slope

    def gaussian_cost(
        self, C: FloatArray, alpha: FloatArray, widths: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        if C.size > _MAX_NUMBERS:
            return super().gaussian_cost(C, alpha, widths)
        by_C = np.empty(C.shape)
        by_alpha = np.empty(len(C))
        by_widths = np.empty(C.shape)
        workspace = _workspace_for(C, alpha, widths)
        total = _gaussian_cost(self._panels, len(self.z), workspace, by_C, by_alpha, by_widths)
        return total, by_C, by_alpha, by_widths


class _Panels(NamedTuple):
    """Frequencies and sketch, panel by panel; zeros where there are none."""

    turns: Float32Array  # (P, n + padding, PANEL): Omega / 2 pi
    half_squares: Float32Array  # the same: Omega^2 / 2
    sketch: Float32Array  # (P, 4, PANEL): z, real and imaginary part, and |omega_j|^2


def _in_panels(lines: FloatArray) -> Float32Array:
    """Lines (n, m) as (P, n + padding, PANEL)."""
    n, m = lines.shape
    padded = np.zeros((n + -n % _BESIDE, m + -m % PANEL), np.float32)
    padded[:n, :m] = lines
    return np.ascontiguousarray(padded.reshape(len(padded), -1, PANEL).swapaxes(0, 1))


class _Workspace(NamedTuple):
    """Memory for K atoms, or a few more, whose numbers are zero."""

    centres: Float32Array  # (K + padding, n)
    widths: Float32Array  # the same
    alpha: Float32Array  # (K + padding,)
    zeros: Float32Array  # the same
    phases: Float32Array  # (K + padding, PANEL): of one panel, then the derivatives in them
    exponents: Float32Array  # the same, of their decay
    cosines: Float32Array
    sines: Float32Array
    parts: Float32Array  # (3, PANEL): the residual, real and imaginary part, and the blur
    by_phases: Float32Array  # (K + padding, n + padding, LANES): sums over the panels
    by_exponents: Float32Array  # the same

    @classmethod
    def of(cls, K: int, n: int) -> "_Workspace":
        """Memory for K atoms in n columns, all zero."""
        rows = K + -K % TILE
        of_panel = ((rows, PANEL),) * 4
        sums = ((rows, n + -n % _BESIDE, LANES),) * 2
        shapes = ((rows, n), (rows, n), (rows,), (rows,), *of_panel, (3, PANEL), *sums)
        kind = np.dtype(np.float32)
        arrays = aligned_arrays(*((shape, kind) for shape in shapes))[1]
        for array in arrays:
            array[...] = 0
        return cls(*arrays)


def _workspace_for(
    C: FloatArray, alpha: FloatArray, widths: FloatArray | None = None
) -> tuple[Array, ...]:
    """`_Workspace` with these atoms, as a plain tuple; that of this thread's last call, if it
    fits.
    """
    if getattr(_last, "shape", None) != C.shape:
        _last.workspace = tuple(_Workspace.of(*C.shape))
        _last.shape = C.shape
    workspace: tuple[Array, ...] = _last.workspace
    K = len(C)
    workspace[0][:K] = C
    workspace[2][:K] = alpha
    if widths is not None:
        workspace[1][:K] = widths
    return workspace


@entry
def _blurred_cost(panels, m, half_width, workspace, by_C, by_alpha):  # type: ignore[no-untyped-def]
    """Write the gradients; return the cost and its slope in the width."""
    turns, _, sketch = panels
    centres, _, alpha, zeros, phases, _, cosines, sines, parts, by_phases, _ = workspace
    _clear(by_phases)
    by_alpha[:] = 0.0
    cost = 0.0
    slope = 0.0
    for p in range(len(turns)):
        size = min(PANEL, m - p * PANEL)
        real, imag, blur = parts[0][:size], parts[1][:size], parts[2][:size]
        z_real, z_imag, squares = sketch[p, 0][:size], sketch[p, 1][:size], sketch[p, 2][:size]
        score_all(turns[p], centres, zeros, phases)
        _prepare(squares, half_width, blur, real, imag)
        for k in range(len(by_alpha)):
            add_atom(alpha[k], phases[k][:size], cosines[k], sines[k], real, imag)
        own, rise = blur_residual(z_real, z_imag, blur, squares, real, imag)
        cost += own
        slope += rise
        for k in range(len(by_alpha)):
            by_alpha[k] -= 2 * differentiate_atom(
                real, imag, cosines[k], sines[k], phases[k][:size]
            )
        _add_panel(phases, turns[p], by_phases)
    _finish(by_phases, alpha, 4 * np.pi, by_C)
    return cost, slope


@entry
def _gaussian_cost(panels, m, workspace, by_C, by_alpha, by_widths):  # type: ignore[no-untyped-def]
    """Write the gradients; return the cost."""
    turns, half_squares, sketch = panels
    centres, widths, alpha, zeros, phases, exponents, cosines, sines = workspace[:8]
    parts, by_phases, by_exponents = workspace[8:]
    _clear(by_phases)
    _clear(by_exponents)
    by_alpha[:] = 0.0
    cost = 0.0
    for p in range(len(turns)):
        size = min(PANEL, m - p * PANEL)
        real, imag = parts[0][:size], parts[1][:size]
        score_all(turns[p], centres, zeros, phases)
        score_all(half_squares[p], widths, zeros, exponents)
        for j in range(size):
            real[j] = sketch[p, 0, j]
            imag[j] = sketch[p, 1, j]
        for k in range(len(by_alpha)):
            own = phases[k][:size]
            subtract_gaussian(alpha[k], own, exponents[k], cosines[k], sines[k], real, imag)
        for k in range(len(by_alpha)):
            by_alpha[k] -= 2 * differentiate_gaussian(
                real, imag, cosines[k], sines[k], phases[k][:size], exponents[k]
            )
        cost += square(real) + square(imag)
        _add_panel(phases, turns[p], by_phases)
        _add_panel(exponents, half_squares[p], by_exponents)
    _finish(by_phases, alpha, 4 * np.pi, by_C)
    _finish(by_exponents, alpha, 2.0, by_widths)
    return cost


@leaf
def _clear(sums):  # type: ignore[no-untyped-def]
    for k in range(sums.shape[0]):
        for d in range(sums.shape[1]):
            for lane in range(LANES):
                sums[k, d, lane] = 0.0


@summing
def _prepare(squares, half_width, blur, real, imag):  # type: ignore[no-untyped-def]
    """The blur of a width, and a model of no atoms."""
    for j in range(len(blur)):
        blur[j] = decay(squares[j] * half_width)
        real[j] = 0.0
        imag[j] = 0.0


@leaf
def _finish(sums, alpha, factor, gradient):  # type: ignore[no-untyped-def]
    """The gradient in centres or widths from the sums in lanes."""
    K, n = gradient.shape
    for k in range(K):
        for d in range(n):
            gradient[k, d] = factor * alpha[k] * _sum_lanes(sums[k, d])


@summing
def _sum_lanes(lanes):  # type: ignore[no-untyped-def]
    total = lanes.dtype.type(0)
    for lane in range(LANES):
        total += lanes[lane]
    return total


@intrinsic
def _add_panel(context: Any, G: Any, x: Any, sums: Any) -> Any:
    """sums[k, d, :] += G[k] * x[d], LANES numbers after LANES numbers, for float32 arrays G (a
    multiple of TILE, PANEL), x (a multiple of _BESIDE, PANEL) and sums (as many, as many, LANES).
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        own, other, target = data_pointers(context, builder, signature, args, 0, 1, 2)
        rows = length(context, builder, signature.args[0], args[0], 0)
        columns = length(context, builder, signature.args[1], args[1], 0)
        beside = _BESIDE if has_feature(context, "avx512f") else 1
        with (
            loop(builder, i64(0), rows, TILE) as (k, _),
            loop(builder, i64(0), columns, beside) as (d, _),
        ):
            lines = [builder.add(k, i64(t)) for t in range(TILE)]
            others = [builder.add(d, i64(t)) for t in range(beside)]
            places = [
                [builder.mul(builder.add(builder.mul(a, columns), b), i64(LANES)) for b in others]
                for a in lines
            ]
            totals = [
                [variable(builder, load(builder, target, place, FLOATS)) for place in line]
                for line in places
            ]
            for start in range(0, PANEL, LANES):
                values = [_part(builder, other, b, start) for b in others]
                for a, own_totals in zip(lines, totals, strict=True):
                    factor = _part(builder, own, a, start)
                    for value, total in zip(values, own_totals, strict=True):
                        builder.store(fma(builder, factor, value, builder.load(total)), total)
            for line, own_totals in zip(places, totals, strict=True):
                for place, total in zip(line, own_totals, strict=True):
                    store(builder, builder.load(total), target, place)
        return context.get_dummy_value()

    return types.void(G, x, sums), generate


def _part(builder: Any, pointer: Any, line: Any, start: int) -> Any:
    """LANES numbers of a line of PANEL, from `start` on."""
    place = builder.add(builder.mul(line, i64(PANEL)), i64(start))
    return load(builder, pointer, place, FLOATS)
