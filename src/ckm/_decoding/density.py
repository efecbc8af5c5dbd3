"""The decoder "density": recover a measure that explains the sketch, then place K centroids on it.

The branches, in order:

- all rows of the data are in the pool: k-means on them;
- one cluster: the mean;
- the sketch has cells that explain it, or fewer frequencies than unknowns beside them: k-means on
  points drawn from the cells, and on outliers that are known from the pool;
- outliers are known from the pool: they are taken out of the sketch, the ensemble recovers the
  measure of the other rows;
- outliers are below the sketch's detection limit: the ensemble recovers the measure of the bulk,
  the outliers are reconstructed from bounds and second moments;
- K atoms of one width explain the sketch and hardly overlap: their centres;
- else: the ensemble.
"""

import logging

import numpy as np

from ckm._decoding.candidate import Candidate
from ckm._decoding.cells import CellMeasure
from ckm._decoding.doubt import Doubt, compare_measure, compare_members
from ckm._decoding.ensemble import Measure, recover_measure
from ckm._decoding.outliers import reconstruct_outliers
from ckm._decoding.placing import Weighted, place_from_few, place_on_atoms
from ckm._decoding.problem import Problem
from ckm._decoding.sample import SampledRows
from ckm._decoding.search import Prior, initialise_mixture, make_prior, recover_mixture
from ckm._decoding.starts import require_init
from ckm._kmeans.assign import Centroids
from ckm._kmeans.breathing import place
from ckm._kmeans.lloyd import lloyd
from ckm._kmeans.points import points_on
from ckm._sources.arrays import ArraySource
from ckm._util.arrays import BoolArray, FloatArray

_log = logging.getLogger(__name__)


def by_density(
    problem: Problem,
    K: int,
    init: str,
    rows: SampledRows | None,
    rng: np.random.Generator,
    threads: int,
) -> Candidate:
    """Recover a measure that explains the sketch, then place K centroids on it so that its SSE is
    small.
    """
    require_init(init, rows is not None)
    if init == "range":
        rows = None
    if rows is not None and rows.is_complete:
        return _cluster_rows(problem, K, rows, rng)
    if K == 1:
        return _take_mean(problem)
    if problem.cells is None:
        return _decode_sketch(problem, K, rows, rng, threads)
    found = _decode_cells(problem, problem.cells, K, rows, rng)
    if found is not None:
        return found
    return _decode_sketch(problem, K, rows, rng, threads)._replace(has_stale_cells=True)


def _decode_cells(
    problem: Problem,
    cells: CellMeasure,
    K: int,
    rows: SampledRows | None,
    rng: np.random.Generator,
) -> Candidate | None:
    """Centroids placed on the measure of the cells, if the sketch certifies it, or if it has too
    few frequencies to do without.
    """
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
    means = _joined(cells.means, cells.shares, outliers)
    count = settings.points_on_cells(K)
    points = _joined(*cells.draw(rng, count), outliers)
    C, alpha, mean_square = place_from_few(problem, means, points, K, rng)
    refine = _refine_on_draw if settings.many_clusters <= K else _average_draws
    C = refine(problem, cells, outliers, C, rng, count)
    known_weights = None
    beyond = cells.variance_beyond(settings.wide_cell * cells.variance_within)
    if beyond <= settings.max_wide_share * mean_square:
        known_weights = _weights_of_known(C, outliers)
    return Candidate(
        C,
        alpha,
        cost,
        mean_square,
        known_weights=known_weights,
        is_counted=True,
        doubt=_doubt_of_cells(problem, cells, C, outliers, rng),
        has_stale_cells=not is_certified,
    )


def _doubt_of_cells(
    problem: Problem,
    cells: CellMeasure,
    C: FloatArray,
    outliers: SampledRows | None,
    rng: np.random.Generator,
) -> Doubt:
    """What centroids may gain where the rows of a cell lie along a line: nothing where cells are
    small beside clusters.
    """
    settings = problem.settings
    count = max(settings.regret_points, settings.regret_points_per_cluster * len(C))
    points, weights = _joined(*cells.draw_lines(rng, count), outliers)
    return compare_measure(points, weights, C, settings)


