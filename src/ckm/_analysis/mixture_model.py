"""From a sketch to a mixture of K Gaussians: the strategy on one page.

1. Recover a measure that explains the sketch, as for k-means: one Gaussian per cell, or more atoms
   than K. The widths of its parts along each axis are matched to the sketch.
2. Expectation-maximisation on that measure, from several starts: the mixture of largest likelihood,
   if the measure is right.
3. Match the best of these to the sketch itself, at frequencies weighted by their precision. If the
   data is a mixture of K Gaussians, this leaves a residual as chance does, and nearly the
   likelihood of a fit to the rows. Otherwise the result of step 2 is better and is kept.

Without cells, K atoms of one width are matched first (step 3); components are merged and split
where that seems to be a local minimum, and all frequencies are weighted together at the end.

All is in the coordinates of a `Problem`.
"""

import logging
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ckm._analysis.components import Components, count_parameters, log_sum
from ckm._analysis.expectation import Fitted, Shape, fit_points
from ckm._analysis.matching import Match, Target, match, refine
from ckm._analysis.regrouping import regroup
from ckm._decoding.cells import CellMeasure
from ckm._decoding.gaussians import GaussianMeasure
from ckm._decoding.mixture import descend_gaussians
from ckm._decoding.problem import Problem
from ckm._decoding.recovered import Branch
from ckm._decoding.recovery import recover
from ckm._decoding.sample import SampledRows
from ckm._decoding.search import initialise_mixture, make_prior, recover_mixture
from ckm._kmeans.breathing import place
from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.nearest import find_nearest
from ckm._util.arrays import FloatArray

_log = logging.getLogger(__name__)

# Starts of EM on a measure; one more decides nothing on most data, and each takes milliseconds.
STARTS = 10
EM_STEPS = 200
# Starts from sampled rows that are tried beside these, and the number of rows that the measure
# counts as beside them. After some steps the best go on. With five of the measure's starts alone,
# flights had up to 0.24 nats per row less, Shuttle up to 0.09 (seeds 0 to 3).
ROW_STARTS = 5
ROW_FIRST_STEPS = 25
ROW_FINALISTS = 4
MEASURE_ROWS = 100.0
# Gain of the mean log density that ends EM.
EM_GAIN = 1e-5
# Searches for K atoms where there are no cells, at most.
ATOM_STARTS = 4
# Excess above which components are merged and split, in case a match is in a local minimum. Of 139
# sketches whose mixture was found (K = 5 and 10 in 2 to 10 columns, seeds 0 to 11) it was 0.04 to
# 0.41, in 15 above 0.25; of five in a local minimum 0.34 to 94.
CONVINCING_EXCESS = 0.3
# Excess above which data is taken for no mixture of K Gaussians at all.
MAX_REGROUPED_EXCESS = 200.0
# Weight (as a share of the average) and variance that atoms have at least where a match starts.
MIN_START_WEIGHT = 1e-3
MIN_START_WIDTH = 1e-2
# Excess up to which a match is taken: what chance alone leaves.
MAX_EXCESS = 1.0
# Share of the excess of the measure up to which it is taken, too: where there are very many rows,
# nothing is explained down to chance.
MAX_RELATIVE_EXCESS = 0.1
# Loss of log density on the measure, in nats, that a match may have: the measure is rough, but not
# that rough. A narrow component where there is nothing would cost far more.
MAX_LOSS = 1.0
# Multiple of the largest excess at which a match that is still above it after a few steps is given
# up.
ABORT_FACTOR = 20.0
# Excess of a match, in nats per row, that no other start needs to lower.
NEGLIGIBLE_NATS = 1e-3
# Starts of EM that end at the best likelihood, after which no more are tried.
AGREEING_STARTS = 4
# Relative difference of two excesses, or of two likelihoods, that count as the same minimum.
SAME = 0.02
SAME_LIKELIHOOD = 1e-4
# Multiply-adds of all matches together: about ten seconds.
MAX_MATCH_WORK = 2e11
# Steps of a descent that matches the widths of the measure's parts.
WIDTH_STEPS = 60
# Rows of the pool that the average shape of a cell counts as, beside the cell's own rows.
PRIOR_ROWS = 4.0
# Frequencies per number of the mixture, below which it is not matched to the sketch itself.
MIN_FREQUENCIES_PER_NUMBER = 1.0


