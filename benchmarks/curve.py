"""How many clusters? What `ckm.curve` says, against k-means and the usual indices.

"sse": on the nine sets of `quality.py` (synthetic and real), the SSE of the curve's solutions for
every K up to 20, relative to the best of 10 k-means++ runs; the SSE that it prints, relative to the
better of both, since k-means may end in a local minimum; and the time of the curve relative to one
decoding with K = 20. "number": the suggested number on data with a known one.
"rivals": the same data, silhouette, Calinski-Harabasz, the gap statistic and BIC of full Gaussians.
"time": one million rows, sketched and asked, against one run of k-means for each K, which is the
least that any of these needs.
"""

import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import ckm
from benchmarks import mnist
from benchmarks.baselines import baseline
from benchmarks.curve_data import CLUSTERLESS, KINDS, make
from benchmarks.curve_rivals import RIVALS, choose_by_bic, choose_by_gap, choose_by_indices
from benchmarks.data import Unavailable, data_sets, prepare
from benchmarks.harness import (
    Target,
    largest,
    options,
    process_options,
    report,
    sections_option,
    seeds_of,
    show,
)
from benchmarks.processes import Outcome, work_all

K_MAX = 20
ROWS = 10_000
SECTIONS = ("sse", "number", "rivals", "time")
# Name -> the argument `cells`, and the bound on |SSE / SSE of k-means - 1|.
VARIANTS: dict[str, tuple[Any, float]] = {"cells": ("auto", 0.02), "sketch": (0, 0.04)}
# Runs of each kind of data, as multiples of the number of seeds.
RUNS = {"separated": 20, "overlapping": 10, "uniform": 5, "one Gaussian": 5}
RIVAL_RUNS = {"separated": 3, "overlapping": 2, "uniform": 1, "one Gaussian": 1}


class Best(NamedTuple):
    """The SSE of k-means for one K."""

    data: str
    seed: int
    K: int
    sse: float


class Errors(NamedTuple):
    """The SSE of a curve and of its solutions, for each K, and times."""

    data: str
    seed: int
    variant: str
    curve: list[float]
    solutions: list[float]
    seconds: float
    decode_seconds: float


class Chosen(NamedTuple):
    """What was suggested for rows with K clusters."""

    kind: str
    seed: int
    variant: str
    n: int
    K: int
    suggestion: int | None
    runner_up: int | None
    seconds: float
    rivals: dict[str, int]

    @property
    def is_right(self) -> bool:
        """Whether the suggestion is the truth; that is one or none, if there are no clusters."""
        if self.kind in CLUSTERLESS:
            return self.suggestion in (1, None)
        return self.suggestion == self.K

    @property
    def is_honest(self) -> bool:
        """Whether the suggestion or the runner-up is right, or no clear number was found."""
        return self.is_right or self.suggestion is None or self.runner_up == self.K


def find_best(quick: bool, task: tuple[str, str, int, int]) -> Outcome:
    """Return the SSE of k-means, best of 10."""
    group, name, seed, K = task
    try:
        X, key = _load(group, name, seed, quick)
    except Unavailable as error:
        return Outcome(None, [str(error)])
    return Outcome(Best(name, seed, K, baseline(f"{key} K={K}", X, K, quick)), [])


def find_errors(quick: bool, task: tuple[str, str, int, str]) -> Outcome:
    """Return the SSE of a curve, and the processor time of it and of one decoding."""
    group, name, seed, variant = task
    try:
        X, _ = _load(group, name, seed, quick)
    except Unavailable as error:
        return Outcome(None, [str(error)])
    cells, _ = VARIANTS[variant]
    sketch = ckm.sketch(X, n_clusters=K_MAX, cells=cells, random_state=seed, n_jobs=1)
    ckm.curve(sketch, K_MAX, random_state=seed, n_jobs=1)
    seconds = []
    decode_seconds = []
    for i in range(3):
        began = time.process_time()
        curve = ckm.curve(sketch, K_MAX, random_state=seed + i, n_jobs=1)
        between = time.process_time()
        ckm.decode(sketch, K_MAX, random_state=seed + i, n_jobs=1)
        seconds.append(between - began)
        decode_seconds.append(time.process_time() - between)
    return Outcome(
        Errors(
            name,
            seed,
            variant,
            [float(value) for value in curve.sse],
            [-curve.solutions[K].score(X, n_jobs=1) for K in curve.n_clusters],
            float(np.median(seconds)),
            float(np.median(decode_seconds)),
        ),
        [],
    )


def _load(group: str, name: str, seed: int, quick: bool) -> tuple[np.ndarray, str]:
    (data,) = (data for data in data_sets([group], quick) if data.name == name)
    X, _ = data.load(seed, quick)
    return X, data.key(seed)


