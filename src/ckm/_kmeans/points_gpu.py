"""Weighted points on a GPU, by torch in float64.

Sums are products of matrices, whose order does not change from run to run.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ckm._kmeans.points import Points
from ckm._util.arrays import FloatArray, IntArray, LabelArray

# Pairs of points and centroids whose distances are computed at a time: 64 MB for each array.
PAIRS_AT_ONCE = 2**23
# Masses are drawn in these whole numbers of steps: sums of integers do not depend on their order.
STEPS = 2.0**52


class WeightedPointsGpu(Points):
    """Points on a GPU; centroids and results are copied to and from it."""

    def __init__(
        self,
        values: FloatArray,
        weights: FloatArray,
        device: Any,
        *,
        pairs_at_once: int = PAIRS_AT_ONCE,
    ) -> None:
        super().__init__(values, weights)
        self._pairs_at_once = pairs_at_once
        self._points = torch.tensor(values, device=device)
        self._beta = torch.tensor(weights, device=device)
        self._norms = (self._points**2).sum(dim=1)
        # A column of ones beside the points: one product gives sums and weights.
        self._with_ones = torch.cat([self._points, torch.ones_like(self._points[:, :1])], dim=1)

    def nearest(self, C: FloatArray) -> tuple[LabelArray, FloatArray]:
        """The label of each point, and its squared distance."""
        labels = torch.cat([torch.argmin(squares, dim=1) for _, squares in self._distances(C)])
        # Differences are exact where the terms of |x|^2 - 2 x.c + |c|^2 would cancel.
        own = torch.tensor(C, dtype=torch.float64, device=labels.device)[labels]
        squares = (self._points - own).square().sum(dim=1)
        return labels.int().cpu().numpy(), squares.cpu().numpy()

    def sums(self, C: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weighted sum of the points nearest to each centroid, and their weight."""
        device = self._points.device
        numbers = torch.arange(len(C), device=device)
        sums = torch.zeros((len(C), C.shape[1] + 1), dtype=torch.float64, device=device)
        for part, squares in self._distances(C):
            is_member = torch.argmin(squares, dim=1)[:, None] == numbers
            members = is_member * self._beta[part, None]
            sums += members.T @ self._with_ones[part]
        found = sums.cpu().numpy()
        return found[:, :-1], found[:, -1]

    def two_nearest(self, C: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """The label of each point, and its squared distances to the two nearest centroids."""
        parts = list[tuple[Any, Any, Any]]()
        for _, squares in self._distances(C):
            least = torch.min(squares, dim=1)
            squares.scatter_(1, least.indices[:, None], torch.inf)
            parts.append((least.indices, least.values, squares.amin(dim=1)))
        nearest, first, second = (
            torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True)
        )
        return nearest, first, second

    def draw(self, squares: Any, uniforms: FloatArray) -> Any:
        """Draw points in proportion to weight times `squares`."""
        masses = self._beta if squares is None else self._beta * squares
        steps = (masses * (STEPS / masses.sum().clamp(min=1e-280))).long()
        ends = torch.cumsum(steps, dim=0)
        places = (torch.from_numpy(uniforms).to(ends.device) * ends[-1]).long()
        return torch.searchsorted(ends, places, right=True).clamp_(max=len(ends) - 1)

    def add_seed(self, squares: Any, drawn: Any) -> tuple[Any, Any]:
        """Choose the point that leaves the smallest sum of squared distances."""
        x = self._points
        candidates = self._norms[drawn, None] - 2 * x[drawn] @ x.T + self._norms
        candidates.clamp_(min=0)
        if squares is not None:
            candidates = torch.minimum(squares, candidates)
        best = torch.argmin(candidates @ self._beta)
        return drawn[best], candidates[best]

    def take(self, seeds: list[Any]) -> FloatArray:
        """The points with these numbers. They are fetched all at once, so that no draw waits."""
        return np.asarray(self.values[torch.stack(seeds).cpu().numpy()])

    def is_covered(self, squares: Any) -> bool:
        """Whether every point that has weight coincides with a seed."""
        return squares is not None and not float((self._beta * squares).sum()) > 0

    def _distances(self, C: FloatArray) -> Iterator[tuple[slice, Any]]:
        """Squared distances of some points at a time to all centroids."""
        centroids = torch.tensor(C, dtype=torch.float64, device=self._points.device)
        norms = (centroids**2).sum(dim=1)
        step = max(1, self._pairs_at_once // len(C))
        for start in range(0, len(self._points), step):
            part = slice(start, start + step)
            squares = torch.addmm(norms, self._points[part], centroids.T, alpha=-2)
            yield part, squares.add_(self._norms[part, None]).clamp_(min=0)
