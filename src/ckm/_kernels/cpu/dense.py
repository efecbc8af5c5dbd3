"""The kernel for dense frequencies: the specified arithmetic of `ckm._kernels.spec`, fused and
vectorised, with exact sums. docs/kernel.md explains it.

Rows are taken in runs that stay in the first-level cache: `packing` turns a run into groups of
`ROWS` rows, transposed, and `phases` sums it for a few frequencies at a time. Sums of integers are
kept in int32, one per lane, for as long as they fit, then added to int64 totals. The last group is
padded with rows at the origin, whose contribution is known and subtracted again, so that every row
goes through the same vector code.

`_sweep` is compiled once for all layouts and types of rows, weighted or not. It has no expressions
of whole arrays: numba's error messages for them take longer to compile than everything else.
"""

import threading
from typing import Any, NamedTuple

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.moments import has_full_moment
from ckm._core.tally import Tally, sum_of_squares
from ckm._kernels.cpu.llvm import HALF, LANES
from ckm._kernels.cpu.moments import add_products
from ckm._kernels.cpu.packing import absorb_columns, absorb_rows, copy, turn
from ckm._kernels.cpu.phases import ROWS, TILE, drain_tiles, sum_tiles, weigh_tiles
from ckm._kernels.spec import ONE, THREE_BITS
from ckm._util.arrays import Array, FloatArray, RowsArray, aligned_arrays
from ckm._util.checks import require_float32
from ckm._util.jit import entry, inlined

_RUN_NUMBERS = 2**13  # float32 numbers in a run of rows: 32 kB, a first-level cache
_RUN_GROUPS = 16  # groups in a run, at most
_INT32_GROUPS = 124  # groups whose sums fit int32: 496 rows per lane, each at most 2**22

_SIZES = {np.dtype(np.float32): 4, np.dtype(np.float64): 8}  # the types of rows
_NO_WEIGHTS = np.empty(0)

_last = threading.local()  # the plan, with its buffers, of each thread's last call


class _Buffers(NamedTuple):
    """The memory that a sweep works in. n' is n rounded up to a multiple of LANES."""

    memory: Array  # bytes: the memory of all arrays from `state` on
    # bytes: what the memory is initialised with before the first row, up to the totals; the arrays
    # after them need no initial values
    blank: Array
    # (5, n'): the origin; smallest and largest value, sums of w v and w v^2, with v = row - origin
    state: Array
    # (n, 4, HALF): bounds and sums as in the state, per lane; empty if groups are packed by rows
    notes: Array
    w: Array  # (run, ROWS): weights of packed rows
    products: Array  # (n, n, HALF): sums of w v_d v_e per lane; empty if the diagonal is enough
    doubles: Array  # (tiles, 2 TILE, HALF): sums of weighted rows per lane
    totals: Array  # int64 (2, TILE tiles): sums of unweighted rows
    # int32 (tiles, 2 TILE, LANES): the same, of the last groups, per lane; zeros between sweeps
    integers: Array
    x: Array  # float32 (run n + LANES, ROWS): packed rows; a group writes up to n' columns
    columns: Array  # (n', ROWS): v of one group, transposed; empty if groups are packed by rows
    patch: Array  # (ROWS, LANES): a copy of some columns whose numbers do not lie side by side
    # int32 (2 TILE, ROWS): cosines and sines of one group before they are weighted
    scratch: Array


def tally(frequencies: Frequencies, rows: RowsArray, weights: FloatArray | None = None) -> Tally:
    """The tally of `rows`; integer sums when they are unweighted."""
    if not len(rows):
        return Tally.empty(frequencies.m, frequencies.n)
    arguments = prepared(frequencies, rows, weights)
    if not _sweep(*arguments):
        require_float32(rows.astype(np.float64) - frequencies.origin)
    *_, beta, buffers, sums, moments = arguments
    weight = float(len(rows))
    squared_weight = weight
    if weights is not None:
        weight = float(beta.sum())
        squared_weight = sum_of_squares(beta)
        pairs = _Buffers(*buffers).doubles.sum(axis=2).reshape(-1, 2)
        sums = np.ascontiguousarray(pairs[: frequencies.m].T)
    sums.flags.writeable = False
    moments.flags.writeable = False
    return Tally.owning(
        sums,
        weight,
        len(rows),
        moments[0],
        moments[1],
        moments[2],
        moments[3:] if _last.plan.full else moments[3],
        squared_weight,
    )


class _Plan(NamedTuple):
    """What calls with the same frequencies share."""

    frequencies: Frequencies
    weighted: bool
    full: bool  # whether second moments are full, not diagonal
    buffers: tuple[Array, ...]


