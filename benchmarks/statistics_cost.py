"""The compiled pass without bounds and moments: their cost is the difference.

The twin is compiled from the kernel's own source, with bounds and moments left out. Its sums are
checked to be bit-identical.
"""

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any
from unittest.mock import patch

import numpy as np
from numba import njit

import ckm
from ckm._kernels.cpu import dense as kernel
from ckm._kernels.cpu import packing
from ckm._kernels.cpu.moments import widen


def _centred(
    builder: Any, origin: Any, totals: list[Any], ys: list[Any], weights: list[Any]
) -> tuple[list[Any], list[Any]]:
    """`ckm._kernels.cpu.moments.centre_and_note` without the bounds and moments."""
    return [builder.fsub(widen(builder, y), origin) for y in ys], totals


@njit(inline="always")
def _no_products(v: Any, w: Any, g: Any, products: Any) -> None:
    pass


def _twin() -> Any:
    return njit(nogil=True, error_model="numpy")(
        FunctionType(kernel._sweep.py_func.__code__, vars(kernel) | {"add_products": _no_products})
    )


_TWIN: list[Any] = []  # compiled once, when first asked for


def without_statistics(
    frequencies: ckm.Frequencies, rows: np.ndarray
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The compiled pass over these rows, and the same without bounds and moments."""
    if not _TWIN:
        _TWIN.append(_twin())

    def sweep(compiled: Any) -> np.ndarray:
        *before, sums, moments = kernel.prepared(frequencies, rows)
        compiled(*before, sums, moments)
        return sums

    passes = partial(sweep, kernel._sweep), partial(sweep, _TWIN[0])
    with patch.object(packing, "centre_and_note", _centred):  # compiled now, if not before
        sums = passes[1]()
    if not np.array_equal(sums, passes[0]()):
        raise AssertionError(
            "The pass without bounds and moments has other sums: benchmarks/statistics_cost.py no "
            "longer fits the kernel."
        )
    return passes
