"""The nearest of thousands of anchors: groups of anchors that cannot hold it are passed over.

Anchors are taken `GROUP` at a time, in the order of their numbers: `neighbours_side_by_side` makes
that a good one. In the coordinates y = x u of the specification (`ckm._core.cells`), a score is

    s_k = (|y - a_k u|^2 - |y|^2) / 2,

so that a row at the distance B from the box around a group finds no score below (B^2 - |y|^2) / 2
there. If it has found a smaller one, the group is passed over. The other scores are computed by the
specified sequence of operations, so that the result is the specified one to the last bit.

For that, the comparison allows for rounding. With e = 1.1 (n + 4) 2^-24, the computed score of an
anchor of length A differs from the exact one by at most

    e A (A / 2 + |y|) <= eta^2 / 2,    eta = sqrt(e) (A + |y|),

and a group is passed over if B > rho + 2 eta, where rho^2 = 2 s + |y|^2 and s is the smallest score
so far, as computed: one eta for the scores of the group, one for the comparison itself, which is in
float32.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from ckm._core.cells import Anchors
from ckm._kernels.cpu.llvm import (
    FLOATS,
    I32,
    I64,
    LANES,
    constant,
    data_pointers,
    element,
    fma,
    i64,
    intrinsic,
    length,
    load,
    load_splat,
    loop,
    splat,
    store,
    variable,
)
from ckm._util.arrays import Array, Float32Array, FloatArray, IntArray, aligned
from ckm._util.jit import leaf

# Anchors of a group: 32 took half as long again, for 20 000 anchors in five columns.
GROUP = 64
# Anchors from which groups are worth their preparation.
MIN_ANCHORS = 1000
# Groups that a row may visit, as a share of all, before comparing it with all anchors is faster.
MAX_VISITED = 0.2
# Squared lengths from which on float32 might overflow.
_MAX_SQUARE = 1e30
# More than the rounding of a sum and a square in float32, and than what underflows there.
_MARGIN = 1e-6
_TINY = 1e-15

_VECTORS = GROUP // LANES


def neighbours_side_by_side(points: FloatArray) -> IntArray:
    """An order (s,) of points (s, n): halves along the widest column, of these halves, and so on
    down to groups. Few points stay as they are.
    """
    order = np.arange(len(points))
    if len(points) >= MIN_ANCHORS:
        _halve(points, order)
    return order


def _halve(points: FloatArray, order: IntArray) -> None:
    """Order these points, in place."""
    if len(order) <= GROUP:
        return
    own = points[order]
    column = own[:, np.argmax(own.max(axis=0) - own.min(axis=0))]
    order[:] = order[np.argsort(column, kind="stable")]
    half = GROUP * ((len(order) // GROUP + 1) // 2)
    _halve(points, order[:half])
    _halve(points, order[half:])


class Groups(NamedTuple):
    """Anchors in groups, with the boxes around them. Boxes are in blocks of `GROUP`."""

    anchors: Float32Array  # (G, n, GROUP): b of the specification
    halves: Float32Array  # (G, GROUP): h of the specification; infinite where there is no anchor
    lower: Float32Array  # (blocks, n, GROUP): the lowest y in each group; infinite if there is none
    upper: Float32Array  # (blocks, n, GROUP)
    slack: Float32Array  # (blocks, GROUP): 2 sqrt(e) A for the longest anchor
    unit_metric: FloatArray  # (n,): u of the specification
    row_slack: float  # 2 sqrt(e)
    y: Float32Array  # (n,): buffer for a row
    scores: Float32Array  # (GROUP,): buffer for those of one group
    distances: Float32Array  # (blocks, GROUP): buffer for the squared distances from all boxes

    @classmethod
    def of(cls, anchors: Anchors) -> "Groups":
        """Prepare anchors; no groups if they are few."""
        n = anchors.n
        s = len(anchors) if len(anchors) >= MIN_ANCHORS else 0
        points = np.asarray(anchors.values[:s] * anchors.unit_metric)
        starts = np.arange(0, s, GROUP)
        lower, upper, longest = points[:0], points[:0], np.empty(0)
        if s:
            lower = np.minimum.reduceat(points, starts)
            upper = np.maximum.reduceat(points, starts)
            longest = np.maximum.reduceat(np.sqrt((points**2).sum(axis=1)), starts)
        row_slack = 2 * math.sqrt(1.1 * (n + 4) * 2.0**-24)
        slack = row_slack * (1 + _MARGIN) * longest
        return cls(
            _in_blocks(anchors.coefficients[:s], 0.0),
            _in_blocks(anchors.halves[:s, None], np.inf)[:, 0],
            _in_blocks(lower, np.inf),
            _in_blocks(upper, np.inf),
            _in_blocks(slack[:, None], 0.0)[:, 0],
            anchors.unit_metric,
            row_slack,
            aligned((n,), np.float32),
            aligned((GROUP,), np.float32),
            aligned((-(-len(starts) // GROUP), GROUP), np.float32),
        )


def _in_blocks(values: Array, padding: float) -> Float32Array:
    """Values (p, n) in blocks (b, n, GROUP)."""
    p, n = values.shape
    count = -(-p // GROUP)
    padded = np.full((count * GROUP, n), padding, np.float32)
    padded[:p] = values
    blocks = aligned((count, n, GROUP), np.float32)
    blocks[:] = padded.reshape(count, GROUP, n).transpose(0, 2, 1)
    return blocks


@leaf
def nearest_in_groups(x, size, n, groups, which):  # type: ignore[no-untyped-def]
    """The number of the nearest anchor of each of `size` rows, the first of equals.

    Returns how many groups the rows visited.
    """
    visited = 0
    for r in range(size):
        visited += _nearest_of_row(x[r * n : r * n + n], r, groups, which)
    return visited


@leaf
def _nearest_of_row(x, r, groups, which):  # type: ignore[no-untyped-def]
    anchors, halves, lower, upper, slack, unit_metric, row_slack, y, scores, distances = groups
    square = 0.0
    for d in range(len(x)):
        wide = x[d] * unit_metric[d]
        y[d] = wide
        square += wide * wide
    # The nearest box shows how near an anchor is.
    first = 0
    lowest = np.float32(np.inf)
    for j in range(len(lower)):
        low = _measure_boxes(y, lower, upper, j, distances)
        if low < lowest:
            lowest = low
            first = j * GROUP + _find(distances[j], low)
    best = _score_group(x, anchors, halves, first, scores)
    owner = 0
    if best < np.inf:
        owner = first * GROUP + _find(scores, best)
    visited = 1
    rho = np.sqrt(max(0.0, 2 * best + square)) + row_slack * np.sqrt(square) + _TINY
    reach = np.float32(rho * (1 + _MARGIN))
    for j in range(len(lower)):
        near = np.int64(-1)
        if square < _MAX_SQUARE:
            near = _near_boxes(distances, slack, j, reach)
        while near:
            g = j * GROUP + _trailing_zeros(near)
            near &= near - 1
            if g != first and g < len(anchors):
                visited += 1
                low = _score_group(x, anchors, halves, g, scores)
                # Of equals the first: groups come in order, but for the one that came first.
                if low < best or (low == best and low < np.inf and g * GROUP < owner):
                    best = low
                    owner = g * GROUP + _find(scores, low)
    which[r] = owner
    return visited


@leaf
def _find(scores, low):  # type: ignore[no-untyped-def]
    """The first of some scores that equals `low`."""
    for i in range(len(scores)):
        if scores[i] == low:
            return i
    return 0


@intrinsic
def _score_group(context: Any, x: Any, anchors: Any, halves: Any, g: Any, scores: Any) -> Any:
    """Compute the scores of the anchors of a group; returns the smallest. NaN is never smaller."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, target = data_pointers(context, builder, signature, args, 0, 4)
        group = _block(context, builder, signature, args, 1, 3)
        own = _block(context, builder, signature, args, 2, 3)
        n = length(context, builder, signature.args[1], args[1], 1)
        sums = [variable(builder, load(builder, own, place, FLOATS)) for place in _PLACES]
        with loop(builder, i64(0), n) as (d, _):
            value = load_splat(builder, row, d)
            base = builder.mul(d, i64(GROUP))
            for place, total in zip(_PLACES, sums, strict=True):
                b = load(builder, group, builder.add(base, place), FLOATS)
                builder.store(fma(builder, b, value, builder.load(total)), total)
        return _store_and_reduce(builder, sums, target, i64(0))

    return types.float32(x, anchors, halves, types.int64, scores), generate


