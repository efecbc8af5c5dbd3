"""The methods that quality.py compares, and their runs: one per data set, seed, sketch size and
method.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans

import ckm
from benchmarks.baselines import baseline, pycle_centroids, sse
from benchmarks.data import DEFAULT_RATIO, DataSet, Unavailable
from benchmarks.harness import RESULTS
from benchmarks.mix import mix_sizes
from benchmarks.processes import Outcome, RunLog
from benchmarks.rivals import (
    Summary,
    bico,
    cells_alone,
    lightweight_coreset,
    place_on,
    sensitivity_coreset,
    stream_kmeans,
    tree_of_means,
    uniform_sample,
)

POOL = 1000


@dataclass(frozen=True)
class Case:
    """One data set, one seed, one size of sketch."""

    X: np.ndarray
    K: int
    m: int
    seed: int

    @cached_property
    def sketch(self) -> ckm.Sketch:
        """Return the sketch without a pool."""
        return self._sketch()

    @cached_property
    def paper(self) -> ckm.Sketch:
        """Return the paper's sketch: its law, at the scale of its rule."""
        return self._sketch(distribution="adapted-radius")

    @cached_property
    def pooled(self) -> ckm.Sketch:
        """Return the same sketch with a pool."""
        return self._sketch(pool=POOL)

    @cached_property
    def pool_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of that pool, which do not depend on m, and their weights."""
        sketch = self._sketch(pool=POOL, projection=None)
        return sketch.pool.estimate()[:2]

    @property
    def budget(self) -> int:
        """Return the bytes of m complex numbers, which every summary may take."""
        return 16 * self.m

    @cached_property
    def mixed(self) -> ckm.Sketch:
        """Return the sketch with cells that takes the same bytes."""
        m, cells = mix_sizes(self.budget, self.K, self.X.shape[1])
        # Bytes are those of cells and frequencies in all columns.
        return self._sketch(sketch_size=m, cells=cells, projection=None)

    @cached_property
    def uniform(self) -> Summary:
        """Return rows drawn uniformly."""
        return uniform_sample(self.X, self.budget, self._rng)

    @cached_property
    def lightweight(self) -> Summary:
        """Return a lightweight coreset."""
        return lightweight_coreset(self.X, self.budget, self._rng)

    @cached_property
    def sensitive(self) -> Summary:
        """Return a coreset by sensitivity."""
        return sensitivity_coreset(self.X, self.K, self.budget, self._rng)

    @cached_property
    def streamed(self) -> Summary:
        """Return the representatives of StreamKM++."""
        return stream_kmeans(self.X, self.budget, self._rng)

    @cached_property
    def tree(self) -> Summary:
        """Return the means of a merge-and-reduce tree."""
        return tree_of_means(self.X, self.budget, self._rng)

    @cached_property
    def features(self) -> Summary:
        """Return the features of BICO."""
        return bico(self.X, self.budget)

    @cached_property
    def celled(self) -> Summary:
        """Return cells without frequencies."""
        return cells_alone(self.X, self.budget, self.seed)

    @property
    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def _sketch(self, **options: Any) -> ckm.Sketch:
        arguments = {
            "sketch_size": self.m,
            "cells": 0,
            "n_jobs": 1,
            "random_state": self.seed,
        } | options
        return ckm.sketch(self.X, n_clusters=self.K, **arguments)

    @cached_property
    def equal_bytes(self) -> np.ndarray:
        """Return as many float32 rows as fit in the bytes of m complex numbers."""
        count = min(16 * self.m // (4 * self.X.shape[1]), len(self.X))
        return self.X[
            np.random.default_rng(self.seed).choice(len(self.X), count, replace=False)
        ].astype(np.float32)


def by_ckm(sketch: ckm.Sketch, K: int, seed: int) -> np.ndarray:
    return ckm.decode(sketch, K, random_state=seed, n_jobs=1).centroids


def by_fit(X: np.ndarray, K: int, seed: int) -> np.ndarray:
    return ckm.CompressiveKMeans(K, n_jobs=1, random_state=seed).fit(X).cluster_centers_


def by_clompr(sketch: ckm.Sketch, K: int, seed: int) -> np.ndarray:
    return ckm.decode(sketch, K, decoder="clompr", init="range", random_state=seed).centroids


def by_one_kmeans(X: np.ndarray, K: int, seed: int) -> np.ndarray:
    return KMeans(K, init="random", n_init=1, random_state=seed).fit(X).cluster_centers_


def by_best_kmeans(X: np.ndarray, K: int, seed: int) -> np.ndarray:
    return KMeans(K, n_init=10, random_state=seed).fit(X).cluster_centers_


def by_weighted_kmeans(sample: tuple[np.ndarray, np.ndarray], K: int, seed: int) -> np.ndarray:
    rows, weights = sample
    return KMeans(K, n_init=10, random_state=seed).fit(rows, sample_weight=weights).cluster_centers_


def by_minibatch(X: np.ndarray, K: int, seed: int) -> np.ndarray:
    return MiniBatchKMeans(K, random_state=seed).fit(X).cluster_centers_


class Method(NamedTuple):
    """A method: the attribute of Case that it sees, how it finds centroids, and whether its result
    depends on m.
    """

    sees: str
    fit: Callable[[Any, int, int], np.ndarray]
    of_sketch_size: bool
    colour: str


METHODS = {
    "fit": Method("X", by_fit, False, "#332288"),
    "ckm": Method("sketch", by_ckm, True, "#0072B2"),
    "ckm+pool": Method("pooled", by_ckm, True, "#56B4E9"),
    "clompr": Method("paper", by_clompr, True, "#D55E00"),
    "pycle": Method("paper", pycle_centroids, True, "#F0A020"),
    "kmeans": Method("X", by_one_kmeans, False, "#999999"),
    "minibatch": Method("X", by_minibatch, False, "#444444"),
    "pool-alone": Method("pool_rows", by_weighted_kmeans, False, "#009E73"),
    "equal-bytes": Method("equal_bytes", by_best_kmeans, True, "#CC79A7"),
}
# One-pass summaries of equal bytes, and the sketch with cells that they are compared with.
MIX = "mix"
RIVALS = {
    "uniform": Method("uniform", place_on, True, "#CC79A7"),
    "lightweight": Method("lightweight", place_on, True, "#AA4499"),
    "sensitivity": Method("sensitive", place_on, True, "#882255"),
    "streamkm++": Method("streamed", place_on, True, "#DDCC77"),
    "means-tree": Method("tree", place_on, True, "#999933"),
    "bico": Method("features", place_on, True, "#117733"),
    "cells": Method("celled", place_on, True, "#44AA99"),
}
METHODS |= {MIX: Method("mixed", by_ckm, True, "#332288")} | RIVALS


class Run(NamedTuple):
    """One finished run; `ratio` is m / (K n), or None if m does not matter, and `seconds` excludes
    sketching.
    """

    tag: str
    data: str
    seed: int
    ratio: int | None
    method: str
    relative: float
    seconds: float


def run_log(quick: bool) -> RunLog:
    """Return the log of finished runs; quick runs have a file of their own."""
    return RunLog(RESULTS / f"quality-runs{'-quick' if quick else ''}.jsonl")


def read_runs(log: RunLog) -> list[Run]:
    """Return every run in the log."""
    return [Run(**entry) for entry in log.read() if set(entry) == set(Run._fields)]


class Task(NamedTuple):
    """Remaining runs of one data set and seed: pairs of a ratio (None if m does not matter) and a
    method.
    """

    data: DataSet
    seed: int
    todo: tuple[tuple[int | None, str], ...]


@dataclass(frozen=True)
class Plan:
    """Requested data sets, seeds and methods."""

    sets: list[DataSet]
    seeds: range
    methods: list[str]
    tag: str
    quick: bool

    def includes(self, run: Run) -> bool:
        """Whether a run is part of the plan."""
        names = {data.name for data in self.sets}
        return (
            run.tag == self.tag
            and run.data in names
            and run.seed in self.seeds
            and run.method in self.methods
        )

    def tasks(self, done: Sequence[Run]) -> list[Task]:
        """Return the remaining tasks, seed by seed, so that an interrupted benchmark has the same
        seeds of every set.
        """
        known = {(run.data, run.seed, run.ratio, run.method) for run in done}
        every = [
            Task(data, seed, tuple(self._pairs(data))) for seed in self.seeds for data in self.sets
        ]
        left = [
            task._replace(
                todo=tuple(p for p in task.todo if (task.data.name, task.seed, *p) not in known)
            )
            for task in every
        ]
        return [task for task in left if task.todo]

    def _pairs(self, data: DataSet) -> Iterator[tuple[int | None, str]]:
        for method in self.methods:
            yield from (
                (ratio, method)
                for ratio in (data.ratios if METHODS[method].of_sketch_size else (None,))
            )


def work(plan: Plan, log: RunLog, task: Task) -> Outcome:
    """Run a task, and log each run as it ends."""
    data = task.data
    seed = task.seed
    failures = []
    try:
        X, K = data.load(seed, plan.quick)
    except Unavailable as error:
        return Outcome(None, [str(error)])
    best = baseline(data.key(seed), X, K, plan.quick)
    cases = {
        ratio: Case(X, K, (ratio or DEFAULT_RATIO) * K * X.shape[1], seed) for ratio, _ in task.todo
    }
    for ratio, name in task.todo:
        try:
            seen = getattr(cases[ratio], METHODS[name].sees)
            began = time.perf_counter()
            centroids = METHODS[name].fit(seen, K, seed)
            seconds = time.perf_counter() - began
            relative = sse(X, np.asarray(centroids, np.float64)) / best
        except Exception as error:  # reported; the other methods go on
            failures.append(
                f"{name} failed on {data.name}, seed {seed}: {type(error).__name__}: {error}"
            )
            continue
        run = Run(plan.tag, data.name, seed, ratio, name, round(relative, 6), round(seconds, 4))
        log.append(run._asdict())
    return Outcome(None, failures)
