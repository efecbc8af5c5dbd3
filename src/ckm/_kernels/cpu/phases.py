"""The innermost loops of the kernel for CPUs, as LLVM vectors: phases, cosines, sines and their
sums.

LLVM's own vectoriser keeps to 256-bit registers and spills between loops. Written as vectors, the
same arithmetic is 1.3 to 2 times as fast (`benchmarks/kernel.py`): 17 instructions per vector
besides the n multiply-adds of a phase, all of which share the two ports that multiply and add. Rows
come packed in groups of `ROWS`, transposed to (n, ROWS), so that vectors run along rows and a group
is read from start to end.
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
    call,
    constant,
    element,
    float32,
    fma,
    has_feature,
    i64,
    intrinsic,
    length,
    load,
    load_splat,
    loop,
    out_of_line,
    prefetch,
    smaller,
    splat,
    store,
    variable,
)
from ckm._kernels.spec import COSINE, SINE, THREE_BITS

ROWS = 64  # rows per group: four vectors
TILE = 4  # frequencies that share the loads of a sweep
# Every STRETCH columns, FETCHES cache lines of the next run of rows are prefetched.
STRETCH = 4
FETCHES = 2

_Add = Callable[[int, int, Any], None]


def _vectors_at_a_time(context: Any) -> int:
    """How many vectors of rows share the load of a frequency's coordinate.

    With 512-bit registers, of which there are 32: four, which with TILE frequencies make 16
    independent phases. Eight would hide the latency of a multiply-add, but only more keep both
    ports busy all the time; 16 multiply-adds share 8 loads; and 16 phases, the rows and most
    constants of `waves` still fit the registers. With narrower registers, of which there are 16, a
    vector takes two or four: then one.
    """
    return 4 if has_feature(context, "avx512f") else 1


def _reduce(context: Any, builder: Any, p: Any) -> Any:
    """r = p - rint(p), as the one instruction that some processors have for it, or as two."""
    if has_feature(context, "avx512dq"):
        # vreduceps: round to the nearest integer, subtract, and leave the rounding mode as it is
        to_nearest = ir.Constant(I32, 0)
        as_it_is = ir.Constant(I32, 4)
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
    """Bit patterns of 3 + cos and 3 + sin of phases in turns: see `ckm._kernels.spec`.

    All phases take each step of the polynomials together, so that none waits for the result of the
    instruction before it.
    """
    rs = [_reduce(context, builder, p) for p in phases]
    qs = [builder.fmul(r, r) for r in rs]
    cosines = [float32(COSINE[-1])] * len(qs)
    sines = [float32(SINE[-1])] * len(qs)
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
    """Phases, cosines and sines of one group of rows and TILE frequencies.

    add(i, row, bits) gets the bit patterns of LANES rows from `row` on, with i = 2 f for the
    cosines of frequency f and 2 f + 1 for its sines.
    """
    together = _vectors_at_a_time(context)
    phases = [[variable(builder, float32(0)) for _ in range(together)] for _ in frequencies]
    for start in range(0, ROWS, LANES * together):
        rows = [start + LANES * i for i in range(together)]
        _sweep_phases(builder, frequencies, x, rows, n, phases, on_stretch)
        # Two vectors at a time go through `waves`: enough to hide the latency of its multiply-adds,
        # cosines and sines being independent, and few enough for the constants to stay in
        # registers.
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
    """p = t_0 x_0, then p = fma(t_d, x_d, p) for d = 1 .. n-1.

    Columns after the first are taken STRETCH at a time; on_stretch(number) is called before each.
    """

    def step(d: Any, first: bool = False) -> None:
        # the vectors of a column are loaded once and serve every frequency of the tile
        values = [
            load(builder, x, builder.add(builder.mul(d, i64(ROWS)), i64(row)), FLOATS)
            for row in rows
        ]
        for turns, own in zip(frequencies, phases, strict=True):
            t = load_splat(builder, turns, d)
            for p, value in zip(own, values, strict=True):
                builder.store(
                    builder.fmul(t, value) if first else fma(builder, t, value, builder.load(p)), p
                )

    on_stretch(i64(0))
    step(i64(0), first=True)
    stretches = builder.udiv(builder.sub(n, i64(1)), i64(STRETCH))
    with loop(builder, i64(0), stretches) as (s, _):
        on_stretch(builder.add(s, i64(1)))
        for i in range(1, STRETCH + 1):
            step(builder.add(builder.mul(s, i64(STRETCH)), i64(i)))
    with loop(builder, builder.add(builder.mul(stretches, i64(STRETCH)), i64(1)), n) as (d, _):
        step(d)


class _Tiles:
    """The arrays of a sweep over all tiles of frequencies: turns (m, n), x (groups n, ROWS) and
    sums (tiles, 2 TILE, ..), given as types and values.
    """

    def __init__(
        self, context: Any, builder: Any, types: tuple[Any, Any, Any], values: tuple[Any, Any, Any]
    ) -> None:
        self._builder = builder
        self._turns, self._x, self._sums = (
            partial(element, context, builder, *array) for array in zip(types, values, strict=True)
        )
        shape = partial(length, context, builder)
        self._last = builder.sub(shape(types[0], values[0], 0), i64(1))
        self.n = shape(types[0], values[0], 1)
        self.count = shape(types[2], values[2], 0)
        self.parts = shape(types[2], values[2], 1)

    def frequencies(self, j: Any) -> list[Any]:
        """Where the turns of tile j's frequencies start; the last tile repeats the last frequency
        to be full.
        """
        numbers = [self._builder.add(self._builder.mul(j, i64(TILE)), i64(f)) for f in range(TILE)]
        return [self._turns(smaller(self._builder, f, self._last), i64(0)) for f in numbers]

    def group(self, g: Any) -> Any:
        """Where a group of rows starts."""
        return self._x(self._builder.mul(g, self.n), i64(0))

    def sum(self, j: Any, i: Any) -> Any:
        """Where sum i of tile j starts."""
        return self._sums(j, i, i64(0))


@intrinsic
def sum_tiles(
    context: Any, turns: Any, x: Any, groups: Any, ahead: Any, share: Any, sums: Any
) -> Any:
    """Add the bit patterns of 3 + cos and 3 + sin over some groups to int32 sums (tiles, 2 TILE,
    LANES), which wrap.

    Turns are (m, n), x (>= groups n, ROWS). The next rows, from the address `ahead` on, are
    prefetched on the way: `share` bytes with every tile and group.
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
        stretches = builder.udiv(builder.add(tiles.n, i64(STRETCH - 1)), i64(STRETCH))
        step = builder.udiv(share, builder.mul(stretches, i64(FETCHES)))
        with loop(builder, i64(0), tiles.count) as (j, _):
            frequencies = tiles.frequencies(j)
            out = tiles.sum(j, i64(0))

            def add(i: int, row: int, bits: Any) -> None:
                # Sums stay in memory, not in registers: LLVM then finishes one frequency before
                # it starts the next, and spills nothing.
                place = i64(LANES * i)
                total = builder.add(load(builder, out, place, INTS), bits)
                store(builder, total, out, place)

            with loop(builder, i64(0), groups) as (g, _):
                here = builder.add(
                    ahead, builder.mul(builder.add(builder.mul(j, groups), g), share)
                )

                def fetch(number: Any) -> None:
                    for i in range(FETCHES):
                        fetched = builder.add(builder.mul(number, i64(FETCHES)), i64(i))
                        prefetch(builder, builder.add(here, builder.mul(fetched, step)))

                _sweep_group(context, builder, frequencies, tiles.group(g), tiles.n, add, fetch)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out_of_line(builder, "sum_tiles", args, partial(write, context))
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
        tiles = _Tiles(context, builder, (turns, x, sums), (turns_, x_, sums_))
        integers = element(context, builder, scratch, scratch_)

        def keep(i: int, row: int, bits: Any) -> None:
            store(
                builder,
                builder.sub(bits, constant(INTS, THREE_BITS)),
                integers,
                i64(ROWS * i + row),
            )

        with (
            loop(builder, i64(0), tiles.count) as (j, _),
            loop(builder, i64(0), groups) as (g, _),
        ):
            _sweep_group(context, builder, tiles.frequencies(j), tiles.group(g), tiles.n, keep)
            w = element(context, builder, weights, weights_, g, i64(0))
            # The length of this loop is read from the array, so that LLVM does not know it: else it
            # would unroll it and keep the integers in registers, where converting them is slower
            # than converting them as they are loaded.
            with loop(builder, i64(0), tiles.parts) as (i, _):
                line = builder.gep(integers, [builder.mul(i, i64(ROWS))])
                out = tiles.sum(j, i)
                total = load(builder, out, i64(0), HALF_DOUBLES)
                for row in range(0, ROWS, HALF):
                    value = builder.sitofp(load(builder, line, i64(row), HALF_INTS), HALF_DOUBLES)
                    total = fma(builder, load(builder, w, i64(row), HALF_DOUBLES), value, total)
                store(builder, total, out, i64(0))
        return context.get_dummy_value()

    return types.void(turns, x, types.int64, weights, scratch, sums), generate


@intrinsic
def drain_tiles(context: Any, sums: Any, less: Any, totals: Any) -> Any:
    """Move int32 sums (tiles, 2 TILE, LANES), each less the int32 number `less`, to int64 totals
    (2, TILE tiles).
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sums_, less, totals_ = args
        at = partial(element, context, builder)
        longs = ir.VectorType(I64, LANES)
        with loop(builder, i64(0), length(context, builder, sums, sums_, 0)) as (j, _):
            for i in range(2 * TILE):
                lanes = at(sums, sums_, j, i64(i), i64(0))
                total = at(
                    totals,
                    totals_,
                    i64(i % 2),
                    builder.add(builder.mul(j, i64(TILE)), i64(i // 2)),
                )
                integers = builder.sub(load(builder, lanes, i64(0), INTS), splat(builder, less))
                more = call(
                    builder,
                    f"llvm.vector.reduce.add.v{LANES}i64",
                    I64,
                    builder.sext(integers, longs),
                )
                builder.store(builder.add(builder.load(total), more), total)
                store(builder, constant(INTS, 0), lanes, i64(0))
        return context.get_dummy_value()

    return types.void(sums, types.int32, totals), generate
