"""BICO (Fichtenberger, Gille, Schmidt, Schwiegelshohn and Sohler, 2013): a tree of clustering
features, filled in one pass, and rebuilt with twice the threshold when it is full.

A feature has a reference point and the count, mean and squared deviations of its rows. A row goes
to the child with the nearest reference point. If that is too far away for the level, the row opens
a feature; if the feature's error stays below the threshold, the row joins it; else it goes on to
the children of that feature.
"""

import numba
import numpy as np

# The first threshold, relative to the SSE of all rows around their mean: below what any tree needs.
FIRST_THRESHOLD = 2.0**-40


def bico_features(X: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of rows, the mean and the sum of squared deviations of at most `count`
    features.
    """
    X = np.ascontiguousarray(X, np.float64)
    threshold = FIRST_THRESHOLD * float(((X - X.mean(axis=0)) ** 2).sum())
    return _fill(X, count, max(threshold, np.finfo(np.float64).tiny))


@numba.njit(cache=True)
def _fill(X, limit, threshold):  # type: ignore[no-untyped-def]
    n = X.shape[1]
    # Node 0 is the root, which holds no rows.
    references = np.empty((limit + 2, n))
    means = np.empty((limit + 2, n))
    counts = np.zeros(limit + 2)
    squares = np.zeros(limit + 2)
    children = np.full(limit + 2, -1)
    siblings = np.full(limit + 2, -1)
    used = 1
    for i in range(len(X)):
        used = _insert(
            X[i], 1.0, 0.0, threshold, used, references, means, counts, squares, children, siblings
        )
        while used > limit + 1:
            threshold *= 2
            used = _rebuild(threshold, used, references, means, counts, squares, children, siblings)
    return counts[1:used], means[1:used], squares[1:used]


@numba.njit(cache=True)
def _insert(  # type: ignore[no-untyped-def]
    mean, count, square, threshold, used, references, means, counts, squares, children, siblings
):
    """Add a row, or the rows of a feature; return how many nodes are used then."""
    n = len(mean)
    node = 0
    radius = threshold / 16
    while True:
        nearest = -1
        smallest = np.inf
        child = children[node]
        while child >= 0:
            distance = 0.0
            for d in range(n):
                distance += (mean[d] - references[child, d]) ** 2
            if distance < smallest:
                smallest = distance
                nearest = child
            child = siblings[child]
        if nearest < 0 or smallest > radius:
            break
        gap = 0.0
        for d in range(n):
            gap += (mean[d] - means[nearest, d]) ** 2
        total = counts[nearest] + count
        joint = squares[nearest] + square + counts[nearest] * count / total * gap
        if joint <= threshold:
            for d in range(n):
                means[nearest, d] += (mean[d] - means[nearest, d]) * count / total
            counts[nearest] = total
            squares[nearest] = joint
            return used
        node = nearest
        radius /= 2
    for d in range(n):
        references[used, d] = mean[d]
        means[used, d] = mean[d]
    counts[used] = count
    squares[used] = square
    children[used] = -1
    siblings[used] = children[node]
    children[node] = used
    return used + 1


@numba.njit(cache=True)
def _rebuild(  # type: ignore[no-untyped-def]
    threshold, used, references, means, counts, squares, children, siblings
):
    """Insert all features into an empty tree, in the order in which they were opened."""
    old_means = means[:used].copy()
    old_counts = counts[:used].copy()
    old_squares = squares[:used].copy()
    children[:] = -1
    siblings[:] = -1
    new = 1
    for f in range(1, used):
        new = _insert(
            old_means[f],
            old_counts[f],
            old_squares[f],
            threshold,
            new,
            references,
            means,
            counts,
            squares,
            children,
            siblings,
        )
    return new