def choose(asks_rivals: bool, task: tuple[str, int, str]) -> Outcome:
    """Return what is suggested for one set of rows."""
    kind, seed, variant = task
    X, K = make(kind, seed, ROWS)
    cells, _ = VARIANTS[variant]
    began = time.process_time()
    sketch = ckm.sketch(X, n_clusters=K_MAX, cells=cells, random_state=seed, n_jobs=1)
    curve = ckm.curve(sketch, K_MAX, random_state=seed, n_jobs=1)
    seconds = time.process_time() - began
    rivals = dict[str, int]()
    if asks_rivals:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            rivals = choose_by_indices(X, K_MAX, seed)
            rivals["gap statistic"] = choose_by_gap(X, K_MAX, seed)
            rivals["BIC"] = choose_by_bic(X, K_MAX, seed)
    found = (curve.suggestion, curve.runner_up, seconds, rivals)
    return Outcome(Chosen(kind, seed, variant, X.shape[1], K, *found), [])


def measure_sse(arguments: Any, seeds: range) -> tuple[list[Target], list[Any]]:
    """Compare the SSE with that of k-means, and the time with that of one decoding."""
    sets = data_sets(["synthetic", "real"], arguments.quick)
    prepare(sets)
    quick = arguments.quick
    # Real sets are the same for every seed.
    keys = [(d.group, d.name, s) for d in sets for s in (seeds[:1] if d.real else seeds[:2])]
    asked = [(*key, K) for key in keys for K in range(2, K_MAX + 1)]
    best = {
        (found.data, found.seed, found.K): found.sse
        for found in work_all(partial(find_best, quick), asked, arguments.jobs)
        if found is not None
    }
    wanted = [(*key, variant) for key in keys for variant in VARIANTS]
    runs = [
        run
        for run in work_all(partial(find_errors, quick), wanted, arguments.jobs)
        if run is not None
    ]
    lines = []
    targets = []
    for variant, (_, bound) in VARIANTS.items():
        worst = dict[str, float]()
        told = dict[str, float]()
        ratios = dict[str, float]()
        for run in runs:
            if run.variant == variant:
                found = {
                    (run.data, run.seed, K): min(best[run.data, run.seed, K], run.solutions[K - 1])
                    for K in range(2, K_MAX + 1)
                }
                errors = [_ratios(run.curve, run, found), _ratios(run.solutions, run, best)]
                name = f"{run.data} {run.seed}"
                # A curve may also promise too little, centroids cannot be too good.
                told[name] = float(np.abs(errors[0]).max())
                worst[name] = float(np.max(errors[1]))
                ratios[name] = run.seconds / run.decode_seconds
                middle = [float(np.median(np.abs(error))) for error in errors]
                most = [float(np.abs(errors[0]).max()), float(np.max(errors[1]))]
                lines.append([run.data, run.seed, variant, *middle, *most, ratios[name]])
        targets.append(largest(f"{variant}: SSE of centroids / k-means - 1, any K", bound, worst))
        targets.append(largest(f"{variant}: |curve.sse / better of both - 1|, any K", bound, told))
        median = float(np.median(list(ratios.values()))) if ratios else None
        targets.append(Target(f"{variant}: time / one decoding, median", 2.0, median, at_most=True))
        targets.append(largest(f"{variant}: time / one decoding, any set", 2.0, ratios))
    columns = ["data", "seed", "variant", "curve", "solutions", "worst", "worst", "time ratio"]
    show("SSE relative to k-means - 1, over K = 2 to 20", columns, lines)
    return targets, [run._asdict() for run in runs]


def _ratios(values: list[float], run: Errors, best: dict[tuple[str, int, int], float]) -> Any:
    numbers = range(2, K_MAX + 1)
    return np.array([values[K - 1] / best[run.data, run.seed, K] - 1 for K in numbers])


def measure_number(arguments: Any, seeds: range) -> tuple[list[Target], list[Any]]:
    """Compare suggestions with the truth."""
    tasks = [
        (kind, seeds[0] + i, variant)
        for kind in KINDS
        for i in range(RUNS.get(kind, 4) * len(seeds))
        for variant in VARIANTS
    ]
    runs = work_all(partial(choose, False), tasks, arguments.jobs)
    show_choices(runs)
    found = []
    for variant in VARIANTS:
        own = [run for run in runs if run.variant == variant]

        def share(kinds: Sequence[str], of: str, own: list[Chosen] = own) -> float:
            return float(np.mean([getattr(run, of) for run in own if run.kind in kinds]))

        found += [
            Target(f"{variant}: separated, the true K", 0.95, share(["separated"], "is_right")),
            Target(
                f"{variant}: overlapping, the true K first or second, or no clear number",
                0.8,
                share(["overlapping"], "is_honest"),
            ),
            *(
                Target(f"{variant}: {kind}, one or none", 0.95, share([kind], "is_right"))
                for kind in CLUSTERLESS
            ),
        ]
    return found, [run._asdict() for run in runs]


