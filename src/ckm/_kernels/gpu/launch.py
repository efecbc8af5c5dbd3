"""Launches of the Triton kernels: how a block of rows is divided among programs, and the layout of
frequencies on a GPU.
"""

from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from ckm._core.frequencies import Frequencies
from ckm._core.moments import has_full_moment
from ckm._kernels.gpu import phases as kernels
from ckm._kernels.spec import ONE
from ckm._util.arrays import Array

# Warps of all programs per multiprocessor: enough for all to end at about the same time.
_WARPS = 256
_SPLIT_WARPS = 64  # the same for the matrix units, whose programs are slow to start
_MIN_RUNS = 4  # runs of rows per program, at least, as each program loads its turns
_FEW_COLUMNS = 20  # columns up to which they are unrolled
_NOTED = 16  # rows per step of `note_rows`, and columns, or twice or four times as many
_DEPTH = 64  # columns are padded to a multiple of it for the matrix units
_SPLIT_ROWS = 16  # rows per program of `split_rows`
_RESIDENT = 128  # columns up to which the turns of a program stay in shared memory


class _Tile(NamedTuple):
    """The shape of a program of `sum_rows` (columns unrolled) or `sum_wide_rows`: rows and
    frequencies at a time, and warps.
    """

    rows: int
    frequencies: int
    warps: int
    unrolled: bool


class _Split(NamedTuple):
    """The shape of a program of `sum_split`: rows and frequencies, columns at a time, warps, and
    stages of loads in flight.
    """

    rows: int
    frequencies: int
    columns: int
    warps: int
    stages: int


LARGE = _Split(128, 128, 64, 8, 3)
SMALL = _Split(64, 64, 32, 4, 2)
_LARGE_BYTES = 192 * 2**10  # bytes of shared memory that LARGE takes


class Sums(NamedTuple):
    """Sums and notes that a GPU is computing, in one piece of memory, so that the CPU waits for one
    copy only.

    `numbers` (float64, or bit patterns of int64) starts with the sums (2, width), of which the
    first m columns are used; notes (4 or 4 + n, n) follow: smallest value of each column, minus the
    largest, sums of w v and w v^2, and with full moments those of w v v^T, with v = row - origin.
    `surplus` rows of zeros, which lie at the origin, were added.
    """

    numbers: Any
    frequencies: Frequencies
    width: int
    whole: bool
    surplus: int

    @classmethod
    def empty(
        cls, frequencies: Frequencies, width: int, whole: bool, surplus: int, device: Any
    ) -> "Sums":
        """Sums and notes of zero."""
        m = frequencies.m
        n = frequencies.n
        notes = (4 + n if has_full_moment(m, n) else 4) * n
        numbers = torch.zeros(2 * width + notes, dtype=torch.float64, device=device)
        return cls(numbers, frequencies, width, whole, surplus if whole else 0)

    @property
    def sums(self) -> Any:
        """int64 or float64 (2, width)."""
        flat = self.numbers[: 2 * self.width]
        return (flat.view(torch.int64) if self.whole else flat).view(2, self.width)

    @property
    def notes(self) -> Any:
        """Float64 (4 or 4 + n, n)."""
        return self.numbers[2 * self.width :].view(-1, self.frequencies.n)

    def collected(self) -> tuple[Array, Array]:
        """Sums (2, m) and notes on the CPU; waits for them."""
        numbers = self.numbers.cpu().numpy()
        sums = (
            numbers[: 2 * self.width]
            .view(np.int64 if self.whole else np.float64)
            .reshape(2, -1)[:, : self.frequencies.m]
        )
        sums[0] -= self.surplus * ONE
        return sums, numbers[2 * self.width :].reshape(-1, self.frequencies.n)


