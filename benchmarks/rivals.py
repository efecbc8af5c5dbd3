"""One-pass summaries of rows that are not sketches, at equal bytes, and how centroids are placed on
them: as our decoder does on cells.

Each takes rows X (N, n) and a budget in bytes. A stored row takes 4 n bytes and its weight 4. A
feature (count, sum and sum of squares of some rows, around a reference point) takes what a cell
takes: 8 (n + 2) bytes, and 4 n for the point. Where a rival would need a second pass (a mean,
seeds) it gets it for nothing.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import ckm
from benchmarks.clustering_features import bico_features
from benchmarks.coreset_tree import reduce_to_representatives
from benchmarks.mix import feature_bytes
from ckm._decoding.cells import CellMeasure
from ckm._decoding.coordinates import Coordinates
from ckm._decoding.settings import DEFAULT
from ckm._kmeans.breathing import place
from ckm._kmeans.init import default_trials, kmeans_plus_plus
from ckm._kmeans.lloyd import lloyd
from ckm._kmeans.points import WeightedPoints

# Rows of a block of the tree of means, for each mean: fewer levels, so fewer roundings.
BLOCK_ROWS = 8
# Lloyd iterations of each reduction in that tree, as many as anchors get.
TREE_ITERATIONS = 5


class Summary(NamedTuple):
    """Points (s, n) with weights (s,), each of which stands for rows.

    `variances` (s,) are those of its rows, along every axis; zero for points that are rows.
    """

    points: np.ndarray
    weights: np.ndarray
    variances: np.ndarray

    @classmethod
    def of_points(cls, points: np.ndarray, weights: np.ndarray) -> "Summary":
        """Return a summary that holds no variances."""
        return cls(points, weights, np.zeros(len(points)))


def row_bytes(n: int, *, weighted: bool) -> int:
    """Return the bytes of a stored row in float32, with or without a weight."""
    return 4 * n + 4 * weighted


def uniform_sample(X: np.ndarray, budget: int, rng: np.random.Generator) -> Summary:
    """Return rows drawn without replacement."""
    count = min(budget // row_bytes(X.shape[1], weighted=False), len(X))
    rows = _stored(X[rng.choice(len(X), count, replace=False)])
    return Summary.of_points(rows, np.full(count, len(X) / count))


def lightweight_coreset(X: np.ndarray, budget: int, rng: np.random.Generator) -> Summary:
    """Return rows drawn in proportion to 1 + |x - mean|^2 / variance (Bachem, Lucic and Krause,
    2018).
    """
    squares = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    return _draw_by_importance(X, 1 + squares / squares.mean(), budget, rng)


def sensitivity_coreset(
    X: np.ndarray, n_clusters: int, budget: int, rng: np.random.Generator
) -> Summary:
    """Return rows drawn in proportion to a bound on their share of any clustering's SSE, from K
    seeds of k-means++ (Bachem, Lucic and Krause, 2017).
    """
    points = WeightedPoints(X, np.ones(len(X)))
    seeds = kmeans_plus_plus(points, n_clusters, rng, default_trials(n_clusters))
    labels, squares = points.nearest(seeds)
    counts = np.bincount(labels, minlength=n_clusters)
    costs = np.bincount(labels, squares, minlength=n_clusters) / np.maximum(counts, 1)
    alpha = 16 * (np.log(n_clusters) + 2)
    relative = alpha * (squares + 2 * costs[labels]) / squares.mean()
    return _draw_by_importance(X, relative + 4 * len(X) / counts[labels], budget, rng)


def _draw_by_importance(
    X: np.ndarray, importance: np.ndarray, budget: int, rng: np.random.Generator
) -> Summary:
    """Return rows drawn with replacement, weighted so that every sum over rows is unbiased."""
    count = budget // row_bytes(X.shape[1], weighted=True)
    if count >= len(X):
        return Summary.of_points(_stored(X), np.ones(len(X)))
    shares = importance / importance.sum()
    drawn, repeats = np.unique(rng.choice(len(X), count, p=shares), return_counts=True)
    return Summary.of_points(_stored(X[drawn]), repeats / (count * shares[drawn]))


Reduce = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def stream_kmeans(X: np.ndarray, budget: int, rng: np.random.Generator) -> Summary:
    """Return the representatives of StreamKM++ (Ackermann et al., 2012): buckets of rows, merged in
    pairs and reduced by coreset trees.
    """
    count = budget // row_bytes(X.shape[1], weighted=True)

    def reduce(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen, masses = reduce_to_representatives(points, weights, count, rng)
        return points[chosen], masses

    return Summary.of_points(*_merge_and_reduce(_stored(X), count, count, reduce))


def tree_of_means(X: np.ndarray, budget: int, rng: np.random.Generator) -> Summary:
    """Return means of a merge-and-reduce tree: blocks of rows, each reduced to weighted means by
    k-means.
    """
    count = budget // row_bytes(X.shape[1], weighted=True)

    def reduce(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen, _ = reduce_to_representatives(points, weights, count, rng)
        found = lloyd(
            WeightedPoints(np.ascontiguousarray(points), weights),
            points[chosen],
            tolerance=None,
            max_iterations=TREE_ITERATIONS,
            empty="stay",
        )
        masses = np.bincount(found.labels, weights, minlength=len(chosen))
        sums = np.zeros_like(found.centroids)
        np.add.at(sums, found.labels, weights[:, None] * points)
        has_rows = masses > 0
        return _stored(sums[has_rows] / masses[has_rows, None]), masses[has_rows]

    return Summary.of_points(*_merge_and_reduce(X, BLOCK_ROWS * count, count, reduce))


def _merge_and_reduce(
    X: np.ndarray, block: int, count: int, reduce: Reduce
) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `count` weighted points: as in a binary counter, two summaries of one level
    become one of the next.
    """
    levels: list[tuple[np.ndarray, np.ndarray] | None] = []

    def reduced(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        points = np.vstack([part[0] for part in parts])
        weights = np.concatenate([part[1] for part in parts])
        return (points, weights) if len(points) <= count else reduce(points, weights)

    for start in range(0, len(X), block):
        rows = X[start : start + block]
        carried = reduced([(rows, np.ones(len(rows)))])
        level = 0
        while level < len(levels) and (other := levels[level]) is not None:
            carried = reduced([other, carried])
            levels[level] = None
            level += 1
        levels[level : level + 1] = [carried]
    return reduced([part for part in levels if part is not None])


def bico(X: np.ndarray, budget: int) -> Summary:
    """Return the features of BICO (Fichtenberger et al., 2013)."""
    count = budget // feature_bytes(X.shape[1])
    masses, means, squares = bico_features(X, count)
    return Summary(means, masses, squares / (masses * X.shape[1]))


def cells_alone(X: np.ndarray, budget: int, seed: int) -> Summary:
    """Return our cells without frequencies: count, mean and variance of the rows nearest to each
    anchor.
    """
    count = budget // feature_bytes(X.shape[1])
    sketch = ckm.sketch(X, sketch_size=1, cells=count, projection=None, random_state=seed, n_jobs=1)
    masses, means, variances = sketch.cells.statistics()
    return Summary(means + sketch.frequencies.origin, masses, variances / X.shape[1])


def place_on(summary: Summary, n_clusters: int, seed: int) -> np.ndarray:
    """Return K centroids placed on a summary, as our decoder places them on cells."""
    rng = np.random.default_rng(seed)
    runs = [
        place(summary.points, summary.weights, n_clusters, rng, n_init=2)
        for _ in range(DEFAULT.placing_runs(n_clusters))
    ]
    if summary.variances.any():
        count = max(DEFAULT.placing_points, DEFAULT.placing_points_per_cluster * n_clusters)
        points, weights = _measure(summary).draw(rng, count)
        runs = [
            place(points, weights, n_clusters, rng, 0, start, search=False) for start, _, _ in runs
        ]
    return min(runs, key=lambda run: run[2])[0]


def _measure(summary: Summary) -> CellMeasure:
    n = summary.points.shape[1]
    return CellMeasure(
        shares=summary.weights / summary.weights.sum(),
        means=summary.points,
        variances=summary.variances,
        anchors=summary.points,
        rows=summary.weights,
        expected_variance=0.0,
        coordinates=Coordinates(np.zeros(n), np.ones(n), np.ones(n)),
        caps=np.full(n, np.inf),
    )


def _stored(rows: np.ndarray) -> np.ndarray:
    """Return rows as they are stored, in float32."""
    return rows.astype(np.float32).astype(np.float64)
