"""Sampling of rows on a GPU: the pool of a block, drawn where its rows are."""

from typing import Any

import numpy as np
import torch

from ckm._core.frequencies import Frequencies
from ckm._core.pool import Pool
from ckm._kernels.cpu.kernel import CpuKernel
from ckm._kernels.gpu.streams import STREAMS
from ckm._util.arrays import FloatArray
from ckm._util.device import DeviceRows, has_triton

_PROGRAM_ROWS = 64  # rows per Triton program


def draw_pool(
    rng: np.random.Generator,
    rows: Any,
    weights: FloatArray | None,
    capacity: int,
    frequencies: Frequencies,
    limit: float = np.inf,
) -> Pool:
    """A sample of these rows, drawn where they are: only the rows of the pool leave a GPU.

    As `CpuKernel.draw_pool`, which draws from rows on the CPU, with random numbers of the GPU.
    """
    if not isinstance(rows, DeviceRows):
        return CpuKernel().draw_pool(rng, rows, weights, capacity, frequencies, limit)
    device = rows.tensor.device
    count = len(rows)
    with STREAMS.urgent(device):
        x = rows.synchronized()
        random = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
        there = (
            None if weights is None else torch.tensor(weights, dtype=torch.float32, device=device)
        )
        keys, odds = _weighed(
            torch.empty(count, device=device).exponential_(generator=random), x, there, frequencies
        )
        least, kept = torch.topk(keys, min(capacity, count), largest=False)
        drawn, own = torch.stack([least, odds[kept]]).double().cpu().numpy()
        which = kept.cpu().numpy()
        chosen = np.asarray(DeviceRows(x[kept]))
    beta = np.ones(len(which)) if weights is None else weights[which]
    return Pool(chosen, beta, own, drawn, capacity, count)


def _weighed(keys: Any, x: Any, weights: Any, frequencies: Frequencies) -> tuple[Any, Any]:
    """Keys divided by odds, and odds: a row's weight times its `importance` (see `CpuKernel`), or
    its weight alone if the variance of the data is not known.
    """
    x = x if x.is_floating_point() else x.double()
    count, n = x.shape
    device = x.device
    if frequencies.spread is None:
        odds = torch.ones(count, device=device) if weights is None else weights
        return keys / odds, odds
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    origin = torch.tensor(frequencies.origin, dtype=kind, device=device)
    scales = torch.tensor(1 / frequencies.step, device=device).float()
    factor = 0.5 / n * frequencies.scale / frequencies.spread
    if not has_triton(device):
        odds = 0.5 + factor * ((x - origin).float() * scales).square().sum(dim=1)
        odds = odds if weights is None else odds * weights
        return keys / odds, odds
    from ckm._kernels.gpu.keys import weigh_keys

    odds = torch.empty(count, device=device)
    D = 16 if n <= 16 else 64
    with STREAMS.launching(
        weigh_keys, n, device, x.dtype, x.stride(), x.data_ptr() % 16, weights is None
    ):
        weigh_keys[(-(-count // _PROGRAM_ROWS),)](
            x, *x.stride(), origin, scales, odds if weights is None else weights, factor, count,
            keys, odds, n,
            R=_PROGRAM_ROWS, D=D, WEIGHTED=weights is not None,
        )  # fmt: skip
    return keys, odds
