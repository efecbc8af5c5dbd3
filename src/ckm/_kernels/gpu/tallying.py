"""Cells of rows on a GPU: launches of the kernel of `ckm._kernels.gpu.cells`."""

import logging
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from ckm._core.cells import Anchors, Cells
from ckm._kernels.cpu.cells import tally_cells
from ckm._kernels.gpu.cells import add_to_cells
from ckm._util.arrays import FloatArray

# Rows per program, and anchors that a thread compares its row with at a time.
_ROWS = 128
_ANCHORS = 32
# Rows of one launch, at most: their numbers, of which a copy in float64 is made, and, so that int64
# holds the sums of nearly all rows, themselves.
_PART_NUMBERS = 2**26
_MAX_PART = 2**22
_MIN_PART = 2**16
# Rows that show whether a GPU is bit-identical to the CPU.
_CHECKED_ROWS = 300

_log = logging.getLogger(__name__)


class _OnDevice(NamedTuple):
    """Anchors as `add_to_cells` takes them, on a GPU."""

    coefficients: Any  # float32 (n, s + padding)
    halves: Any  # float32 (s + padding,): infinite where there is no anchor
    blocks: int
    scales: Any  # float64 (n,)
    metric: Any  # float64 (n,)
    square_scale: Any  # float64 (1,)


class CellSums(NamedTuple):
    """Sums of cells that a GPU is computing, in one piece of memory."""

    anchors: Anchors
    origin: FloatArray
    rows: Any
    # int64 (parts, s (n + 2) + 1): mass, squares and sums of some of the rows, and how many of them
    # are left out
    numbers: Any
    far: Any  # int8 (count,): those that are

    def collected(self) -> Cells:
        """The cells on the CPU; waits for them. The CPU adds rows with too large numbers."""
        s = len(self.anchors)
        parts = self.numbers.cpu().numpy()
        total = Cells.empty(self.anchors)
        for numbers in parts:
            sums = numbers[2 * s : -1].reshape(s, self.anchors.n)
            total = total + Cells(self.anchors, numbers[:s], sums, numbers[s : 2 * s])
        if parts[:, -1].any():
            left_out = self.rows[self.far.nonzero()[:, 0]].double().cpu().numpy()
            total = total + tally_cells(self.anchors, self.origin, left_out)
        return total


def sum_cells(anchors: Anchors, origin: FloatArray, rows: Any) -> CellSums:
    """Start to add rows (count, n), finite and on a GPU, to their cells."""
    count, n = rows.shape
    device = rows.device
    s = len(anchors)
    step = max(_MIN_PART, min(_MAX_PART, _PART_NUMBERS // n))
    size = s * (n + 2) + 1
    numbers = torch.zeros((-(-count // step), size), dtype=torch.int64, device=device)
    far = torch.empty(count, dtype=torch.int8, device=device)
    zero = torch.tensor(origin, device=device)
    # So many rows below the limit cannot overflow int64.
    limit = torch.full((1,), 2.0 ** (62 - step.bit_length()), dtype=torch.float64, device=device)
    there = _prepared(anchors, device)
    parts = zip(rows.split(step), numbers, far.split(step), strict=True)
    for part, own, own_far in parts:
        x = (part.double() - zero).float().T.contiguous()
        add_to_cells[(-(-len(part) // _ROWS),)](
            x, len(part), there.coefficients, there.halves, there.blocks, there.scales,
            there.metric, there.square_scale, limit, own, own[s:], own[2 * s :], own_far,
            own[-1:], n,
            R=_ROWS, K=_ANCHORS, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return CellSums(anchors, origin, rows, numbers, far)


@lru_cache(maxsize=16)
def _prepared(anchors: Anchors, device: Any) -> _OnDevice:
    s = len(anchors)
    padding = -s % _ANCHORS
    coefficients = np.pad(anchors.coefficients, ((0, padding), (0, 0)))
    halves = np.pad(anchors.halves, (0, padding), constant_values=np.inf)
    return _OnDevice(
        torch.tensor(np.ascontiguousarray(coefficients.T), device=device),
        torch.tensor(halves, device=device),
        (s + padding) // _ANCHORS,
        torch.tensor(1 / anchors.steps, device=device),
        torch.tensor(np.array(anchors.metric), device=device),
        torch.tensor([1 / anchors.square_step], dtype=torch.float64, device=device),
    )


class CellExactness:
    """Whether a GPU's compiler keeps to the specified arithmetic of cells: a few rows are added
    there and on the CPU, once per device and number of columns.
    """

    def __init__(self) -> None:
        self._known = dict[tuple[Any, int], bool]()

    def __call__(self, device: Any, n: int) -> bool:
        """Whether cells on this device are bit-identical to those of the CPU."""
        key = device, n
        if key not in self._known:
            self._known[key] = self._compare(device, n)
        return self._known[key]

    def _compare(self, device: Any, n: int) -> bool:
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(_CHECKED_ROWS, n))
        metric = rng.uniform(0.5, 2, size=n)
        anchors = Anchors.on_grids(rows[:50], metric, np.ones(n), 1.0)
        origin = np.full(n, 0.1)
        found = sum_cells(anchors, origin, torch.tensor(rows, device=device)).collected()
        same = found.identity() == tally_cells(anchors, origin, rows).identity()
        if not same:
            _log.warning(
                "Triton's code on %s is not bit-identical to the CPU, which computes cells instead",
                device,
            )
        return same


CELL_EXACTNESS = CellExactness()  # what this process has found out