def _average_draws(
    problem: Problem,
    cells: CellMeasure,
    outliers: SampledRows | None,
    C: FloatArray,
    rng: np.random.Generator,
    count: int,
) -> FloatArray:
    """Centroids at the means of many drawn points, which need not be in memory together.

    Centroids that are the means of a few hundred points are off by chance, and fit these points
    better than others. Each draw moves them to the means of all draws so far.
    """
    wanted = problem.settings.drawn_points_per_cluster * len(C)
    sums = np.zeros(C.shape)
    mass = np.zeros(len(C))
    for _ in range(wanted // count - 1):
        points, weights = _joined(*cells.draw(rng, count), outliers)
        own_sums, own_mass = points_on(problem.device, points, weights).sums(C)
        sums += own_sums
        mass += own_mass
        has_points = mass > 0
        C = np.where(has_points[:, None], sums / np.where(has_points, mass, 1.0)[:, None], C)
    return C


def _refine_on_draw(
    problem: Problem,
    cells: CellMeasure,
    outliers: SampledRows | None,
    C: FloatArray,
    rng: np.random.Generator,
    count: int,
) -> FloatArray:
    """The same for many clusters, whose centroids are still on their way: some steps of Lloyd's
    algorithm on a draw as large as all of those.
    """
    settings = problem.settings
    wanted = max(count, settings.drawn_points_per_cluster * len(C))
    points, weights = _joined(*cells.draw(rng, wanted), outliers)
    drawn = points_on(problem.device, np.ascontiguousarray(points), weights)
    return lloyd(drawn, C, max_iterations=settings.many_steps, empty="stay").centroids


def _joined(
    points: FloatArray, weights: FloatArray, outliers: SampledRows | None
) -> tuple[FloatArray, FloatArray]:
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


def _weights_of_known(C: FloatArray, outliers: SampledRows | None) -> FloatArray:
    """The weight of each centroid that is due to known outliers."""
    if outliers is None:
        return np.zeros(len(C))
    labels = Centroids(C).label(ArraySource(outliers.values), n_jobs=1)
    return np.bincount(labels, outliers.weights, minlength=len(C)).astype(np.float64)


def _decode_sketch(
    problem: Problem,
    K: int,
    rows: SampledRows | None,
    rng: np.random.Generator,
    threads: int,
) -> Candidate:
    """Centroids from the sketch, and from sampled rows if there are some."""
    if rows is not None:
        is_known = _find_known_outliers(problem, K, rows)
        if is_known.any():
            return _decode_beside_known(problem, K, rows, is_known, rng, threads)
    has_enough_rows = rows is not None and rows.size >= problem.settings.start_rows_per_cluster * K
    bulk = problem.without_outliers()
    if bulk is not problem and not has_enough_rows:
        return _decode_beside_reconstructed(problem, bulk, K, rng, threads)
    prior = make_prior(bulk, rows if has_enough_rows else None)
    separate = _separate_clusters(bulk, K, prior, rng)
    if separate is not None:
        return separate
    measure = recover_measure(bulk, K, prior, rows, rng, threads)
    few = (measure.means, measure.shares)
    many = (measure.points, measure.weights)
    C, alpha, mean_square = place_on_atoms(problem, few, many, K, rng)
    return _doubtful(bulk, measure, C, alpha, mean_square)


def _doubtful(
    problem: Problem, measure: Measure, C: FloatArray, alpha: FloatArray, mean_square: float
) -> Candidate:
    """Centroids placed on an ensemble, whose members may disagree about them.

    `mean_square` is that of all points, for one unit of the members' weight.
    """
    doubt = compare_members(measure.members, C, mean_square, problem.settings, problem.device)
    return Candidate(C, alpha, measure.cost, mean_square, is_doubtful=True, doubt=doubt)


def _cluster_rows(
    problem: Problem, K: int, rows: SampledRows, rng: np.random.Generator
) -> Candidate:
    """k-means on all rows of the data."""
    C, alpha, variance = place(rows.values, rows.weights, K, rng, device=problem.device)
    cost = problem.objective.cost(rows.values, rows.shares)[0]
    return Candidate(C, alpha, cost, variance, known_weights=alpha)


def _take_mean(problem: Problem) -> Candidate:
    """The mean, which is the one centroid of least SSE."""
    C = problem.mean[None]
    alpha = np.ones(1)
    width = problem.covariance.diagonal[None]
    cost = problem.objective.gaussian_cost(C, alpha, width)[0]
    return Candidate(C, alpha, cost, known_weights=np.ones(1))


def _separate_clusters(
    problem: Problem, K: int, prior: Prior, rng: np.random.Generator
) -> Candidate | None:
    """Centroids at the atoms of a mixture, if K atoms of one width explain the sketch and hardly
    overlap: then nothing is in doubt.
    """
    settings = problem.settings
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
    count = max(settings.mixture_points, settings.mixture_points_per_cluster * K)
    points = np.clip(mixture.draw(rng, count), problem.lower, problem.upper)
    C = mixture.C
    if mixture.may_split(settings.clear_split_ratio):
        some = points[:: settings.point_thinning]
        C, _, _ = place(some, None, K, rng, n_init=0, start=C, device=problem.device)
    C, alpha, mean_square = place(
        points, None, K, rng, n_init=0, start=C, search=False, device=problem.device
    )
    return Candidate(C, alpha, mixture.cost, mean_square)


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


def _decode_beside_known(
    problem: Problem,
    K: int,
    rows: SampledRows,
    is_known: BoolArray,
    rng: np.random.Generator,
    threads: int,
) -> Candidate:
    """Take known outliers out of the sketch, recover a measure of the other rows from what is left,
    and place centroids on both together.

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
    few, many = _beside(measure, left, outliers.values, outliers.weights)
    C, alpha, mean_square = place_on_atoms(problem, few, many, K, rng)
    found = _doubtful(rest, measure, C, alpha, mean_square / left)
    return found._replace(
        cost=left**2 * measure.cost,
        mean_square=mean_square,
        known_weights=_weights_of_known(C, outliers),
    )


def _decode_beside_reconstructed(
    problem: Problem, bulk: Problem, K: int, rng: np.random.Generator, threads: int
) -> Candidate:
    """Recover a measure of the bulk, reconstruct the outliers that it lacks, and place centroids on
    both together.
    """
    measure = recover_measure(bulk, K, make_prior(bulk, None), None, rng, threads)
    outliers, shares = reconstruct_outliers(problem, bulk, measure.points)
    _log.info("%d outliers are reconstructed, with %.2g of the weight", len(outliers), shares.sum())
    few, many = _beside(measure, 1.0, outliers, shares)
    C, alpha, mean_square = place_on_atoms(problem, few, many, K, rng)
    return _doubtful(bulk, measure, C, alpha, mean_square)


def _beside(
    measure: Measure, weight: float, outliers: FloatArray, shares: FloatArray
) -> tuple[Weighted, Weighted]:
    """The few and the many points of a measure of this weight, each with the outliers."""

    def join(points: FloatArray, weights: FloatArray) -> Weighted:
        scaled = weight * weights / weights.sum()
        return np.vstack([points, outliers]), np.concatenate([scaled, shares])

    return join(measure.means, measure.shares), join(measure.points, measure.weights)
