"""Weighted points in memory, and what k-means asks of them.

`Points` is the interface, with one implementation for the CPU (here) and one for GPUs
(`points_gpu`). `points_on` chooses between them.
"""

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.init import SeedablePoints, draw_in_proportion
from ckm._kmeans.nearest import find_nearest, squared_distances
from ckm._util.arrays import FloatArray, IntArray, LabelArray, read_only_view
from ckm._util.jit import entry, leaf

# Products of all points and centroids, up to which plain distances take less time than to prepare
# the search of the nearest (40 us). Few centroids take as long as a vector full of them, and points
# as long as if they had a few columns more.
MAX_DIRECT_PRODUCTS = 2 * 10**5
VECTOR_CENTROIDS = 16
COLUMNS_PER_POINT = 4
# The mean variance is estimated from at most this many points.
MAX_VARIANCE_POINTS = 2000


class Points(SeedablePoints):
    """Points (N, n), contiguous float64, with weights (N,).

    Methods take and return NumPy arrays, except for those of `SeedablePoints`.
    """

    def __init__(self, values: FloatArray, weights: FloatArray) -> None:
        self.values = values
        self.weights = weights

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def mean_variance(self) -> float:
        """The variance of a column, about, on average over columns."""
        step = 1 + len(self) // MAX_VARIANCE_POINTS
        return float(self.values[::step].var(axis=0).mean())

    @abstractmethod
    def nearest(self, C: FloatArray) -> tuple[LabelArray, FloatArray]:
        """The label of each point, the number of its nearest centroid, and its squared distance."""

    @abstractmethod
    def sums(self, C: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weighted sum (K, n) of the points nearest to each centroid, and their weight (K,)."""

    @abstractmethod
    def two_nearest(self, C: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """The label of each point, and its squared distances to the two nearest centroids."""


def points_on(device: Any, values: FloatArray, weights: FloatArray) -> Points:
    """The points on `device`, a torch.device; None is the CPU."""
    if device is None:
        return WeightedPoints(values, weights)
    from ckm._kmeans.points_gpu import WeightedPointsGpu

    return WeightedPointsGpu(values, weights, device)


class WeightedPoints(Points):
    """Points on the CPU.

    Distances between points are |x|^2 - 2 x.y + |y|^2, from one product of matrices, or, if
    `subtract` is true, sums of squared differences, which lose nothing far from zero.
    """

    def __init__(self, values: FloatArray, weights: FloatArray, *, subtract: bool = False) -> None:
        super().__init__(values, weights)
        self._subtract = subtract

    def nearest(self, C: FloatArray) -> tuple[LabelArray, FloatArray]:
        """The label of each point, and its squared distance."""
        labels = np.empty(len(self), np.int32)
        squares = np.empty(len(self))
        if self._is_direct(C):
            self._add_directly(C, labels, squares)
        else:
            find_nearest(self.values, CentroidIndex(C), labels, squares)
        return labels, squares

    def sums(self, C: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weighted sum of the points nearest to each centroid, and their weight."""
        N = len(self)
        labels = np.empty(N, np.int32)
        if self._is_direct(C):
            return self._add_directly(C, labels, np.empty(N))
        find_nearest(self.values, CentroidIndex(C), labels)
        sums = np.zeros(C.shape)
        mass = np.zeros(len(C))
        _add_labelled(read_only_view(self.values), read_only_view(self.weights), labels, sums, mass)
        return sums, mass

    def _is_direct(self, C: FloatArray) -> bool:
        """Whether plain distances to centroids are faster than a search of the nearest."""
        K, n = C.shape
        products = len(self) * max(K, VECTOR_CENTROIDS) * (n + COLUMNS_PER_POINT)
        return bool(products <= MAX_DIRECT_PRODUCTS)

    def _add_directly(
        self, C: FloatArray, labels: LabelArray, squares: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """`sums` by plain distances; writes labels and squared distances too."""
        sums = np.zeros(C.shape)
        mass = np.zeros(len(C))
        C = np.ascontiguousarray(C, np.float64)
        transposed = np.ascontiguousarray(C.T)
        points = read_only_view(self.values)
        beta = read_only_view(self.weights)
        distances = np.empty(len(C))
        _add_to_nearest(points, beta, C, transposed, distances, labels, squares, sums, mass)
        return sums, mass

    def two_nearest(self, C: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """The label of each point, and its squared distances to the two nearest centroids."""
        N = len(self)
        nearest = np.empty(N, np.int64)
        first = np.empty(N)
        second = np.empty(N)
        transposed = np.ascontiguousarray(C.T, np.float64)
        points = read_only_view(self.values)
        _find_two_nearest(points, transposed, np.empty(len(C)), nearest, first, second)
        return nearest, first, second

    def draw(self, squares: FloatArray | None, uniforms: FloatArray) -> IntArray:
        """Draw points in proportion to weight times `squares`."""
        masses = self.weights if squares is None else self.weights * squares
        return draw_in_proportion(masses, uniforms)

    def add_seed(self, squares: FloatArray | None, drawn: IntArray) -> tuple[int, FloatArray]:
        """Choose the point that leaves the smallest sum of squared distances."""
        candidates = self._squares_to(drawn)
        if squares is not None:
            candidates = np.minimum(squares, candidates)
        best = int(np.argmin(candidates @ self.weights))
        return int(drawn[best]), candidates[best]

    def take(self, seeds: list[int]) -> FloatArray:
        """The points with these numbers."""
        return np.asarray(self.values[seeds])

    def is_covered(self, squares: FloatArray | None) -> bool:
        """Whether every point that has weight coincides with a seed."""
        return squares is not None and not (self.weights * squares).sum() > 0

    def _squares_to(self, which: IntArray) -> FloatArray:
        """Squared distances (len(which), N) of some of the points to all of them."""
        x = self.values
        if self._subtract:
            return np.stack([((x - x[i]) ** 2).sum(axis=1) for i in which])
        squares = self._norms[which, None] - 2 * x[which] @ x.T + self._norms
        return np.maximum(squares, 0)

    @cached_property
    def _norms(self) -> FloatArray:
        norms: FloatArray = (self.values**2).sum(axis=1)
        return norms


@entry
def _add_to_nearest(  # type: ignore[no-untyped-def]
    points, weights, C, transposed, distances, labels, squares, sums, mass
):
    """Add each point to the sums of its nearest centroid, the first of equals."""
    for i in range(len(points)):
        point = points[i]
        for k in range(len(distances)):
            distances[k] = 0.0
        for d in range(len(point)):
            _add_squares(point[d], transposed[d], distances)
        nearest = 0
        for k in range(1, len(distances)):
            if distances[k] < distances[nearest]:
                nearest = k
        labels[i] = nearest
        mass[nearest] += weights[i]
        _add_scaled(point, weights[i], sums[nearest])
    # Rounded as by `find_nearest`, so that results do not depend on which of the two was used.
    squared_distances(points, 0, len(points), C, labels, squares)


@entry
def _add_labelled(points, weights, labels, sums, mass):  # type: ignore[no-untyped-def]
    for i in range(len(points)):
        mass[labels[i]] += weights[i]
        _add_scaled(points[i], weights[i], sums[labels[i]])


@entry
def _find_two_nearest(  # type: ignore[no-untyped-def]
    points, transposed, distances, nearest, first, second
):
    """The nearest centroid of each point, the first of equals, and the two smallest distances."""
    for i in range(len(points)):
        point = points[i]
        for k in range(len(distances)):
            distances[k] = 0.0
        for d in range(len(point)):
            _add_squares(point[d], transposed[d], distances)
        owner = 0
        low = np.inf
        next_low = np.inf
        for k in range(len(distances)):
            if distances[k] < next_low:
                if distances[k] < low:
                    next_low = low
                    low = distances[k]
                    owner = k
                else:
                    next_low = distances[k]
        nearest[i] = owner
        first[i] = low
        second[i] = next_low


@leaf
def _add_squares(x, centroids, distances):  # type: ignore[no-untyped-def]
    for k in range(len(distances)):
        distances[k] += (x - centroids[k]) * (x - centroids[k])


@leaf
def _add_scaled(point, weight, total):  # type: ignore[no-untyped-def]
    for d in range(len(total)):
        total[d] += weight * point[d]
