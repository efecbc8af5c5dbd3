"""Place K centroids on a measure that a decoder recovered: on few points first, then on many."""

from functools import partial
from operator import itemgetter

import numpy as np

from ckm._decoding.problem import Problem
from ckm._decoding.recovered import Weighted
from ckm._decoding.settings import Settings
from ckm._kmeans.breathing import place
from ckm._util.arrays import FloatArray

# Centroids, their shares, and the mean squared distance to the nearest: what `place` returns.
Placement = tuple[FloatArray, FloatArray, float]


def place_points(
    problem: Problem,
    points: FloatArray,
    weights: FloatArray | None,
    K: int,
    rng: np.random.Generator,
    n_init: int = 6,
    start: FloatArray | None = None,
    *,
    search: bool = True,
    on_cpu: bool = False,
) -> Placement:
    """What `place` finds on the problem's device, by as many iterations as its settings allow."""
    return place(
        points,
        weights,
        K,
        rng,
        n_init,
        start,
        search=search,
        device=None if on_cpu else problem.device,
        max_iterations=problem.settings.placing_iterations,
    )


def place_on_rows(problem: Problem, rows: Weighted, K: int, rng: np.random.Generator) -> Placement:
    """The same on all rows of the data. Few distinct ones have many local minima, and runs on them
    are fast.
    """
    settings = problem.settings
    is_few = len(rows[0]) < settings.few_means_per_cluster * K
    return place_points(problem, *rows, K, rng, 2 * settings.runs_on_rows(K) if is_few else 6)


def place_from_few(
    problem: Problem, few: Weighted, many: Weighted, K: int, rng: np.random.Generator
) -> Placement:
    """Centroids, their shares and the mean squared distance, on weighted points: the few show where
    centroids belong, the many refine and compare them.
    """
    settings = problem.settings
    is_small = len(few[0]) * K < settings.min_gpu_placing_pairs
    runs = list[Placement]()
    while len(runs) < settings.placing_runs(K) and not _have_agreed(runs, K, settings):
        runs.append(place_points(problem, *few, K, rng, n_init=2, on_cpu=is_small))
    starts = _best_of(runs, settings.refinements(K, len(few[0])))
    refine = partial(place_points, problem, *many, K, rng, 0, search=False)
    return min((refine(C) for C in starts), key=itemgetter(2))


def place_on_atoms(
    problem: Problem, few: Weighted, many: Weighted, K: int, rng: np.random.Generator
) -> Placement:
    """The same on the centres of atoms and on points drawn from them. Centres do not show how wide
    atoms are, so k-means on some of the points shows whether centroids belong elsewhere.
    """
    found = place_from_few(problem, few, many, K, rng)
    points, weights = many
    every = problem.settings.point_thinning
    moved = place_points(problem, points[::every], weights[::every], K, rng, 0, found[0])[0]
    refined = place_points(problem, *many, K, rng, 0, moved, search=False)
    return min(found, refined, key=itemgetter(2))


def place_from_start(
    problem: Problem,
    many: Weighted,
    start: FloatArray,
    found: Placement,
    rng: np.random.Generator,
) -> Placement:
    """Where k-means leads from `start` (K, n); but `found`, if that is clearly better."""
    started = place_points(problem, *many, len(start), rng, 0, start, search=False)
    limit = (1 + problem.settings.start_preference) * found[2]
    return started if started[2] <= limit else found


def _best_of(runs: list[Placement], count: int) -> list[FloatArray]:
    """The centroids of the best runs, of those that ended at the same place only one."""
    best = list[Placement]()
    for run in sorted(runs, key=itemgetter(2)):
        if len(best) < count and not (best and np.isclose(run[2], best[-1][2], rtol=1e-6, atol=0)):
            best.append(run)
    return [C for C, _, _ in best]


def _have_agreed(runs: list[Placement], K: int, settings: Settings) -> bool:
    """Whether most of the usual number of runs are as good as the best of them, so that no more
    are needed where there may be more.
    """
    if settings.several_clusters > K or len(runs) != settings.usual_placing_runs:
        return False
    errors = [error for _, _, error in runs]
    return bool(np.median(errors) <= (1 + settings.agreeing_error) * min(errors))
