"""The objective on a GPU, by torch in float64 or float32, for mixtures so large that it pays.

Results agree with those of the CPU to rounding. Arguments are copied to the GPU, and results back,
in one piece each: a copy takes as long as a thousand atoms do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
import torch

from ckm._decoding.objective import Objective
from ckm._util.arrays import ComplexArray, FloatArray


@dataclass(frozen=True, eq=False)
class GpuObjective(Objective):
    """Mixtures against a sketch, with everything that stays the same on a torch device.

    Parameters
    ----------
    z : tensor (2, m)
        Real and imaginary part of the sketch.
    turns : tensor (n, m)
        Omega / 2 pi, transposed.
    half_squares : tensor (n, m)
        Omega^2 / 2, transposed.
    squared_norms : tensor (m,)
        |omega_j|^2.
    block_pairs : int
        Atoms times frequencies per block.
    """

    z: torch.Tensor
    turns: torch.Tensor
    half_squares: torch.Tensor
    squared_norms: torch.Tensor
    block_pairs: int

    @classmethod
    def of(
        cls,
        z: ComplexArray,
        turns: FloatArray,
        device: torch.device,
        block_pairs: int,
        *,
        in_single: bool = False,
    ) -> "GpuObjective":
        """Copies on that device, in that precision."""
        dtype = torch.float32 if in_single else torch.float64
        t = torch.tensor(turns, device=device, dtype=dtype)
        half_squares = 2 * pi**2 * t**2
        return cls(
            z=torch.tensor(np.stack([z.real, z.imag]), device=device, dtype=dtype),
            turns=t,
            half_squares=half_squares,
            squared_norms=2 * half_squares.sum(dim=0),
            block_pairs=block_pairs,
        )

    def blurred_cost(
        self, C: FloatArray, alpha: FloatArray, width: float
    ) -> tuple[float, FloatArray, FloatArray, float]:
        c, a, w = self._to_device(C, alpha, np.asarray(width))
        total = self._zeros(1)
        slope = self._zeros(1)
        by_C = self._zeros(C.shape)
        by_alpha = self._zeros(len(C))
        for block in self._blocks(len(C)):
            cosines, sines = self._waves(c, block)
            blur = torch.exp(-0.5 * w * self.squared_norms[block])
            u = blur * (a @ cosines)
            v = -blur * (a @ sines)
            x = self.z[0, block] - u
            y = self.z[1, block] - v
            total += x @ x + y @ y
            slope += self.squared_norms[block] @ (x * u + y * v)
            x = x * blur
            y = y * blur
            by_alpha -= 2 * (cosines @ x - sines @ y)
            by_C += (sines.mul_(x).add_(cosines.mul_(y))) @ self.turns[:, block].T
        values = _to_host(total, slope, 4 * pi * a[:, None] * by_C, by_alpha)
        return float(values[0][0]), values[2], values[3], float(values[1][0])

    def gaussian_cost(
        self, C: FloatArray, alpha: FloatArray, widths: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        c, a, w = self._to_device(C, alpha, widths)
        total = self._zeros(1)
        by_C = self._zeros(C.shape)
        by_alpha = self._zeros(len(C))
        by_widths = self._zeros(C.shape)
        for block in self._blocks(len(C)):
            cosines, sines = self._waves(c, block)
            decays = torch.exp(-(w @ self.half_squares[:, block]))
            cosines = cosines.mul_(decays)
            sines = sines.mul_(decays)
            x = self.z[0, block] - a @ cosines
            y = self.z[1, block] + a @ sines
            total += x @ x + y @ y
            along = cosines * x - sines * y
            by_alpha -= 2 * along.sum(dim=1)
            by_widths += along @ self.half_squares[:, block].T
            by_C += (sines.mul_(x).add_(cosines.mul_(y))) @ self.turns[:, block].T
        values = _to_host(total, 4 * pi * a[:, None] * by_C, by_alpha, 2 * a[:, None] * by_widths)
        return float(values[0][0]), values[1], values[2], values[3]

    def residual(self, C: FloatArray, alpha: FloatArray, width: float = 0.0) -> ComplexArray:
        c, a, w = self._to_device(C, alpha, np.asarray(width))
        model = torch.empty_like(self.z)
        for block in self._blocks(len(C)):
            cosines, sines = self._waves(c, block)
            model[0, block] = a @ cosines
            model[1, block] = -(a @ sines)
        (parts,) = _to_host(self.z - torch.exp(-0.5 * w * self.squared_norms) * model)
        return np.asarray(parts[0] + 1j * parts[1])

    def correlations(self, points: FloatArray, r: ComplexArray) -> FloatArray:
        c, r_real, r_imag = self._to_device(points, r.real, r.imag)
        totals = self._zeros(len(points))
        for block in self._blocks(len(points)):
            cosines, sines = self._waves(c, block)
            totals += cosines @ r_real[block] - sines @ r_imag[block]
        return _to_host(totals)[0]

    def correlation_slopes(
        self, points: FloatArray, r: ComplexArray
    ) -> tuple[FloatArray, FloatArray]:
        c, r_real, r_imag = self._to_device(points, r.real, r.imag)
        totals = self._zeros(len(points))
        slopes = self._zeros(points.shape)
        for block in self._blocks(len(points)):
            cosines, sines = self._waves(c, block)
            totals += cosines @ r_real[block] - sines @ r_imag[block]
            by_phase = sines.mul_(r_real[block]).add_(cosines.mul_(r_imag[block]))
            slopes -= 2 * pi * by_phase @ self.turns[:, block].T
        values = _to_host(totals, slopes)
        return values[0], values[1]

    def reduced_equations(self, C: FloatArray, width: float = 0.0) -> tuple[FloatArray, FloatArray]:
        c, w = self._to_device(C, np.asarray(width))
        R = self._zeros((0, len(C) + 1))
        for block in self._blocks(len(C)):
            cosines, sines = self._waves(c, block)
            blur = torch.exp(-0.5 * w * self.squared_norms[block])
            real = torch.vstack([cosines.mul_(blur), self.z[:1, block]])
            imag = torch.vstack([sines.mul_(-blur), self.z[1:, block]])
            R = torch.linalg.qr(torch.cat([R, real.T, imag.T]), mode="r").R
        (found,) = _to_host(R)
        return found[:, :-1], found[:, -1]

    def _waves(self, c: torch.Tensor, block: slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of the phases of each atom at the frequencies of a block."""
        phases = c @ self.turns[:, block]
        phases = phases.sub_(torch.round(phases)).mul_(2 * pi)
        return torch.cos(phases), torch.sin(phases)

    def _to_device(self, *arrays: FloatArray) -> list[torch.Tensor]:
        """Copies on the device."""
        parts = [np.asarray(array, np.float64).ravel() for array in arrays]
        flat = torch.from_numpy(np.concatenate(parts)).to(self.z)
        sizes = [array.size for array in arrays]
        return [
            part.view(array.shape) for part, array in zip(flat.split(sizes), arrays, strict=True)
        ]

    def _zeros(self, shape: Any) -> torch.Tensor:
        return torch.zeros(shape, dtype=self.z.dtype, device=self.z.device)

    def _blocks(self, K: int) -> Iterator[slice]:
        m = self.z.shape[1]
        step = max(1, self.block_pairs // K)
        return (slice(start, min(start + step, m)) for start in range(0, m, step))


def _to_host(*tensors: torch.Tensor) -> list[FloatArray]:
    """Copies on the CPU, in float64."""
    flat = torch.cat([tensor.ravel() for tensor in tensors]).double().cpu().numpy()
    ends = np.cumsum([tensor.numel() for tensor in tensors])[:-1]
    return [
        part.reshape(tensor.shape)
        for part, tensor in zip(np.split(flat, ends), tensors, strict=True)
    ]
