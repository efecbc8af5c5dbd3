"""Recover a measure that explains a sketch.

The branches, in order:

- all rows of the data are in the pool: they are the measure;
- one cluster: nothing to search for;
- few distinct rows, all of which are in the pool: these, with the shares that the sketch has;
- the sketch has cells that explain it, or fewer frequencies than unknowns beside them: one Gaussian
  per cell, and outliers that are known from the pool;
- outliers are known from the pool: they are taken out of the sketch, the ensemble recovers the
  measure of the other rows;
- outliers are below the sketch's detection limit: the ensemble recovers the measure of the bulk,
  the outliers are reconstructed from bounds and second moments;
- K atoms of one width explain the sketch and hardly overlap: these atoms;
- else: the ensemble.
"""

import logging
from dataclasses import replace

import numpy as np

from ckm._decoding.cells import CellMeasure
from ckm._decoding.ensemble import Measure, recover_measure
from ckm._decoding.gaussians import GaussianMeasure
from ckm._decoding.mixture import Mixture
from ckm._decoding.nested import search_nested
from ckm._decoding.outliers import box_in_sight, reconstruct_outliers
from ckm._decoding.problem import Problem
from ckm._decoding.recovered import Branch, Recovered, Weighted
from ckm._decoding.sample import SampledRows
from ckm._decoding.search import Prior, initialise_mixture, make_prior, recover_mixture
from ckm._decoding.tight_groups import search_tight_groups
from ckm._util.arrays import BoolArray, FloatArray
from ckm._util.stages import enter_stage

_log = logging.getLogger(__name__)


def recover(
    problem: Problem,
    K: int,
    rows: SampledRows | None,
    rng: np.random.Generator,
    threads: int,
) -> Recovered:
    """A measure that explains the sketch, rich enough for K centroids to be placed on it."""
    if rows is not None and rows.is_complete:
        return _take_rows(problem, K, rows)
    if K == 1:
        return _take_gaussian(problem)
    distinct = _take_distinct_rows(problem, K, rows) if rows is not None else None
    if distinct is not None:
        return distinct
    cells = problem.cells
    found = None if cells is None else _recover_from_cells(problem, cells, K, rows, rng)
    if found is not None:
        return found
    searched = _recover_from_sketch(problem, K, rows, rng, threads)
    return replace(searched, rows=rows, has_stale_cells=cells is not None)


def _take_rows(problem: Problem, K: int, rows: SampledRows) -> Recovered:
    """All rows of the data."""
    all_rows = (rows.values, rows.weights)
    cost = problem.objective.cost(rows.values, rows.shares)[0]
    gaussians = GaussianMeasure.of(rows.weights, rows.values, np.zeros(len(rows.weights)))
    return Recovered(Branch.ROWS, K, all_rows, all_rows, gaussians, cost)


def _take_distinct_rows(problem: Problem, K: int, rows: SampledRows) -> Recovered | None:
    """The distinct rows of a pool, where the data seems to have no others: nothing is left to find
    but their shares, the unknowns of a linear problem. The sketch decides whether they are all.
    """
    settings = problem.settings
    if rows.unseen > settings.max_unseen_weight or len(rows.values) > problem.m:
        return None
    shares = problem.objective.fit_weights(rows.values)
    if not shares.sum() > 0:
        return None
    cost = problem.objective.cost(rows.values, shares)[0]
    _log.info("%d distinct rows: cost %.3g, noise %.3g", len(shares), cost, problem.noise)
    limit = max(1 / problem.size, settings.exact_residual)
    if cost > limit**2 * problem.m:
        return None
    return _take_rows(problem, K, rows._replace(weights=shares / shares.sum()))


def _take_gaussian(problem: Problem) -> Recovered:
    """The Gaussian of the data's mean and variances."""
    means = problem.mean[None]
    shares = np.ones(1)
    variances = problem.covariance.diagonal[None]
    cost = problem.objective.gaussian_cost(means, shares, variances)[0]
    gaussians = GaussianMeasure.of(shares, means, variances)
    return Recovered(Branch.MEAN, 1, (means, shares), (means, shares), gaussians, cost)


def _recover_from_cells(
    problem: Problem,
    cells: CellMeasure,
    K: int,
    rows: SampledRows | None,
    rng: np.random.Generator,
) -> Recovered | None:
    """The measure of the cells, if the sketch certifies it, or if it has too few frequencies to do
    without.
    """
    enter_stage("checking cells")
    settings = problem.settings
    outliers = None
    if rows is not None:
        is_known = rows.probabilities >= settings.known_probability
        if is_known.any() and rows.weights[is_known].sum() <= settings.max_known_share:
            # Rows that they would stand for are still in the cells.
            outliers = rows.only(is_known).themselves()
            cells = cells.without(outliers)
    cost = cells.cost(problem.objective, outliers)
    is_certified = _are_certified(problem, cells, cost, K)
    if not is_certified and problem.determines(K):
        return None
    gaussians = GaussianMeasure.of(cells.shares, cells.means, cells.axis_variances)
    if outliers is not None:
        left = float(cells.shares.sum())
        gaussians = gaussians.beside(outliers.values, outliers.weights, left)
    return Recovered(
        Branch.CELLS,
        K,
        few=joined(cells.means, cells.shares, outliers),
        many=joined(*cells.draw(rng, settings.points_on_cells(K)), outliers),
        gaussians=gaussians,
        cost=cost,
        outliers=outliers,
        cells=cells,
        has_stale_cells=not is_certified,
    )


