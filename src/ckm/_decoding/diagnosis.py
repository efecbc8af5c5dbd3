"""What can be wrong with decoded centroids, each with a sentence that says what to do."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from ckm._core.defaults import DEFAULT_POOL
from ckm._core.laws import FREQUENCIES_PER_PARAMETER
from ckm._decoding.candidate import Candidate
from ckm._decoding.objective import atoms
from ckm._decoding.problem import Problem
from ckm._decoding.settings import DEFAULT, Settings
from ckm._messages import Argument, Message
from ckm._util.arrays import BoolArray, FloatArray

# Share of the weight that counts as all of it, up to rounding.
_ALL_WEIGHT = 1 - 1e-9


class Status(StrEnum):
    """How a decoding ended.

    Attributes
    ----------
    OK
        Nothing was found to be wrong.
    UNEXPLAINED
        The recovered measure does not have the data's sketch.
    SMALL_SKETCH
        The sketch has too few frequencies for so many clusters.
    STALE_CELLS
        The cells do not explain the sketch, and were not used.
    OTHER_SPREAD
        The frequencies were chosen for data of another scale.
    FAR_OUT
        Outliers below the sketch's detection limit may decide the SSE.
    MERGED
        Some centroids are so close that the sketch cannot separate them.
    STARVED
        Some centroids have hardly any weight.
    """

    OK = "ok"
    UNEXPLAINED = "unexplained"
    SMALL_SKETCH = "small-sketch"
    STALE_CELLS = "stale-cells"
    OTHER_SPREAD = "other-spread"
    FAR_OUT = "far-out"
    MERGED = "merged"
    STARVED = "starved"


class Finding(NamedTuple):
    """Something that may be wrong with a solution.

    Parameters
    ----------
    status : Status
        What kind of finding it is.
    sentence : Message
        What was seen and what to do about it.
    """

    status: Status
    sentence: Message


def diagnose(problem: Problem, found: Candidate, cost: float | None) -> tuple[Finding, ...]:
    """What is wrong with the centroids that a decoder found.

    `cost` is that of the measure they were placed on; None if it is expected to be large, as for
    Diracs that stand for wide clusters. If all the weight is that of known rows, no search was
    needed and none is doubted.
    """
    C = found.C
    weights = found.weights
    known_weights = found.known_weights
    was_searched = known_weights is None or known_weights.sum() < _ALL_WEIGHT
    K, n = C.shape
    findings = (
        find_small_sketch(problem.m, K, n, problem.settings),
        _find_stale_cells() if found.has_stale_cells else None,
        _find_other_spread(problem) if was_searched else None,
        _find_unexplained(problem, cost) if was_searched else None,
        _find_far_out(problem) if known_weights is None else None,
        _find_merged(problem, C, weights),
        _find_starved(found, problem.settings),
    )
    return tuple(finding for finding in findings if finding)


def find_small_sketch(m: int, K: int, n: int, settings: Settings = DEFAULT) -> Finding | None:
    """Fewer frequencies than twice the coordinates to be found leave centroids in doubt."""
    least = settings.min_frequencies_per_coordinate
    if m >= least * K * n:
        return None
    sentence = Message(
        f"This sketch has {m} frequencies; for {K} clusters in dimension {n} fewer than "
        f"{least} K n = {least * K * n} leave centroids in doubt. Sketch with ",
        Argument("sketch_size", FREQUENCIES_PER_PARAMETER * K * n),
        f" ({FREQUENCIES_PER_PARAMETER} K n), or ask for fewer clusters.",
    )
    return Finding(Status.SMALL_SKETCH, sentence)


def _find_stale_cells() -> Finding:
    sentence = Message(
        "The cells do not explain the sketch, as if the rows had moved since their anchors were "
        "chosen: centroids come from the frequencies alone. Sketch the rows anew, without ",
        Argument("like", ...),
        ", or shuffle data that is read in order.",
    )
    return Finding(Status.STALE_CELLS, sentence)


def _find_merged(problem: Problem, C: FloatArray, weights: FloatArray) -> Finding | None:
    heavy = C[~_is_light(weights, problem.settings)]
    if len(heavy) < 2:
        return None
    gaps = ((heavy[:, None] - heavy) ** 2).sum(axis=2) + np.diag(np.full(len(heavy), np.inf))
    # Only pairs within the width of a cluster are compared: atoms of all pairs may take long.
    close = np.flatnonzero(gaps.min(axis=1) < problem.n)
    nearest = np.argmin(gaps[close], axis=1)
    difference = atoms(problem.omega, heavy[close]) - atoms(problem.omega, heavy[nearest])
    mean_squares = (np.abs(difference) ** 2).mean(axis=1)
    count = int((mean_squares <= problem.settings.merged_difference**2).sum())
    if not count:
        return None
    sentence = Message(
        f"{count} of {len(weights)} centroids are so close to another that the sketch cannot "
        f"separate them: there seem to be fewer clusters; ask for fewer."
    )
    return Finding(Status.MERGED, sentence)


def _find_unexplained(problem: Problem, cost: float | None) -> Finding | None:
    if cost is None:
        return None
    settings = problem.settings
    explained = settings.max_noise_ratio * problem.noise
    if cost <= max(explained, settings.max_residual**2 * problem.m):
        return None
    residual = np.sqrt(cost / problem.m)
    noise = np.sqrt(problem.noise / problem.m)
    sentence = Message(
        f"RMS residual {residual:.2g} per frequency; sampling noise explains {noise:.2g}: clusters "
        f"may be missed. Sketch with a pool of rows (",
        Argument("pool", DEFAULT_POOL),
        "), try ",
        Argument("n_init", 5),
        ", or use a larger sketch.",
    )
    return Finding(Status.UNEXPLAINED, sentence)


def _find_other_spread(problem: Problem) -> Finding | None:
    """Frequencies come from other data if a sketch was made `like` another."""
    # Outliers change the variance too; they have a finding of their own.
    if problem.pilot_variance is None or not problem.has_trusted_moments:
        return None
    most = problem.settings.max_scale_ratio
    ratio = float(problem.covariance.diagonal.mean()) / problem.pilot_variance
    if 1 / most <= ratio <= most:
        return None
    sentence = Message(
        f"The variance of these rows is {ratio:.3g} times that of the rows that the frequencies "
        f"were chosen for: frequencies so {'high' if ratio > 1 else 'low'} may miss clusters, and "
        f"centroids may be far off. Sketch the rows anew, without ",
        Argument("like", ...),
        ".",
    )
    return Finding(Status.OTHER_SPREAD, sentence)


def _find_far_out(problem: Problem) -> Finding | None:
    if problem.has_trusted_moments:
        return None
    variances = problem.covariance.diagonal
    reach = np.maximum(problem.mean - problem.lower, problem.upper - problem.mean)
    ratios = np.divide(reach, np.sqrt(variances), out=np.zeros(problem.n), where=variances > 0)
    sentence = Message(
        f"Column {np.argmax(ratios)} (counted from 0) reaches {ratios.max():.3g} standard "
        f"deviations from its mean: a few outliers there may decide the SSE, and are below the "
        f"sketch's detection limit. Sketch with a larger pool of rows (",
        Argument("pool", DEFAULT_POOL),
        "), which keeps outliers; or transform or clip that column.",
    )
    return Finding(Status.FAR_OUT, sentence)


def _is_light(weights: FloatArray, settings: Settings) -> BoolArray:
    return np.asarray(weights < settings.starved_share / len(weights))


def _find_starved(found: Candidate, settings: Settings) -> Finding | None:
    weights = found.weights
    known_weights = found.known_weights
    K = len(weights)
    # Rows that were counted are there, however few.
    is_starved = weights <= 0 if found.is_counted else _is_light(weights, settings)
    if known_weights is not None:
        is_starved &= known_weights <= settings.max_starved_known_share * weights
    count = int(is_starved.sum())
    if not count:
        return None
    sentence = Message(
        f"{count} of {K} centroids have hardly any weight (below {settings.starved_share / K:.2g}) "
        f"and may be where no rows are; ask for fewer clusters, or use a larger sketch."
    )
    return Finding(Status.STARVED, sentence)
