"""The kernel for cards: rows that lie there are summed in place, rows on the CPU are copied there
while others are summed.

With at most `EXACT_COLUMNS` columns it gives the bits of the numba kernel. With more, and for
structured frequencies, phases come from the matrix units, with numbers as sums of two float16
numbers each: such sketches agree to 1e-6 and are marked `exact=False`.

Each call has a stream and buffers to itself, so a runner with a few threads keeps a card busy while
rows are copied, and uses every card there is. Without a card the numba kernel sums the rows where
they are; on one without Triton, `plain.py` does.
"""

import logging
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from ckm._core.frequencies import Frequencies
from ckm._core.moments import has_full_moment
from ckm._core.tally import Tally
from ckm._kernels import Plan
from ckm._kernels import torch as plain
from ckm._kernels.cpu import dense as numba
from ckm._kernels.gpu.streams import in_turn, lane, launching
from ckm._util.arrays import Array
from ckm._util.device import (
    DEVICE_BYTES,
    DeviceRows,
    has_triton,
    is_on_gpu,
    is_tensor,
    rows_at_once,
)

EXACT_COLUMNS = 64
STAGED_BYTES = 2**26  # of rows from the CPU that are summed at once
_COPIERS = 12  # threads that copy rows to a card, at most
_SHARE = 64  # of a card's memory that a block may take
_TRIED = 300  # rows that tell whether a card gives the bits of the CPU

_tried = dict[tuple[Any, int, int], bool]()
_log = logging.getLogger(__name__)


def tally(frequencies: Frequencies, rows: Any, weights: Array | None = None) -> Tally:
    """The tally of `rows`: an array, a tensor, or rows on a card."""
    if not len(rows):
        return Tally.empty(frequencies.m, frequencies.n)
    if is_on_gpu(rows):
        rows = DeviceRows.of(rows)
    elif not isinstance(rows, DeviceRows):
        rows = rows.detach().numpy() if is_tensor(rows) else rows
        if not torch.cuda.is_available():
            return numba.tally(frequencies, rows, weights)
    return _on_stream(frequencies, rows, weights)


def plan(n_features: int, n_threads: int, on_card: bool) -> Plan | None:
    """Blocks that are worth a launch; two threads for each card keep it busy, and more are needed
    where they also copy rows to it.
    """
    if not torch.cuda.is_available():
        return None
    cards = torch.cuda.device_count()
    share = min(torch.cuda.get_device_properties(i).total_memory for i in range(cards)) // _SHARE
    block_rows = rows_at_once(n_features, min(share, DEVICE_BYTES if on_card else STAGED_BYTES))
    return Plan(block_rows, min((2 if on_card else _COPIERS) * cards, max(2, n_threads)))


def _on_stream(frequencies: Frequencies, rows: Any, weights: Array | None) -> Tally:
    """The tally, computed in a stream of its own; returns when it is done, so that buffers may be
    used again.
    """
    resident = isinstance(rows, DeviceRows)
    with lane(rows.tensor.device if resident else None) as own:
        device = own.device
        with in_turn(device) if resident else nullcontext():
            rows = rows.synchronized() if resident else own.copied("rows", rows)
            rows = rows if rows.dtype in (torch.float32, torch.float64) else rows.double()
            beta = None if weights is None else own.copied("weights", weights)
            if not has_triton(device):
                return plain.tally(frequencies, rows, beta)
            from ckm._kernels.gpu import launch as card

            split = frequencies.n > EXACT_COLUMNS or frequencies.signs is not None
            way = (
                frequencies.m,
                frequencies.n,
                device,
                rows.dtype,
                rows.stride(),
                rows.data_ptr() % 16,
                beta is None,
                split,
            )
            with launching(card, *way):
                if split:
                    found, exact = card.split_sums(frequencies, rows, beta), False
                else:
                    found, exact = (
                        card.exact_sums(frequencies, rows, beta),
                        _gives_the_bits(frequencies, device),
                    )
        sums, notes = found.collected()
        return _collected(
            frequencies, rows, weights, sums if exact else sums.astype(np.float64), notes
        )


def _collected(
    frequencies: Frequencies, rows: Any, weights: Array | None, sums: Array, notes: Array
) -> Tally:
    lower, upper, first, second = notes[0], -notes[1], notes[2], notes[3]
    # NaN shows in the moments, overflow in the bounds
    with np.errstate(over="ignore", invalid="ignore"):
        ends = np.array([lower, upper] - frequencies.origin, np.float32)
    if not (np.isfinite(ends).all() and np.isfinite(first).all()):
        plain.require_finite(rows.double() - torch.tensor(frequencies.origin, device=rows.device))
    if has_full_moment(frequencies.m, frequencies.n):
        second = notes[4:]
    weight = float(len(rows)) if weights is None else float(np.sum(weights))
    return Tally(sums, weight, len(rows), lower, upper, first, second)


def _gives_the_bits(frequencies: Frequencies, device: Any) -> bool:
    """Whether the card's compiler keeps to the specified arithmetic, tried on a few rows by the
    first frequencies of their shape.
    """
    key = device, frequencies.m, frequencies.n
    if key not in _tried:
        from ckm._kernels.gpu import launch as card

        rows = frequencies.absolute(
            2 * np.random.default_rng(0).normal(size=(_TRIED, frequencies.n))
        )
        sums, _ = card.exact_sums(frequencies, torch.tensor(rows, device=device)).collected()
        _tried[key] = np.array_equal(sums, numba.tally(frequencies, rows).sums)
        if not _tried[key]:
            _log.warning(
                "On %s Triton does not give the bits of the CPU: sketches from there agree to rounding, marked exact=False.",
                device,
            )
    return _tried[key]
