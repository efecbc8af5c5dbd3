"""Plain torch in float64, on any device: for GPUs without Triton. It agrees with the exact kernels
to rounding; its sums are marked `exact=False`.
"""

from typing import Any

import numpy as np
import torch

from ckm._core.frequencies import Frequencies
from ckm._core.moments import has_full_moment, weighted_squares
from ckm._core.pool import Pool
from ckm._core.tally import UNIT, Tally
from ckm._kernels import Kernel
from ckm._kernels.gpu.sampling import draw_pool
from ckm._util.arrays import FloatArray
from ckm._util.device import DeviceRows
from ckm.errors import NonFiniteError

_PAIRS = 2**24  # phases in memory at a time: 128 MB


class TorchKernel(Kernel):
    """Plain float64 sums where the rows are."""

    def tally(
        self, frequencies: Frequencies, rows: Any, weights: FloatArray | None = None
    ) -> Tally:
        """The sums over these rows, to rounding, with their bounds and moments."""
        return tally(frequencies, rows, weights)

    def draw_pool(
        self,
        rng: np.random.Generator,
        rows: Any,
        weights: FloatArray | None,
        capacity: int,
        frequencies: Frequencies,
        limit: float = np.inf,
    ) -> Pool:
        """A sample of at most `capacity` of these rows, drawn where they are."""
        return draw_pool(rng, rows, weights, capacity, frequencies, limit)


def tally(frequencies: Frequencies, rows: Any, weights: Any = None) -> Tally:
    """sums_j = sum_l beta_l (cos, sin)(omega_j^T (x_l - origin)), with bounds and moments; rows are
    an array or a tensor.
    """
    m = frequencies.m
    n = frequencies.n
    if not len(rows):
        return Tally.empty(m, n)
    rows = _as_tensor(rows.synchronized() if isinstance(rows, DeviceRows) else rows)
    device = rows.device
    kind = torch.float64
    origin = torch.tensor(frequencies.origin, dtype=kind, device=device)
    omega = torch.tensor(frequencies.omega, dtype=kind, device=device)
    if weights is None:
        beta = torch.ones(len(rows), dtype=kind, device=device)
    else:
        beta = _as_tensor(weights).to(device, kind)
    full = has_full_moment(m, n)
    sums = torch.zeros((2, m), dtype=kind, device=device)
    first = torch.zeros(n, dtype=kind, device=device)
    second = torch.zeros((n, n) if full else (n,), dtype=kind, device=device)
    step = max(1, _PAIRS // m)
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        v = rows[part].to(kind) - origin
        w = beta[part]
        require_finite(v, start)
        phases = v @ omega.T
        sums += torch.stack([w @ torch.cos(phases), w @ torch.sin(phases)])
        first += w @ v
        second += weighted_squares(v, w, full)
    lower, upper = (bound.to(kind) for bound in (rows.amin(dim=0), rows.amax(dim=0)))
    arrays = (sums / UNIT, lower, upper, first, second)
    total, least, most, mean, square = (array.cpu().numpy() for array in arrays)
    return Tally(
        total,
        float(beta.sum()),
        len(rows),
        least,
        most,
        mean,
        square,
        squared_weight=float(beta @ beta),
    )


def _as_tensor(numbers: Any) -> Any:
    """A tensor as it is; an array as a tensor, copied, because torch has no read-only tensors."""
    if isinstance(numbers, torch.Tensor):
        return numbers
    return torch.tensor(np.ascontiguousarray(numbers))


def require_finite(v: Any, start: int = 0) -> None:
    """Refuse centred rows that are not finite in float32; `start` is the first row's number."""
    bad = (~torch.isfinite(v.float())).nonzero()
    if len(bad):
        row, column = map(int, bad[0])
        raise NonFiniteError(start + row, column, float(v[row, column]))
