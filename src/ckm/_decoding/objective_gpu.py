"""The objectives of the decoders on a card: those of `atoms.py`, by torch in float64, for mixtures
so large that it pays.

Results agree with those of the CPU to rounding. Numbers go to the card and come back in one piece
each, since a copy takes as long as a thousand atoms do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
import torch

from ckm._util.arrays import Array

_PAIRS = 2**23  # of atoms and frequencies at a time: 64 MB for each of the arrays


@dataclass(frozen=True, eq=False)
class CardCosts:
    """A sketch z (2, m), its frequencies as turns and halves (n, m), and |omega|^2 (m,), as in
    `products.py`, on a card.
    """

    z: Any
    turns: Any
    halves: Any
    squares: Any

    @classmethod
    def of(cls, z: Array, turns: Array, device: Any) -> "CardCosts":
        """Copies on that card."""
        t = torch.tensor(turns, device=device)
        halves = 2 * pi**2 * t**2
        return cls(
            torch.tensor(np.stack([z.real, z.imag]), device=device),
            t,
            halves,
            2 * halves.sum(dim=0),
        )

    def blurred_cost(
        self, C: Array, alpha: Array, width: float
    ) -> tuple[float, Array, Array, float]:
        """As in `atoms.py`."""
        (c, a, w), K = self._there(C, alpha, np.asarray(width)), len(C)
        total, slope, by_C, by_alpha = (
            self._zeros(1),
            self._zeros(1),
            self._zeros(C.shape),
            self._zeros(K),
        )
        for at in self._blocks(K):
            cosines, sines = self._waves(c, at)
            blur = torch.exp(-0.5 * w * self.squares[at])
            u, v = blur * (a @ cosines), -blur * (a @ sines)
            x, y = self.z[0, at] - u, self.z[1, at] - v
            total += x @ x + y @ y
            slope += self.squares[at] @ (x * u + y * v)
            x, y = x * blur, y * blur
            by_alpha -= 2 * (cosines @ x - sines @ y)
            by_C += (sines.mul_(x).add_(cosines.mul_(y))) @ self.turns[:, at].T
        value, rise, in_C, in_alpha = _here(total, slope, 4 * pi * a[:, None] * by_C, by_alpha)
        return float(value[0]), in_C, in_alpha, float(rise[0])

    def gaussian_cost(
        self, C: Array, alpha: Array, widths: Array
    ) -> tuple[float, Array, Array, Array]:
        """As in `atoms.py`."""
        (c, a, w), K = self._there(C, alpha, widths), len(C)
        total, by_C, by_alpha, by_widths = (
            self._zeros(1),
            self._zeros(C.shape),
            self._zeros(K),
            self._zeros(C.shape),
        )
        for at in self._blocks(K):
            cosines, sines = self._waves(c, at)
            decays = torch.exp(-(w @ self.halves[:, at]))
            cosines, sines = cosines.mul_(decays), sines.mul_(decays)
            x, y = self.z[0, at] - a @ cosines, self.z[1, at] + a @ sines
            total += x @ x + y @ y
            along = cosines * x - sines * y
            by_alpha -= 2 * along.sum(dim=1)
            by_widths += along @ self.halves[:, at].T
            by_C += (sines.mul_(x).add_(cosines.mul_(y))) @ self.turns[:, at].T
        value, in_C, in_alpha, in_widths = _here(
            total, 4 * pi * a[:, None] * by_C, by_alpha, 2 * a[:, None] * by_widths
        )
        return float(value[0]), in_C, in_alpha, in_widths

    def residual(self, C: Array, alpha: Array, width: float) -> Array:
        """r = z - sum_k alpha_k a(c_k), blurred."""
        (c, a, w), model = self._there(C, alpha, np.asarray(width)), torch.empty_like(self.z)
        for at in self._blocks(len(C)):
            cosines, sines = self._waves(c, at)
            model[0, at], model[1, at] = a @ cosines, -(a @ sines)
        (found,) = _here(self.z - torch.exp(-0.5 * w * self.squares) * model)
        return np.asarray(found[0] + 1j * found[1])

    def correlations(self, points: Array, r: Array) -> Array:
        """Re <a(c), r> for every row c of `points`."""
        (c, r_real, r_imag), found = self._there(points, r.real, r.imag), self._zeros(len(points))
        for at in self._blocks(len(points)):
            cosines, sines = self._waves(c, at)
            found += cosines @ r_real[at] - sines @ r_imag[at]
        return _here(found)[0]

    def fewer_equations(self, C: Array, width: float) -> tuple[Array, Array]:
        """As in `atoms.py`."""
        (c, w), known = self._there(C, np.asarray(width)), self._zeros((0, len(C) + 1))
        for at in self._blocks(len(C)):
            cosines, sines = self._waves(c, at)
            blur = torch.exp(-0.5 * w * self.squares[at])
            real, imag = (
                torch.vstack([cosines.mul_(blur), self.z[:1, at]]),
                torch.vstack([sines.mul_(-blur), self.z[1:, at]]),
            )
            known = torch.linalg.qr(torch.cat([known, real.T, imag.T]), mode="r").R
        (found,) = _here(known)
        return found[:, :-1], found[:, -1]

    def _waves(self, c: Any, at: slice) -> tuple[Any, Any]:
        """Cosines and sines of the phases of each atom at the frequencies `at`."""
        phases = c @ self.turns[:, at]
        phases = phases.sub_(torch.round(phases)).mul_(2 * pi)
        return torch.cos(phases), torch.sin(phases)

    def _there(self, *arrays: Array) -> list[Any]:
        """Copies on the card."""
        flat = torch.from_numpy(
            np.concatenate([np.asarray(array, np.float64).ravel() for array in arrays])
        ).to(self.z.device)
        return [
            part.view(array.shape)
            for part, array in zip(
                flat.split([array.size for array in arrays]), arrays, strict=True
            )
        ]

    def _zeros(self, shape: Any) -> Any:
        return torch.zeros(shape, dtype=torch.float64, device=self.z.device)

    def _blocks(self, K: int) -> Iterator[slice]:
        m, step = self.z.shape[1], max(1, _PAIRS // K)
        return (slice(start, min(start + step, m)) for start in range(0, m, step))


def _here(*tensors: Any) -> list[Array]:
    """Copies on the CPU."""
    flat = torch.cat([tensor.ravel() for tensor in tensors]).cpu().numpy()
    ends = np.cumsum([tensor.numel() for tensor in tensors])[:-1]
    return [
        part.reshape(tensor.shape)
        for part, tensor in zip(np.split(flat, ends), tensors, strict=True)
    ]
