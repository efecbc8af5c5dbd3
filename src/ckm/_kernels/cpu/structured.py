"""The kernel for structured frequencies: the fast transform of `ckm._kernels.spec`, with the same
exact sums as for dense frequencies.

Vectors run along LANES rows. A block of rows is read and goes through the first round once; then,
for every p frequencies, through the other two rounds, and from the last pass into cosines, sines
and sums without touching memory in between.
"""

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.hadamard import ROUNDS, padded_length
from ckm._core.moments import has_full_moment
from ckm._core.tally import Tally, sum_of_squares
from ckm._kernels.cpu.llvm import LANES
from ckm._kernels.cpu.tiles import take_tile
from ckm._kernels.cpu.transform import (
    add_lanes,
    first_pass,
    later_passes,
    passes_of,
    sum_pass_3,
    sum_pass_4,
    transform,
    weigh_pass_3,
    weigh_pass_4,
)
from ckm._kernels.spec import ONE, THREE_BITS
from ckm._util.arrays import Array, FloatArray, RowsArray, aligned, read_only_view
from ckm._util.jit import entry, inlined
from ckm.errors import NonFiniteError

# Groups of LANES rows in a block, at most: sums of 256 integers of at most 2**22 fit int32.
_BLOCK_GROUPS = 16
# float32 numbers in a block of rows, at most: 1 MB, which stays in the second-level cache.
_BLOCK_NUMBERS = 2**18


# What the compiled functions share, as plain tuples: named tuples would tie numba's cache on disk
# to this version of the file.
_Plan = tuple[Array, Array, Array]
_Buffers = tuple[Array, Array, Array, Array, Array, Array]


def tally(frequencies: Frequencies, rows: RowsArray, weights: FloatArray | None = None) -> Tally:
    """The tally of `rows`; integer sums when they are unweighted."""
    m = frequencies.m
    n = frequencies.n
    full = has_full_moment(m, n)
    columns = n + -n % LANES
    sums = np.zeros((2, m), np.int64 if weights is None else np.float64)
    notes = np.zeros((4, columns))
    notes[0] = np.inf
    notes[1] = -np.inf
    second = np.zeros((n, n) if full else (0, 0))
    origin = np.concatenate([frequencies.origin, np.zeros(columns - n)])
    beta = None if weights is None else read_only_view(np.ascontiguousarray(weights, np.float64))
    buffers = _make_buffers(padded_length(n), columns if full else LANES, exact=weights is None)
    bad = _sweep(
        _plan(frequencies),
        origin,
        read_only_view(np.ascontiguousarray(rows)),
        beta,
        buffers,
        notes,
        sums,
        second,
    )
    if bad >= 0:
        row, column = divmod(int(bad), n)
        raise NonFiniteError(row, column, float(rows[row, column]))
    lower, upper, first, diagonal = notes[:, :n]
    weight = float(len(rows)) if beta is None else float(beta.sum())
    squares = None if beta is None else sum_of_squares(beta)
    moment = np.tril(second) + np.tril(second, -1).T if full else diagonal
    return Tally(sums, weight, len(rows), lower, upper, first, moment, squared_weight=squares)


