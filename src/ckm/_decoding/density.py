"""The decoder "density": recover a measure that explains the sketch, then place K centroids on it.

`recovery.py` has the branches of the first step. The second is k-means on points of that measure:
all rows, points drawn from cells, from atoms, or from the members of an ensemble. One cluster has
its centroid at the mean, and K separate atoms have theirs at their centres.
"""

import numpy as np

from ckm._decoding.candidate import Candidate
from ckm._decoding.cells import CellMeasure
from ckm._decoding.doubt import Doubt, compare_measure, compare_members
from ckm._decoding.mixture import Mixture
from ckm._decoding.placing import (
    Placement,
    place_from_few,
    place_from_start,
    place_on_atoms,
    place_on_rows,
    place_points,
)
from ckm._decoding.problem import Problem
from ckm._decoding.recovered import FROM_FREQUENCIES, Branch, Recovered
from ckm._decoding.recovery import joined, recover
from ckm._decoding.refining import refine_on_cells
from ckm._decoding.sample import SampledRows
from ckm._decoding.starts import Init, require_init
from ckm._decoding.unresolved import settle_unresolved
from ckm._kmeans.assign import Centroids
from ckm._sources.arrays import ArraySource
from ckm._util.arrays import FloatArray
from ckm._util.stages import enter_stage


def by_density(
    problem: Problem,
    K: int,
    init: Init,
    rows: SampledRows | None,
    rng: np.random.Generator,
    threads: int,
) -> Candidate:
    """Recover a measure that explains the sketch, then place K centroids on it so that its SSE is
    small.
    """
    start = init if isinstance(init, np.ndarray) else None
    if not isinstance(init, np.ndarray):
        require_init(init, rows is not None)
        rows = None if init == "range" else rows
    recovered = recover(problem, K, rows, rng, threads)
    return place_centroids(problem, recovered, K, rng, start)


def place_centroids(
    problem: Problem,
    recovered: Recovered,
    K: int,
    rng: np.random.Generator,
    start: FloatArray | None = None,
) -> Candidate:
    """K centroids on a measure that was recovered for K clusters or more. Those that k-means finds
    from `start` (K, n) are taken, unless a search finds better ones.
    """
    enter_stage("placing centroids")
    if recovered.branch is not Branch.ROWS and K == 1:
        found = (problem.mean[None], np.ones(1), 0.0)
        return judge_placed(problem, recovered, found, rng)
    if recovered.branch is Branch.ROWS:
        found = place_on_rows(problem, recovered.many, K, rng)
    elif recovered.cells is not None:
        found = place_from_few(problem, recovered.few, recovered.many, K, rng)
    elif recovered.atoms is not None and recovered.K == K:
        found = _place_at_centres(problem, recovered, recovered.atoms, rng)
    else:
        found = place_on_atoms(problem, recovered.few, recovered.many, K, rng)
    if start is not None:
        found = place_from_start(problem, recovered.many, start, found, rng)
    if recovered.branch in FROM_FREQUENCIES:
        found = (settle_unresolved(problem, *found[:2], recovered.rows), *found[1:])
    if recovered.cells is not None:
        found = refine_on_cells(problem, recovered, recovered.cells, found, rng)
    return judge_placed(problem, recovered, found, rng)


def judge_placed(
    problem: Problem, recovered: Recovered, found: Placement, rng: np.random.Generator
) -> Candidate:
    """Centroids that were placed on a measure, with what is known of them and against them."""
    enter_stage("judging centroids")
    C, alpha, mean_square = found
    if recovered.branch is Branch.ROWS:
        judged = Candidate(C, alpha, recovered.cost, mean_square, known_weights=alpha)
    elif len(C) == 1:
        judged = _take_mean(problem)
    elif recovered.cells is not None:
        judged = _judge_on_cells(problem, recovered, recovered.cells, found, rng)
    else:
        judged = _judge_on_atoms(problem, recovered, found)
    return judged._replace(measure=recovered.gaussians)


def _judge_on_atoms(problem: Problem, recovered: Recovered, found: Placement) -> Candidate:
    """Centroids that were placed on atoms, with what members and known outliers say of them."""
    C, alpha, mean_square = found
    doubt = Doubt()
    if recovered.members:
        # One unit of the members' weight.
        own = mean_square / recovered.left
        doubt = compare_members(recovered.members, C, own, problem.settings, problem.device)
    outliers = recovered.outliers
    return Candidate(
        C,
        alpha,
        recovered.cost,
        mean_square,
        is_doubtful=bool(recovered.members),
        known_weights=None if outliers is None else _weights_of_known(C, outliers),
        doubt=doubt,
        has_stale_cells=recovered.has_stale_cells,
    )


def _take_mean(problem: Problem) -> Candidate:
    """The mean, which is the one centroid of least SSE."""
    C = problem.mean[None]
    alpha = np.ones(1)
    width = problem.covariance.diagonal[None]
    cost = problem.objective.gaussian_cost(C, alpha, width)[0]
    return Candidate(C, alpha, cost, known_weights=np.ones(1))


def _place_at_centres(
    problem: Problem, recovered: Recovered, atoms: Mixture, rng: np.random.Generator
) -> Placement:
    """Centroids at the centres of K separate atoms, up to a last k-means on points drawn from
    them.
    """
    settings = problem.settings
    K = recovered.K
    points = recovered.many[0]
    C = atoms.C
    if atoms.may_split(settings.clear_split_ratio):
        some = points[:: settings.point_thinning]
        C = place_points(problem, some, None, K, rng, 0, C)[0]
    return place_points(problem, points, None, K, rng, 0, C, search=False)


def _judge_on_cells(
    problem: Problem,
    recovered: Recovered,
    cells: CellMeasure,
    found: Placement,
    rng: np.random.Generator,
) -> Candidate:
    """Centroids that were placed on cells, with what other rows in these cells would say of
    them.
    """
    settings = problem.settings
    outliers = recovered.outliers
    C, alpha, mean_square = found
    known_weights = None
    beyond = cells.variance_beyond(settings.wide_cell * cells.variance_within)
    if beyond <= settings.max_wide_share * mean_square:
        known_weights = _weights_of_known(C, outliers)
    return Candidate(
        C,
        alpha,
        recovered.cost,
        mean_square,
        known_weights=known_weights,
        is_counted=True,
        doubt=_doubt_of_cells(problem, cells, C, outliers, rng),
        has_stale_cells=recovered.has_stale_cells,
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
    points, weights = joined(*cells.draw_lines(rng, count), outliers)
    return compare_measure(points, weights, C, settings)


def _weights_of_known(C: FloatArray, outliers: SampledRows | None) -> FloatArray:
    """The weight of each centroid that is due to known outliers."""
    if outliers is None:
        return np.zeros(len(C))
    labels = Centroids(C).label(ArraySource(outliers.values), n_jobs=1)
    return np.bincount(labels, outliers.weights, minlength=len(C)).astype(np.float64)
