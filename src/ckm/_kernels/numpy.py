"""The plain NumPy kernel in float64: easy to read. It agrees with the exact kernels to rounding;
its sums are marked `exact=False`.
"""

from typing import Any

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.moments import has_full_moment, weighted_squares
from ckm._core.tally import UNIT, Tally, sum_of_squares
from ckm._kernels.cpu.kernel import CpuKernel, on_host
from ckm._util.arrays import FloatArray, RowsArray
from ckm._util.checks import require_float32

_PAIRS = 2**20  # phases in memory at a time: 8 MB


class NumpyKernel(CpuKernel):
    """The kernel for CPUs with plain float64 sums."""

    def tally(
        self, frequencies: Frequencies, rows: Any, weights: FloatArray | None = None
    ) -> Tally:
        """The sums over these rows, to rounding, with their bounds and moments."""
        return tally(frequencies, on_host(rows), weights)


def tally(frequencies: Frequencies, rows: RowsArray, weights: FloatArray | None = None) -> Tally:
    """sums_j = sum_l beta_l (cos, sin)(omega_j^T (x_l - origin)), with bounds and moments."""
    m = frequencies.m
    n = frequencies.n
    if not len(rows):
        return Tally.empty(m, n)
    x = rows.astype(np.float64) - frequencies.origin
    require_float32(x)
    beta = np.ones(len(x)) if weights is None else weights
    sums = np.zeros((2, m))
    step = max(1, _PAIRS // m)
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        phases = x[part] @ frequencies.omega.T
        sums += beta[part] @ np.cos(phases), beta[part] @ np.sin(phases)
    second = weighted_squares(x, beta, has_full_moment(m, n))
    lower = rows.min(axis=0)
    upper = rows.max(axis=0)
    return Tally(
        sums / UNIT,
        float(beta.sum()),
        len(x),
        lower,
        upper,
        beta @ x,
        second,
        squared_weight=sum_of_squares(beta),
    )
