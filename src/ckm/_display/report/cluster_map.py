"""Clusters along the two principal axes of their distribution, in the units of distances."""

from dataclasses import dataclass

import numpy as np

from ckm._core.preparation import prepared, unprepared
from ckm._decoding.solution import Solution, centroids_of
from ckm._sources.arrays import ArraySource
from ckm._util.arrays import FloatArray, IntArray
from ckm._util.random import stream

# Points of a map, and rows that its axes are computed from.
MAP_POINTS = 1500
_AXIS_ROWS = 8000
# Columns that are named in the name of an axis, and the least weight of one, relative to the first.
_NAMED = 2
_LEAST_LOADING = 0.4


@dataclass(frozen=True, eq=False)
class ClusterMap:
    """Points and centroids on a plane.

    Parameters
    ----------
    points : float64 array (p, 2)
        Rows, drawn from the recovered measure or of the data.
    labels : int array (p,)
        The cluster of each.
    centroids : float64 array (K, 2)
        The centroids.
    axes : tuple of (str, float)
        The name of each axis, by the columns that it is made of, and its share of the variance.
    is_data : bool
        Whether the points are rows of the data.
    """

    points: FloatArray
    labels: IntArray
    centroids: FloatArray
    axes: tuple[tuple[str, float], ...]
    is_data: bool = False

    def ellipse(self, k: int) -> FloatArray | None:
        """The outline (64, 2) within two standard deviations of the mean of cluster k; None if it
        has too few points.
        """
        own = self.points[self.labels == k]
        if len(own) < 8 or self.points.shape[1] < 2:
            return None
        values, vectors = np.linalg.eigh(np.cov(own.T))
        angles = np.linspace(0, 2 * np.pi, 64)
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return np.asarray(
            own.mean(axis=0) + 2 * (circle * np.sqrt(np.maximum(values, 0))) @ vectors.T
        )


def map_clusters(solution: Solution, data: FloatArray | None = None) -> ClusterMap:
    """Rows of the data, or drawn from the recovered measure, on two principal axes."""
    rng = stream(0, "profile", 1)
    units = np.ones(solution.centroids.shape[1]) if solution.units is None else solution.units
    rows = _rows(solution, data, rng)
    scaled = rows / units
    mean = scaled.mean(axis=0)
    # Singular vectors are the principal axes, without a covariance of all columns.
    _, sizes, vectors = np.linalg.svd(scaled - mean, full_matrices=False)
    vectors = vectors[:2]
    # The largest coordinate of an axis is positive, so that maps do not flip.
    signs = np.sign(vectors[np.arange(len(vectors)), np.abs(vectors).argmax(axis=1)])
    vectors = vectors * np.where(signs == 0, 1, signs)[:, None]
    shares = sizes**2 / max((sizes**2).sum(), np.finfo(np.float64).tiny)
    names = solution.columns or tuple(f"[{i}]" for i in range(len(units)))
    axes = tuple(
        (_axis_name(vector, names), float(share))
        for vector, share in zip(vectors, shares, strict=False)
    )
    shown = rows[:MAP_POINTS]
    in_columns = ArraySource(unprepared(shown, solution.preparation))
    labels = np.asarray(centroids_of(solution).label(in_columns), np.int64)
    points = _two((scaled[:MAP_POINTS] - mean) @ vectors.T)
    return ClusterMap(
        points,
        labels,
        _two((prepared(solution.centroids, solution.preparation) / units - mean) @ vectors.T),
        axes,
        data is not None,
    )


def _rows(solution: Solution, data: FloatArray | None, rng: np.random.Generator) -> FloatArray:
    if data is not None:
        some = rng.permutation(len(data))[:_AXIS_ROWS]
        return np.asarray(prepared(data[some], solution.preparation), np.float64)
    if solution.distribution is not None:
        n = solution.centroids.shape[1]
        return solution.distribution.draw(rng, max(MAP_POINTS, min(_AXIS_ROWS, 2**22 // n)))
    # "clompr" recovers points only.
    return np.asarray(prepared(solution.centroids, solution.preparation))


def _two(points: FloatArray) -> FloatArray:
    """Points with a second coordinate, which a single column does not have."""
    if points.shape[1] == 2:
        return points
    return np.column_stack([points, np.zeros(len(points))])


def _axis_name(vector: FloatArray, names: tuple[str, ...]) -> str:
    """The columns with the largest weights, with their signs."""
    order = np.argsort(-np.abs(vector))[:_NAMED]
    largest = abs(vector[order[0]])
    kept = [i for i in order if abs(vector[i]) >= _LEAST_LOADING * largest]
    words = [f"{'−' if vector[i] < 0 else '+'} {names[i]}" for i in kept]  # noqa: RUF001
    return " ".join(words).removeprefix("+ ")
