"""Data and sketches made so that decoding fails, or may fail: the battery of `statuses.py`.

Each failure has a kind (small sketch, wrong scale, stale design, more structure than K, ...) and a
few sizes of it, from harmless to hopeless. What a decoder makes of them is not known here: only
that a result far from k-means must not look like a good one.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import ckm
from benchmarks.data import few_outliers, lognormal, pareto, student, towns

N = 20_000
POOL = 1000

Rows = np.ndarray


@dataclass(frozen=True, eq=False)
class Made:
    """Rows, the number of clusters to decode, and how the rows are sketched.

    `design` are rows whose sketch passes on frequencies and anchors (`like=`). `removed` are rows
    that are sketched with the others and subtracted again.
    """

    X: Rows
    K: int
    options: dict[str, Any] = field(default_factory=dict)
    scale_factor: float = 1.0
    design: Rows | None = None
    removed: Rows | None = None

    def sketch(self, seed: int, *, cells: bool, pool: bool) -> ckm.Sketch:
        """Return the sketch of the rows, with or without cells and a pool."""
        chosen: dict[str, Any] = {
            "n_clusters": self.K,
            "random_state": seed,
            "cells": "auto" if cells else 0,
            "pool": POOL if pool else 0,
            **self.options,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ckm.errors.PhaseWarning)
            return self._sketch(chosen)

    def _sketch(self, chosen: dict[str, Any]) -> ckm.Sketch:
        if self.scale_factor != 1:
            estimated = ckm.sketch(self.X, **chosen, n_jobs=1).frequencies.scale
            chosen = {**chosen, "scale": self.scale_factor * estimated}
        if self.design is not None:
            design = ckm.sketch(self.design, **chosen, n_jobs=1)
            return ckm.sketch(self.X, like=design, pool=chosen["pool"], n_jobs=1)
        if self.removed is not None:
            whole = ckm.sketch(np.vstack([self.X, self.removed]), **chosen, n_jobs=1)
            return whole - ckm.sketch(self.removed, like=whole, n_jobs=1)
        return ckm.sketch(self.X, **chosen, n_jobs=1)


def clusters(
    rng: np.random.Generator, count: int, n: int, *, width: float, size: int = N
) -> tuple[Rows, Rows]:
    """Rows in `count` clusters of this standard deviation, with centres in a ball of radius 0.875,
    and their labels.
    """
    centres = rng.standard_normal((count, n))
    centres *= (0.875 * rng.random(count) ** (1 / n) / np.linalg.norm(centres, axis=1))[:, None]
    labels = rng.integers(count, size=size)
    return centres[labels] + width * rng.standard_normal((size, n)), labels


def more_structure(count: int, n: int, K: int, size: int, seed: int) -> Made:
    """Many tight clusters, of which few are asked for; structured frequencies where n is large."""
    rng = np.random.default_rng(seed)
    X, _ = clusters(rng, count, n, width=0.0125, size=size)
    options = {"distribution": "structured"} if n >= 64 else {}
    return Made(X, K, options)


def mixture(seed: int, K: int = 10, n: int = 10, size: int = N) -> Rows:
    """Return the paper's data."""
    return ckm.datasets.gaussian_mixture(size, K, n, random_state=seed).rows


def small_sketch(ratio: float, seed: int) -> Made:
    """Return the paper's data with m = ratio K n frequencies."""
    return Made(mixture(seed), 10, {"sketch_size": int(ratio * 100)})


def small_sketch_skewed(ratio: float, seed: int) -> Made:
    """Return skewed columns with m = ratio K n frequencies."""
    X = np.random.default_rng(seed).gamma(1.0, size=(N, 6))
    return Made(X, 12, {"sketch_size": int(ratio * 72)})


def more_clusters_than_designed(K: int, seed: int) -> Made:
    """Return a sketch that was made for three clusters and is decoded to more."""
    return Made(mixture(seed, K, 5), K, {"sketch_size": 5 * 3 * 5 + 3 * K})


def wrong_scale(factor: float, seed: int) -> Made:
    """Return the paper's data with frequencies of a scale that is wrong by a factor."""
    return Made(mixture(seed), 10, scale_factor=factor)


