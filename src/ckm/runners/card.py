"""What the local runner does with rows on a card beside summing them: sampling."""

import numpy as np
import torch

from ckm.frequencies import Frequencies
from ckm.pool import Pool
from ckm.readonly import Array
from ckm.tensors import CardRows


def draw_pool(rng: np.random.Generator, rows: CardRows, weights: Array | None, capacity: int, frequencies: Frequencies) -> Pool:
    """As `Pool.draw` with the importance of `runners.local`, on the card: only the rows of the pool leave it."""
    x = rows.tensor
    device, count = x.device, len(x)
    random = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
    odds = torch.ones(count, device=device) if weights is None else torch.tensor(weights, dtype=torch.float32, device=device)
    if frequencies.spread is not None:
        around = x - torch.tensor(frequencies.origin, dtype=x.dtype if x.is_floating_point() else torch.float64, device=device)
        squares = (around.float() / torch.tensor(frequencies.step, dtype=torch.float32, device=device)).square().mean(dim=1)
        odds = odds * (0.5 + 0.5 * squares * (frequencies.scale / frequencies.spread))
    keys = torch.empty(count, device=device).exponential_(generator=random) / odds
    least, kept = torch.topk(keys, min(capacity, count), largest=False)
    drawn, own = (tensor.double().cpu().numpy() for tensor in (least, odds[kept]))
    which = kept.cpu().numpy()
    beta = np.ones(len(which)) if weights is None else weights[which]
    return Pool(np.asarray(CardRows(x[kept])), beta, own, drawn, capacity, count)
