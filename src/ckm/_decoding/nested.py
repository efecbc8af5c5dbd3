"""Clusters from nested frequencies (`ckm._core.nested`): first in few numbers, then in all
columns.
"""

from dataclasses import replace

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.nested import is_own
from ckm._decoding.lbfgs import Limits
from ckm._decoding.mixture import Mixture, descend_atoms
from ckm._decoding.operator import omega_of
from ckm._decoding.problem import Problem
from ckm._decoding.search import initialise_mixture, make_prior, recover_mixture
from ckm._util.arrays import FloatArray

# Phases of eta, in radians for one standard deviation of the data, up to which frequencies take
# part in each descent: the first are almost linear.
_STAGES = (1.0, 2.0, np.inf)


def search_nested(problem: Problem, K: int, rng: np.random.Generator) -> Mixture:
    """K atoms of one width, found in y = P x and descended from there in all columns."""
    assert problem.axes is not None
    P = problem.axes
    lifting: FloatArray = np.asarray(np.linalg.pinv(P), np.float64)
    found = _search_along(_along(problem, P, lifting), K, rng)
    # Across the axes, all start at the mean.
    C = problem.mean + (found.C - P @ problem.mean) @ lifting.T
    mixture = Mixture(C, found.alpha, found.width, np.inf)
    omega = 2 * np.pi * problem.omega.turns.T
    eta = omega - (omega @ lifting) @ P
    deviation = np.sqrt(problem.covariance.diagonal.mean())
    phases = np.linalg.norm(eta, axis=1) * deviation
    width = max(mixture.width, problem.settings.min_start_width)
    limits = Limits(problem.settings.stage_steps)
    for most in _STAGES:
        kept = phases <= most
        part = replace(problem, omega=problem.omega.only(kept), z=problem.z[kept])
        mixture = descend_atoms(part, mixture.C, mixture.alpha, width, limits)
        width = mixture.width
    return mixture


def _search_along(along: Problem, K: int, rng: np.random.Generator) -> Mixture:
    """The best of several searches, or the first that explains the sketch of y."""
    prior = make_prior(along, None)
    best: Mixture | None = None
    for own_rng in rng.spawn(along.settings.noised_searches):
        start = initialise_mixture(along, K, prior, own_rng, search=True)
        mixture = recover_mixture(along, start, prior, own_rng)
        if best is None or mixture.cost < best.cost:
            best = mixture
        if best.cost <= along.noise:
            break
    assert best is not None
    return best


def _along(problem: Problem, P: FloatArray, lifting: FloatArray) -> Problem:
    """The problem of y: that of the frequencies that see nothing else."""
    own = is_own(problem.m)
    w = 2 * np.pi * problem.omega.turns.T[own] @ lifting
    frequencies = Frequencies((w / (2 * np.pi)).astype(np.float32), np.zeros(len(P)), 1.0, "broad")
    reach = np.abs(P) @ np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    covariance = P @ problem.covariance.matrix @ P.T
    return replace(
        problem,
        omega=omega_of(frequencies, problem.settings),
        z=problem.z[own],
        lower=-reach,
        upper=reach,
        mean=P @ problem.mean,
        covariance=type(problem.covariance)(covariance),
        trusted=np.zeros(len(P), bool),
        coordinates=None,
        axes=None,
    )