def wrong_scale_skewed(factor: float, seed: int) -> Made:
    """Return skewed columns with frequencies of a scale that is wrong by a factor."""
    X = np.random.default_rng(seed).gamma(1.0, size=(N, 4))
    return Made(X, 12, scale_factor=factor)


def first_rows(share: float, seed: int) -> Made:
    """Return sorted rows whose design was chosen on the first share of them."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(N, 3)) @ rng.standard_normal((3, 3))
    X = X[np.argsort(X[:, 0])]
    return Made(X, 12, design=X[: int(share * N)])


def moved(distance: float, seed: int) -> Made:
    """Return clusters that have all moved since the design was chosen, by so many deviations of
    the data.
    """
    X = mixture(seed, 8, 4)
    step = distance * X.std() * np.random.default_rng(seed).standard_normal(4)
    return Made(X + step, 8, design=X)


def new_cluster(share: float, seed: int) -> Made:
    """Return clusters of which some did not exist when the design was chosen."""
    rng = np.random.default_rng(seed)
    X, labels = clusters(rng, 12, 4, width=0.02)
    return Made(X, 12, design=X[labels < round(12 * (1 - share))])


def resized(factor: float, seed: int) -> Made:
    """Return rows in another unit than those that the design was chosen on."""
    X = mixture(seed, 8, 4)
    return Made(factor * X, 8, design=X)


def outliers(count: int, distance: float, seed: int, size: int = N) -> Made:
    """Return two clusters, some of whose rows are moved far away."""
    X, K = few_outliers(size, count, distance, size, seed)
    return Made(X, K)


def outlying_groups(distance: float, seed: int) -> Made:
    """Return four clusters and two far groups of a few rows each, one centroid for each."""
    rng = np.random.default_rng(seed)
    X = mixture(seed, 4, 3)
    X[:10] = distance * rng.standard_normal(3) + rng.standard_normal((10, 3))
    X[10:16] = distance * rng.standard_normal(3) + rng.standard_normal((6, 3))
    return Made(X, 6)


def unequal_widths(ratio: float, seed: int) -> Made:
    """Return six wide clusters, one of which holds six others that are narrower by this factor:
    frequencies for the wide ones do not separate them.
    """
    rng = np.random.default_rng(seed)
    wide = 20 * rng.standard_normal((6, 3))
    narrow = wide[0] + 10 / ratio * rng.standard_normal((6, 3))
    centres = np.vstack([wide, narrow])
    widths = np.r_[np.ones(6), np.full(6, 1 / ratio)]
    labels = rng.choice(12, N, p=np.r_[np.full(6, 0.02), np.full(6, 0.88 / 6)])
    return Made(centres[labels] + widths[labels, None] * rng.standard_normal((N, 3)), 12)


def unequal_weights(smallest: float, seed: int) -> Made:
    """Return clusters whose shares fall geometrically, the lightest far from the others."""
    rng = np.random.default_rng(seed)
    weights = np.geomspace(1, smallest, 8)
    centres = 6 * rng.standard_normal((8, 5)) * np.geomspace(1, 5, 8)[:, None]
    labels = rng.choice(8, N, p=weights / weights.sum())
    return Made(centres[labels] + rng.standard_normal((N, 5)), 8)


def heavy(make: Callable[[int, int], tuple[Rows, int]], seed: int) -> Made:
    """Return columns of heavy tails, or a map."""
    return Made(*make(N, seed))


def pairs(gap: float, seed: int) -> Made:
    """Return sixteen tight clusters in pairs, far from each other."""
    rng = np.random.default_rng(seed)
    centres = np.repeat(30 * rng.standard_normal((8, 4)), 2, axis=0)
    centres[::2] += gap * rng.standard_normal((8, 4))
    X = centres[rng.integers(16, size=N)] + 0.05 * rng.standard_normal((N, 4))
    return Made(X, 16)


def repeated(distinct: int, K: int, seed: int) -> Made:
    """Return few distinct rows, each of them many times."""
    rng = np.random.default_rng(seed)
    return Made(rng.standard_normal((distinct, 3))[rng.integers(distinct, size=N)], K)


def mostly_repeated(seed: int) -> Made:
    """Return rows of which nine in ten are the same."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(N, 4))
    X[: 9 * N // 10] = 0
    return Made(X, 10)


def whole_numbers(seed: int) -> Made:
    """Return counts in columns of very different means."""
    rng = np.random.default_rng(seed)
    return Made(rng.poisson([0.1, 0.5, 2, 50], size=(N, 4)).astype(float), 12)


def few_left(left: int, seed: int) -> Made:
    """Return the few rows that are left when most are subtracted; those were elsewhere."""
    X = mixture(seed, 5, 3, size=left)
    return Made(X, 5, removed=mixture(seed + 1000, 5, 3) + 20)


def few_rows(size: int, seed: int) -> Made:
    """Return fewer rows than a sketch has frequencies."""
    return Made(mixture(seed, 10, 8, size=size), 10)


def thin_manifold(seed: int) -> Made:
    """Return rows along a curve in ten columns."""
    rng = np.random.default_rng(seed)
    t = rng.random(N)
    waves = np.column_stack([np.sin(2 * np.pi * k * t + k) for k in range(1, 11)])
    return Made(waves + 0.01 * rng.standard_normal((N, 10)), 20)


Maker = Callable[[int], Made]


def _all() -> Iterator[tuple[str, Maker]]:
    yield "64 clusters, n=100, K=16", partial(more_structure, 64, 100, 16, 2 * N)
    yield "64 clusters, n=20, K=16", partial(more_structure, 64, 20, 16, N)
    yield "100 clusters, n=5, K=10", partial(more_structure, 100, 5, 10, N)
    yield "40 clusters, n=10, K=12", partial(more_structure, 40, 10, 12, N)
    for ratio in (0.6, 1.0, 1.5, 2.0):
        yield f"m = {ratio} K n, Gaussian", partial(small_sketch, ratio)
        yield f"m = {ratio} K n, skewed", partial(small_sketch_skewed, ratio)
    yield "sketch for K=3, decoded to 12", partial(more_clusters_than_designed, 12)
    for factor in (1 / 256, 1 / 16, 16, 256):
        yield f"{factor:g} times the scale, Gaussian", partial(wrong_scale, factor)
        yield f"{factor:g} times the scale, skewed", partial(wrong_scale_skewed, factor)
    for share in (0.05, 0.2, 0.5):
        yield f"design of the first {share}", partial(first_rows, share)
    for distance in (1, 10):
        yield f"moved by {distance} deviations", partial(moved, distance)
    for share in (0.25, 0.75):
        yield f"{share} of clusters are new", partial(new_cluster, share)
    for factor in (0.1, 4, 20):
        yield f"{factor} times the unit", partial(resized, factor)
    for count in (1, 10, 200):
        for distance in (30, 1e3, 1e6):
            yield f"{count} outliers at {distance:g}", partial(outliers, count, distance)
    # A pilot sample of so many rows holds hardly any of these.
    for count in (1, 10):
        name = f"{count} outliers at 1000 in 300000"
        yield name, partial(outliers, count, 1e3, size=300_000)
    for distance in (100, 1e5):
        yield f"outlying groups at {distance:g}", partial(outlying_groups, distance)
    for ratio in (10, 100):
        yield f"widths 1 to {ratio}", partial(unequal_widths, ratio)
    for smallest in (1e-2, 1e-4):
        yield f"weights 1 to {smallest:g}", partial(unequal_weights, smallest)
    for make in (lognormal, student, pareto, towns):
        yield make.__name__, partial(heavy, make)
    for gap in (0.5, 3):
        yield f"pairs {gap} apart", partial(pairs, gap)
    yield "5 distinct rows, K=8", partial(repeated, 5, 8)
    yield "30 distinct rows, K=12", partial(repeated, 30, 12)
    yield "mostly one row", mostly_repeated
    yield "counts", whole_numbers
    yield "100 rows left", partial(few_left, 100)
    yield "1000 rows left", partial(few_left, 1000)
    yield "200 rows", partial(few_rows, 200)
    yield "curve in 10 columns", thin_manifold


FAILURES: dict[str, Maker] = dict(_all())
