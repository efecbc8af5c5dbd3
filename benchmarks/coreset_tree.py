"""The coreset tree of StreamKM++ (Ackermann et al., 2012): representatives drawn in proportion to
their squared distance, where each new one divides the points of one other only.
"""

import numba
import numpy as np


def reduce_to_representatives(
    points: np.ndarray, weights: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of at most `count` of the points, and the weight that each stands for."""
    points = np.ascontiguousarray(points, np.float64)
    return _grow(points, np.asarray(weights, np.float64), rng.random((count, 2)))


@numba.njit(cache=True)
def _grow(points, weights, uniforms):  # type: ignore[no-untyped-def]
    """Split leaves until there are as many as rows of `uniforms`, or every point is one."""
    N = len(points)
    limit = len(uniforms)
    order = np.arange(N)
    squares = np.empty(N)
    starts = np.empty(limit, np.int64)
    ends = np.empty(limit, np.int64)
    chosen = np.empty(limit, np.int64)
    costs = np.zeros(limit)
    starts[0] = 0
    ends[0] = N
    chosen[0] = _drawn(weights, np.ones(N), order, 0, N, uniforms[0, 1] * weights.sum())
    for i in range(N):
        squares[i] = _squared_distance(points, i, chosen[0])
        costs[0] += weights[i] * squares[i]
    leaves = 1
    while leaves < limit:
        total = costs[:leaves].sum()
        if not total > 0:
            break
        # Walking down from the root in proportion to costs ends in each leaf with these odds.
        leaf = 0
        left = uniforms[leaves, 0] * total
        while leaf < leaves - 1 and left >= costs[leaf]:
            left -= costs[leaf]
            leaf += 1
        if costs[leaf] == 0.0:
            leaf = np.argmax(costs[:leaves])
        at = uniforms[leaves, 1] * costs[leaf]
        new = _drawn(weights, squares, order, starts[leaf], ends[leaf], at)
        middle = ends[leaf]
        position = starts[leaf]
        own = 0.0
        other = 0.0
        while position < middle:
            i = order[position]
            distance = _squared_distance(points, i, new)
            if distance < squares[i]:
                squares[i] = distance
                other += weights[i] * distance
                middle -= 1
                order[position] = order[middle]
                order[middle] = i
            else:
                own += weights[i] * squares[i]
                position += 1
        chosen[leaves] = new
        starts[leaves] = middle
        ends[leaves] = ends[leaf]
        costs[leaves] = other
        ends[leaf] = middle
        costs[leaf] = own
        leaves += 1
    masses = np.zeros(leaves)
    for leaf in range(leaves):
        for position in range(starts[leaf], ends[leaf]):
            masses[leaf] += weights[order[position]]
    return chosen[:leaves], masses


@numba.njit(cache=True)
def _drawn(weights, squares, order, start, end, at):  # type: ignore[no-untyped-def]
    """Return the point at which the sum of weight times square reaches `at`."""
    last = -1
    for position in range(start, end):
        i = order[position]
        part = weights[i] * squares[i]
        if part > 0:
            last = i
            if at < part:
                break
            at -= part
    return last


@numba.njit(cache=True)
def _squared_distance(points, i, j):  # type: ignore[no-untyped-def]
    total = 0.0
    for d in range(points.shape[1]):
        total += (points[i, d] - points[j, d]) ** 2
    return total
