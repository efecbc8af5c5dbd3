"""Launches of the Triton kernels: how a block of rows is cut up for a card, and what its frequencies look like there."""

from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch

from ckm.frequencies import Frequencies
from ckm.kernels import triton as kernels
from ckm.kernels.arithmetic import ONE
from ckm.tally import second_moment_shape

_PROGRAMS = 64  # for each multiprocessor: enough for all to end at about the same time
_LEAST_RUNS = 4  # of a program
_FEW_COLUMNS = 32  # so few are unrolled
_NOTED = 16  # rows that a program notes at once, and columns, or twice or four times as many
_DEPTH = 64  # columns are filled up to a multiple of it for the matrix units
_HALF = 14  # numbers up to 2^14 are split into float16 numbers


class _Tile(NamedTuple):
    """What a program of `sum_rows` takes: rows and frequencies at a time, its warps, and whether its columns are unrolled."""

    rows: int
    frequencies: int
    warps: int
    unrolled: bool


class _Split(NamedTuple):
    """How the matrix units are fed: rows and frequencies of a program, columns at a time, warps, and stages of loads in flight."""

    rows: int
    frequencies: int
    columns: int
    warps: int
    stages: int


LARGE, SMALL = _Split(128, 128, 64, 8, 3), _Split(64, 64, 32, 4, 2)
_SHARED = 192 * 2**10  # bytes of shared memory that the large one takes


