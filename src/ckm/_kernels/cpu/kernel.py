"""The kernel for CPUs: dense or structured frequencies behind the interface of `ckm._kernels`."""

from typing import Any

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.pool import Pool
from ckm._core.tally import Tally
from ckm._kernels import Kernel
from ckm._kernels.cpu import dense, structured
from ckm._util.arrays import Array, FloatArray, RowsArray
from ckm._util.device import DeviceRows, is_tensor


class CpuKernel(Kernel):
    """The specified arithmetic on the CPU; rows on a GPU are copied, one block at a time."""

    def tally(
        self, frequencies: Frequencies, rows: Any, weights: FloatArray | None = None
    ) -> Tally:
        """The exact sums over these rows, with their bounds and moments."""
        rows = on_host(rows)
        if frequencies.signs is not None:
            return structured.tally(frequencies, rows, weights)
        return dense.tally(frequencies, rows, weights)

    def draw_pool(
        self,
        rng: np.random.Generator,
        rows: Any,
        weights: FloatArray | None,
        capacity: int,
        frequencies: Frequencies,
        limit: float = np.inf,
    ) -> Pool:
        """A sample of at most `capacity` of these rows, outliers more likely than others."""
        rows = on_host(rows)
        return Pool.draw(rng, rows, weights, capacity, importance(rows, frequencies), limit)


def on_host(rows: Any) -> RowsArray:
    """Rows as a float32 or float64 array on the CPU; copied only if they are not one already."""
    if is_tensor(rows):
        rows = DeviceRows(rows)
    if not isinstance(rows, DeviceRows):
        array: RowsArray = rows
        return array
    array = np.asarray(rows)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def importance(rows: Array, frequencies: Frequencies) -> FloatArray | None:
    """How much each row may matter to the SSE: one on average, half of it the same for every row
    and half in proportion to its squared distance from the origin.

    A few outliers may decide the SSE, and a uniform sample would miss them (Bachem, Lucic and
    Krause, 2018). None if the variance of the data is not known.
    """
    if frequencies.spread is None:
        return None
    # One sum of products per row takes a quarter of the time of squares and their mean.
    x = np.subtract(rows, frequencies.origin, dtype=np.float64, order="C")
    x /= frequencies.step
    squares = np.einsum("ij,ij->i", x, x)
    factor = 0.5 / frequencies.n * (frequencies.scale / frequencies.spread)
    return np.asarray(0.5 + factor * squares)
