"""What the local runner does with rows on a card beside summing them: sampling."""

from typing import Any

import numpy as np
import torch

from ckm.frequencies import Frequencies
from ckm.kernels.lanes import launching
from ckm.pool import Pool
from ckm.readonly import Array
from ckm.tensors import CardRows, has_triton

_ROWS = 64  # of a program


def draw_pool(rng: np.random.Generator, rows: CardRows, weights: Array | None, capacity: int, frequencies: Frequencies) -> Pool:
    """As `Pool.draw` with the importance of `runners.local`, on the card: only the rows of the pool leave it."""
    x = rows.tensor
    device, count = x.device, len(x)
    random = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
    odds = torch.ones(count, device=device) if weights is None else torch.tensor(weights, dtype=torch.float32, device=device)
    if frequencies.spread is not None:
        odds = odds * (0.5 + _squares(x, frequencies) * (0.5 / x.shape[1] * frequencies.scale / frequencies.spread))
    keys = torch.empty(count, device=device).exponential_(generator=random) / odds
    least, kept = torch.topk(keys, min(capacity, count), largest=False)
    drawn, own = (tensor.double().cpu().numpy() for tensor in (least, odds[kept]))
    which = kept.cpu().numpy()
    beta = np.ones(len(which)) if weights is None else weights[which]
    return Pool(np.asarray(CardRows(x[kept])), beta, own, drawn, capacity, count)


def _squares(x: Any, frequencies: Frequencies) -> Any:
    """The squared length of each row from the origin, in steps, in float32."""
    (count, n), device = x.shape, x.device
    x = x if x.is_floating_point() else x.double()
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    origin, steps = torch.tensor(frequencies.origin, dtype=kind, device=device), torch.tensor(frequencies.step, device=device).float()
    if not has_triton(device):
        return ((x - origin).float() / steps).square().sum(dim=1)
    from ckm.kernels.distances import measure_rows

    squares, D = torch.empty(count, device=device), 16 if n <= 16 else 64
    with launching(measure_rows, n, x.dtype, x.stride(), x.data_ptr() % 16), torch.cuda.device(device):
        measure_rows[(-(-count // _ROWS),)](x, *x.stride(), origin, steps, count, squares, n, R=_ROWS, D=D)
    return squares