class Found(NamedTuple):
    """A mixture that was found, in the coordinates of its problem.

    Parameters
    ----------
    components : Components
        The mixture.
    excess : float
        The mean of |r_j|^2 over its variance: about one where only chance is left.
    is_matched : bool
        Whether it explains the sketch; otherwise it is the best one on a measure that does.
    is_exact : bool
        Whether it was fitted to all rows, or to moments that say all.
    has_stale_cells : bool
        Whether the sketch has cells that do not explain it.
    """

    components: Components
    excess: float
    is_matched: bool = False
    is_exact: bool = False
    has_stale_cells: bool = False


def fit_problem(
    problem: Problem,
    K: int,
    shape: Shape,
    rows: SampledRows | None,
    rng: np.random.Generator,
    threads: int,
    starts: int = STARTS,
) -> Found:
    """The mixture of K Gaussians whose sketch is the data's, or the best one on a measure that has
    that sketch.
    """
    omega = np.ascontiguousarray(2 * np.pi * problem.omega.turns.T)
    target = Target(
        omega, problem.z, problem.size, problem.lower, problem.upper, problem.noise_variance
    )
    if rows is not None and rows.is_complete:
        return _fit_rows(target, rows, K, shape, rng, starts)
    if K == 1 and (problem.covariance.is_full or not shape.has_matrices):
        return _take_moments(problem, target, shape)
    can_match = problem.m >= MIN_FREQUENCIES_PER_NUMBER * count_parameters(
        shape.covariance_type, K, problem.n
    )
    if problem.cells is None and can_match:
        explained = _match_atoms(problem, target, K, shape, rows, rng)
        if explained is not None:
            return explained
    recovered = recover(problem, K, rows, rng, threads)
    measure = recovered.gaussians
    if recovered.branch is Branch.CELLS and recovered.cells is not None:
        explained = _match_at_once(target, measure, K, shape, rng) if can_match else None
        if explained is not None:
            return explained
        measure = _shaped(problem, recovered.cells, measure, rows)
    fits = _fit_measure(measure, K, shape, rng, starts)
    best = Found(
        fits[0].components,
        target.excess(target.residual(fits[0].components)),
        has_stale_cells=recovered.has_stale_cells,
    )
    if not can_match:
        return _with_rows(target, best, measure, rows, fits, shape, rng)
    own = target.excess(
        target.residual(Components(measure.shares, measure.means, measure.variances))
    )
    limit = max(MAX_EXCESS, MAX_RELATIVE_EXCESS * own)
    found = _match_fits(target, fits, shape, limit)
    loss = fits[0].log_likelihood - _mean_log_density(measure, found.components)
    _log.info(
        "matched: excess %.3g (limit %.3g), loss %.3g on the measure", found.excess, limit, loss
    )
    if found.excess > limit or not loss <= MAX_LOSS:
        return _with_rows(target, best, measure, rows, fits, shape, rng)
    return best._replace(components=found.components, excess=found.excess, is_matched=True)


def _with_rows(
    target: Target,
    best: Found,
    measure: GaussianMeasure,
    rows: SampledRows | None,
    fits: list[Fitted],
    shape: Shape,
    rng: np.random.Generator,
) -> Found:
    """The best mixture on the measure and on the sampled rows together, if there are some.

    The measure knows how many rows are where, rows know what shape they have there.
    """
    if rows is None:
        return best
    trust = rows.size / (rows.size + MEASURE_ROWS)
    points = np.vstack([measure.means, rows.values])
    beta = np.concatenate([(1 - trust) * measure.shares, trust * rows.shares])
    variances = np.vstack([measure.variances, np.zeros(rows.values.shape)])
    starts = [fit.components for fit in fits]
    starts += _starts(rows.values, rows.weights, None, len(best.components), shape, rng, ROW_STARTS)
    args = (points, beta, variances, shape)
    tried = [_fit_from(start, *args, ROW_FIRST_STEPS) for start in starts]
    tried.sort(key=lambda fit: -fit.log_likelihood)
    found = [_fit_from(fit.components, *args) for fit in tried[:ROW_FINALISTS]]
    components = max(found, key=lambda fit: fit.log_likelihood).components
    return best._replace(components=components, excess=target.excess(target.residual(components)))


def _fit_rows(
    target: Target,
    rows: SampledRows,
    K: int,
    shape: Shape,
    rng: np.random.Generator,
    starts: int,
) -> Found:
    """EM on all rows of the data."""
    fits = [
        _fit_from(start, rows.values, rows.weights, None, shape)
        for start in _starts(rows.values, rows.weights, None, K, shape, rng, starts)
    ]
    best = max(fits, key=lambda fit: fit.log_likelihood).components
    return Found(best, target.excess(target.residual(best)), is_exact=True)