def exact_sums(frequencies: Frequencies, rows: Any, weights: Any = None) -> Sums:
    """Sums of rows (count, n), integers unless there are weights."""
    n = frequencies.n
    device = rows.device
    tile = _tile(frequencies.m, n)
    R = tile.rows
    F = tile.frequencies
    turns = _exact_turns(frequencies, device)
    tiles, wide = turns.shape[:2]
    padded = _up(len(rows), kernels.HELD_ROWS)
    found = Sums.empty(frequencies, tiles * F, weights is None, padded - len(rows), device)
    x = torch.empty((padded // R, wide, R), dtype=torch.float32, device=device)
    _note(found, rows, weights, x, padded)
    runs = padded // (kernels.HELD_ROWS if tile.unrolled else R)
    per = _share(runs * tiles * tile.warps, _WARPS, device)
    weighted = weights is not None
    splits = -(-runs // per)
    sums = (
        torch.empty((splits, 2, tiles * F), dtype=torch.float64, device=device)
        if weighted
        else found.sums
    )
    beta = _padded(weights, padded) if weighted else x
    how = {"R": R, "F": F, "num_warps": tile.warps, "enable_fp_fusion": False}
    if not tile.unrolled:
        how["num_warps"] = 4 if weighted else tile.warps  # float64 numbers need registers
        kernels.sum_wide_rows[(tiles, splits)](
            x, turns, tiles * F, beta, sums, runs, per, wide, WEIGHTED=weighted, **how
        )
    elif weighted:
        kernels.weigh_rows[(splits, tiles)](
            x, turns, tiles * F, beta, sums, runs, per, n, N=n, HELD=kernels.HELD_ROWS // R, **how
        )
    else:
        kernels.sum_rows[(splits, tiles)](
            x, turns, tiles * F, sums, runs, per, n, N=n, HELD=kernels.HELD_ROWS // R, **how
        )
    if weighted:
        torch.sum(sums, dim=0, out=found.sums)
    return found


def split_sums(
    frequencies: Frequencies, rows: Any, weights: Any = None, split: _Split | None = None
) -> Sums:
    """The same, to 1e-6: phases come from the matrix units, fed as `split` says."""
    n = frequencies.n
    device = rows.device
    R, F, D, warps, stages = split_of(device) if split is None else split
    factors, t_high, t_low = _halves(frequencies, device, F)
    padded = _up(len(rows), R)
    width, depth = t_high.shape
    found = Sums.empty(frequencies, width, weights is None, padded - len(rows), device)
    _note(found, rows, weights, None, padded)
    x_high, x_low = torch.empty((2, padded, depth), dtype=torch.float16, device=device)
    units = torch.empty(padded, device=device)
    kernels.split_rows[(padded // _SPLIT_ROWS,)](
        rows, *rows.stride(), _origin(frequencies, device), factors, len(rows), x_high, x_low,
        units, depth, n,
        R=_SPLIT_ROWS, D=min(256, depth & -depth), enable_fp_fusion=False,
    )  # fmt: skip
    runs = padded // R
    per = _share(runs * (width // F) * warps, _SPLIT_WARPS, device)
    splits = -(-runs // per)
    weighted = weights is not None
    sums = (
        torch.empty((splits, 2, width), dtype=torch.float64, device=device)
        if weighted
        else found.sums
    )
    few = depth if depth <= _RESIDENT else 0
    kernels.sum_split[(width // F, splits)](
        x_high, x_low, t_high, t_low, depth, _padded(weights, padded) if weighted else units, units,
        sums, width, runs, per,
        R=R, F=F, D=D, DEPTH=few, WEIGHTED=weighted, num_warps=warps,
        num_stages=2 if few else stages, enable_fp_fusion=False,
    )  # fmt: skip
    if weighted:
        torch.sum(sums, dim=0, out=found.sums)
    return found


def _note(found: Sums, rows: Any, weights: Any, x: Any, padded: int) -> None:
    """Write the notes; if x (groups, n', rows of a group) is given, also the centred rows, up to
    row `padded`.
    """
    frequencies = found.frequencies
    notes = found.notes
    device = rows.device
    count = len(rows)
    n = frequencies.n
    full = len(notes) > 4
    wide = next((wide for wide in (_NOTED, 2 * _NOTED) if n <= wide), 4 * _NOTED)
    fused = full and n <= wide
    columns = -(-n // wide)
    warps = wide // _NOTED
    tiles = -(-padded // _NOTED)
    per = -(-tiles // min(tiles, 64 // warps * _multiprocessors(device)))
    programs = -(-tiles // per)
    parts = torch.empty(
        (programs, 4 + wide if fused else 4, columns * wide), dtype=torch.float64, device=device
    )
    origin = _origin(frequencies, device)
    how = {
        "WEIGHTED": weights is not None,
        "FULL": fused,
        "KEEP": x is not None,
        "num_warps": warps,
        "enable_fp_fusion": False,
    }
    kernels.note_rows[(programs, columns)](
        rows, *rows.stride(), origin, origin if weights is None else weights, count, per,
        parts if x is None else x, padded, n if x is None else x.shape[1], parts,
        N=n, WIDE=wide, T=_NOTED, R=1 if x is None else x.shape[2], **how,
    )  # fmt: skip
    known = 4 + n if fused else 4
    torch.amin(parts[:, :2, :n], dim=0, out=notes[:2])
    torch.sum(parts[:, 2:known, :n], dim=0, out=notes[2:known])
    if full and not fused:
        notes[4:] = _products(rows, weights, origin)


def _products(rows: Any, weights: Any, origin: Any) -> Any:
    """sum w v v^T by torch's float64 matrix products, some rows at a time."""
    total = torch.zeros((len(origin), len(origin)), dtype=torch.float64, device=rows.device)
    step = 2**16
    for start in range(0, len(rows), step):
        v = rows[start : start + step].double() - origin
        total += (v if weights is None else v * weights[start : start + step, None]).T @ v
    return total


def _tile(m: int, n: int) -> _Tile:
    """With few columns, four frequencies per lane, whose turns stay in registers; as many in all as
    the padding of m allows.
    """
    if n > _FEW_COLUMNS:
        return _Tile(64, 64, 1, False)
    F = next((F for F in (512, 256, 128) if -m % F <= m // 16), 128)
    return _Tile(8, F, F // 128, True)


@lru_cache(maxsize=16)
def _exact_turns(frequencies: Frequencies, device: Any) -> Any:
    """Turns (tiles, n', F) for `sum_rows`, padded with zeros."""
    m = frequencies.m
    n = frequencies.n
    _, F, _, unrolled = _tile(m, n)
    wide = n if unrolled else _up(n, kernels.STEP.value)
    turns = torch.nn.functional.pad(
        torch.tensor(frequencies.turns), (0, wide - n, 0, _up(m, F) - m)
    )
    return turns.reshape(-1, F, wide).transpose(1, 2).contiguous().to(device)


@lru_cache(maxsize=16)
def _halves(frequencies: Frequencies, device: Any, F: int) -> tuple[Any, Any, Any]:
    """Powers of two (n,) that columns are multiplied by, so that their numbers are as large as
    their contributions to a phase; and turns divided by them, 2^14 at most, as sums of two float16
    numbers (m', n') each, padded with zeros.
    """
    m = frequencies.m
    n = frequencies.n
    turns = torch.tensor(frequencies.omega / (2 * torch.pi))
    most = turns.abs().amax(dim=0)
    factors = torch.ldexp(torch.ones_like(most), torch.frexp(most).exponent.clamp(-100, 100))
    t = torch.nn.functional.pad(
        (turns / factors * kernels.TOP).float(), (0, _up(n, _DEPTH) - n, 0, _up(m, F) - m)
    )
    high = t.half()
    # a column with zero turns must not determine the exponent of a row
    factors = torch.where(most > 0, factors, 0.0).float()
    return factors.to(device), high.to(device), (t - high.float()).half().to(device)


@lru_cache(maxsize=16)
def _origin(frequencies: Frequencies, device: Any) -> Any:
    return torch.tensor(frequencies.origin, device=device)


@cache
def split_of(device: Any) -> _Split:
    """The shape of `sum_split` that fits the shared memory of that GPU."""
    return (
        LARGE
        if torch.cuda.get_device_properties(device).shared_memory_per_block_optin >= _LARGE_BYTES
        else SMALL
    )


@cache
def _multiprocessors(device: Any) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _share(work: int, warps: int, device: Any) -> int:
    """How many runs a program takes, so that there are about `warps` warps per multiprocessor.

    `work` is the number of runs times tiles times warps per program.
    """
    return max(_MIN_RUNS, -(-work // (warps * _multiprocessors(device))))


def _up(number: int, step: int) -> int:
    """The number rounded up to a multiple of `step`."""
    return -(-number // step) * step


def _padded(weights: Any, length: int) -> Any:
    return torch.nn.functional.pad(weights, (0, length - len(weights)))
