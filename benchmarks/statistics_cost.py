"""The compiled pass without bounds and moments: what they cost is the difference.

The twin is the kernel's own source, in which rows are centred and rounded and nothing is noted. It is held to the same sums, bit for bit.
"""

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

import ckm
from ckm.kernels import numba as kernel
from ckm.kernels.packing import _either, _half
from ckm.kernels.vectors import ROWS
from ckm.kernels.vocabulary import F64, HALF, HALF_DOUBLES, HALF_FLOATS, at_address, element, index, load, loop, store
from ckm.tally import second_moment_shape


@intrinsic
def centre(context, address, stride, itemsize, w, g, equal, d, state, v, keep, x):
    """`ckm.kernels.packing.absorb` without what it notes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, stride, itemsize, *_, d, state_, _, _, x_ = args
        origin = load(builder, element(context, builder, state, state_, index(0), d), index(0), HALF_DOUBLES)
        half = builder.and_(d, index(HALF))

        def write(number: Any) -> None:
            with loop(builder, index(0), index(ROWS)) as (r, _):
                y = load(builder, at_address(builder, builder.add(address, builder.mul(r, stride)), number), index(0), _half(number))
                centred = builder.fsub(y if number == F64 else builder.fpext(y, HALF_DOUBLES), origin)
                store(builder, builder.fptrunc(centred, HALF_FLOATS), element(context, builder, x, x_, r, half), index(0))

        _either(builder, itemsize, write)
        return context.get_dummy_value()

    place = types.int64
    return types.void(place, place, place, w, place, types.boolean, place, state, v, place, x), generate


def _twin() -> Any:
    names = vars(kernel)
    pack = njit(inline="always")(FunctionType(kernel._pack.py_func.__code__, names | {"absorb": centre}))
    sweep = FunctionType(kernel._sweep.py_func.__code__, names | {"_pack": pack})
    return njit(nogil=True, error_model="numpy")(sweep)


_TWIN: list[Any] = []  # compiled once, when first asked for


def without_statistics(frequencies: ckm.Frequencies, rows: np.ndarray) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The compiled pass over these rows, and the same without bounds and moments."""
    if not _TWIN:
        _TWIN.append(_twin())
    full = len(second_moment_shape(frequencies.m, frequencies.n)) == 2
    spaces = [kernel._workspace(frequencies, keep, False) for keep in (full, False)]

    def sweep(compiled: Any, space: Any) -> None:
        compiled((rows.ctypes.data, *rows.strides, len(rows), rows.itemsize), frequencies.turns, np.empty(0), tuple(space))

    passes = [partial(sweep, compiled, space) for compiled, space in zip((kernel._sweep, _TWIN[0]), spaces, strict=True)]
    for once in passes:
        once()
    if not np.array_equal(spaces[0].sums, spaces[1].sums):
        raise AssertionError("The pass without bounds and moments has other sums: benchmarks/statistics_cost.py no longer fits the kernel.")
    return passes[0], passes[1]
