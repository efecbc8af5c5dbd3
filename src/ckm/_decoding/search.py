"""Recover from a sketch the mixture of K blurred atoms that explains it.

The paper's atoms are Diracs; clusters have width, and the difference costs 10 to 30 % of SSE. One
more number, the width that all clusters share, removes it. Atoms that a first search misses are
found by replacing: as long as the residual is above the noise floor, something is missing. Where no
such mixture explains the sketch, `ensemble.py` takes over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._decoding.lbfgs import Limits, descend
from ckm._decoding.objective import (
    Problem,
    blurred_cost,
    correlations,
    fewer_equations,
    fit_weights,
    maximise_correlation,
    moment_misfit,
    nonnegative,
    residual,
)
from ckm._decoding.starts import Rows
from ckm._kmeans.assign import Centroids
from ckm._kmeans.breathing import place
from ckm._sources.arrays import ArraySource
from ckm._util.arrays import Array

# Draws a number of points from the most natural measure at hand: sampled rows, or the Gaussian of
# the moments.
Prior = Callable[[np.random.Generator, int], Array]

_PARTICLES_PER_ATOM = 8
_CANDIDATES = 300
MAX_WIDTH = 50.0  # in units of sigma^2
_MAX_ROUNDS = 100
# failures in a row that end the search; the smallest share of the cost that counts as less
_PATIENCE, _GAIN = 8, 1e-3
# Atoms fit some of the noise too, so that a cost at the floor may still hide a missing one; but
# there only clear gains count: more than a few steps of descent may bring, or, where these have
# been made already, than noise may.
_PATIENCE_AT_FLOOR, _GAIN_AT_FLOOR, _GAIN_ARRIVED = 2, 0.05, 0.01
_REPLACED = 5  # one atom in so many is replaced at a time where many may be missing
_CLOSE_CALL = 2.0  # how many times what is gained the loss must be for it to be clear
# times the cost, there, after a few steps: tries that came to gain were below twice by then
_HOPELESS = 10.0


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians around the rows of C (Q, n), with weights alpha (Q,): of one variance, or each of
    its own along each axis (Q, n).
    """

    C: Array
    alpha: Array
    width: Any
    cost: float

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Points from the mixture (count, n), drawn evenly: each atom gets its share, and noise
        comes in opposite pairs.
        """
        return self._draw(rng, count)[0]

    def own_share(self, rng: np.random.Generator, count: int = 4000) -> float:
        """How much of the squared distance to their own centres is left when points go to the
        nearest: one where atoms do not overlap.
        """
        points, own = self._draw(rng, count)
        squares = float(((points - own) ** 2).sum())
        if not squares > 0:
            return 1.0
        return Centroids(self.C).sse(ArraySource(points), n_jobs=1) / squares

    def better_split(self) -> bool:
        """Whether k-means may rather give the heaviest atom two centroids, and two atoms one: of
        equal widths, and far apart.
        """
        both = np.maximum(self.alpha[:, None] + self.alpha, np.finfo(float).tiny)
        losses = (
            self.alpha[:, None] * self.alpha / both * ((self.C[:, None] - self.C) ** 2).sum(axis=2)
        )
        least = losses[~np.eye(len(self.C), dtype=bool)].min(initial=np.inf)
        return bool(least < _CLOSE_CALL * 2 / np.pi * self.alpha.max() * self.width)

    def _draw(self, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
        """Points, and the centre that each was drawn around."""
        total = self.alpha.sum()
        shares = np.cumsum(
            self.alpha / total if total > 0 else np.full(len(self.alpha), 1 / len(self.alpha))
        )
        which = np.minimum(
            np.searchsorted(shares, (np.arange(count) + rng.random()) / count), len(shares) - 1
        )
        own, points = self.C[which], np.empty(((count + 1) // 2, 2, self.C.shape[1]))
        points[:, 0] = rng.standard_normal((len(points), self.C.shape[1]))
        np.negative(points[:, 0], out=points[:, 1])
        points = points.reshape(-1, self.C.shape[1])[:count]
        points *= np.sqrt(self.width) if np.ndim(self.width) == 0 else np.sqrt(self.width)[which]
        points += own
        return points, own


def make_prior(problem: Problem, rows: Rows | None) -> Prior:
    """Rows where there are some; else N(mean, covariance) of the sketch's moments, kept in the box."""
    if rows is not None:
        p = rows.shares
        return lambda rng, count: rows.values[rng.choice(len(p), size=count, p=p)]
    if problem.covariance.ndim == 2:
        values, vectors = np.linalg.eigh(problem.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
    else:
        root = np.diag(np.sqrt(np.maximum(problem.covariance, 0)))
    return lambda rng, count: np.clip(
        problem.mean + rng.standard_normal((count, problem.n)) @ root.T,
        problem.lower,
        problem.upper,
    )


def recover_mixture(
    problem: Problem, start: Mixture, prior: Prior, rng: np.random.Generator
) -> Mixture:
    """From K blurred atoms to those whose sketch is z down to the noise floor, by replacing atoms:
    many at a time where there are many.
    """
    mixture, failures, arrived, K = start, 0, False, len(start.C)
    batch = max(1, K // 20)
    for _ in range(_MAX_ROUNDS + 4 * K):
        explained = mixture.cost <= problem.noise
        if failures >= (_PATIENCE_AT_FLOOR + K // 5 if explained else _PATIENCE):
            break
        candidate = _replace(problem, mixture, prior, rng, failures, batch)
        gain = (_GAIN_ARRIVED if arrived else _GAIN_AT_FLOOR) if explained else _GAIN
        if candidate.cost < mixture.cost * (1 - gain):
            mixture, failures, arrived = candidate, 0, False
        elif batch > 1:
            batch //= 2
        else:
            failures += 1
            if not arrived:  # nothing may be missing, only the way to go be long
                further = _descend(problem, mixture.C, mixture.alpha, mixture.width, iterations=150)
                mixture, arrived = further, further.cost > 0.5 * mixture.cost
    return _descend(
        problem, mixture.C, mixture.alpha, mixture.width, iterations=300, tolerance=1e-12
    )


def replace_missing(
    problem: Problem, start: Mixture, prior: Prior, rng: np.random.Generator, rounds: int
) -> Mixture:
    """The same for a start that is far off: atoms are replaced many at a time, and only as often as
    `rounds` says.
    """
    mixture, batch = start, max(1, len(start.C) // _REPLACED)
    for _ in range(rounds):
        candidate = _replace(problem, mixture, prior, rng, 0, batch)
        if candidate.cost < mixture.cost * (1 - _GAIN):
            mixture = candidate
        elif batch > 1:
            batch //= 2
        else:
            break
    return mixture


def begin_mixture(
    problem: Problem, Q: int, prior: Prior, rng: np.random.Generator, *, search: bool = False
) -> Mixture:
    """Q blurred atoms close to z, from coarse to fine: particles from the prior, descended
    together, are gathered into atoms, and these descended; where there are stages, with a search
    for missing atoms in each if asked.
    """
    first, *finer = problem.stages
    drawn = prior(rng, _PARTICLES_PER_ATOM * Q)
    points = descend_particles(first, drawn, np.full(len(drawn), 1 / len(drawn)), iterations=30)
    C, _, spread = place(points, None, Q, rng, n_init=2, search=False, device=problem.device)
    width = float(np.clip(spread / problem.n, 0.05, 10.0))
    mixture = _descend(first, C, fit_weights(first, C, width), width, iterations=150)
    for coarse, fine in zip(problem.stages, finer, strict=False):
        if search:
            mixture = recover_mixture(coarse, mixture, prior, rng)
        mixture = _descend(fine, mixture.C, mixture.alpha, mixture.width, iterations=150)
    return mixture


def _replace(
    problem: Problem,
    mixture: Mixture,
    prior: Prior,
    rng: np.random.Generator,
    failures: int,
    batch: int,
) -> Mixture:
    """Add the atoms that best explain the residual and drop as many that are least needed."""
    C, width = mixture.C, mixture.width
    r = residual(problem, C, mixture.alpha, width)
    near = C[rng.integers(len(C), size=_CANDIDATES // 2)]
    near = near + np.sqrt(width + 0.5) * rng.standard_normal(near.shape)
    candidates = np.clip(np.vstack([prior(rng, _CANDIDATES), near]), problem.lower, problem.upper)
    blurred = problem.blur(width) * r
    # after failures, less promising ones
    order = np.argsort(-correlations(problem, blurred, candidates))[failures // 2 :]
    added = [
        maximise_correlation(problem, blurred, start, iterations=20)
        for start in _apart(candidates[order], batch, width)
    ]
    C = np.vstack([C, *added])
    A, b = fewer_equations(problem, C, width)
    kept, alpha = np.arange(len(C)), nonnegative(A, b)
    for _ in added:
        k = _least_needed(C[kept], alpha, len(kept) - len(added), closest=failures % 2 == 1)
        kept, alpha = np.delete(kept, k), np.delete(alpha, k)
    hope = _HOPELESS * mixture.cost if mixture.cost <= problem.noise else np.inf
    return _descend(problem, C[kept], nonnegative(A[:, kept], b), width, iterations=60, hope=hope)


def _apart(candidates: Array, count: int, width: float) -> list[Array]:
    """The first `count` candidates of which no two are within the same cluster."""
    chosen = [candidates[0]]
    for c in candidates[1:]:
        if len(chosen) == count:
            break
        if (((np.array(chosen) - c) ** 2).sum(axis=1) > (width + 0.5) * len(c)).all():
            chosen.append(c)
    return chosen


def _least_needed(C: Array, alpha: Array, old: int, closest: bool) -> int:
    """The lightest of the `old` atoms, which come first; or, every other failure, the lighter of
    the two that are closest.
    """
    if not closest or old < 2:
        return int(np.argmin(alpha[:old]))
    gaps = ((C[:old, None] - C[:old]) ** 2).sum(axis=2) + np.diag(np.full(old, np.inf))
    i, j = np.unravel_index(np.argmin(gaps), gaps.shape)
    return int(i if alpha[i] < alpha[j] else j)


def _descend(
    problem: Problem,
    C: Array,
    alpha: Array,
    width: float,
    iterations: int,
    tolerance: float = 1e-9,
    hope: float = np.inf,
) -> Mixture:
    """A local minimum of the cost over centres in the box, weights and width at least zero, started
    here.
    """
    Q, n = C.shape

    def cost(x: Array) -> tuple[float, Array]:
        value, gradient_C, gradient_alpha, slope = blurred_cost(
            problem, x[: Q * n].reshape(Q, n), x[Q * n : -1] / Q, x[-1]
        )
        return value, np.concatenate([gradient_C.ravel(), gradient_alpha / Q, [slope]])

    lower = np.concatenate([np.tile(problem.lower, Q), np.zeros(Q + 1)])
    upper = np.concatenate([np.tile(problem.upper, Q), np.full(Q, np.inf), [MAX_WIDTH]])
    x, value, _ = descend(
        cost,
        np.concatenate([C.ravel(), alpha * Q, [width]]),
        lower,
        upper,
        Limits(iterations, tolerance, hope=hope),
    )
    return Mixture(x[: Q * n].reshape(Q, n), x[Q * n : -1] / Q, float(x[-1]), value)


def descend_particles(problem: Problem, points: Array, shares: Array, iterations: int) -> Array:
    """Move points together until their sketch, mean and covariance are the data's, as far as
    `iterations` go.
    """
    M, n = points.shape
    narrow = np.zeros(points.shape)
    # In units of one over the root of its share, a heavy point's first step is as long as a light
    # one's, and all as long as an atom's.
    unit = 1 / np.sqrt(M * shares)[:, None]

    def cost(x: Array) -> tuple[float, Array]:
        X = x.reshape(M, n) * unit
        value, gradient, _, _ = blurred_cost(problem, X, shares, 0.0)
        more, slope, _, _ = moment_misfit(problem, X, shares, narrow)
        return M * (value + problem.m * more), M * (unit * (gradient + problem.m * slope)).ravel()

    lower, upper = ((bound / unit).ravel() for bound in (problem.lower, problem.upper))
    found = descend(cost, (points / unit).ravel(), lower, upper, Limits(iterations, slope=1e-5))
    return np.asarray(found.x.reshape(M, n) * unit)