def _take_moments(problem: Problem, target: Target, shape: Shape) -> Found:
    """One Gaussian: its likelihood is largest at the mean and covariance of the data."""
    moment = problem.covariance
    values = moment.values if shape.has_matrices else moment.diagonal
    covariances = shape.constrain(values[None], np.ones(1))
    one = Components(np.ones(1), problem.mean[None], shape.lifted(covariances))
    return Found(one, target.excess(target.residual(one)), is_exact=True)


def _match_atoms(
    problem: Problem,
    target: Target,
    K: int,
    shape: Shape,
    rows: SampledRows | None,
    rng: np.random.Generator,
) -> Found | None:
    """Without cells: K atoms of one width, found by replacement, then matched with widths of their
    own; None if that does not explain the sketch.
    """
    prior = make_prior(problem, rows)
    matches = list[Match]()
    for _ in range(min(ATOM_STARTS, _affordable_matches(target, K, shape))):
        start = initialise_mixture(problem, K, prior, rng, search=True)
        atoms = recover_mixture(problem, start, prior, rng)
        weights = np.maximum(atoms.shares, MIN_START_WEIGHT / K)
        widths = np.full(atoms.C.shape, max(float(atoms.width), MIN_START_WIDTH))
        covariances = shape.lifted(_as_shape(widths, shape))
        components = Components(weights / weights.sum(), atoms.C, covariances)
        matches.append(match(target, components, shape, abort_above=ABORT_FACTOR * MAX_EXCESS))
        if _is_settled(target, matches, MAX_EXCESS):
            break
    best = min(matches, key=lambda match: match.excess)
    _log.info("atoms matched: excess %.3g", best.excess)
    if CONVINCING_EXCESS < best.excess <= MAX_REGROUPED_EXCESS and shape.covariance_type == "diag":
        best = regroup(target, best, shape, _affordable_matches(target, K, shape))
        _log.info("atoms regrouped: excess %.3g", best.excess)
    if best.excess > MAX_EXCESS:
        return None
    best = refine(target, best, shape)
    return Found(best.components, best.excess, is_matched=True)


def _match_at_once(
    target: Target, measure: GaussianMeasure, K: int, shape: Shape, rng: np.random.Generator
) -> Found | None:
    """The match of the first start on cells as they are; None if it does not explain the sketch so
    well that nothing else needs to be tried.
    """
    fit = _fit_measure(measure, K, shape, rng, 1)[0]
    found = match(target, fit.components, shape, abort_above=ABORT_FACTOR * MAX_EXCESS)
    loss = fit.log_likelihood - _mean_log_density(measure, found.components)
    _log.info("matched at once: excess %.3g, loss %.3g on the measure", found.excess, loss)
    if not (_is_negligible(target, found) and loss <= MAX_LOSS):
        return None
    return Found(found.components, found.excess, is_matched=True)


def _affordable_matches(target: Target, K: int, shape: Shape) -> int:
    """How many starts may be matched: each takes about ten steps of m p^2 multiply-adds."""
    p = count_parameters(shape.covariance_type, K, target.omega.shape[1])
    return max(1, int(MAX_MATCH_WORK / (10 * target.m * p**2)))


def _is_settled(target: Target, matches: list[Match], limit: float) -> bool:
    """Whether more starts are in vain: the best match was found twice, or it leaves what chance
    does, of so many rows that less would not matter, or nothing comes near the limit, which is no
    matter of starts.
    """
    least = min(match.excess for match in matches)
    if least > ABORT_FACTOR * limit:
        return True
    if any(_is_negligible(target, match) for match in matches):
        return True
    return sum(match.excess <= least * (1 + SAME) for match in matches) > 1


def _is_negligible(target: Target, match: Match) -> bool:
    """Whether a match leaves what chance does, of so many rows that less would not matter."""
    is_chance = match.excess <= MAX_EXCESS
    return is_chance and target.m * match.excess <= NEGLIGIBLE_NATS * target.size


