"""Launches of the Triton kernels: how a block of rows is cut up for a card, and what its
frequencies look like there.
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

# of all programs, for each multiprocessor: enough for all to end at about the same time
_WARPS = 256
_SPLIT_WARPS = 64  # the same for the matrix units, which are slow to start
_LEAST_RUNS = 4  # of a program
_FEW_COLUMNS = 20  # so few are unrolled
_NOTED = 16  # rows that a program notes at once, and columns, or twice or four times as many
_DEPTH = 64  # columns are filled up to a multiple of it for the matrix units
_SPLIT_ROWS = 16  # rows that a program splits
_RESIDENT = 128  # so few columns of turns stay in shared memory


class _Tile(NamedTuple):
    """What a program of `sum_rows` (whose columns are unrolled) or `sum_wide_rows` takes: rows and
    frequencies at a time, and its warps.
    """

    rows: int
    frequencies: int
    warps: int
    unrolled: bool


class _Split(NamedTuple):
    """How the matrix units are fed: rows and frequencies of a program, columns at a time, warps,
    and stages of loads in flight.
    """

    rows: int
    frequencies: int
    columns: int
    warps: int
    stages: int


LARGE, SMALL = _Split(128, 128, 64, 8, 3), _Split(64, 64, 32, 4, 2)
_SHARED = 192 * 2**10  # bytes of shared memory that the large one takes


class Sums(NamedTuple):
    """Sums and notes on their way, in one piece of memory: a copy of it is all that the CPU waits
    for.

    `numbers` (float64, or the bits of int64) begins with the sums (2, width), of which m are
    wanted; notes (4 or 4 + n, n) follow: smallest value of each column, minus the largest, sums of
    w v and w v^2, and where they are kept those of w v v^T, with v = row - origin. `surplus` rows
    of zeros were added, which lie at the origin.
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
        """Zeros."""
        m, n = frequencies.m, frequencies.n
        notes = (4 + n if has_full_moment(m, n) else 4) * n
        numbers = torch.zeros(2 * width + notes, dtype=torch.float64, device=device)
        return cls(numbers, frequencies, width, whole, surplus if whole else 0)

    @property
    def sums(self) -> Any:
        """Whole numbers or float64 (2, width)."""
        flat = self.numbers[: 2 * self.width]
        return (flat.view(torch.int64) if self.whole else flat).view(2, self.width)

    @property
    def notes(self) -> Any:
        """Float64 (4 or 4 + n, n)."""
        return self.numbers[2 * self.width :].view(-1, self.frequencies.n)

    def collected(self) -> tuple[Array, Array]:
        """Sums (2, m) and notes, once they are known."""
        numbers = self.numbers.cpu().numpy()
        sums = (
            numbers[: 2 * self.width]
            .view(np.int64 if self.whole else np.float64)
            .reshape(2, -1)[:, : self.frequencies.m]
        )
        sums[0] -= self.surplus * ONE
        return sums, numbers[2 * self.width :].reshape(-1, self.frequencies.n)


