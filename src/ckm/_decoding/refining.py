"""Refine centroids that were placed on cells, by more points that are drawn from these.

How depends on the number of clusters. Few may rest in a local minimum that only the first draw has,
and k-means on a large draw takes no time. Dozens are good already: the means of many draws leave
nothing to chance. Hundreds are still on their way.
"""

from collections.abc import Callable

import numpy as np

from ckm._decoding.cells import CellMeasure
from ckm._decoding.placing import Placement
from ckm._decoding.problem import Problem
from ckm._decoding.recovered import Recovered, Weighted
from ckm._decoding.recovery import joined
from ckm._kmeans.lloyd import TOLERANCE, lloyd
from ckm._kmeans.points import points_on
from ckm._util.arrays import FloatArray

# About so many points of the cells, with known outliers beside them.
Draw = Callable[[int], Weighted]


def refine_on_cells(
    problem: Problem,
    recovered: Recovered,
    cells: CellMeasure,
    found: Placement,
    rng: np.random.Generator,
) -> Placement:
    """Centroids on the measure of the cells, and on known outliers, by more points of it."""
    settings = problem.settings
    draw = cells.draw_within if settings.draws_within_borders else cells.draw
    refine = _average_draws
    even = 0.0
    if len(found[0]) <= settings.few_clusters:
        refine = _refine_few
        even = settings.even_points
    elif len(found[0]) >= settings.many_clusters:
        refine = _refine_many
    C, shares = refine(
        problem, found[0], lambda count: joined(*draw(rng, count, even), recovered.outliers)
    )
    return C, shares, found[2]


def _refine_few(problem: Problem, C: FloatArray, draw: Draw) -> Weighted:
    """Where k-means leads on one large draw, until centroids are the means of their points, and
    their shares.
    """
    settings = problem.settings
    wanted = max(
        settings.points_on_cells(len(C)),
        settings.drawn_points_per_cluster * len(C),
        min(settings.drawn_points, int(settings.max_points_per_row * problem.size)),
    )
    return _run(
        problem, C, draw(wanted), settings.placing_iterations, tolerance=settings.few_tolerance
    )


def _average_draws(problem: Problem, C: FloatArray, draw: Draw) -> Weighted:
    """Centroids at the means of many drawn points, which need not be in memory together, and their
    shares.

    Centroids that are the means of a few hundred points are off by chance, and fit these points
    better than others. Each draw moves them to the means of all draws so far.
    """
    settings = problem.settings
    count = settings.points_on_cells(len(C))
    wanted = max(settings.drawn_points, settings.drawn_points_per_cluster * len(C))
    sums = np.zeros(C.shape)
    mass = np.zeros(len(C))
    for _ in range(max(1, wanted // count - 1)):
        points, weights = draw(count)
        own_sums, own_mass = points_on(problem.device, points, weights).sums(C)
        sums += own_sums
        mass += own_mass
        has_points = mass > 0
        C = np.where(has_points[:, None], sums / np.where(has_points, mass, 1.0)[:, None], C)
    return C, mass / mass.sum()


def _refine_many(problem: Problem, C: FloatArray, draw: Draw) -> Weighted:
    """Where a number of steps with momentum lead on one large draw, and their shares."""
    settings = problem.settings
    K, n = C.shape
    wanted = min(settings.many_drawn_points_per_cluster * K, settings.max_drawn_numbers // n)
    drawn = draw(max(wanted, settings.points_on_cells(K)))
    return _run(problem, C, drawn, settings.many_steps, momentum=settings.many_momentum)


def _run(
    problem: Problem,
    C: FloatArray,
    drawn: Weighted,
    steps: int,
    *,
    tolerance: float = TOLERANCE,
    momentum: float = 0.0,
) -> Weighted:
    """Where so many steps of k-means on drawn points lead, and the shares of the centroids."""
    points, weights = drawn
    run = lloyd(
        points_on(problem.device, np.ascontiguousarray(points), weights),
        C,
        tolerance=tolerance,
        max_iterations=steps,
        empty="stay",
        momentum=momentum,
    )
    shares = np.bincount(run.labels, weights, minlength=len(C)) / weights.sum()
    return run.centroids, shares
