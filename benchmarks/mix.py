"""How many frequencies and cells fit in a budget of bytes.

Bytes are what two sketches of one design differ by (sums, bounds and moments; counts, sums and
squares of cells), and the anchors. Frequencies and the rest of a design are not counted: a seed
makes them again.
"""

import math

from ckm._core.defaults import MIN_JUDGES
from ckm._core.laws import determines_centroids
from ckm._core.moments import second_moment_shape

# Share of the bytes that frequencies take, if it buys as many numbers as there are unknowns: if the
# cells are stale, the frequencies are decoded alone, the better the more there are.
# Fewer can only judge the cells, for which `MIN_JUDGES` are enough.
FREQUENCY_SHARE = 0.1


def feature_bytes(n: int) -> int:
    """Return the bytes of a cell and its anchor: a count, n sums and squares of 8, the anchor 4 n.

    >>> feature_bytes(10)
    136
    """
    return 8 * (n + 2) + 4 * n


def sketch_bytes(m: int, cells: int, n: int) -> int:
    """Return what m frequencies and some cells take in dimension n.

    >>> sketch_bytes(500, 0, 10), sketch_bytes(100, 200, 10)
    (9056, 29136)
    """
    second = math.prod(second_moment_shape(m, n))
    # The total weight and the number of rows; bounds and means; second moments.
    others = 16 + 24 * n + 8 * second
    return 16 * m + others + cells * feature_bytes(n)


def mix_sizes(budget: int, n_clusters: int, n: int) -> tuple[int, int]:
    """Return the numbers of frequencies and of cells for K clusters in a budget of bytes.

    >>> mix_sizes(8000, 10, 10), mix_sizes(64_000, 10, 10)
    ((16, 54), (400, 415))
    """
    m = int(FREQUENCY_SHARE * budget / 16)
    if not determines_centroids(m, n_clusters, n):
        m = MIN_JUDGES
    return m, (budget - sketch_bytes(m, 0, n)) // feature_bytes(n)


def row_products(m: int, cells: int, n: int) -> int:
    """Return the multiply-adds that a row costs: n + 16 for each frequency, n for each anchor."""
    return m * (n + 16) + cells * n
