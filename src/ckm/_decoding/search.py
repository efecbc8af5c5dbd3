"""Recover the mixture of K blurred atoms that explains a sketch.

The paper's atoms are Diracs. Clusters have width, and ignoring it costs 10 to 30 % of SSE; one more
number, the width that all clusters share, removes that cost. Atoms that a first search misses are
found by replacing: as long as the residual is above the noise floor, something is missing. Where no
such mixture explains the sketch, `ensemble.py` is used.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from ckm._decoding.lbfgs import Limits
from ckm._decoding.mixture import (
    Mixture,
    descend_atoms,
    descend_particles,
    maximise_correlations,
)
from ckm._decoding.problem import Problem
from ckm._decoding.sample import SampledRows
from ckm._decoding.settings import Settings
from ckm._kmeans.breathing import place
from ckm._util.arrays import BoolArray, ComplexArray, FloatArray, IntArray

# Draws a number of points from the best guess of the data: sampled rows, or the Gaussian of the
# moments.
Prior = Callable[[np.random.Generator, int], FloatArray]


def make_prior(problem: Problem, rows: SampledRows | None) -> Prior:
    """Rows if there are some; else N(mean, covariance) of the sketch's moments, kept in the box."""
    if rows is not None:
        p = rows.shares
        return lambda rng, count: rows.values[rng.choice(len(p), size=count, p=p)]
    root = problem.covariance.root
    return lambda rng, count: np.clip(
        problem.mean + rng.standard_normal((count, problem.n)) @ root.T,
        problem.lower,
        problem.upper,
    )


def initialise_mixture(
    problem: Problem, Q: int, prior: Prior, rng: np.random.Generator, *, search: bool = False
) -> Mixture:
    """Q blurred atoms close to z, from coarse to fine.

    Particles from the prior are descended together and gathered into atoms by k-means; the atoms
    are descended at each stage of the problem, with a search for missing atoms if `search` is True.
    """
    settings = problem.settings
    first, *finer = problem.stages
    drawn = prior(rng, settings.particles_per_atom * Q)
    shares = np.full(len(drawn), 1 / len(drawn))
    points = descend_particles(first, drawn, shares, settings.particle_steps)
    runs = settings.particle_runs if settings.many_atoms > Q else 1
    C, alpha, variance = place(
        points, None, Q, rng, n_init=runs, search=False, device=problem.device
    )
    bounds = (settings.min_start_width, settings.max_start_width)
    width = float(np.clip(variance / problem.n, *bounds))
    limits = Limits(settings.stage_steps if search else settings.start_steps)
    mixture = descend_atoms(first, C, alpha, width, limits)
    for coarse, fine in zip(problem.stages, finer, strict=False):
        if search:
            mixture = recover_mixture(coarse, mixture, prior, rng)
        mixture = descend_further(fine, mixture, limits)
    return mixture