@intrinsic
def _measure_boxes(context: Any, y: Any, lower: Any, upper: Any, j: Any, distances: Any) -> Any:
    """Compute squared distances from the boxes of block j; returns the smallest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, target = data_pointers(context, builder, signature, args, 0, 4)
        low = _block(context, builder, signature, args, 1, 3)
        high = _block(context, builder, signature, args, 2, 3)
        n = length(context, builder, signature.args[1], args[1], 1)
        zero = constant(FLOATS, 0.0)
        sums = [variable(builder, zero) for _ in _PLACES]
        with loop(builder, i64(0), n) as (d, _):
            value = load_splat(builder, row, d)
            base = builder.mul(d, i64(GROUP))
            for place, total in zip(_PLACES, sums, strict=True):
                at = builder.add(base, place)
                below = builder.fsub(load(builder, low, at, FLOATS), value)
                above = builder.fsub(value, load(builder, high, at, FLOATS))
                outside = _larger(builder, _larger(builder, below, above), zero)
                builder.store(fma(builder, outside, outside, builder.load(total)), total)
        return _store_and_reduce(builder, sums, target, builder.mul(args[3], i64(GROUP)))

    return types.float32(y, lower, upper, types.int64, distances), generate


@intrinsic
def _near_boxes(context: Any, distances: Any, slack: Any, j: Any, reach: Any) -> Any:
    """A bit for each group of block j, unless its box is farther away than reach + slack."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        own = _block(context, builder, signature, args, 0, 2)
        extra = _block(context, builder, signature, args, 1, 2)
        reach = splat(builder, args[3])
        bits: Any = i64(0)
        for v, place in enumerate(_PLACES):
            bound = builder.fadd(load(builder, extra, place, FLOATS), reach)
            square = builder.fmul(bound, bound)
            near = builder.fcmp_unordered("<=", load(builder, own, place, FLOATS), square)
            mask = builder.zext(builder.bitcast(near, ir.IntType(LANES)), I64)
            bits = builder.or_(bits, builder.shl(mask, i64(LANES * v)))
        return bits

    return types.int64(distances, slack, types.int64, types.float32), generate


