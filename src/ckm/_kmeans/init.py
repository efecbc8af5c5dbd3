"""k-means++: seeds drawn in proportion to weight times squared distance to the nearest seed."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ckm._util.arrays import FloatArray, IntArray


class SeedablePoints(ABC):
    """What k-means++ asks of points. Numbers of points and squared distances may be on a GPU."""

    @abstractmethod
    def draw(self, squares: Any, uniforms: FloatArray) -> Any:
        """Draw a point for each uniform number, in proportion to weight times `squares`.

        `squares` (N,) are the squared distances to the nearest seed; None before the first one.
        """

    @abstractmethod
    def add_seed(self, squares: Any, drawn: Any) -> tuple[Any, Any]:
        """Choose of the points `drawn` the one that leaves the smallest sum of squared distances.

        Returns its number, and the squared distances (N,) to the nearest seed.
        """

    @abstractmethod
    def take(self, seeds: list[Any]) -> FloatArray:
        """The points with the numbers that `add_seed` returned."""

    @abstractmethod
    def is_covered(self, squares: Any) -> bool:
        """Whether every point that has weight coincides with a seed."""


def kmeans_plus_plus(
    points: SeedablePoints,
    K: int,
    rng: np.random.Generator,
    n_trials: int = 1,
    *,
    stop_when_covered: bool = False,
) -> FloatArray:
    """K of the points, as a start for Lloyd's algorithm (Arthur and Vassilvitskii, 2007).

    Each seed is the best of `n_trials` drawn points; the first is drawn by weight alone. Once every
    point coincides with a seed, further seeds are arbitrary points, or, if `stop_when_covered` is
    true, the first seed again, and no more random numbers are drawn.
    """
    seeds = list[Any]()
    squares = None
    for k in range(K):
        if stop_when_covered and points.is_covered(squares):
            break
        drawn = points.draw(squares, rng.random(n_trials if k else 1))
        seed, squares = points.add_seed(squares, drawn)
        seeds.append(seed)
    seeds += seeds[:1] * (K - len(seeds))
    return points.take(seeds)


def default_trials(K: int) -> int:
    """The number of trials for each of K seeds: 2 + log K, as in scikit-learn."""
    return 2 + int(np.log(K))


def draw_in_proportion(masses: FloatArray, uniforms: FloatArray) -> IntArray:
    """Draw numbers below len(masses) in proportion to the masses, one for each uniform number."""
    ends = np.cumsum(masses)
    drawn: IntArray = np.searchsorted(ends, uniforms * ends[-1], side="right")
    # Rounding may put the last draws beyond the end.
    return drawn.clip(max=len(masses) - 1)
