"""The innermost loops of the numba kernel, written as LLVM vectors: phases, cosines, sines and
their sums.

LLVM's own vectoriser keeps to 256-bit registers and spills between loops; spelled out as vectors
the same arithmetic runs several times as fast: 17 instructions a vector besides the n multiply-adds
of a phase, all of which share the two ports that multiply and add. Rows come packed, `ROWS` of them
a group, transposed to (n, ROWS), so that vectors run along rows and a group is read from start to
end.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types

from ckm._kernels.cpu.llvm import (
    FLOATS,
    HALF,
    HALF_DOUBLES,
    HALF_INTS,
    I32,
    I64,
    INTS,
    LANES,
    apart,
    call,
    element,
    every,
    float32,
    fma,
    has_feature,
    index,
    intrinsic,
    length,
    load,
    loop,
    no_more,
    prefetch,
    splat,
    spread,
    store,
    variable,
)
from ckm._kernels.spec import COSINE, SINE, THREE_BITS

ROWS = 64  # rows a group
TILE = 4  # frequencies that share the loads of a sweep
STRETCH = 4  # columns after which more is fetched ahead,
FETCHES = 2  # at so many places

_Add = Callable[[int, int, Any], None]


def _vectors_at_a_time(context: Any) -> int:
    """How many vectors of rows share a frequency's coordinates.

    With TILE frequencies 4 make 16 phases. 8 would hide the latency of fma, but only with more of
    them no port is ever kept waiting; and 16 multiply-adds share 8 loads. With the rows and most
    constants of `waves` they fit 32 registers of 512 bits. Of narrower registers, and there are 16
    of 256 bits, a vector takes two or four.
    """
    return 4 if has_feature(context, "avx512f") else 1


def _reduce(context: Any, builder: Any, p: Any) -> Any:
    """r = p - rint(p): where there is one instruction for it, it takes the time of one instead of
    three.
    """
    if has_feature(context, "avx512dq"):
        to_nearest, as_it_is = ir.Constant(I32, 0), ir.Constant(I32, 4)
        all_lanes = ir.Constant(ir.IntType(LANES), -1)
        return call(
            builder,
            "llvm.x86.avx512.mask.reduce.ps.512",
            FLOATS,
            p,
            to_nearest,
            float32(0),
            all_lanes,
            as_it_is,
        )
    return builder.fsub(p, call(builder, f"llvm.rint.v{LANES}f32", FLOATS, p))


def waves(context: Any, builder: Any, phases: list[Any]) -> list[tuple[Any, Any]]:
    """Bit patterns of 3 + cos and 3 + sin of phases in turns: see `arithmetic.py`. All take each
    step together: none has to wait.
    """
    rs = [_reduce(context, builder, p) for p in phases]
    qs = [builder.fmul(r, r) for r in rs]
    cosines, sines = [float32(COSINE[-1])] * len(qs), [float32(SINE[-1])] * len(qs)
    for a, b in zip((*COSINE[-2::-1], 4), SINE[-2::-1], strict=True):
        cosines = [fma(builder, c, q, float32(a)) for c, q in zip(cosines, qs, strict=True)]
        sines = [fma(builder, s, q, float32(b)) for s, q in zip(sines, qs, strict=True)]
    sines = [fma(builder, s, r, float32(3)) for s, r in zip(sines, rs, strict=True)]
    return [
        (builder.bitcast(c, INTS), builder.bitcast(s, INTS))
        for c, s in zip(cosines, sines, strict=True)
    ]


def _sweep_group(
    context: Any,
    builder: Any,
    frequencies: list[Any],
    x: Any,
    n: Any,
    add: _Add,
    on_stretch: Callable[[Any], None] = lambda _: None,
) -> None:
    """For one group of rows and TILE frequencies: phase, cosine, sine, and add(which of 2 TILE
    sums, first row, bit patterns).
    """
    together = _vectors_at_a_time(context)
    phases = [[variable(builder, float32(0)) for _ in range(together)] for _ in frequencies]
    for start in range(0, ROWS, LANES * together):
        rows = [start + LANES * i for i in range(together)]
        _sweep_phases(builder, frequencies, x, rows, n, phases, on_stretch)
        for f, own in enumerate(phases):
            for i in range(0, together, 2):
                found = waves(context, builder, [builder.load(p) for p in own[i : i + 2]])
                for row, parts in zip(rows[i : i + 2], found, strict=True):
                    for part, bits in enumerate(parts):
                        add(2 * f + part, row, bits)


def _sweep_phases(
    builder: Any,
    frequencies: list[Any],
    x: Any,
    rows: list[int],
    n: Any,
    phases: list[list[Any]],
    on_stretch: Callable[[Any], None],
) -> None:
    """p = t_0 x_0, then p = fma(t_d, x_d, p); on_stretch(number) where a stretch of STRETCH columns
    begins, after the first column.
    """

    def step(d: Any, first: bool = False) -> None:
        values = [
            load(builder, x, builder.add(builder.mul(d, index(ROWS)), index(row)), FLOATS)
            for row in rows
        ]
        for turns, own in zip(frequencies, phases, strict=True):
            t = spread(builder, turns, d)
            for p, value in zip(own, values, strict=True):
                builder.store(
                    builder.fmul(t, value) if first else fma(builder, t, value, builder.load(p)), p
                )

    on_stretch(index(0))
    step(index(0), first=True)
    stretches = builder.udiv(builder.sub(n, index(1)), index(STRETCH))
    with loop(builder, index(0), stretches) as (s, _):
        on_stretch(builder.add(s, index(1)))
        for i in range(1, STRETCH + 1):
            step(builder.add(builder.mul(s, index(STRETCH)), index(i)))
    with loop(builder, builder.add(builder.mul(stretches, index(STRETCH)), index(1)), n) as (d, _):
        step(d)


class _Tiles:
    """What sweeps over all tiles share: turns (m, n), x (groups n, ROWS) and sums (tiles, 2 TILE,
    ..), as types and values.
    """

    def __init__(
        self, context: Any, builder: Any, types: tuple[Any, Any, Any], values: tuple[Any, Any, Any]
    ) -> None:
        self._builder = builder
        self._turns, self._x, self._sums = (
            partial(element, context, builder, *array) for array in zip(types, values, strict=True)
        )
        shape = partial(length, context, builder)
        self._last = builder.sub(shape(types[0], values[0], 0), index(1))
        self.n, self.count, self.parts = (
            shape(types[0], values[0], 1),
            shape(types[2], values[2], 0),
            shape(types[2], values[2], 1),
        )

    def frequencies(self, j: Any) -> list[Any]:
        """Where the turns of tile j's frequencies start; those that are missing in the last tile
        are the last one again.
        """
        wanted = [
            self._builder.add(self._builder.mul(j, index(TILE)), index(f)) for f in range(TILE)
        ]
        return [self._turns(no_more(self._builder, f, self._last), index(0)) for f in wanted]

    def group(self, g: Any) -> Any:
        """Where a group of rows starts."""
        return self._x(self._builder.mul(g, self.n), index(0))

    def sum(self, j: Any, i: Any) -> Any:
        """Where sum i of tile j starts."""
        return self._sums(j, i, index(0))


@intrinsic
def sum_tiles(
    context: Any, turns: Any, x: Any, groups: Any, ahead: Any, share: Any, sums: Any
) -> Any:
    """Add the bit patterns of 3 + cos and 3 + sin over some groups to int32 sums (tiles, 2 TILE,
    LANES), which wrap.

    Turns are (m, n), x (>= groups n, ROWS). With every tile and group, `share` bytes from the
    address `ahead` on are fetched.
    """

    def write(
        context: Any,
        builder: Any,
        turns_: Any,
        x_: Any,
        groups: Any,
        ahead: Any,
        share: Any,
        sums_: Any,
    ) -> None:
        tiles = _Tiles(context, builder, (turns, x, sums), (turns_, x_, sums_))
        stretches = builder.udiv(builder.add(tiles.n, index(STRETCH - 1)), index(STRETCH))
        step = builder.udiv(share, builder.mul(stretches, index(FETCHES)))
        with loop(builder, index(0), tiles.count) as (j, _):
            frequencies, out = tiles.frequencies(j), tiles.sum(j, index(0))

            def add(i: int, row: int, bits: Any) -> None:
                # In memory, though registers would do: LLVM then ends one frequency before the
                # next, and spills nothing.
                store(
                    builder,
                    builder.add(load(builder, out, index(LANES * i), INTS), bits),
                    out,
                    index(LANES * i),
                )

            with loop(builder, index(0), groups) as (g, _):
                here = builder.add(
                    ahead, builder.mul(builder.add(builder.mul(j, groups), g), share)
                )

                def fetch(number: Any) -> None:
                    for i in range(FETCHES):
                        prefetch(
                            builder,
                            builder.add(
                                here,
                                builder.mul(
                                    builder.add(builder.mul(number, index(FETCHES)), index(i)), step
                                ),
                            ),
                        )

                _sweep_group(context, builder, frequencies, tiles.group(g), tiles.n, add, fetch)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        apart(builder, "sum_tiles", args, partial(write, context))
        return context.get_dummy_value()

    return types.void(turns, x, types.int64, types.int64, types.int64, sums), generate


@intrinsic
def weigh_tiles(
    context: Any, turns: Any, x: Any, groups: Any, weights: Any, scratch: Any, sums: Any
) -> Any:
    """Add weight times the cosine and sine, as integers, over some groups to float64 sums (tiles, 2
    TILE, HALF), in a fixed order.

    As `sum_tiles`, with weights (>= groups, ROWS) and scratch for 2 TILE ROWS numbers of 32 bits.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        turns_, x_, groups, weights_, scratch_, sums_ = args
        tiles, integers = (
            _Tiles(context, builder, (turns, x, sums), (turns_, x_, sums_)),
            element(context, builder, scratch, scratch_),
        )

        def keep(i: int, row: int, bits: Any) -> None:
            store(
                builder, builder.sub(bits, every(INTS, THREE_BITS)), integers, index(ROWS * i + row)
            )

        with (
            loop(builder, index(0), tiles.count) as (j, _),
            loop(builder, index(0), groups) as (g, _),
        ):
            _sweep_group(context, builder, tiles.frequencies(j), tiles.group(g), tiles.n, keep)
            w = element(context, builder, weights, weights_, g, index(0))
            # LLVM does not know how long this loop is: else it would hand integers on in registers,
            # where converting them takes longer.
            with loop(builder, index(0), tiles.parts) as (i, _):
                line, out = builder.gep(integers, [builder.mul(i, index(ROWS))]), tiles.sum(j, i)
                total = load(builder, out, index(0), HALF_DOUBLES)
                for row in range(0, ROWS, HALF):
                    value = builder.sitofp(load(builder, line, index(row), HALF_INTS), HALF_DOUBLES)
                    total = fma(builder, load(builder, w, index(row), HALF_DOUBLES), value, total)
                store(builder, total, out, index(0))
        return context.get_dummy_value()

    return types.void(turns, x, types.int64, weights, scratch, sums), generate


@intrinsic
def drain_tiles(context: Any, sums: Any, less: Any, totals: Any) -> Any:
    """Move int32 sums (tiles, 2 TILE, LANES), each less the int32 number `less`, to int64 totals
    (2, TILE tiles).
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sums_, less, totals_ = args
        at, longs = partial(element, context, builder), ir.VectorType(I64, LANES)
        with loop(builder, index(0), length(context, builder, sums, sums_, 0)) as (j, _):
            for i in range(2 * TILE):
                lanes = at(sums, sums_, j, index(i), index(0))
                total = at(
                    totals,
                    totals_,
                    index(i % 2),
                    builder.add(builder.mul(j, index(TILE)), index(i // 2)),
                )
                integers = builder.sub(load(builder, lanes, index(0), INTS), splat(builder, less))
                more = call(
                    builder,
                    f"llvm.vector.reduce.add.v{LANES}i64",
                    I64,
                    builder.sext(integers, longs),
                )
                builder.store(builder.add(builder.load(total), more), total)
                store(builder, every(INTS, 0), lanes, index(0))
        return context.get_dummy_value()

    return types.void(sums, types.int32, totals), generate
