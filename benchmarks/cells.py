"""What cells cost and what they save, in sections that can be run by themselves (--sections).

- pass: what cells add to the time of a pass (K = n = 10, m = 500).
- even: the number of rows from which one pass and decoding, with the defaults of `fit`, take less
  time than KMeans(n_init=1), for real data enlarged by jittered copies.
- many: the whole fit against KMeans(n_init=1) with many clusters: 300 towns on a map, and K = 1000
  clusters of the paper's generator in five columns.

Contenders take turns, and each keeps its best time. `--clock cpu` gives each one thread and counts
its processor time, for a machine that others use too.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

import ckm
from benchmarks.baselines import sse
from benchmarks.data import Unavailable, data_sets, prepare
from benchmarks.harness import (
    Target,
    console,
    largest,
    options,
    report,
    show,
)
from benchmarks.sections import Clock, run_sections

MAX_SHARE = 0.25
# Passes whose fastest counts: of 15 it still varies by one per cent, of so many by half of that.
REPEATS = 60
MAX_EVEN = 300_000
SIZES = (20_000, 50_000, 100_000, 200_000, 300_000, 400_000)
# Standard deviations of a column that copies of a row differ by.
JITTER = 0.01


def measure_pass(arguments: argparse.Namespace, clock: Clock) -> None:
    """What cells add to a pass over rows in memory."""
    K = n = 10
    N = 200_000 if arguments.quick else 1_000_000
    X = ckm.datasets.gaussian_mixture(N, K, n, random_state=arguments.seeds).rows.astype(np.float32)
    with_cells = ckm.sketch(X, n_clusters=K, random_state=0)
    without = with_cells.without_cells()
    contenders = {
        "with cells": lambda: ckm.sketch(X, like=with_cells, n_jobs=clock.n_jobs),
        "without": lambda: ckm.sketch(X, like=without, n_jobs=clock.n_jobs),
    }
    seconds, _ = clock.best(3 if arguments.quick else REPEATS, contenders)
    share = seconds["with cells"] / seconds["without"] - 1
    show(
        f"A pass over {N:,} rows, K = n = 10, m = 500, {len(with_cells.cells.anchors)} cells",
        ["", "nanoseconds per row"],
        [[name, f"{1e9 * best / N:.1f}"] for name, best in seconds.items()],
    )
    report(
        "cells-pass",
        arguments.quick,
        {"clock": arguments.clock, "N": N},
        {"seconds": seconds, "share": share},
        [Target("what cells add to the pass", MAX_SHARE, share, at_most=True)],
    )


def enlarge(X: np.ndarray, size: int, seed: int) -> np.ndarray:
    """`size` rows: whole copies of X and some of its rows, each moved by a little."""
    rng = np.random.default_rng(seed)
    copies, rest = divmod(size, len(X))
    which = np.concatenate(
        [np.tile(np.arange(len(X)), copies), rng.choice(len(X), rest, replace=False)]
    )
    jitter = JITTER * X.std(axis=0) * rng.standard_normal((size, X.shape[1]))
    return np.ascontiguousarray(X[rng.permutation(which)] + jitter)


def contenders_of(X: np.ndarray, K: int, seed: int, n_jobs: int | None) -> dict[str, Any]:
    """`fit`, which is one pass and decoding, and one run of k-means."""

    def ours() -> np.ndarray:
        model = ckm.CompressiveKMeans(K, random_state=seed, n_jobs=n_jobs)
        return np.asarray(model.fit(X).cluster_centers_)

    def theirs() -> np.ndarray:
        return KMeans(K, n_init=1, random_state=seed).fit(X).cluster_centers_

    return {"ckm": ours, "KMeans": theirs}


def break_even(sizes: Sequence[int], ahead: Sequence[float]) -> float:
    """The size from which on `ahead`, the logarithm of their time over ours, is positive;
    interpolated between sizes. At most the first size, infinite if not even at the last.
    """
    last_behind = max((i for i, a in enumerate(ahead) if not a > 0), default=-1)
    if last_behind < 0:
        return float(sizes[0])
    if last_behind + 1 == len(sizes):
        return float("inf")
    at = np.log(sizes[last_behind : last_behind + 2])
    gain = ahead[last_behind + 1] - ahead[last_behind]
    return float(np.exp(at[0] - ahead[last_behind] / gain * (at[1] - at[0])))


def measure_even(arguments: argparse.Namespace, clock: Clock) -> None:
    """Rows from which one pass and decoding beat one run of k-means."""
    sets = data_sets(["real"], arguments.quick)
    prepare(sets)
    sizes = SIZES[:2] if arguments.quick else SIZES
    found = dict[str, Any]()
    for which in sets:
        try:
            original, K = which.load(arguments.seeds, arguments.quick)
        except Unavailable as error:
            console.print(str(error))
            continue
        ahead = []
        runs = []
        for size in sizes:
            X = enlarge(np.asarray(original, np.float64), size, arguments.seeds)
            fit = contenders_of(X, K, arguments.seeds, clock.n_jobs)
            fit["ckm"]()
            seconds, centroids = clock.best(2, fit)
            ratio = sse(X, centroids["ckm"]) / sse(X, centroids["KMeans"])
            ahead.append(float(np.log(seconds["KMeans"] / seconds["ckm"])))
            runs.append({"N": size, **seconds, "sse": ratio})
        found[which.name] = {"K": K, "runs": runs, "rows": break_even(sizes, ahead)}
        show(
            f"{which.name}, K = {K}, n = {original.shape[1]}",
            ["N", "ckm, s", "KMeans(n_init=1), s", "SSE, ratio"],
            [[f"{r['N']:,}", r["ckm"], r["KMeans"], f"{r['sse']:.4f}"] for r in runs],
        )
    rows = {name: each["rows"] for name, each in found.items()}
    show("Rows from which it pays", ["set", "rows"], [[k, f"{v:,.0f}"] for k, v in rows.items()])
    target = largest("rows from which one pass and decoding beat one run", MAX_EVEN, rows)
    settings = {"clock": arguments.clock, "sizes": sizes, "jitter": JITTER}
    report("cells-even", arguments.quick, settings, found, [target])


def towns(size: int, count: int, seed: int) -> np.ndarray:
    """Rows of `count` towns of different shares and widths on a map."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0, 100, size=(count, 2))
    widths = rng.uniform(0.2, 2, size=count)
    town = rng.choice(count, size, p=rng.dirichlet(np.ones(count)))
    return centres[town] + widths[town, None] * rng.standard_normal((size, 2))