@intrinsic
def _trailing_zeros(context: Any, bits: Any) -> Any:
    """The number of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


_PLACES = [i64(LANES * v) for v in range(_VECTORS)]


def _block(context: Any, builder: Any, signature: Any, args: Any, array: int, number: int) -> Any:
    """A pointer to a block of the array with this position among the arguments."""
    kind = signature.args[array]
    rest = [i64(0)] * (kind.ndim - 1)
    return element(context, builder, kind, args[array], args[number], *rest)


def _smaller(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _store_and_reduce(builder: Any, sums: list[Any], target: Any, start: Any) -> Any:
    """Write vectors from `start` on; the smallest number in them, which NaN never is."""
    low = constant(FLOATS, float("inf"))
    for place, total in zip(_PLACES, sums, strict=True):
        score = builder.load(total)
        store(builder, score, target, builder.add(start, place))
        low = _smaller(builder, score, low)
    # LLVM's own reduction spends several times as long on the rules for NaN.
    lanes = LANES
    while lanes > 1:
        lanes //= 2
        picks = ir.Constant(ir.VectorType(I32, LANES), [lane ^ lanes for lane in range(LANES)])
        low = _smaller(builder, builder.shuffle_vector(low, low, picks), low)
    return builder.extract_element(low, ir.Constant(I32, 0))