def joined(points: FloatArray, weights: FloatArray, outliers: SampledRows | None) -> Weighted:
    """Points and their weights, with those of outliers."""
    if outliers is None:
        return points, weights
    return np.vstack([points, outliers.values]), np.concatenate([weights, outliers.weights])


def _are_certified(problem: Problem, cells: CellMeasure, cost: float, K: int) -> bool:
    """Whether the measure of the cells, of this cost, explains the sketch well enough that nothing
    is left to search for.
    """
    settings = problem.settings
    excess = max(0.0, cost - settings.cell_noise_ratio * problem.noise)
    residual = np.sqrt(excess / problem.m)
    _log.info(
        "%d cells: residual %.2g per frequency beyond noise, %.2f times as wide as at first",
        len(cells.shares),
        residual,
        cells.widening,
    )
    if residual <= settings.suspect_residual:
        return True
    limit = settings.max_widening if problem.can_stand_alone(K) else settings.max_widening_small
    return bool(residual <= settings.certified_residual and cells.widening <= limit)


def _recover_from_sketch(
    problem: Problem,
    K: int,
    rows: SampledRows | None,
    rng: np.random.Generator,
    threads: int,
) -> Recovered:
    """A measure from the sketch, and from sampled rows if there are some."""
    if rows is not None:
        is_known = _find_known_outliers(problem, K, rows)
        if is_known.any():
            return _recover_beside_known(problem, K, rows, is_known, rng, threads)
    has_enough_rows = rows is not None and rows.size >= problem.settings.start_rows_per_cluster * K
    bulk = problem.without_outliers()
    if bulk is not problem and not has_enough_rows:
        return _recover_beside_reconstructed(problem, bulk, K, rng, threads)
    prior = make_prior(bulk, rows if has_enough_rows else None)
    separate = _separate_clusters(bulk, K, prior, rng)
    if separate is not None:
        return separate
    tight = search_tight_groups(bulk, K, prior, rng)
    if tight is not None and (not bulk.has_trusted_moments or _has_variance(bulk, tight)):
        return replace(_as_atoms(bulk, K, tight, rng), branch=Branch.TIGHT, atoms=None)
    measure = recover_measure(bulk, K, prior, rows, rng, threads)
    return Recovered(
        Branch.ENSEMBLE,
        K,
        few=(measure.means, measure.shares),
        many=(measure.points, measure.weights),
        gaussians=measure.gaussians,
        cost=measure.cost,
        members=measure.members,
    )


def _separate_clusters(
    problem: Problem, K: int, prior: Prior, rng: np.random.Generator
) -> Recovered | None:
    """The atoms of a mixture, if K atoms of one width explain the sketch and hardly overlap: then
    nothing is in doubt.
    """
    enter_stage("searching for atoms")
    settings = problem.settings
    if problem.is_noised:
        return _separate_in_noise(problem, K, prior, rng)
    start = initialise_mixture(problem, K, prior, rng, search=True)
    share = start.own_variance(rng, settings.overlap_points)
    if share < settings.min_own_variance:
        _log.info("%d atoms of one width overlap (%.2f of their variance is their own)", K, share)
        return None
    mixture = recover_mixture(problem, start, prior, rng)
    share = mixture.own_variance(rng, settings.overlap_points)
    _log.info(
        "%d atoms of one width: cost %.3g, noise %.3g, %.2f of their variance is their own",
        K,
        mixture.cost,
        problem.noise,
        share,
    )
    if mixture.cost > problem.noise or share < settings.separate_own_variance:
        return None
    if problem.has_trusted_moments and not _has_variance(problem, mixture):
        return None
    return _as_atoms(problem, K, mixture, rng)


def _has_variance(problem: Problem, mixture: Mixture) -> bool:
    """Whether a mixture has the variance of the data, which is exact.

    Atoms that explain the sketch may lack some: rows scattered between clusters have little weight
    in it, and a few atoms as narrow as clusters stand for them.
    """
    settings = problem.settings
    within = problem.n * float(mixture.width)
    between = float(mixture.shares @ ((mixture.C - problem.mean) ** 2).sum(axis=1))
    total = problem.covariance.trace
    missing = total - between - within
    allowed = settings.max_variance_error * within
    has_it = abs(missing) <= max(allowed, settings.max_total_variance_error * total)
    if not has_it:
        _log.info("these atoms have %.3g times the variance of the data", 1 - missing / total)
    return has_it