def measure_many(arguments: argparse.Namespace, clock: Clock) -> None:
    """The whole fit with hundreds of clusters."""
    N = 50_000 if arguments.quick else 1_000_000
    seed = arguments.seeds
    cases = {
        "300 towns, n = 2": (towns(N, 300, seed), 300),
        "K = 1000, n = 5": (
            ckm.datasets.gaussian_mixture(N, 1000, 5, random_state=seed).rows,
            1000,
        ),
    }
    found = dict[str, Any]()
    targets = list[Target]()
    for name, (X, K) in cases.items():
        ckm.CompressiveKMeans(5, random_state=0).fit(X[:3000])
        seconds, centroids = clock.best(1, contenders_of(X, K, seed, clock.n_jobs))
        ratio = sse(X, centroids["ckm"]) / sse(X, centroids["KMeans"])
        found[name] = {**seconds, "sse": ratio}
        targets += [
            Target(
                f"{name}: seconds / KMeans(n_init=1)", 1, seconds["ckm"] / seconds["KMeans"], True
            ),
            Target(f"{name}: SSE / KMeans(n_init=1)", 1, ratio, True),
        ]
    show(
        f"The whole fit of {N:,} rows",
        ["", "ckm, s", "KMeans(n_init=1), s", "SSE, ratio"],
        [[name, r["ckm"], r["KMeans"], f"{r['sse']:.4f}"] for name, r in found.items()],
    )
    report("cells-many", arguments.quick, {"clock": arguments.clock, "N": N}, found, targets)


SECTIONS = {"pass": measure_pass, "even": measure_even, "many": measure_many}


def main() -> None:
    parser = options("Measure what cells cost and what they save.", first_seed=100)
    run_sections(parser, SECTIONS)


if __name__ == "__main__":
    main()
