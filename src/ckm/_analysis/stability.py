"""How stable centroids are: what share of the rows stays in its cluster if the measure is another
one that the sketch allows.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from ckm._decoding.recovered import Recovered, Weighted
from ckm._kmeans.init import default_trials, kmeans_plus_plus
from ckm._kmeans.lloyd import step_to_means
from ckm._kmeans.points import WeightedPoints
from ckm._util.arrays import FloatArray, LabelArray

# Other measures, and points of each.
_MEASURES = 2
_POINTS = 400
# Rows that a measure of cells is resampled to: with fewer, small clusters are missed by chance.
_RESAMPLED_ROWS = 1000
# Steps of k-means on another measure, and how much longer than to the means they are: stability is
# then within 0.006 of that after as many steps as it takes, on average over K (ten plain steps:
# 0.005, in up to twice the time).
_STEPS = 5
_OVERSTEP = 1.5


def measure_stability(
    recovered: Recovered, centroids: list[FloatArray], rng: np.random.Generator
) -> FloatArray:
    """The mean share of the weight that stays in its cluster, for each of several sets of centroids
    (K, n); one where nothing moves.

    Clusters of another measure, found from a start of their own, are matched with those of the
    centroids so that most of the weight agrees.
    """
    judged = _points(_some(recovered.few))
    others = [_points(other) for other in _other_measures(recovered, rng)]
    # The first K of more seeds are seeds for K clusters.
    most = min(max(map(len, centroids)), *map(len, others))
    seeds = [kmeans_plus_plus(other, most, rng, default_trials(most)) for other in others]
    found = []
    for C in centroids:
        K = len(C)
        if K == 1 or min(len(judged), *map(len, others)) <= K:
            found.append(1.0)
            continue
        own = judged.nearest(C)[0]
        shares = []
        for other, start in zip(others, seeds, strict=True):
            moved = step_to_means(other, start[:K], _STEPS, _OVERSTEP)
            shares.append(_agreement(own, judged.nearest(moved)[0], judged.weights, K))
        found.append(float(np.mean(shares)))
    return np.array(found)


def _agreement(a: LabelArray, b: LabelArray, weights: FloatArray, K: int) -> float:
    table = np.bincount(a * K + b, weights, minlength=K * K).reshape(K, K)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / weights.sum())


def _other_measures(recovered: Recovered, rng: np.random.Generator) -> list[Weighted]:
    """Members of the ensemble; else the measure with its weights drawn anew."""
    if len(recovered.members) >= _MEASURES:
        chosen = rng.choice(len(recovered.members), _MEASURES, replace=False)
        return [_some((recovered.members[i], np.ones(len(recovered.members[i])))) for i in chosen]
    points, weights = _some(recovered.few if recovered.cells is not None else recovered.many)
    shares = weights / weights.sum()
    drawn = [rng.multinomial(_RESAMPLED_ROWS, shares) for _ in range(_MEASURES)]
    return [(points[counts > 0], counts[counts > 0].astype(np.float64)) for counts in drawn]


def _some(weighted: Weighted) -> Weighted:
    points, weights = weighted
    every = max(1, len(points) // _POINTS)
    return points[::every], weights[::every]


def _points(weighted: Weighted) -> WeightedPoints:
    points, weights = weighted
    return WeightedPoints(np.ascontiguousarray(points, np.float64), np.asarray(weights, np.float64))