def recover_mixture(
    problem: Problem, start: Mixture, prior: Prior, rng: np.random.Generator
) -> Mixture:
    """From K blurred atoms to those whose sketch is z down to the noise floor, by replacing atoms:
    several at once while that succeeds.
    """
    settings = problem.settings
    mixture = start
    K = len(start.C)
    batch = max(1, K // settings.atoms_per_replacement)
    failures = 0
    is_converged = False
    for _ in range(settings.max_rounds + settings.max_rounds_per_atom * K):
        is_explained = mixture.cost <= problem.noise
        if failures >= _patience(settings, is_explained, K):
            break
        candidate = _replace_atoms(problem, mixture, prior, rng, failures, batch)
        gain = _required_gain(settings, is_explained, is_converged)
        if candidate.cost < mixture.cost * (1 - gain):
            mixture = candidate
            failures = 0
            is_converged = False
        elif batch > 1:
            batch //= 2
        else:
            failures += 1
            if not is_converged:
                # Perhaps no atom is missing, and the descent only has a long way to go.
                further = descend_further(problem, mixture, Limits(settings.stage_steps))
                is_converged = further.cost > settings.converged_ratio * mixture.cost
                mixture = further
    if mixture.cost > settings.hopeless_factor * problem.noise:
        return mixture
    limits = Limits(settings.final_steps, settings.final_gain)
    return descend_further(problem, mixture, limits, exact=True)


def _patience(settings: Settings, is_explained: bool, K: int) -> int:
    """The failures in a row that end a search."""
    if not is_explained:
        return settings.patience
    return settings.floor_patience + K // settings.atoms_per_floor_patience


def _required_gain(settings: Settings, is_explained: bool, is_converged: bool) -> float:
    """The share of the cost that a replacement must gain."""
    if not is_explained:
        return settings.min_gain
    return settings.converged_gain if is_converged else settings.floor_gain


def replace_missing(
    problem: Problem, start: Mixture, prior: Prior, rng: np.random.Generator, rounds: int
) -> Mixture:
    """The same for a start that is far from z: atoms are replaced many at once, for at most
    `rounds` rounds.
    """
    mixture = start
    batch = max(1, len(start.C) // problem.settings.atoms_per_repair)
    for _ in range(rounds):
        candidate = _replace_atoms(problem, mixture, prior, rng, 0, batch)
        if candidate.cost < mixture.cost * (1 - problem.settings.min_gain):
            mixture = candidate
        elif batch > 1:
            batch //= 2
        else:
            break
    return mixture


def descend_further(
    problem: Problem, mixture: Mixture, limits: Limits, *, exact: bool = False
) -> Mixture:
    C = mixture.C
    return descend_atoms(problem, C, mixture.alpha, mixture.width, limits, exact=exact)


def _replace_atoms(
    problem: Problem,
    mixture: Mixture,
    prior: Prior,
    rng: np.random.Generator,
    failures: int,
    batch: int,
) -> Mixture:
    """Add the atoms that best explain the residual and drop as many that are needed least.

    Atoms near a change are descended first. If that leaves far more to explain than before, the
    change was a bad one, and the other atoms need not be asked.
    """
    settings = problem.settings
    objective = problem.rough_objective
    r = objective.residual(mixture.C, mixture.alpha, mixture.width)
    added, weights = _find_atoms(problem, mixture, r, prior, rng, failures, batch)
    C = np.vstack([mixture.C, added])
    alpha = np.concatenate([mixture.alpha, weights])
    C, alpha, is_near = _drop_atoms(C, alpha, len(added), settings, closest=failures % 2 == 1)
    is_explained = mixture.cost <= problem.noise
    abort_above = settings.abort_factor * mixture.cost if is_explained else np.inf
    limits = Limits(settings.replacement_steps, abort_above=abort_above)
    if is_near.sum() <= settings.max_near_share * len(C):
        C, alpha, cost = _descend_near(problem, C, alpha, mixture.width, is_near, limits)
        if cost > settings.hopeless_factor * mixture.cost:
            return Mixture(C, alpha, mixture.width, cost)
    return descend_atoms(problem, C, alpha, mixture.width, limits)


def _find_atoms(
    problem: Problem,
    mixture: Mixture,
    r: ComplexArray,
    prior: Prior,
    rng: np.random.Generator,
    failures: int,
    batch: int,
) -> tuple[FloatArray, FloatArray]:
    """Up to `batch` atoms that correlate with the residual r, and the weight of each that explains
    most of it; after failures, less promising ones.
    """
    settings = problem.settings
    width = mixture.width
    count = settings.replacement_candidates + settings.candidates_per_atom * batch
    near = mixture.C[rng.integers(len(mixture.C), size=count // 2)]
    deviation = np.sqrt(width + settings.candidate_variance)
    near = near + deviation * rng.standard_normal(near.shape)
    candidates = np.vstack([prior(rng, count), near])
    candidates = np.clip(candidates, problem.lower, problem.upper)
    fading = problem.blur(width)
    blurred = fading * r
    scores = problem.rough_objective.correlations(candidates, blurred)
    order = np.argsort(-scores)[failures // 2 :]
    squared_gap = width + settings.candidate_variance
    starts = _take_apart(candidates[order], batch, squared_gap)
    atoms = maximise_correlations(problem, blurred, starts, settings.candidate_steps)
    scores = problem.rough_objective.correlations(atoms, blurred)
    # Atoms so wide that no frequency sees them have no weight.
    seen = max(float(fading @ fading), np.finfo(float).tiny)
    return atoms, np.maximum(scores, 0) / seen


def _drop_atoms(
    C: FloatArray, alpha: FloatArray, added: int, settings: Settings, *, closest: bool
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Drop as many atoms as were added, which come last, and give their weights to their nearest
    neighbours; also return which atoms are near one that came or went.
    """
    kept = np.ones(len(C), bool)
    old = len(C) - added
    is_near = np.arange(len(C)) >= old
    alpha = alpha.copy()
    for k in range(old, len(C)):
        is_near[_neighbours(C, k, kept, settings.near_atoms)] = True
    for _ in range(added):
        k = _least_needed(C[:old], alpha[:old], kept[:old], closest=closest)
        kept[k] = False
        neighbours = _neighbours(C, k, kept, settings.near_atoms)
        is_near[neighbours] = True
        alpha[neighbours[0]] += alpha[k]
    return C[kept], alpha[kept], is_near[kept]


def _neighbours(C: FloatArray, k: int, kept: BoolArray, count: int) -> IntArray:
    """The nearest atoms to atom k, nearest first, among those that are kept."""
    gaps = ((C - C[k]) ** 2).sum(axis=1)
    gaps[k] = np.inf
    gaps[~kept] = np.inf
    count = min(count, int(kept.sum()) - int(kept[k]))
    nearest = np.argpartition(gaps, count - 1)[:count]
    return np.asarray(nearest[np.argsort(gaps[nearest], kind="stable")])


def _descend_near(
    problem: Problem,
    C: FloatArray,
    alpha: FloatArray,
    width: float,
    is_near: BoolArray,
    limits: Limits,
) -> tuple[FloatArray, FloatArray, float]:
    """Descend some of the atoms, at a fixed width, while the others stay; the cost is that of
    all.
    """
    others = problem.rough_objective.residual(C[~is_near], alpha[~is_near], width)
    part = replace(problem, z=others)
    found = descend_atoms(part, C[is_near], alpha[is_near], width, limits, keep_width=True)
    C = C.copy()
    alpha = alpha.copy()
    C[is_near] = found.C
    alpha[is_near] = found.alpha
    return C, alpha, found.cost


def _take_apart(candidates: FloatArray, count: int, squared_gap: float) -> FloatArray:
    """The first `count` candidates of which no two lie within the same cluster."""
    chosen = [0]
    gaps = np.full(len(candidates), np.inf)
    while len(chosen) < count:
        squares = ((candidates - candidates[chosen[-1]]) ** 2).sum(axis=1)
        gaps = np.minimum(gaps, squares)
        apart = np.flatnonzero(gaps > squared_gap * candidates.shape[1])
        if not len(apart):
            break
        chosen.append(int(apart[0]))
    return candidates[chosen]


def _least_needed(C: FloatArray, alpha: FloatArray, kept: BoolArray, closest: bool) -> int:
    """The lightest atom that is kept; or, if `closest`, the lighter of the two that are closest to
    each other.
    """
    left = np.flatnonzero(kept)
    if not closest or len(left) < 2:
        return int(left[np.argmin(alpha[left])])
    gaps, nearest = cKDTree(C[left]).query(C[left], k=2)
    i = int(np.argmin(gaps[:, 1]))
    j = int(nearest[i, 1])
    if j == i:
        j = int(nearest[i, 0])
    return int(left[i] if alpha[left[i]] < alpha[left[j]] else left[j])
