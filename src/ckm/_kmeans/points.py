"""Weighted points in memory, and what k-means asks of them: which centroid is nearest, sums around
each, and where to start.
"""

import numpy as np
from scipy.sparse import csr_array

from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.nearest import find_nearest
from ckm._util.arrays import Array


class Cloud:
    """Points (N, n), contiguous float64, with weights beta (N,)."""

    def __init__(self, points: Array, beta: Array) -> None:
        self.points, self.beta = points, beta

    def nearest(self, C: Array) -> tuple[Array, Array]:
        """Each point's nearest centroid, and its squared distance."""
        labels, squares = np.empty(len(self.points), np.int32), np.empty(len(self.points))
        find_nearest(self.points, CentroidIndex(C), labels, squares)
        return labels, squares

    def sums(self, C: Array) -> tuple[Array, Array]:
        """Of the points nearest to each centroid (K, n), and their weight (K,)."""
        labels = np.empty(len(self.points), np.int32)
        find_nearest(self.points, CentroidIndex(C), labels)
        members = csr_array(
            (self.beta, labels, np.arange(len(self.points) + 1)), shape=(len(self.points), len(C))
        )
        return members.T @ self.points, np.bincount(labels, self.beta, minlength=len(C))

    def two_nearest(self, C: Array) -> tuple[Array, Array, Array]:
        """Each point's nearest centroid, and its squared distances to that one and to the next."""
        points, rows = self.points, 8192
        nearest, first, second = (
            np.empty(len(points), int),
            np.empty(len(points)),
            np.empty(len(points)),
        )
        for at in range(0, len(points), rows):
            piece, here = points[at : at + rows], slice(at, at + rows)
            squares = ((piece**2).sum(axis=1)[:, None] - 2 * piece @ C.T) + (C**2).sum(axis=1)
            each = np.arange(len(piece))
            nearest[here] = np.argmin(squares, axis=1)
            first[here] = squares[each, nearest[here]]
            squares[each, nearest[here]] = np.inf
            second[here] = squares.min(axis=1)
        return nearest, np.maximum(first, 0), np.maximum(second, 0)

    def seeds(self, K: int, rng: np.random.Generator) -> Array:
        """k-means++ (Arthur and Vassilvitskii, 2007): points drawn in proportion to their squared
        distance to the nearest so far; each time the best of a few.
        """
        points, norms = self.points, (self.points**2).sum(axis=1)
        left, chosen = np.ones(len(points)), list[int]()
        for k in range(K):
            ends = np.cumsum(self.beta * left)
            drawn = np.minimum(
                np.searchsorted(ends, rng.random(trials(K) if k else 1) * ends[-1], side="right"),
                len(points) - 1,
            )
            squares = np.maximum(norms[drawn, None] - 2 * points[drawn] @ points.T + norms, 0)
            after = np.minimum(left, squares) if k else squares
            best = int(np.argmin(after @ self.beta))
            left = after[best]
            chosen.append(int(drawn[best]))
        return points[chosen]


def trials(K: int) -> int:
    """Points that are drawn for each of K seeds."""
    return 2 + int(np.log(K))
