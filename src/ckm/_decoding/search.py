"""Recover the mixture of K blurred atoms that explains a sketch.

The paper's atoms are Diracs. Clusters have width, and ignoring it costs 10 to 30 % of SSE; one more
number, the width that all clusters share, removes that cost. Atoms that a first search misses are
found by replacing: as long as the residual is above the noise floor, something is missing. Where no
such mixture explains the sketch, `ensemble.py` is used.
"""

from collections.abc import Callable

import numpy as np

from ckm._decoding.clompr import maximise_correlation
from ckm._decoding.lbfgs import Limits
from ckm._decoding.mixture import Mixture, descend_atoms, descend_particles
from ckm._decoding.objective import solve_nonnegative
from ckm._decoding.problem import Problem
from ckm._decoding.sample import SampledRows
from ckm._decoding.settings import Settings
from ckm._kmeans.breathing import place
from ckm._util.arrays import FloatArray

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
    C, _, variance = place(
        points, None, Q, rng, n_init=settings.particle_runs, search=False, device=problem.device
    )
    bounds = (settings.min_start_width, settings.max_start_width)
    width = float(np.clip(variance / problem.n, *bounds))
    alpha = first.objective.fit_weights(C, width)
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
    """Add the atoms that best explain the residual and drop as many that are needed least."""
    settings = problem.settings
    width = mixture.width
    added = _find_atoms(problem, mixture, prior, rng, failures, batch)
    C = np.vstack([mixture.C, *added])
    A, b = problem.objective.reduced_equations(C, width)
    alpha = solve_nonnegative(A, b)
    kept = np.arange(len(C))
    for _ in added:
        old = len(kept) - len(added)
        k = _least_needed(C[kept], alpha, old, closest=failures % 2 == 1)
        kept = np.delete(kept, k)
        alpha = np.delete(alpha, k)
    is_explained = mixture.cost <= problem.noise
    abort_above = settings.abort_factor * mixture.cost if is_explained else np.inf
    limits = Limits(settings.replacement_steps, abort_above=abort_above)
    return descend_atoms(problem, C[kept], solve_nonnegative(A[:, kept], b), width, limits)


def _find_atoms(
    problem: Problem,
    mixture: Mixture,
    prior: Prior,
    rng: np.random.Generator,
    failures: int,
    batch: int,
) -> list[FloatArray]:
    """Up to `batch` atoms that correlate with the residual; after failures, less promising ones."""
    settings = problem.settings
    width = mixture.width
    count = settings.replacement_candidates
    r = problem.objective.residual(mixture.C, mixture.alpha, width)
    near = mixture.C[rng.integers(len(mixture.C), size=count // 2)]
    deviation = np.sqrt(width + settings.candidate_variance)
    near = near + deviation * rng.standard_normal(near.shape)
    candidates = np.vstack([prior(rng, count), near])
    candidates = np.clip(candidates, problem.lower, problem.upper)
    blurred = problem.blur(width) * r
    scores = problem.objective.correlations(candidates, blurred)
    order = np.argsort(-scores)[failures // 2 :]
    squared_gap = width + settings.candidate_variance
    return [
        maximise_correlation(problem, blurred, start, settings.candidate_steps)
        for start in _take_apart(candidates[order], batch, squared_gap)
    ]


def _take_apart(candidates: FloatArray, count: int, squared_gap: float) -> list[FloatArray]:
    """The first `count` candidates of which no two lie within the same cluster."""
    chosen = [candidates[0]]
    for c in candidates[1:]:
        if len(chosen) == count:
            break
        if (((np.array(chosen) - c) ** 2).sum(axis=1) > squared_gap * len(c)).all():
            chosen.append(c)
    return chosen


def _least_needed(C: FloatArray, alpha: FloatArray, old: int, closest: bool) -> int:
    """The lightest of the `old` atoms, which come first; or, if `closest`, the lighter of the two
    that are closest to each other.
    """
    if not closest or old < 2:
        return int(np.argmin(alpha[:old]))
    gaps = ((C[:old, None] - C[:old]) ** 2).sum(axis=2) + np.diag(np.full(old, np.inf))
    i, j = np.unravel_index(np.argmin(gaps), gaps.shape)
    return int(i if alpha[i] < alpha[j] else j)
