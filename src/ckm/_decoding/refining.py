"""Refine centroids that were placed on cells, by more points that are drawn from these.

How depends on the number of clusters. Few may rest in a local minimum that only the first draw has,
and k-means on a large draw takes no time. Dozens are good already: the means of many draws leave
nothing to chance. Hundreds are still on their way.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from ckm._decoding.cells import CellMeasure
from ckm._decoding.placing import Placement
from ckm._decoding.problem import Problem
from ckm._decoding.recovered import Recovered, Weighted
from ckm._decoding.recovery import joined
from ckm._kmeans.lloyd import TOLERANCE, lloyd
from ckm._kmeans.points import points_on
from ckm._util.arrays import FloatArray

# About so many points of the cells, with known outliers beside them. Cells share them like their
# weights, or like what they need (c,).
Draw = Callable[[int, FloatArray | None], Weighted]


def refine_on_cells(
    problem: Problem,
    recovered: Recovered,
    cells: CellMeasure,
    found: Placement,
    rng: np.random.Generator,
) -> Placement:
    """Centroids on the measure of the cells, and on known outliers, by more points of it."""
    settings = problem.settings
    draw_points = cells.draw_within if settings.draws_within_borders else cells.draw

    def draw(count: int, needs: FloatArray | None = None) -> Weighted:
        return joined(*draw_points(rng, count, needs), recovered.outliers)

    C, shares, mean_square = found
    if len(C) <= settings.few_clusters:
        C, shares = _refine_few(problem, cells, C, shares, draw)
    elif len(C) >= settings.many_clusters:
        C, shares = _refine_many(problem, C, draw)
    else:
        C, shares = _average_draws(problem, C, draw)
    return C, shares, mean_square


def _refine_few(
    problem: Problem, cells: CellMeasure, C: FloatArray, shares: FloatArray, draw: Draw
) -> Weighted:
    """Where k-means leads on large draws, until centroids are the means of their points, and their
    shares.

    A cell that no border cuts counts with its exact mean, whatever its points. So most points are
    drawn where borders are, which the draw before shows. Few points are one draw.
    """
    settings = problem.settings
    least = settings.points_on_cells(len(C))
    wanted = max(
        least,
        settings.drawn_points_per_cluster * len(C),
        min(settings.drawn_points, int(settings.max_points_per_row * problem.size)),
    )
    draws = min(settings.few_draws, wanted // least)
    even = settings.even_points
    for _ in range(draws):
        doubts = doubt_of_sides(cells, C, shares)
        total = doubts.sum()
        # Where no border cuts a cell, the even part of the points will do.
        needs = even / len(doubts) + (1 - even) * doubts / (total if total > 0 else 1.0)
        drawn = draw(wanted // draws, needs)
        steps = settings.placing_iterations
        C, shares = _run(problem, C, drawn, steps, tolerance=settings.few_tolerance)
    return C, shares


def doubt_of_sides(cells: CellMeasure, C: FloatArray, shares: FloatArray) -> FloatArray:
    """How much one point drawn from each cell (c,) may change a centroid (K, n), of clusters with
    these shares: the standard deviation of its weight beyond a border, s sqrt(p (1 - p)), relative
    to the weight of the lighter cluster there.

    Of the Gaussian of a cell with the share s, the part p is beyond the border.
    """
    squares = ((cells.means[:, None] - C) ** 2).sum(axis=2)
    own = np.argmin(squares, axis=1)
    ways = C - C[own][:, None]
    deviations = np.sqrt(np.einsum("cn,ckn->ck", cells.axis_variances, ways**2))
    gaps = (squares - squares.min(axis=1)[:, None]) / 2
    is_open = deviations > 0
    beyond = np.where(is_open, ndtr(-gaps / np.where(is_open, deviations, 1.0)), 0.0)
    lighter = np.minimum(shares, shares[own][:, None])
    moved = cells.shares[:, None] * np.sqrt(beyond * (1 - beyond))
    return np.asarray((moved / np.where(lighter > 0, lighter, np.inf)).max(axis=1))


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
        points, weights = draw(count, None)
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
    drawn = draw(max(wanted, settings.points_on_cells(K)), None)
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
