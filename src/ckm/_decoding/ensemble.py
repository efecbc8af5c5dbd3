"""Several measures that explain a sketch, for data that no mixture of K equal atoms explains.

A sketch does not determine the data between its frequencies: many measures have it. Each search
ends in one of them, with errors of its own; together they agree where the sketch says something,
and differ where it does not. So many mixtures of more atoms than K, from independent starts, are
matched to the sketch and to the moments. A start that misses much of the data, as may happen where
clusters are small beside it, has atoms replaced first. Atoms have a width along each axis. Sampled
rows are the best start, and moved as little as the sketch asks they are one more such measure.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from ckm._decoding.gaussians import GaussianMeasure
from ckm._decoding.lbfgs import Limits
from ckm._decoding.mixture import Mixture, descend_gaussians, descend_particles
from ckm._decoding.problem import Problem
from ckm._decoding.sample import SampledRows
from ckm._decoding.search import Prior, descend_further, initialise_mixture, replace_missing
from ckm._util.arrays import FloatArray
from ckm._util.stages import enter_stage

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Measure:
    """What an ensemble recovered.

    Parameters
    ----------
    means, shares : float64 arrays (q, n) and (q,)
        The centres of all atoms, with their weights: few points that show where the data lies.
    points, weights : float64 arrays (p, n) and (p,)
        Many points drawn from the members.
    cost : float
        The cost of all members as one mixture.
    gaussians : GaussianMeasure
        The atoms of all members, without sampled rows.
    members : tuple of float64 arrays
        The points of each member.
    """

    means: FloatArray
    shares: FloatArray
    points: FloatArray
    weights: FloatArray
    cost: float
    gaussians: GaussianMeasure
    members: tuple[FloatArray, ...] = ()

    def within(self, lower: FloatArray, upper: FloatArray) -> "Measure":
        """The measure with the centres and points that lie in a box."""
        kept = ((self.means >= lower) & (self.means <= upper)).all(axis=1)
        inside = ((self.points >= lower) & (self.points <= upper)).all(axis=1)
        return replace(
            self,
            means=self.means[kept],
            shares=self.shares[kept],
            points=self.points[inside],
            weights=self.weights[inside],
        )


def fit_member(problem: Problem, Q: int, prior: Prior, rng: np.random.Generator) -> Mixture:
    """One mixture of Q atoms whose sketch and moments are the data's."""
    settings = problem.settings
    start = initialise_mixture(problem, Q, prior, rng)
    # The cost of a sketch that lacks one atom of average weight.
    missing_atom = problem.m / Q**2
    limit = max(missing_atom, settings.repair_above * problem.noise)
    if start.cost > limit:
        start = descend_further(problem, start, Limits(settings.stage_steps, target=limit))
    if start.cost > limit:
        start = replace_missing(problem, start, prior, rng, settings.repair_rounds)
    widths = np.full(start.C.shape, start.width)
    return descend_gaussians(problem, start.C, start.alpha, widths, settings.member_steps)


def recover_measure(
    problem: Problem,
    K: int,
    prior: Prior,
    rows: SampledRows | None,
    rng: np.random.Generator,
    threads: int,
    member: Callable[[Problem, int, Prior, np.random.Generator], Mixture] = fit_member,
) -> Measure:
    """Points that stand for all members, and for the sampled rows if there are some: the more
    rows there are, the more they weigh.
    """
    settings = problem.settings
    Q, found = _atoms_needed(problem, K, prior, rng, member)
    work = Q * problem.m * (problem.n + settings.atom_work)
    count = settings.members(K, work)
    if problem.device is None and work < settings.min_threaded_work:
        threads = 1
    enter_stage(f"matching {count} mixtures")
    _log.info("matching %d mixtures of %d atoms to the sketch, threads: %d", count, Q, threads)
    generators = rng.spawn(count - len(found))
    members = found + _map_in_threads(partial(member, problem, Q, prior), generators, threads)
    members = _leave_out_poor(problem, members)
    least = settings.points_on_atoms(K, problem.n)
    drawn = [
        np.clip(mixture.draw(rng, least // len(members)), problem.lower, problem.upper)
        for mixture in members
    ]
    joint = _join(members)
    means = joint.C
    shares = np.concatenate([mixture.shares for mixture in members])
    points = np.vstack(drawn)
    weights = np.ones(len(points))
    if rows is not None:
        moved = descend_particles(problem, rows.values, rows.shares, settings.row_steps)
        moved = np.clip(moved, problem.lower, problem.upper)
        # Few rows per cluster say more of themselves than of the cluster; errors of many become as
        # small as one over the root of their number, while members share errors.
        trust = rows.size / (settings.trusted_rows_per_cluster * K)
        trust *= min(trust, 1.0)
        means = np.vstack([means, moved])
        shares = np.concatenate([shares, trust * shares.sum() * rows.shares])
        points = np.vstack([points, moved])
        weights = np.concatenate([weights, trust * weights.sum() * rows.shares])
    cost = problem.objective.gaussian_cost(joint.C, joint.alpha, joint.width)[0]
    gaussians = GaussianMeasure.of(joint.alpha, joint.C, joint.width)
    return Measure(means, shares, points, weights, cost, gaussians, tuple(drawn))


def _atoms_needed(
    problem: Problem,
    K: int,
    prior: Prior,
    rng: np.random.Generator,
    member: Callable[[Problem, int, Prior, np.random.Generator], Mixture],
) -> tuple[int, list[Mixture]]:
    """How many atoms a member has, and the members that are known already.

    The fewest that explain the sketch up to noise are enough: more have too large a variance within
    clusters, since the sketch does not say what to do with them.
    """
    settings = problem.settings
    for each in range(settings.fewest_atoms_per_cluster, settings.atoms_per_cluster):
        tried = member(problem, each * K, prior, rng.spawn(1)[0])
        _log.info("%d atoms: cost %.3g, noise %.3g", each * K, tried.cost, problem.noise)
        if tried.cost <= settings.max_noise_ratio * problem.noise:
            return each * K, [tried]
    return settings.atoms_per_cluster * K, []


def _leave_out_poor(problem: Problem, members: list[Mixture]) -> list[Mixture]:
    """The members without those that ended in a poor minimum: far above the others and the
    noise.
    """
    usual = float(np.median([mixture.cost for mixture in members]))
    limit = max(problem.settings.poor_member * usual, problem.noise)
    return [mixture for mixture in members if mixture.cost <= limit]


def _join(members: list[Mixture]) -> Mixture:
    """All members as one mixture."""
    C = np.concatenate([mixture.C for mixture in members])
    alpha = np.concatenate([mixture.alpha / len(members) for mixture in members])
    widths = np.concatenate([mixture.width for mixture in members])
    return Mixture(C, alpha, widths, np.nan)


def _map_in_threads(
    work: Callable[[np.random.Generator], Mixture],
    generators: list[np.random.Generator],
    threads: int,
) -> list[Mixture]:
    """The members in order, for any number of threads."""
    if threads == 1:
        return [work(rng) for rng in generators]
    # A limit on OpenMP's threads holds for the thread that sets it, so each worker sets its own.
    with ThreadPoolExecutor(
        min(threads, len(generators)), initializer=threadpool_limits, initargs=(1,)
    ) as executor:
        return list(executor.map(work, generators))
