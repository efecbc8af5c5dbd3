"""Rows divided by their lengths, for metric="cosine": sums, samples and distances are then those of
unit rows.

The arithmetic is specified, so that a row becomes the same bits in any chunk, thread, worker and
device, dense or sparse. With x_c = float64(row_c) and p = 1,

    s = 0,  then  s = s + (x_c p) (x_c p)  for c = 0 .. n-1                    float64
    unit_c = float32((x_c p) (1 / sqrt(s)))

If s comes out below 2**-500 it is computed again with p = 2**600, and if above 2**1000 with
p = 2**-600, so that squares neither vanish nor overflow. A row of zeros stays a row of zeros. Of a
row with values that are not finite, these stay and the others become zero: whoever uses it reports
the first of them as it is in the data.
"""

from typing import Any

import numpy as np

from ckm._sources.blocks import to_floats
from ckm._util.arrays import Float32Array, read_only_view
from ckm._util.device import DeviceRows
from ckm._util.jit import entry, leaf
from ckm._util.sparse import SparseRows

SMALL = 2.0**-500
LARGE = 2.0**1000
UP = 2.0**600
DOWN = 2.0**-600


def unit_rows(rows: Any) -> Any:
    """Rows (b, n) divided by their lengths, in float32: an array, `SparseRows` or `DeviceRows`, as
    they come.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    if isinstance(rows, DeviceRows):
        from ckm._sources.unit_rows_gpu import unit_tensor

        return DeviceRows.of(unit_tensor(rows.synchronized()))
    rows = to_floats(rows)
    if isinstance(rows, SparseRows):
        numbers = rows.numbers()
        starts = rows.starts - rows.starts[0]
        values = np.ascontiguousarray(rows.values[numbers])
        unit = np.empty(len(values), np.float32)
        _divide_sparse(read_only_view(values), starts, unit)
        return SparseRows(unit, rows.columns[numbers], starts, rows.n)
    table: Float32Array = np.empty(rows.shape, np.float32)
    _divide_dense(read_only_view(np.ascontiguousarray(rows)), table)
    return table


@entry
def _divide_dense(rows, unit):  # type: ignore[no-untyped-def]
    """Sums of eight rows at a time: each waits for its last addition, and the others go on."""
    n = rows.shape[1]
    count = len(rows)
    whole = count - count % 8
    for r in range(0, whole, 8):
        a = b = c = d = e = f = g = h = 0.0
        for i in range(n):
            a += np.float64(rows[r, i]) * np.float64(rows[r, i])
            b += np.float64(rows[r + 1, i]) * np.float64(rows[r + 1, i])
            c += np.float64(rows[r + 2, i]) * np.float64(rows[r + 2, i])
            d += np.float64(rows[r + 3, i]) * np.float64(rows[r + 3, i])
            e += np.float64(rows[r + 4, i]) * np.float64(rows[r + 4, i])
            f += np.float64(rows[r + 5, i]) * np.float64(rows[r + 5, i])
            g += np.float64(rows[r + 6, i]) * np.float64(rows[r + 6, i])
            h += np.float64(rows[r + 7, i]) * np.float64(rows[r + 7, i])
        squares = (a, b, c, d, e, f, g, h)
        for k in range(8):
            _divide(rows[r + k], squares[k], unit[r + k])
    for r in range(whole, count):
        _divide(rows[r], _sum_squares(rows[r], 1.0), unit[r])


@entry
def _divide_sparse(values, starts, unit):  # type: ignore[no-untyped-def]
    for r in range(len(starts) - 1):
        row = values[starts[r] : starts[r + 1]]
        _divide(row, _sum_squares(row, 1.0), unit[starts[r] : starts[r + 1]])


@leaf
def _sum_squares(row, power):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(row)):
        x = np.float64(row[i]) * power
        total += x * x
    return total


@leaf
def _divide(row, square, unit):  # type: ignore[no-untyped-def]
    """Write one row, given the sum of its squares."""
    power = 1.0
    if not SMALL <= square <= LARGE:
        power = UP if square < SMALL else DOWN
        square = _sum_squares(row, power)
    if 0.0 < square < np.inf:
        factor = 1.0 / np.sqrt(square)
        for i in range(len(row)):
            unit[i] = np.float32((np.float64(row[i]) * power) * factor)
    else:
        for i in range(len(row)):
            unit[i] = np.float32(0.0) if np.isfinite(row[i]) else np.float32(row[i])
