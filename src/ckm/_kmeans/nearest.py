"""The nearest of K centroids: products in float32 decide wherever they can without doubt, distances
in float64 decide the rest.

|x - c|^2 / 2 = |x|^2 / 2 + s with the score s = |c|^2 / 2 - x.c, so the nearest centroid has the
smallest score. Scores are computed in float32, relative to the middle of the centroids. What
rounding can do to them is bounded: where the best beats the second best by more, it is the nearest,
and the few other rows get every distance in float64. So labels are those of distances in float64,
whatever the data's place and units, and a row that is as near to several centroids goes to the
first.

Rows are taken `PANEL` at a time and transposed, so that vectors run along rows.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ckm._kernels.cpu.nearest import LANES, PANEL, TILE, score_panel, turn_panel
from ckm._util.arrays import Array, aligned
from ckm._util.jit import entry, leaf, summing

_AT_ONCE = 64  # numbers, at least, that are made relative to the origin in one loop
# the largest centroids and most columns that are compared in float32, and its range
_LARGE, _LONG, _FACTORS = 1e130, 2**16, 2.0**60


class Ready(NamedTuple):
    """Centroids made ready to be compared with rows of one type.

    Parameters
    ----------
    centroids : float64 array (K, n)
        Distinct ones.
    transposed : float64 array (n, K)
        The same.
    names : int32 array (K,)
        The number of each.
    origin : array (n times a power of two,), of the rows' type
        What scores are relative to, repeated: a loop along it is long enough for vectors.
    factor : number of the rows' type
        A power of two that makes centroids about as long as one.
    scaled : float32 array (K + padding, n)
        Minus the centroids, relative to the origin and times the factor.
    halves : float32 array (K + padding,)
        Half their squared lengths; infinite where there is no centroid.
    bounds : float64 array (6,)
        What tells whether rounding may have chosen, see `_doubt`: the largest of their lengths,
        three numbers that grow with n, by how much lengths of rows may be off, and the largest
        square of one.
    """

    centroids: Array
    transposed: Array
    names: Array
    origin: Array
    factor: Any
    scaled: Array
    halves: Array
    bounds: Array

    @classmethod
    def of(cls, centroids: Array, kind: Any) -> "Ready":
        """Make centroids (K, n) ready; of equal ones, only the first is ever the nearest."""
        C = np.ascontiguousarray(centroids, np.float64)
        first: dict[bytes, int] = {}
        for k, c in enumerate(C):
            first.setdefault(c.tobytes(), k)
        names = np.fromiter(first.values(), np.int32)
        C = np.ascontiguousarray(C[names])
        with np.errstate(over="ignore"):
            origin = (C.min(axis=0) / 2 + C.max(axis=0) / 2).astype(kind)
        widest = np.abs(C - origin).max() * np.sqrt(C.shape[1])
        factor = (
            2.0 ** -np.clip(np.ceil(np.log2(widest)), -1000, 1000) if 0 < widest < np.inf else 1.0
        )
        # Where squares may overflow, or there are too many columns for the bound, everything is in
        # doubt.
        known = (
            widest < _LARGE
            and C.shape[1] < _LONG
            and (kind is np.float64 or 1 / _FACTORS < factor < _FACTORS)
        )
        around, padding = (C - origin) * factor, -len(C) % TILE
        squares = (around**2).sum(axis=1)
        scaled = np.pad(-around, ((0, padding), (0, 0))).astype(np.float32)
        halves = np.pad(squares / 2, (0, padding), constant_values=np.inf).astype(np.float32)
        length = float(np.sqrt(squares.max())) if known else np.inf
        bounds, factor = _bounds(C.shape[1], length), kind(factor if known else 1)
        return cls(
            C, np.ascontiguousarray(C.T), names, _repeated(origin), factor, scaled, halves, bounds
        )


@dataclass(frozen=True, eq=False)
class Targets:
    """Centroids (K, n), made ready to be compared with rows in float32 or in float64 when the first
    such rows come.
    """

    centroids: Array

    @property
    def n(self) -> int:
        """How many columns they have."""
        return int(self.centroids.shape[1])

    @cached_property
    def single(self) -> Ready:
        """For rows in float32."""
        return Ready.of(self.centroids, np.float32)

    @cached_property
    def double(self) -> Ready:
        """For rows in float64."""
        return Ready.of(self.centroids, np.float64)


def _bounds(n: int, length: float) -> Array:
    """With u = 2^-24, a score of the row x is off by at most u (n + 3) (|x| |c| + |c|^2 / 2), and a
    squared distance in float64 by its (n + 2) 2^-53 th part. The numbers leave room for underflow
    and for rounding in |x| and in the comparison.
    """
    tiny = 1e-33 * n
    return np.array(
        [
            length,
            2.1 * 2.0**-24 * (n + 3) * length + tiny,
            1.1 * 2.0**-53 * (n + 3),
            tiny,
            1.01,
            1e37,
        ]
    )


def _repeated(origin: Array) -> Array:
    times = 1
    while times < PANEL and times * len(origin) < _AT_ONCE:
        times *= 2
    return np.tile(origin, times)


def find_nearest(
    rows: Array, targets: Targets, labels: Array, squares: Array | None = None
) -> int | None:
    """Write each row's label (int32) and, where there is room for it, its squared distance
    (float64).

    Returns the first row whose distance is not finite, if there is one. `rows` are contiguous
    float32 or float64.
    """
    seen = rows.view()
    seen.flags.writeable = False  # else arrays that can be written to are compiled for once more
    room = np.empty(0) if squares is None else squares
    # Plain tuples: named ones would tie the cache on disk to this version of the file.
    ready = tuple(targets.double if rows.dtype == np.float64 else targets.single)
    bad = int(
        _find(
            seen,
            seen.reshape(-1),
            ready,
            _panel(rows.shape[1]),
            np.empty(len(ready[0])),
            labels,
            room,
        )
    )
    return None if bad < 0 else bad


def _panel(n: int) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Memory for the rows at hand, in float32: as they come (PANEL n, and room to read on), and
    transposed (n + padding, PANEL); for each |x|^2, its two smallest scores, and whose the smallest
    is.
    """
    width, kind = n + -n % LANES, np.float32
    rows, x, (squares, best, second) = (
        aligned((PANEL * n + LANES,), kind),
        aligned((width, PANEL), kind),
        aligned((3, PANEL), kind),
    )
    rows[:] = 0  # the last panel may have few rows
    return rows, x, squares, best, second, np.empty(PANEL, np.int32)