def _shaped(
    problem: Problem, cells: CellMeasure, measure: GaussianMeasure, rows: SampledRows | None
) -> GaussianMeasure:
    """The measure of cells with widths of their own along each axis: those of the pool's rows in
    them, if there are some, descended until the measure has the sketch of the data.
    """
    count = len(cells.shares)
    widths = np.repeat(cells.variances[:, None], problem.n, axis=1)
    if rows is not None:
        widths = widths * _cell_shapes(cells, rows)
    beside = measure.shares[count:]
    if not len(beside):
        matched = descend_gaussians(problem, cells.means, cells.shares, widths, WIDTH_STEPS)
        return GaussianMeasure.of(matched.alpha, matched.C, matched.width)
    variances = measure.variances.copy()
    variances[:count] = widths
    return GaussianMeasure.of(measure.shares, measure.means, variances)


def _cell_shapes(cells: CellMeasure, rows: SampledRows) -> FloatArray:
    """The variance of each cell along each axis as a multiple of its mean over axes (c, n), from
    the rows of the pool in it and their average in all cells.
    """
    owners = np.empty(len(rows.values), np.int32)
    values = np.ascontiguousarray(rows.values)
    find_nearest(values, CentroidIndex(cells.anchors), owners)
    squares = (values - cells.means[owners]) ** 2
    total = squares.sum(axis=1, keepdims=True)
    kept = total[:, 0] > 0
    if not kept.any():
        return np.ones(cells.means.shape)
    # Each row counts alike, whatever the size of its cell.
    squares = np.divide(squares, total, out=np.zeros_like(squares), where=total > 0)
    average = rows.weights[kept] @ squares[kept] / rows.weights[kept].sum()
    sums = np.tile(PRIOR_ROWS * average, (len(cells.shares), 1))
    np.add.at(sums, owners, squares)
    return np.asarray(sums / sums.mean(axis=1, keepdims=True))


def _fit_measure(
    measure: GaussianMeasure, K: int, shape: Shape, rng: np.random.Generator, starts: int
) -> list[Fitted]:
    """What EM finds on a measure, best first, without repetitions."""
    args = (measure.means, measure.shares, measure.variances)
    fits = list[Fitted]()
    for start in _starts(*args, K, shape, rng, starts):
        fits.append(_fit_from(start, *args, shape))
        enough = max(fit.log_likelihood for fit in fits) - SAME_LIKELIHOOD
        if sum(fit.log_likelihood >= enough for fit in fits) == AGREEING_STARTS:
            break
    fits.sort(key=lambda fit: -fit.log_likelihood)
    distinct = fits[:1]
    for fit in fits[1:]:
        if distinct[-1].log_likelihood - fit.log_likelihood > SAME_LIKELIHOOD:
            distinct.append(fit)
    return distinct


def _match_fits(target: Target, fits: list[Fitted], shape: Shape, limit: float) -> Match:
    """The match of least excess from several starts: until the best was found twice, or the work is
    too much.
    """
    matches = list[Match]()
    for fit in fits[: _affordable_matches(target, len(fits[0].components), shape)]:
        found = match(target, fit.components, shape, abort_above=ABORT_FACTOR * limit)
        matches.append(found)
        if _is_settled(target, matches, limit):
            break
    return min(matches, key=lambda match: match.excess)


def _starts(
    points: FloatArray,
    beta: FloatArray,
    variances: FloatArray | None,
    K: int,
    shape: Shape,
    rng: np.random.Generator,
    count: int,
) -> Iterator[Components]:
    """Starts of EM: clusters found by k-means, the first time by a thorough one."""
    n = points.shape[1]
    own = 0.0 if variances is None else float(beta @ variances.mean(axis=1) / beta.sum())
    for i in range(count):
        C, alpha, mean_square = place(points, beta, K, rng, n_init=1, search=i == 0)
        widths = np.full((K, n), mean_square / n + own)
        weights = np.maximum(alpha / alpha.sum(), 1e-6)
        yield Components(weights / weights.sum(), C, shape.lifted(_as_shape(widths, shape)))


def _fit_from(
    start: Components,
    points: FloatArray,
    beta: FloatArray,
    variances: FloatArray | None,
    shape: Shape,
    max_steps: int = EM_STEPS,
) -> Fitted:
    return fit_points(start, points, beta, variances, shape, max_steps=max_steps, tolerance=EM_GAIN)


def _as_shape(variances: FloatArray, shape: Shape) -> FloatArray:
    """Variances (K, n) as matrices if covariances are matrices."""
    if not shape.has_matrices:
        return variances
    return np.asarray(variances[:, :, None] * np.eye(variances.shape[1]))


def _mean_log_density(measure: GaussianMeasure, components: Components) -> float:
    """The mean log density of a mixture on a measure, as EM counts it."""
    joint = components.log_joint(measure.means, measure.variances)
    return float(measure.shares @ log_sum(joint))