def exact_sums(frequencies: Frequencies, rows: Any, weights: Any = None) -> Sums:
    """Sums of rows (count, n), whole numbers unless there are weights."""
    m, n, device = frequencies.m, frequencies.n, rows.device
    tile, turns = _tile(m, n), _exact_turns(frequencies, device)
    (R, F), (tiles, wide) = tile[:2], turns.shape[:2]
    padded = _up(len(rows), kernels.HELD_ROWS)
    found = Sums.empty(frequencies, tiles * F, weights is None, padded - len(rows), device)
    x = torch.empty((padded // R, wide, R), dtype=torch.float32, device=device)
    _note(found, rows, weights, x, padded)
    runs = padded // (kernels.HELD_ROWS if tile.unrolled else R)
    per, weighted = _share(runs * tiles * tile.warps, _WARPS, device), weights is not None
    splits = -(-runs // per)
    sums = (
        torch.empty((splits, 2, tiles * F), dtype=torch.float64, device=device)
        if weighted
        else found.sums
    )
    beta, how = (
        _padded(weights, padded) if weighted else x,
        {"R": R, "F": F, "num_warps": tile.warps, "enable_fp_fusion": False},
    )
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
    n, device = frequencies.n, rows.device
    R, F, D, warps, stages = split_of(device) if split is None else split
    factors, t_high, t_low = _halves(frequencies, device, F)
    padded, (width, depth) = _up(len(rows), R), t_high.shape
    found = Sums.empty(frequencies, width, weights is None, padded - len(rows), device)
    _note(found, rows, weights, None, padded)
    x_high, x_low = torch.empty((2, padded, depth), dtype=torch.float16, device=device)
    units = torch.empty(padded, device=device)
    kernels.split_rows[(padded // _SPLIT_ROWS,)](
        rows, *rows.stride(), _origin(frequencies, device), factors, len(rows), x_high, x_low, units, depth, n,
        R=_SPLIT_ROWS, D=min(256, depth & -depth), enable_fp_fusion=False,
    )  # fmt: skip
    runs = padded // R
    per = _share(runs * (width // F) * warps, _SPLIT_WARPS, device)
    splits, weighted = -(-runs // per), weights is not None
    sums = (
        torch.empty((splits, 2, width), dtype=torch.float64, device=device)
        if weighted
        else found.sums
    )
    few = depth if depth <= _RESIDENT else 0
    kernels.sum_split[(width // F, splits)](
        x_high, x_low, t_high, t_low, depth, _padded(weights, padded) if weighted else units, units, sums, width, runs, per,
        R=R, F=F, D=D, DEPTH=few, WEIGHTED=weighted, num_warps=warps, num_stages=2 if few else stages, enable_fp_fusion=False,
    )  # fmt: skip
    if weighted:
        torch.sum(sums, dim=0, out=found.sums)
    return found


def _note(found: Sums, rows: Any, weights: Any, x: Any, padded: int) -> None:
    """Write the notes; rows are kept in x (groups, n', rows of a group), where there is one, up to
    the row `padded`.
    """
    frequencies, notes, device, count = found.frequencies, found.notes, rows.device, len(rows)
    n, full = frequencies.n, len(notes) > 4
    wide = next((wide for wide in (_NOTED, 2 * _NOTED) if n <= wide), 4 * _NOTED)
    fused, columns, warps = full and n <= wide, -(-n // wide), wide // _NOTED
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
        rows, *rows.stride(), origin, origin if weights is None else weights, count, per, parts if x is None else x, padded,
        n if x is None else x.shape[1], parts, N=n, WIDE=wide, T=_NOTED, R=1 if x is None else x.shape[2], **how,
    )  # fmt: skip
    known = 4 + n if fused else 4
    torch.amin(parts[:, :2, :n], dim=0, out=notes[:2])
    torch.sum(parts[:, 2:known, :n], dim=0, out=notes[2:known])
    if full and not fused:
        notes[4:] = _products(rows, weights, origin)


def _products(rows: Any, weights: Any, origin: Any) -> Any:
    """sum w v v^T by the library's float64 products, some rows at a time."""
    total, step = (
        torch.zeros((len(origin), len(origin)), dtype=torch.float64, device=rows.device),
        2**16,
    )
    for start in range(0, len(rows), step):
        v = rows[start : start + step].double() - origin
        total += (v if weights is None else v * weights[start : start + step, None]).T @ v
    return total


def _tile(m: int, n: int) -> _Tile:
    """Of few columns four frequencies a lane, whose turns stay in registers; as many in all as
    waste few.
    """
    if n > _FEW_COLUMNS:
        return _Tile(64, 64, 1, False)
    F = next((F for F in (512, 256, 128) if -m % F <= m // 16), 128)
    return _Tile(8, F, F // 128, True)


@lru_cache(maxsize=16)
def _exact_turns(frequencies: Frequencies, device: Any) -> Any:
    """Turns (tiles, n', F) for `sum_rows`, filled up with zeros."""
    m, n = frequencies.m, frequencies.n
    _, F, _, unrolled = _tile(m, n)
    wide = n if unrolled else _up(n, kernels.STEP.value)
    turns = torch.nn.functional.pad(
        torch.tensor(frequencies.turns), (0, wide - n, 0, _up(m, F) - m)
    )
    return turns.reshape(-1, F, wide).transpose(1, 2).contiguous().to(device)


@lru_cache(maxsize=16)
def _halves(frequencies: Frequencies, device: Any, F: int) -> tuple[Any, Any, Any]:
    """Powers of two (n,) that columns are multiplied by, so that numbers are as large as their
    parts in a phase; and turns over them, 2^14 at most, as sums of two float16 numbers (m', n')
    each, filled up with zeros.
    """
    m, n = frequencies.m, frequencies.n
    turns = torch.tensor(frequencies.omega / (2 * torch.pi))
    most = turns.abs().amax(dim=0)
    factors = torch.ldexp(torch.ones_like(most), torch.frexp(most).exponent.clamp(-100, 100))
    t = torch.nn.functional.pad(
        (turns / factors * kernels.TOP).float(), (0, _up(n, _DEPTH) - n, 0, _up(m, F) - m)
    )
    high = t.half()
    # a column that no frequency sees decides nothing
    factors = torch.where(most > 0, factors, 0.0).float()
    return factors.to(device), high.to(device), (t - high.float()).half().to(device)


@lru_cache(maxsize=16)
def _origin(frequencies: Frequencies, device: Any) -> Any:
    return torch.tensor(frequencies.origin, device=device)


@cache
def split_of(device: Any) -> _Split:
    """How the matrix units of that card are fed."""
    return (
        LARGE
        if torch.cuda.get_device_properties(device).shared_memory_per_block_optin >= _SHARED
        else SMALL
    )


@cache
def _multiprocessors(device: Any) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _share(work: int, warps: int, device: Any) -> int:
    """How many runs a program takes, so that there are about this many warps for each
    multiprocessor: not too few, since each program loads its turns. `work` counts runs, tiles and
    warps.
    """
    return max(_LEAST_RUNS, -(-work // (warps * _multiprocessors(device))))


def _up(number: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-number // step) * step


def _padded(weights: Any, length: int) -> Any:
    return torch.nn.functional.pad(weights, (0, length - len(weights)))
