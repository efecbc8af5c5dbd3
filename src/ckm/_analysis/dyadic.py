"""A dyadic grid: the rows of a stream in buckets, the older the larger.

A few buckets each hold one block, a few two blocks, a few four, and so on, newest last. Every
boundary between two buckets is a time at which the stream may have changed: the rows after it are
a window, and windows of all lengths are there at any time. t blocks take O(log t) buckets, and a
new one O(1) merges on average.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ckm._core.tally import UNIT, Tally
from ckm._util.arrays import FloatArray

# Buckets of one size: windows are within a fifth of any length. With two instead of four, changes
# are found some percent later, and their times are half as precise.
BUCKETS_PER_LEVEL = 4


@dataclass(frozen=True, eq=False)
class Bucket:
    """Some consecutive rows: 2**level blocks of them, or all that come first.

    Parameters
    ----------
    level : int
        The logarithm of its number of blocks.
    tally : Tally
        The sums over its rows.
    y : float64 array (d,)
        P times the sums of features.
    """

    level: int
    tally: Tally
    y: FloatArray

    @classmethod
    def of(cls, tally: Tally, directions: FloatArray, level: int = 0) -> "Bucket":
        """The bucket of these sums. `directions` are P (d, 2m)."""
        # One product per bucket, whatever else is computed, so that its bits are always the same.
        return cls(level, tally, directions @ (UNIT * tally.sums.reshape(-1)))

    @property
    def count(self) -> int:
        """The number of its rows."""
        return self.tally.count


Buckets = tuple[Bucket, ...]


def push(buckets: Buckets, tally: Tally, directions: FloatArray) -> Buckets:
    """The grid with one more block."""
    grid = [*buckets, Bucket.of(tally, directions)]
    level = 0
    # Buckets of one level are next to each other.
    while True:
        same = [i for i, bucket in enumerate(grid) if bucket.level == level]
        if len(same) <= BUCKETS_PER_LEVEL:
            return tuple(grid)
        i = same[0]
        level += 1
        grid[i : i + 2] = [Bucket.of(grid[i].tally + grid[i + 1].tally, directions, level)]


class Splits(NamedTuple):
    """Every way to cut a grid in two, from the longest window to the shortest.

    Parameters
    ----------
    before, after : float64 arrays (w,)
        The rows on both sides.
    statistics : float64 array (w,)
        T = N_1 N_2 / (N_1 + N_2) |P (mean after - mean before)|^2.
    """

    before: FloatArray
    after: FloatArray
    statistics: FloatArray


def compare_sides(base: Bucket, buckets: Buckets) -> Splits:
    """Compare what comes before each bucket, the rows of `base` included, with the rest."""
    counts = np.array([base.count, *(bucket.count for bucket in buckets)], np.float64)
    y = np.stack([base.y, *(bucket.y for bucket in buckets)])
    before = np.cumsum(counts)[:-1]
    after = np.cumsum(counts[::-1])[::-1][1:]
    sums_before = np.cumsum(y, axis=0)[:-1]
    sums_after = np.cumsum(y[::-1], axis=0)[::-1][1:]
    moved = sums_after / after[:, None] - sums_before / before[:, None]
    factor = before / (before + after) * after
    return Splits(before, after, factor * np.einsum("ij,ij->i", moved, moved))
