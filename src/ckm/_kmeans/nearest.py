"""The nearest of K centroids on the CPU: float32 scores where they are certain, else distances in
float64 (see `index` for why that is exact).

Rows are taken `PANEL` at a time and transposed, so that vectors run along rows.
"""

from typing import NamedTuple

import numpy as np

from ckm._kernels.cpu.llvm import LANES
from ckm._kernels.cpu.nearest import PANEL, score_panel, transpose_panel
from ckm._kmeans.index import CentroidIndex
from ckm._util.arrays import Array, Float32Array, FloatArray, LabelArray, aligned, read_only_view
from ckm._util.jit import entry, leaf, summing


def find_nearest(
    rows: Array, index: CentroidIndex, labels: LabelArray, squares: FloatArray | None = None
) -> int | None:
    """Write the label of each row (int32) and, if `squares` is given, its squared distance.

    Returns the number of the first row whose distance is not finite, or None if there is none.
    `rows` are contiguous float32 or float64.
    """
    # Numba compiles a function once more for arrays that can be written to.
    seen = read_only_view(rows)
    # Plain tuples: named ones would tie the cache on disk to this version of the file.
    prepared = tuple(index.prepared_for(rows.dtype))
    panel = tuple(_Panel.of(rows.shape[1]))
    distances = np.empty(len(prepared[0]))
    written = np.empty(0) if squares is None else squares
    failed = int(_find(seen, seen.reshape(-1), prepared, panel, distances, labels, written))
    return None if failed < 0 else failed


class _Panel(NamedTuple):
    """Buffers for `PANEL` rows, in float32.

    Parameters
    ----------
    rows : array (PANEL n + LANES,)
        The rows as they come, relative to the origin and scaled; vectors may read past the end.
    transposed : array (n + padding, PANEL)
        Their transpose.
    norms, best, second : array (PANEL,)
        For each row |x|^2 and its two smallest scores.
    which : int32 array (PANEL,)
        The centroid with the smallest score; -1 where that is uncertain.
    """

    rows: Float32Array
    transposed: Float32Array
    norms: Float32Array
    best: Float32Array
    second: Float32Array
    which: LabelArray

    @classmethod
    def of(cls, n: int) -> "_Panel":
        """Buffers for rows of n columns."""
        rows = aligned((PANEL * n + LANES,), np.float32)
        rows[:] = 0  # the last panel may have few rows
        transposed = aligned((n + -n % LANES, PANEL), np.float32)
        norms, best, second = aligned((3, PANEL), np.float32)
        return cls(rows, transposed, norms, best, second, np.empty(PANEL, np.int32))


@entry
def _find(rows, flat, prepared, panel, distances, labels, squares):  # type: ignore[no-untyped-def]
    C, transposed, numbers, origin, factor, negatives, half_norms, bounds = prepared
    _, x, norms, best, second, which = panel
    for start in range(0, len(rows), PANEL):
        size = min(PANEL, len(rows) - start)
        _fill_panel(flat, start, size, rows.shape[1], origin, factor, panel)
        score_panel(x, negatives, half_norms, best, second, which)
        _mark_uncertain(bounds, norms, best, second, which)
        for r in range(size):
            if which[r] < 0:
                which[r] = nearest_in_float64(rows, start + r, transposed, distances)
                if which[r] < 0:
                    return start + r
            labels[start + r] = numbers[which[r]]
        if len(squares):
            _squared_distances(rows, start, size, C, which, squares)
    return -1


@leaf
def _fill_panel(flat, start, size, n, origin, factor, panel):  # type: ignore[no-untyped-def]
    """Put `size` rows from `start` on into the panel, relative to the origin and scaled."""
    scaled, x, norms, best, second, which = panel
    for first in range(0, size * n, len(origin)):
        at = start * n + first
        _centre_and_scale(
            flat[at : min(at + len(origin), (start + size) * n)], origin, factor, scaled[first:]
        )
    transpose_panel(scaled, n, x)
    for r in range(PANEL):
        norms[r] = 0
        best[r] = np.inf
        second[r] = np.inf
        which[r] = 0
    for d in range(n):
        for r in range(PANEL):
            norms[r] += x[d, r] * x[d, r]


@leaf
def _centre_and_scale(numbers, origin, factor, scaled):  # type: ignore[no-untyped-def]
    for i in range(len(numbers)):
        scaled[i] = np.float32((numbers[i] - origin[i]) * factor)


@leaf
def _mark_uncertain(bounds, norms, best, second, which):  # type: ignore[no-untyped-def]
    """Set `which` to -1 where rounding may have chosen a wrong centroid, and for NaN and infinity.

    The bound is described in `index._error_bounds`.
    """
    length = bounds[0]
    a = bounds[1]
    b = bounds[2]
    tiny = bounds[3]
    slack = bounds[4]
    max_square = bounds[5]
    for r in range(PANEL):
        reach = slack * np.sqrt(norms[r]) + length
        if not (second[r] - best[r] > reach * (a + b * reach) + tiny and norms[r] < max_square):
            which[r] = -1


@leaf
def nearest_in_float64(rows, r, transposed, squares):  # type: ignore[no-untyped-def]
    """The nearest centroid of row r by distances in float64, the first of equals; -1 where none is
    finite.
    """
    for k in range(len(squares)):
        squares[k] = 0.0
    for d in range(len(transposed)):
        for k in range(len(squares)):
            squares[k] += (rows[r, d] - transposed[d, k]) * (rows[r, d] - transposed[d, k])
    nearest = -1
    least = np.inf
    for k in range(len(squares)):
        if squares[k] < least:
            nearest = k
            least = squares[k]
    return nearest


@entry
def measure_distances(rows, C, labels, squares):  # type: ignore[no-untyped-def]
    """Write the squared distance of each row to the centroid with its label, rounded as by
    `find_nearest`.
    """
    _squared_distances(rows, 0, len(rows), C, labels, squares)


@summing
def _squared_distances(rows, start, size, C, which, squares):  # type: ignore[no-untyped-def]
    """Squared distances of `size` rows from `start` on to the centroids chosen for them."""
    for r in range(size):
        k = which[r]
        total = 0.0
        for d in range(C.shape[1]):
            total += (rows[start + r, d] - C[k, d]) * (rows[start + r, d] - C[k, d])
        squares[start + r] = total