def show_choices(runs: list[Chosen]) -> None:
    """Print how often the suggestion was right, second, none and wrong."""
    lines = []
    for kind, variant in dict.fromkeys((run.kind, run.variant) for run in runs):
        own = [run for run in runs if (run.kind, run.variant) == (kind, variant)]
        none = [run for run in own if run.suggestion is None]
        named = [run for run in own if run.suggestion is not None]
        right = [run for run in named if run.suggestion == run.K]
        second = [run for run in named if run.suggestion != run.K == run.runner_up]
        hidden = [run for run in none if run.runner_up == run.K]
        wrong = len(named) - len(right) - len(second)
        counts = [len(own), len(right), len(second), len(none), len(hidden), wrong]
        seconds = float(np.median([run.seconds for run in own]))
        lines.append([kind, variant, *counts, seconds])
    columns = ["data", "variant", "runs", "right", "second", "none", "none, K second", "wrong"]
    show("Suggested numbers", [*columns, "seconds"], lines)


def measure_rivals(arguments: Any, seeds: range) -> tuple[list[Target], list[Any]]:
    """Compare with the usual indices."""
    tasks = [
        (kind, seeds[0] + i, "cells")
        for kind, times in RIVAL_RUNS.items()
        for i in range(times * len(seeds))
    ]
    runs = work_all(partial(choose, True), tasks, arguments.jobs)
    lines = []
    targets = []
    for kind in RIVAL_RUNS:
        own = [run for run in runs if run.kind == kind]
        rights = {
            name: float(np.mean([run.rivals[name] == run.K for run in own])) for name in RIVALS
        }
        right = float(np.mean([run.is_right for run in own]))
        honest = float(np.mean([run.is_honest for run in own]))
        lines.append([kind, len(own), right, honest, *rights.values()])
        name = max(rights, key=lambda name: rights[name])
        kept = honest if kind == "overlapping" else right
        targets.append(Target(f"{kind}: at least the best rival ({name})", rights[name], kept))
    show("Share of right numbers", ["data", "runs", "curve", "or none", *RIVALS], lines)
    return targets, [run._asdict() for run in runs]


def measure_time(arguments: Any, seeds: range) -> tuple[list[Target], list[Any]]:
    """One million rows: a sketch and its curve against k-means for each K."""
    N = 50_000 if arguments.quick else 10**6
    X = ckm.datasets.gaussian_mixture(N, 10, 10, random_state=seeds[0]).rows
    small = ckm.sketch(X[:2000], n_clusters=K_MAX, random_state=0)
    ckm.curve(small, K_MAX, random_state=0)
    began = time.perf_counter()
    curve = ckm.curve(ckm.sketch(X, n_clusters=K_MAX, random_state=0), K_MAX, random_state=0)
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    for K in range(2, K_MAX + 1):
        KMeans(K, n_init=1, random_state=0).fit(X)
    rival = time.perf_counter() - began
    lines = [["sketch and curve", seconds, curve.suggestion], ["k-means for each K", rival, None]]
    show(f"{N:,} rows, 10 columns, 10 clusters", ["", "seconds", "suggestion"], lines)
    target = Target("time / k-means for each K", 1.0, seconds / rival, at_most=True)
    return [target], [{"N": N, "seconds": seconds, "kmeans_seconds": rival}]


MEASURES = {
    "sse": measure_sse,
    "number": measure_number,
    "rivals": measure_rivals,
    "time": measure_time,
}


def main() -> None:
    parser = options("Compare the curve over the number of clusters.", first_seed=100)
    process_options(parser, count=10, quick_count=1)
    sections_option(parser, SECTIONS)
    arguments = parser.parse_args()
    mnist.name_source(arguments.mnist)
    seeds = seeds_of(arguments)
    targets = []
    results = {}
    for section in arguments.sections:
        found, results[section] = MEASURES[section](arguments, seeds)
        targets += found
    name = "-".join(["curve", *(s for s in SECTIONS if arguments.sections == [s])])
    settings = {"rows": ROWS, "K_max": K_MAX, "first_seed": seeds[0], "seeds": len(seeds)}
    report(name, arguments.quick, settings, results, targets)


if __name__ == "__main__":
    main()
