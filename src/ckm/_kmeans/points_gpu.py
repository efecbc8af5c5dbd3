"""`Cloud` on a card, by torch in float64. Sums are products of matrices, whose order does not
change from run to run.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ckm._kmeans.points import Cloud, trials
from ckm._util.arrays import Array

_PAIRS = 2**23  # of points and centroids at a time: 64 MB for each of the arrays
_STEPS = 2.0**52  # that chances are counted in: sums of whole numbers have one result in any order


class CardCloud(Cloud):
    """The same points there too; centroids and what is found out go to and fro."""

    def __init__(self, points: Array, beta: Array, device: Any) -> None:
        super().__init__(points, beta)
        self._points, self._beta = (
            torch.tensor(points, device=device),
            torch.tensor(beta, device=device),
        )
        self._norms = (self._points**2).sum(dim=1)
        self._summed = torch.cat([self._points, torch.ones_like(self._points[:, :1])], dim=1)

    def nearest(self, C: Array) -> tuple[Array, Array]:
        """Each point's nearest centroid, and its squared distance."""
        labels = torch.cat([torch.argmin(squares, dim=1) for _, squares in self._squares(C)])
        # far out, products would cancel
        own = torch.tensor(C, dtype=torch.float64, device=labels.device)[labels]
        return labels.int().cpu().numpy(), (self._points - own).square().sum(dim=1).cpu().numpy()

    def sums(self, C: Array) -> tuple[Array, Array]:
        """Of the points nearest to each centroid (K, n), and their weight (K,)."""
        names = torch.arange(len(C), device=self._points.device)
        sums = torch.zeros(
            (len(C), C.shape[1] + 1), dtype=torch.float64, device=self._points.device
        )
        for at, squares in self._squares(C):
            members = (torch.argmin(squares, dim=1)[:, None] == names) * self._beta[at, None]
            sums += members.T @ self._summed[at]
        found = sums.cpu().numpy()
        return found[:, :-1], found[:, -1]

    def two_nearest(self, C: Array) -> tuple[Array, Array, Array]:
        """Each point's nearest centroid, and its squared distances to that one and to the next."""
        parts = list[tuple[Any, Any, Any]]()
        for _, squares in self._squares(C):
            least = torch.min(squares, dim=1)
            squares.scatter_(1, least.indices[:, None], torch.inf)
            parts.append((least.indices, least.values, squares.amin(dim=1)))
        nearest, first, second = (
            torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True)
        )
        return nearest, first, second

    def seeds(self, K: int, rng: np.random.Generator) -> Array:
        """By k-means++, as there."""
        left, chosen = torch.ones_like(self._beta), list[Any]()
        for k in range(K):
            draw = torch.from_numpy(rng.random(trials(K) if k else 1)).to(left.device)
            odds = self._beta * left
            ends = torch.cumsum((odds * (_STEPS / odds.sum().clamp(min=1e-280))).long(), dim=0)
            drawn = torch.searchsorted(ends, (draw * ends[-1]).long(), right=True).clamp_(
                max=len(ends) - 1
            )
            squares = (
                self._norms[drawn, None] - 2 * self._points[drawn] @ self._points.T + self._norms
            ).clamp_(min=0)
            after = torch.minimum(left, squares) if k else squares
            best = torch.argmin(after @ self._beta)
            left = after[best]
            chosen.append(drawn[best])
        return np.asarray(self.points[torch.stack(chosen).cpu().numpy()])

    def _squares(self, C: Array) -> Iterator[tuple[slice, Any]]:
        """Squared distances of some points at a time to all centroids."""
        there, step = (
            torch.tensor(C, dtype=torch.float64, device=self._points.device),
            max(1, _PAIRS // len(C)),
        )
        norms = (there**2).sum(dim=1)
        for start in range(0, len(self._points), step):
            at = slice(start, start + step)
            yield (
                at,
                torch.addmm(norms, self._points[at], there.T, alpha=-2)
                .add_(self._norms[at, None])
                .clamp_(min=0),
            )
