"""Several measures that explain a sketch, for data that no mixture of K equal atoms does.

A sketch is far from deciding what the data looks like between its frequencies: many measures have
it. Each search ends in one of them, with errors of its own; together they agree where the sketch
says something, and differ where it does not. So: many mixtures of more atoms than K, from
independent starts, matched to the sketch and to the moments; a start that misses much of the data,
as one may where clusters are specks, has atoms replaced first. Atoms have a width along each axis
where one for all does not explain the sketch. Where rows were sampled they are the most natural
start, and moved as little as the sketch asks they are one more such measure.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from ckm._decoding.lbfgs import Limits, descend
from ckm._decoding.objective import Problem, gaussian_cost, moment_misfit
from ckm._decoding.search import (
    MAX_WIDTH,
    Mixture,
    Prior,
    begin_mixture,
    descend_particles,
    replace_missing,
)
from ckm._decoding.starts import Rows
from ckm._util.arrays import Array

_MOST, _LEAST = 24, 3  # members
# one in so many is left out: those that are farthest from the sketch ended in a poor place
_POOR = 4
_ATOMS = 4  # for each cluster
_WORK = 8e7  # multiply-adds in one evaluation of all members: beyond it there are fewer of them
_ITERATIONS = 300
# times the noise, from which on missing atoms are looked for; and how often
_FAR_OFF, _ROUNDS = 2.0, 8
# Mean squares of what is left of z that are as good as none, and the share of the noise that is;
# below them widths fit accidents.
_ENOUGH, _ENOUGH_NOISE = 2e-6, 0.5
_POINTS, _PER_CLUSTER = 48_000, 400  # drawn from all members together, at least
_ROWS_PER_CLUSTER = 100  # sampled rows that say as much as all members; fewer count for less


@dataclass(frozen=True)
class Measure:
    """Weighted points, and the cost of the measure they were drawn from."""

    points: Array
    weights: Array
    cost: float


def recover_measure(
    problem: Problem,
    K: int,
    prior: Prior,
    rows: Rows | None,
    rng: np.random.Generator,
    threads: int,
) -> Measure:
    """Points that stand for all members, and for the rows where there are some: for as much as all
    members, if they are many.
    """
    Q = _ATOMS * K
    count = int(np.clip(_WORK / (Q * problem.m * (problem.n + 20)), _LEAST, _MOST))
    members = _in_threads(partial(_member, problem, Q, prior), rng.spawn(count), threads)
    members = sorted(members, key=lambda member: member.cost)[: count - count // _POOR]
    each = max(_POINTS, _PER_CLUSTER * K) // len(members)
    points = np.vstack([member.draw(rng, each) for member in members])
    weights = np.ones(len(points))
    if rows is not None:
        moved = descend_particles(problem, rows.values, rows.shares, iterations=60)
        trust = min(1.0, rows.size / (_ROWS_PER_CLUSTER * K))
        points, weights = (
            np.vstack([points, moved]),
            np.concatenate([weights, trust * len(points) * rows.shares]),
        )
    return Measure(
        np.clip(points, problem.lower, problem.upper), weights, _joint_cost(problem, members)
    )


def _joint_cost(problem: Problem, members: list[Mixture]) -> float:
    """The cost of all members as one mixture."""
    C, alpha, widths = (
        np.concatenate(parts)
        for parts in zip(*((m.C, m.alpha / len(members), m.width) for m in members), strict=True)
    )
    return gaussian_cost(problem, C, alpha, widths)[0]


def _member(problem: Problem, Q: int, prior: Prior, rng: np.random.Generator) -> Mixture:
    start = begin_mixture(problem, Q, prior, rng)
    # as if an atom of average weight were missing
    if start.cost > max(problem.m / Q**2, _FAR_OFF * problem.noise):
        start = replace_missing(problem, start, prior, rng, _ROUNDS)
    return descend_gaussians(
        problem, start.C, start.alpha, np.full(start.C.shape, start.width), _ITERATIONS
    )


def descend_gaussians(
    problem: Problem, C: Array, alpha: Array, widths: Array, iterations: int
) -> Mixture:
    """A mixture near this one whose sketch and moments are the data's, as far as `iterations` go;
    each atom has a width along each axis.
    """
    Q, n = C.shape

    def unpack(x: Array) -> tuple[Array, Array, Array]:
        return x[: Q * n].reshape(Q, n), x[Q * n : Q * n + Q] / Q, x[Q * n + Q :].reshape(Q, n)

    def cost(x: Array) -> tuple[float, Array]:
        mixture = unpack(x)
        value, *gradients = gaussian_cost(problem, *mixture)
        more, *slopes = moment_misfit(problem, *mixture)
        by_C, by_alpha, by_widths = (
            g + problem.m * s for g, s in zip(gradients, slopes, strict=True)
        )
        return value + problem.m * more, np.concatenate(
            [by_C.ravel(), by_alpha / Q, by_widths.ravel()]
        )

    limits = Limits(
        iterations, slope=1e-9, enough=min(_ENOUGH * problem.m, _ENOUGH_NOISE * problem.noise)
    )
    lower = np.concatenate([np.tile(problem.lower, Q), np.zeros(Q + Q * n)])
    upper = np.concatenate(
        [np.tile(problem.upper, Q), np.full(Q, np.inf), np.full(Q * n, MAX_WIDTH)]
    )
    x = descend(
        cost, np.concatenate([C.ravel(), alpha * Q, widths.ravel()]), lower, upper, limits
    ).x
    C, alpha, widths = unpack(x)
    return Mixture(C, alpha, widths, gaussian_cost(problem, C, alpha, widths)[0])


def _in_threads(
    work: Callable[[np.random.Generator], Mixture],
    generators: list[np.random.Generator],
    threads: int,
) -> list[Mixture]:
    """The members in order, whatever the number of threads."""
    if threads == 1:
        return [work(rng) for rng in generators]
    # A limit on OpenMP's threads holds for the thread that sets it, so each worker sets its own.
    with ThreadPoolExecutor(
        min(threads, len(generators)), initializer=threadpool_limits, initargs=(1,)
    ) as executor:
        return list(executor.map(work, generators))