@entry
def _find(rows, flat, targets, panel, distances, labels, squares):  # type: ignore[no-untyped-def]
    C, transposed, names, origin, factor, scaled, halves, bounds = targets
    _, x, norms, best, second, which = panel
    for start in range(0, len(rows), PANEL):
        size = min(PANEL, len(rows) - start)
        _load(flat, start, size, rows.shape[1], origin, factor, panel)
        score_panel(x, scaled, halves, best, second, which)
        _doubt(bounds, norms, best, second, which)
        for r in range(size):
            if which[r] < 0:
                which[r] = _decide(rows, start + r, transposed, distances)
                if which[r] < 0:
                    return start + r
            labels[start + r] = names[which[r]]
        if len(squares):
            _measure(rows, start, size, C, which, squares)
    return -1


@leaf
def _load(flat, start, size, n, origin, factor, panel):  # type: ignore[no-untyped-def]
    """Put `size` rows from `start` on, relative to the origin and times the factor, into the panel."""
    scaled, x, norms, best, second, which = panel
    for first in range(0, size * n, len(origin)):
        at = start * n + first
        _centre(
            flat[at : min(at + len(origin), (start + size) * n)], origin, factor, scaled[first:]
        )
    turn_panel(scaled, n, x)
    for r in range(PANEL):
        norms[r] = 0
        best[r] = np.inf
        second[r] = np.inf
        which[r] = 0
    for d in range(n):
        for r in range(PANEL):
            norms[r] += x[d, r] * x[d, r]


@leaf
def _centre(numbers, origin, factor, scaled):  # type: ignore[no-untyped-def]
    for i in range(len(numbers)):
        scaled[i] = np.float32((numbers[i] - origin[i]) * factor)


@leaf
def _doubt(bounds, norms, best, second, which):  # type: ignore[no-untyped-def]
    """Set `which` to -1 where rounding may have chosen the wrong centroid; NaN and infinity are in
    doubt.
    """
    length, a, b = bounds[0], bounds[1], bounds[2]
    tiny, slack, most = bounds[3], bounds[4], bounds[5]
    for r in range(PANEL):
        reach = slack * np.sqrt(norms[r]) + length
        if not (second[r] - best[r] > reach * (a + b * reach) + tiny and norms[r] < most):
            which[r] = -1


@leaf
def _decide(rows, r, transposed, squares):  # type: ignore[no-untyped-def]
    """The nearest centroid of row r by distances in float64, the first of equals; -1 where none is
    finite.
    """
    for k in range(len(squares)):
        squares[k] = 0.0
    for d in range(len(transposed)):
        for k in range(len(squares)):
            squares[k] += (rows[r, d] - transposed[d, k]) * (rows[r, d] - transposed[d, k])
    nearest, least = -1, np.inf
    for k in range(len(squares)):
        if squares[k] < least:
            nearest, least = k, squares[k]
    return nearest


@summing
def _measure(rows, start, size, C, which, squares):  # type: ignore[no-untyped-def]
    """Squared distances to the chosen centroids."""
    for r in range(size):
        k, total = which[r], 0.0
        for d in range(C.shape[1]):
            total += (rows[start + r, d] - C[k, d]) * (rows[start + r, d] - C[k, d])
        squares[start + r] = total