def prepared(
    frequencies: Frequencies, rows: RowsArray, weights: FloatArray | None = None
) -> tuple[Any, ...]:
    """The arguments of `_sweep`, with an address in place of the rows.

    As little as possible is done here and after the sweep: a pass over rows leaves nothing of
    Python and NumPy in the caches, so that what they do around it takes ten times as long as usual.
    """
    plan: _Plan | None = getattr(_last, "plan", None)
    if (
        plan is None
        or plan.frequencies is not frequencies
        or plan.weighted != (weights is not None)
    ):
        plan = _last.plan = _planned(plan, frequencies, weights is not None)
    m, n = frequencies.turns.shape
    beta = _NO_WEIGHTS if weights is None else np.ascontiguousarray(weights, np.float64)
    source = (_address(rows), *rows.strides, len(rows), _SIZES[rows.dtype])
    sums = np.empty((2, 0 if plan.weighted else m), np.int64)
    moments = np.empty((3 + (n if plan.full else 1), n))
    return source, frequencies.turns, frequencies.origin, beta, plan.buffers, sums, moments


def _planned(last: _Plan | None, frequencies: Frequencies, weighted: bool) -> _Plan:
    """A plan, with the buffers of the last one if their sizes are the same."""
    m = frequencies.m
    n = frequencies.n
    full = has_full_moment(m, n)
    same = last and (last.frequencies.m, last.frequencies.n, last.weighted) == (m, n, weighted)
    if last and same:
        return last._replace(frequencies=frequencies)
    return _Plan(frequencies, weighted, full, _make_buffers(m, n, full, weighted))


