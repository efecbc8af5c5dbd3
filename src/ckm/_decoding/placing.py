"""Place K centroids on a measure that a decoder recovered: on few points first, then on many."""

from functools import partial
from operator import itemgetter

import numpy as np

from ckm._decoding.problem import Problem
from ckm._kmeans.breathing import place
from ckm._util.arrays import FloatArray

# Points (p, n) and their weights (p,).
Weighted = tuple[FloatArray, FloatArray]
# Centroids, their shares, and the mean squared distance to the nearest: what `place` returns.
Placement = tuple[FloatArray, FloatArray, float]


def place_from_few(
    problem: Problem, few: Weighted, many: Weighted, K: int, rng: np.random.Generator
) -> Placement:
    """Centroids, their shares and the mean squared distance, on weighted points: the few show where
    centroids belong, the many refine and compare them.
    """
    settings = problem.settings
    is_small = len(few[0]) * K < settings.min_gpu_placing_pairs
    device = None if is_small else problem.device
    runs = [place(*few, K, rng, n_init=2, device=device) for _ in range(settings.placing_runs(K))]
    starts = _best_of(runs, settings.refinements(K, len(few[0])))
    refine = partial(place, *many, K, rng, 0, search=False, device=problem.device)
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
    moved = place(points[::every], weights[::every], K, rng, 0, found[0], device=problem.device)[0]
    refined = place(*many, K, rng, 0, moved, search=False, device=problem.device)
    return min(found, refined, key=itemgetter(2))


def _best_of(runs: list[Placement], count: int) -> list[FloatArray]:
    """The centroids of the best runs, of those that ended at the same place only one."""
    best = list[Placement]()
    for run in sorted(runs, key=itemgetter(2)):
        if len(best) < count and not (best and np.isclose(run[2], best[-1][2], rtol=1e-6, atol=0)):
            best.append(run)
    return [C for C, _, _ in best]