def _separate_in_noise(
    problem: Problem, K: int, prior: Prior, rng: np.random.Generator
) -> Recovered | None:
    """The same for a private release: a cost at the noise floor says little, since atoms fit some
    of the noise, so that the best of several searches is taken. Atoms that overlap are kept too if
    more would only fit more noise.
    """
    settings = problem.settings
    best = search_nested(problem, K, rng) if problem.axes is not None else None
    for own_rng in rng.spawn(0 if best is not None else settings.noised_searches):
        start = initialise_mixture(problem, K, prior, own_rng, search=True)
        mixture = recover_mixture(problem, start, prior, own_rng)
        if best is None or mixture.cost < best.cost:
            best = mixture
    assert best is not None
    share = best.own_variance(rng, settings.overlap_points)
    _log.info("%d atoms, best of several: cost %.3g, noise %.3g", K, best.cost, problem.noise)
    if best.cost > problem.noise or share < settings.min_own_variance:
        return None
    return _as_atoms(problem, K, best, rng)


def _as_atoms(problem: Problem, K: int, mixture: Mixture, rng: np.random.Generator) -> Recovered:
    """Atoms as a measure, and points drawn from them."""
    settings = problem.settings
    count = max(settings.mixture_points, settings.mixture_points_per_cluster * K)
    points = np.clip(mixture.draw(rng, count), problem.lower, problem.upper)
    widths = np.full(len(mixture.C), mixture.width)
    return Recovered(
        Branch.SEPARATE,
        K,
        few=(mixture.C, mixture.shares),
        many=(points, np.ones(count)),
        gaussians=GaussianMeasure.of(mixture.alpha, mixture.C, widths),
        cost=mixture.cost,
        atoms=mixture,
    )


def _find_known_outliers(problem: Problem, K: int, rows: SampledRows) -> BoolArray:
    """Which rows are outliers of which most are in the pool, if these are few and enough other rows
    remain; else none.
    """
    settings = problem.settings
    is_known = rows.probabilities >= settings.known_probability
    others = rows.size - is_known.sum()
    is_few = rows.weights[is_known].sum() <= settings.max_known_share
    if is_few and others >= settings.start_rows_per_cluster * K:
        return np.asarray(is_known)
    return np.zeros_like(is_known)


def _recover_beside_known(
    problem: Problem,
    K: int,
    rows: SampledRows,
    is_known: BoolArray,
    rng: np.random.Generator,
    threads: int,
) -> Recovered:
    """Take known outliers out of the sketch, and recover a measure of the other rows from what is
    left.

    A handful of outliers may have most of the SSE, and be too few for the sketch to show where they
    are.
    """
    outliers = rows.only(is_known)
    others = rows.only(~is_known)
    _log.info("%d outliers are known from the pool", len(outliers.values))
    rest = problem.without(
        outliers.values, outliers.weights, others.values.min(axis=0), others.values.max(axis=0)
    )
    measure = recover_measure(rest, K, make_prior(rest, others), others, rng, threads)
    left = 1 - outliers.weights.sum()
    found = _beside(measure, K, left, outliers.values, outliers.weights)
    return replace(found, cost=left**2 * measure.cost, left=left, outliers=outliers)


def _recover_beside_reconstructed(
    problem: Problem, bulk: Problem, K: int, rng: np.random.Generator, threads: int
) -> Recovered:
    """Recover a measure of the bulk, and reconstruct the outliers that it lacks."""
    measure = recover_measure(bulk, K, make_prior(bulk, None), None, rng, threads)
    measure = measure.within(*box_in_sight(bulk, measure.points))
    outliers, shares = reconstruct_outliers(problem, bulk, measure.points)
    _log.info("%d outliers are reconstructed, with %.2g of the weight", len(outliers), shares.sum())
    groups = reconstruct_outliers(problem, bulk, measure.points, in_groups=True)
    found = _beside(measure, K, 1.0, outliers, shares)
    return replace(found, reconstructed=((outliers, shares), groups))


def _beside(
    measure: Measure, K: int, weight: float, outliers: FloatArray, shares: FloatArray
) -> Recovered:
    """A measure of this weight, with outliers beside it."""

    def join(points: FloatArray, weights: FloatArray) -> Weighted:
        scaled = weight * weights / weights.sum()
        return np.vstack([points, outliers]), np.concatenate([scaled, shares])

    return Recovered(
        Branch.ENSEMBLE,
        K,
        few=join(measure.means, measure.shares),
        many=join(measure.points, measure.weights),
        gaussians=measure.gaussians.beside(outliers, shares, weight),
        cost=measure.cost,
        members=measure.members,
    )