def _plan(frequencies: Frequencies) -> _Plan:
    """The factors of each round (p + 2 blocks p,), turns (blocks p,), both float32, and the sweeps
    of each pass.
    """
    factors = frequencies.factors
    p = factors.shape[1]
    turns = np.zeros(len(factors) // (ROUNDS - 1) * p, np.float32)
    turns[: frequencies.m] = frequencies.turns
    return factors.ravel(), turns, passes_of(p)


def _make_buffers(p: int, columns: int, exact: bool) -> _Buffers:
    """The memory that a sweep works in: x (groups p, LANES), transposed rows; their weights
    (groups, LANES); work (p, LANES), the numbers of one group being transformed; sums (2 p, LANES)
    per lane; edge, a tile at the edge of the data; and v, LANES rows relative to the origin, as
    many columns of them as are needed at a time.
    """
    groups = max(1, min(_BLOCK_GROUPS, _BLOCK_NUMBERS // (p * LANES)))
    x = aligned((groups * p, LANES), np.float32)
    weights = np.empty((groups, LANES))
    work = aligned((p, LANES), np.float32)
    sums = aligned((2 * p, LANES), np.int32 if exact else np.float64)
    edge = aligned((LANES, LANES), np.float64)
    v = aligned((LANES, columns), np.float64)
    return x, weights, work, sums, edge, v


@entry
def _sweep(  # type: ignore[no-untyped-def]
    plan, origin, rows, beta, buffers, notes, totals, second
):
    """Add every row to the totals; returns the flat position of the first value that is not finite
    in float32, or -1.
    """
    x, weights, work, lane_sums, _, _ = buffers
    factors, _, passes = plan
    m = totals.shape[1]
    p = len(work)
    most = len(weights)  # groups in a block
    for start in range(0, len(rows), most * LANES):
        stop = min(start + most * LANES, len(rows))
        groups = (stop - start + LANES - 1) // LANES
        for g in range(groups):
            bad = _load(rows, start + g * LANES, stop, origin, beta, buffers, g, notes, second)
            if bad >= 0:
                return bad
            transform(x, g * p, factors, 0, x, g * p, p, passes)
        padding = (groups * LANES - (stop - start)) * ONE if beta is None else 0
        for j in range(0, m, p):
            _add_frequencies(plan, j, min(p, m - j), groups, beta, buffers)
            for f in range(min(p, m - j)):
                totals[0, j + f] += add_lanes(lane_sums, 2 * f) - padding
                totals[1, j + f] += add_lanes(lane_sums, 2 * f + 1)
    return -1


@inlined
def _load(  # type: ignore[no-untyped-def]
    rows, start, stop, origin, beta, buffers, g, notes, second
):
    """Rows from `start` on, at most LANES, into x[g p :], padded with zeros; with their bounds and
    moments. Returns as `_sweep` does.
    """
    x, weights, work, _, edge, v = buffers
    n = rows.shape[1]
    size = min(LANES, stop - start)
    p = len(work)
    full = len(second) > 0
    for r in range(LANES):
        weights[g, r] = 0.0 if r >= size else 1.0 if beta is None else beta[start + r]
    finite = True
    for d in range(0, n, LANES):
        at = d if full else 0
        if size == LANES and d + LANES <= n:
            finite &= take_tile(rows, start, d, origin, d, weights, g, notes, v, at, x, g * p + d)
        else:
            _copy_edge(rows, start, size, d, edge)
            finite &= take_tile(edge, 0, 0, origin, d, weights, g, notes, v, at, x, g * p + d)
            _clear(x, g * p + d, g * p + d + LANES, size)
    _clear(x, g * p + n, (g + 1) * p, 0)
    if not finite:
        return _first_bad(rows, start, start + size, origin)
    if full:
        _add_products(weights, g, v, second)
    return -1


@entry
def _copy_edge(rows, start, size, d, edge):  # type: ignore[no-untyped-def]
    """Copy a tile at the edge of the data: missing rows are copies of the last, which changes no
    bounds, and missing columns are zero.
    """
    for r in range(LANES):
        for e in range(LANES):
            edge[r, e] = rows[start + min(r, size - 1), d + e] if d + e < rows.shape[1] else 0.0


@entry
def _clear(x, start, stop, lane):  # type: ignore[no-untyped-def]
    """Zeros in x[start : stop, lane :]."""
    for i in range(start, stop):
        for k in range(lane, LANES):
            x[i, k] = 0


@entry
def _first_bad(rows, start, stop, origin):  # type: ignore[no-untyped-def]
    """The flat position of the first value that is not finite in float32, or -1."""
    n = rows.shape[1]
    for r in range(start, stop):
        for d in range(n):
            if not np.isfinite(np.float32(np.float64(rows[r, d]) - origin[d])):
                return r * n + d
    return -1


@entry
def _add_products(weights, g, v, second):  # type: ignore[no-untyped-def]
    """The lower triangle of second += v^T diag(weights[g]) v."""
    for d in range(len(second)):
        for r in range(LANES):
            a = weights[g, r] * v[r, d]
            for e in range(d + 1):
                second[d, e] += a * v[r, e]


@entry
def _fill(sums, value):  # type: ignore[no-untyped-def]
    """Set every sum to a value."""
    start = sums.dtype.type(value)  # integers wrap
    for i in range(len(sums)):
        for k in range(LANES):
            sums[i, k] = start


@inlined
def _add_frequencies(plan, j, count, groups, beta, buffers):  # type: ignore[no-untyped-def]
    """The sums of `count` frequencies from the j-th on, over the rows of all groups, one sum for
    each lane.
    """
    x, weights, work, sums, _, _ = buffers
    factors, turns, passes = plan
    p = len(work)
    last = len(passes) - 1
    # Each row adds bit patterns of 3 + cos and 3 + sin; those of 3 are subtracted beforehand.
    _fill(sums, 0 if beta is not None else -groups * THREE_BITS)
    for g in range(groups):
        transform(x, g * p, factors, p + 2 * j, work, 0, p, passes)
        size = first_pass(work, 0, factors, 2 * p + 2 * j, work, 0, p, passes)
        for w in range(0, count, size):
            later_passes(work, w, size, p, passes, last)
            left = min(size, count - w)
            if beta is None and passes[last] == 4:
                sum_pass_4(work, w, turns, j + w, sums, left)
            elif beta is None:
                sum_pass_3(work, w, turns, j + w, sums, left)
            elif passes[last] == 4:
                weigh_pass_4(work, w, turns, j + w, sums, left, weights, g)
            else:
                weigh_pass_3(work, w, turns, j + w, sums, left, weights, g)