def _make_buffers(m: int, n: int, full: bool, weighted: bool) -> tuple[Array, ...]:
    """`_Buffers` as a plain tuple. Arrays start on cache lines, so that no vector straddles two."""
    # Full moments need columns; and with few columns, vectors along them would waste lanes.
    by_columns = full or n <= LANES
    wide = -(-n // LANES) * LANES
    tiles = -(-m // TILE)
    run = max(1, min(_RUN_GROUPS, _RUN_NUMBERS // (n * ROWS)))
    single, double, integer, long = map(np.dtype, (np.float32, np.float64, np.int32, np.int64))
    memory, (state, notes, w, *others) = aligned_arrays(
        ((5, wide), double),
        ((n if by_columns else 0, 4, HALF), double),
        ((run, ROWS), double),
        ((n, n, HALF) if full else (0, 0, HALF), double),
        ((tiles if weighted else 0, 2 * TILE, HALF), double),
        ((2, 0 if weighted else tiles * TILE), long),
        ((0 if weighted else tiles, 2 * TILE, LANES), integer),
        ((run * n + LANES, ROWS), single),
        ((wide if by_columns else 0, ROWS), double),
        ((ROWS, LANES), double),
        ((2 * TILE, ROWS), integer),
    )
    memory.fill(0)
    state[1] = np.inf
    state[2] = -np.inf
    notes[:, 0] = np.inf
    notes[:, 1] = -np.inf
    w[:] = 1
    blank = memory[: others[3].ctypes.data - memory.ctypes.data].copy()
    return tuple(_Buffers(memory, blank, state, notes, w, *others))


@entry
def _address(rows):  # type: ignore[no-untyped-def]
    """The address of the first row; NumPy itself is slow to give it."""
    return rows.ctypes.data


@entry
def _sweep(source, turns, origin, beta, buffers, sums, moments):  # type: ignore[no-untyped-def]
    """Add up all rows: sums (in the buffers if they are weighted), bounds and moments (`_finish`).

    Returns whether all rows are finite in float32.
    """
    address, by_row, by_column, count, itemsize = source
    (
        memory,
        blank,
        state,
        notes,
        w,
        products,
        doubles,
        totals,
        integers,
        x,
        columns,
        patch,
        scratch,
    ) = buffers
    for i in range(len(blank)):
        memory[i] = blank[i]
    for d in range(len(origin)):
        state[0, d] = origin[d]
    n = turns.shape[1]
    weighted = len(beta) > 0
    run = len(w)
    held = 0  # groups in the int32 sums
    # If rows lie one after another, the next run is prefetched while this one is summed: `share`
    # bytes with each tile and group.
    share = (
        (ROWS * by_row + len(integers) - 1) // len(integers)
        if by_row == n * itemsize and not weighted
        else 0
    )
    for start in range(0, count, run * ROWS):
        groups = min(run, (count - start + ROWS - 1) // ROWS)
        for g in range(groups):
            row = start + g * ROWS
            size = min(ROWS, count - row)
            equal = size == ROWS and not weighted
            if not equal:
                for r in range(ROWS):
                    w[g, r] = 0.0 if r >= size else beta[row + r] if weighted else 1.0
            group = address + row * by_row, by_row, by_column, size, n, itemsize
            # Whether rows can be read in place. Columns are read up to a multiple of HALF, which is
            # safe if other rows follow in memory.
            behind = max((count - row - ROWS) * by_row, -row * by_row)
            in_place = (
                by_column == itemsize
                and size == ROWS
                and (n % HALF == 0 or behind >= -n % HALF * itemsize)
            )
            if len(notes):
                _pack_columns(
                    group, in_place, w, g, equal, state, notes, len(products) > 0, columns, x
                )
            else:
                _pack_rows(group, in_place, w, g, equal, state, patch, x)
            if size < ROWS:
                for k in range(g * n, g * n + n):
                    for r in range(size, ROWS):
                        x[k, r] = np.float32(0)
            if len(products):
                add_products(columns, w, g, products)
        if weighted:
            weigh_tiles(turns, x, groups, w, scratch, doubles)
            continue
        sum_tiles(turns, x, groups, address + (start + run * ROWS) * by_row, share, integers)
        held += groups
        if held + run > _INT32_GROUPS or start + run * ROWS >= count:
            drain_tiles(integers, np.int32(held * (ROWS // LANES) * THREE_BITS), totals)
            held = 0
    for j in range(sums.shape[1]):
        sums[0, j] = totals[0, j] - -count % ROWS * ONE
        sums[1, j] = totals[1, j]
    return _finish(state, notes, products, moments)


@inlined
def _finish(state, notes, products, moments):  # type: ignore[no-untyped-def]
    """Write bounds and moments, as rows: smallest, largest, sums of w v, and of w v v^T (of which
    the lower half was summed) or its diagonal.

    Returns whether all rows were finite: NaN shows in the moments, overflow in the bounds.
    """
    for d in range(len(notes)):
        for k in range(HALF):
            state[1, d] = min(state[1, d], notes[d, 0, k])
            state[2, d] = max(state[2, d], notes[d, 1, k])
            state[3, d] += notes[d, 2, k]
            state[4, d] += notes[d, 3, k]
    finite = True
    for d in range(moments.shape[1]):
        low = np.float32(state[1, d] - state[0, d])
        high = np.float32(state[2, d] - state[0, d])
        finite &= np.isfinite(low) and np.isfinite(high) and np.isfinite(state[3, d])
        for i in range(4):
            # + 0.0 turns -0.0 into 0.0: bounds do not depend on which zero came first
            moments[i, d] = state[1 + i, d] + 0.0
    for d in range(len(products)):
        moments[3 + d, d] = state[4, d]
        for e in range(d):
            step = 1
            # Lanes are added in pairs, then pairs of pairs, which rounds less than one by one.
            while step < HALF:
                for k in range(0, HALF, 2 * step):
                    products[d, e, k] += products[d, e, k + step]
                step *= 2
            moments[3 + d, e] = products[d, e, 0]
            moments[3 + e, d] = products[d, e, 0]
    return finite


@inlined
def _pack_rows(group, in_place, w, g, equal, state, patch, x):  # type: ignore[no-untyped-def]
    """One group: centred rows into x[g n :] in float32, transposed; bounds and moments into state.
    Vectors run along columns.
    """
    address, by_row, by_column, size, n, itemsize = group
    copied = patch.ctypes.data
    wide = LANES * itemsize
    step = n if in_place else LANES
    for d in range(0, n, step):
        at = address + d * by_column
        stride = by_row
        some = min(step, n - d)
        if not in_place:
            if by_row == itemsize and size == ROWS:
                turn(at, by_column, some - 1, LANES, ROWS, copied, wide, itemsize)
            else:
                copy(at, by_row, by_column, size - 1, some, copied, wide, itemsize, itemsize)
            at = copied
            stride = wide
        absorb_rows(at, stride, itemsize, w, g, equal, d, some, state, x, g * n + d)


@inlined
def _pack_columns(  # type: ignore[no-untyped-def]
    group, in_place, w, g, equal, state, notes, keep, columns, x
):
    """One group: centred rows into x[g n :] in float32, and columns if `keep`; bounds and moments
    into notes. Vectors run along rows.
    """
    address, by_row, by_column, size, n, itemsize = group
    # Columns are transposed to where they end up: float64 to `columns`, float32 to x.
    source = columns.ctypes.data if itemsize == 8 else x.ctypes.data + g * n * ROWS * 4
    stride = ROWS * itemsize
    if by_row == itemsize and size == ROWS:
        source = address
        stride = by_column
    elif in_place:
        turn(address, by_row, ROWS, ROWS, n, source, stride, itemsize)
    else:
        copy(address, by_row, by_column, size - 1, n, source, itemsize, stride, itemsize)
    absorb_columns(source, stride, itemsize, w, g, equal, state, notes, keep, columns, x, g * n)