def exact_sums(frequencies: Frequencies, rows: Any, weights: Any = None) -> tuple[Any, Any]:
    """Sums (2, m) of rows (count, n), int64 or with weights float64; and notes (4 or 4 + n, n): see `_notes`."""
    m, n, device = frequencies.m, frequencies.n, rows.device
    tile, turns = _tile(m, n), _exact_turns(frequencies, device)
    (R, F), (tiles, wide) = tile[:2], turns.shape[:2]
    padded = _up(len(rows), kernels.HELD_ROWS)
    x = torch.empty((padded // R, wide, R), dtype=torch.float32, device=device)
    notes = _notes(frequencies, rows, weights, x, padded)
    runs = padded // kernels.HELD_ROWS
    per = _share(runs * tiles, device)
    splits = -(-runs // per)
    how = {"N": n if tile.unrolled else 0, "R": R, "F": F, "HELD": kernels.HELD_ROWS // R, "num_warps": tile.warps}
    how["enable_fp_fusion"] = False
    if weights is None:
        sums = torch.zeros((2, tiles * F), dtype=torch.int64, device=device)
        kernels.sum_rows[(splits, tiles)](x, turns, tiles * F, sums, runs, per, wide, **how)
        sums[0] -= (padded - len(rows)) * ONE  # rows of zeros, which lie at the origin
    else:
        parts = torch.empty((splits, 2, tiles * F), dtype=torch.float64, device=device)
        kernels.weigh_rows[(splits, tiles)](x, turns, tiles * F, _padded(weights, padded), parts, runs, per, wide, **how)
        sums = parts.sum(dim=0)
    return sums[:, :m], notes


def split_sums(frequencies: Frequencies, rows: Any, weights: Any = None) -> tuple[Any, Any]:
    """The same, to 1e-6: phases come from the matrix units."""
    m, n, device = frequencies.m, frequencies.n, rows.device
    R, F, D, warps, stages = split_of(device)
    origin, turns = _dense(frequencies, device)
    padded, width, depth = _up(len(rows), R), _up(m, F), _up(n, _DEPTH)
    notes = _notes(frequencies, rows, weights, None, padded)
    # Powers of two bring the columns of rows and frequencies into the range of float16: an outlier costs others nothing but tiny numbers.
    reach = torch.maximum((notes[0] - origin).abs(), (notes[1] - origin).abs())
    columns = torch.ldexp(torch.ones_like(reach), _HALF - torch.frexp(reach).exponent.clamp(-100, 100))
    t = turns / columns
    most = torch.frexp(t.abs().max()).exponent.clamp(-100, 100)
    t = torch.nn.functional.pad(torch.ldexp(t, _HALF - most).float(), (0, depth - n, 0, width - m))
    t_high = t.half()
    t_low = (t - t_high.float()).half()
    x_high, x_low = torch.empty((2, padded, depth), dtype=torch.float16, device=device)
    kernels.split_rows[(padded // 32, depth // _DEPTH)](
        rows, *rows.stride(), origin, columns.float(), len(rows), x_high, x_low, depth, n, R=32, D=_DEPTH, enable_fp_fusion=False
    )
    runs = padded // R
    per = _share(runs * (width // F), device)
    splits, unit = -(-runs // per), torch.ldexp(torch.ones((), device=device), most - _HALF)
    weighted = weights is not None
    shape, kind = ((splits, 2, width), torch.float64) if weighted else ((2, width), torch.int64)
    sums, beta = torch.zeros(shape, dtype=kind, device=device), _padded(weights, padded) if weighted else unit
    kernels.sum_split[(width // F, splits)](
        x_high, x_low, t_high, t_low, depth, beta, unit, sums, width, runs, per,
        R=R, F=F, D=D, WEIGHTED=weighted, num_warps=warps, num_stages=stages, enable_fp_fusion=False,
    )  # fmt: skip
    sums = sums.sum(dim=0) if weighted else sums
    if not weighted:
        sums[0] -= (padded - len(rows)) * ONE
    return sums[:, :m].double(), notes


def _notes(frequencies: Frequencies, rows: Any, weights: Any, x: Any, padded: int) -> Any:
    """Smallest and largest value of each column, sums of w v and w v^2, and where they are kept those of w v v^T, v = row - origin.

    Rows are kept in x (groups, n', rows of a group), where there is one, up to the row `padded`.
    """
    m, n, device, count = frequencies.m, frequencies.n, rows.device, len(rows)
    full = len(second_moment_shape(m, n)) == 2
    wide = next((wide for wide in (_NOTED, 2 * _NOTED) if n <= wide), 4 * _NOTED)
    fused, columns, warps = full and n <= wide, -(-n // wide), wide // _NOTED
    tiles = -(-padded // _NOTED)
    per = -(-tiles // min(tiles, 64 // warps * _multiprocessors(device)))
    programs = -(-tiles // per)
    found = torch.empty((programs, 4, columns * wide), dtype=torch.float64, device=device)
    products = torch.empty((programs if fused else 0, wide, wide), dtype=torch.float64, device=device)
    origin = _origin(frequencies, device)
    how = {"WEIGHTED": weights is not None, "FULL": fused, "KEEP": x is not None, "num_warps": warps, "enable_fp_fusion": False}
    kernels.note_rows[(programs, columns)](
        rows, *rows.stride(), origin, origin if weights is None else weights, count, per, found if x is None else x, padded,
        n if x is None else x.shape[1], found, products, N=n, WIDE=wide, T=_NOTED, R=1 if x is None else x.shape[2], **how,
    )  # fmt: skip
    bounds = found[:, 0].amin(dim=0), found[:, 1].amax(dim=0)
    notes = [torch.stack([*bounds, *found[:, 2:].sum(dim=0)])[:, :n]]
    if fused:
        notes.append(products.sum(dim=0)[:n, :n])
    elif full:
        notes.append(_products(rows, weights, origin))
    return torch.cat(notes)


def _products(rows: Any, weights: Any, origin: Any) -> Any:
    """sum w v v^T by the library's float64 products, some rows at a time."""
    total, step = torch.zeros((len(origin), len(origin)), dtype=torch.float64, device=rows.device), 2**16
    for start in range(0, len(rows), step):
        v = rows[start : start + step].double() - origin
        total += (v if weights is None else v * weights[start : start + step, None]).T @ v
    return total


def _tile(m: int, n: int) -> _Tile:
    """Of few columns four frequencies a lane, whose turns stay in registers; as many in all as waste few."""
    if n > _FEW_COLUMNS:
        return _Tile(64, 64, 4, False)
    F = next((F for F in (512, 256, 128) if -m % F <= m // 16), 128)
    return _Tile(8, F, F // 128, True)


@lru_cache(maxsize=16)
def _exact_turns(frequencies: Frequencies, device: Any) -> Any:
    """Turns (tiles, n', F) for `sum_rows`, filled up with zeros."""
    m, n = frequencies.m, frequencies.n
    _, F, _, unrolled = _tile(m, n)
    wide = n if unrolled else _up(n, 16)
    turns = torch.nn.functional.pad(torch.tensor(frequencies.turns), (0, wide - n, 0, _up(m, F) - m))
    return turns.reshape(-1, F, wide).transpose(1, 2).contiguous().to(device)


@lru_cache(maxsize=16)
def _dense(frequencies: Frequencies, device: Any) -> tuple[Any, Any]:
    """Origin (n,) and turns (m, n) in float64, of structured frequencies too."""
    return _origin(frequencies, device), torch.tensor(frequencies.omega / (2 * torch.pi), device=device)


@lru_cache(maxsize=16)
def _origin(frequencies: Frequencies, device: Any) -> Any:
    return torch.tensor(frequencies.origin, device=device)


@cache
def split_of(device: Any) -> _Split:
    """How the matrix units of that card are fed."""
    return LARGE if torch.cuda.get_device_properties(device).shared_memory_per_block_optin >= _SHARED else SMALL


@cache
def _multiprocessors(device: Any) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _share(work: int, device: Any) -> int:
    """How many runs a program takes, of so many in all: not too few, since each program loads its turns."""
    return max(_LEAST_RUNS, work // (_PROGRAMS * _multiprocessors(device)))


def _up(number: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-number // step) * step


def _padded(weights: Any, length: int) -> Any:
    return torch.nn.functional.pad(weights, (0, length - len(weights)))
