"""Structured frequencies against dense ones of the same radii ("multiscale"), in sections that can
be run by themselves (--sections).

- sketch: rows sketched per second at n = 64, 256 and 1024. Dense and structured take turns, and
  each keeps its best time.
- products: what decoders multiply by, C Omega^T and back, in float64 with one thread: a library's
  matrix product against the fast transform.
- decode: seconds to decode with one thread, and the SSE, for both sketches of the same rows.
- quality: SSE relative to the best of 10 k-means++ runs, on synthetic and real data, for both
  sketches of the same rows, m = 5Kn, no pool.
"""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import ckm
from benchmarks import mnist
from benchmarks.baselines import baseline, sse
from benchmarks.data import (
    DEFAULT_RATIO,
    GROUPS,
    DataSet,
    Unavailable,
    data_sets,
    grid_name,
    prepare,
    rows_made,
)
from benchmarks.harness import (
    Target,
    best_times,
    largest,
    options,
    process_options,
    report,
    sections_option,
    seeds_of,
    show,
)
from benchmarks.processes import Outcome, work_all

# Not public, but its products are what the section "products" measures.
from ckm._decoding.operator import Structure

DENSE = "multiscale"
STRUCTURED = "structured"
LAWS = (DENSE, STRUCTURED)
K = 10
SETS = (
    grid_name(10, 2),
    grid_name(10, 10),
    grid_name(10, 30),
    "unbalanced",
    "anisotropic",
    "outliers",
    "mnist-pca16",
    "china.jpg",
    "digits",
)
QUICK_SETS = (grid_name(10, 2), grid_name(10, 10), "unbalanced")
FASTER = {256: 3.0, 1024: 10.0}  # targets for sketches with m = 10000, one thread
WORSE = 1.01  # target for SSEs, structured / dense


def sketch(arguments: argparse.Namespace) -> None:
    """Measure pairs of (row, frequency) per second."""
    # whole blocks for each thread
    quick = arguments.quick
    rows = 4096 if arguments.quick else 2**15
    rounds = 2 if quick else 5
    found = []
    for n in (64, 256, 1024):
        X = np.random.default_rng(0).standard_normal((rows, n), np.float32)
        for m in (1000,) if quick else (1000, 10_000):
            frequencies = {
                law: ckm.draw_frequencies(m, n, distribution=law, seed=0) for law in LAWS
            }
            for f in frequencies.values():
                ckm.sketch(X[:64], like=f)  # compiled code is loaded here
            for threads in (1, 2):
                works = {
                    law: partial(ckm.sketch, X, like=f, n_jobs=threads)
                    for law, f in frequencies.items()
                }
                best = best_times(rounds, works)
                found.append(
                    {
                        "n": n,
                        "m": m,
                        "threads": threads,
                        **{law: rows * m / seconds for law, seconds in best.items()},
                    }
                )
    show(
        f"Sketching {rows} rows, Gpairs/s",
        ["n", "m", "threads", "dense", "structured", "structured / dense"],
        [
            [
                r["n"],
                r["m"],
                r["threads"],
                r[DENSE] / 1e9,
                r[STRUCTURED] / 1e9,
                r[STRUCTURED] / r[DENSE],
            ]
            for r in found
        ],
    )
    faster = {
        r["n"]: r[STRUCTURED] / r[DENSE] for r in found if (r["m"], r["threads"]) == (10_000, 1)
    }
    targets = [
        Target(f"structured / dense, n = {n}, m = 10000, one thread", least, faster.get(n))
        for n, least in FASTER.items()
    ]
    report("structured-sketch", quick, {"rows": rows, "rounds": rounds}, found, targets)


def products(arguments: argparse.Namespace) -> None:
    """Measure the milliseconds of one product."""
    sizes = (
        ((64, 3200), (256, 12_800))
        if arguments.quick
        else ((30, 1500), (64, 3200), (128, 6400), (256, 12_800), (1024, 10_240))
    )
    found = []
    rounds = 10 if arguments.quick else 40
    rng = np.random.default_rng(0)
    for n, m in sizes:
        f = ckm.draw_frequencies(m, n, distribution=STRUCTURED)
        fast = Structure.of(f)
        turns = np.ascontiguousarray((f.omega * f.step / (2 * np.pi)).T)
        for atoms in (10, 80):
            C = rng.standard_normal((atoms, n))
            G = rng.standard_normal((atoms, m))
            pairs = {
                "forward": {
                    "dense": partial(np.matmul, C, turns),
                    "fast": partial(fast.all_phases, C),
                },
                "back": {
                    "dense": partial(np.matmul, G, turns.T),
                    "fast": partial(fast.back_project, G),
                },
            }
            with threadpool_limits(1):
                best = {way: best_times(rounds, contenders) for way, contenders in pairs.items()}
                apart = max(
                    float(np.abs(works["dense"]() - works["fast"]()).max())
                    for works in pairs.values()
                )
            found.append({"n": n, "m": m, "atoms": atoms, "seconds": best, "apart": apart})
    ratio = {
        (r["n"], r["atoms"], way): s["dense"] / s["fast"]
        for r in found
        for way, s in r["seconds"].items()
    }
    show(
        "Products with Omega: milliseconds of the fast transform, and of a matrix product over it",
        [
            "n",
            "m",
            "atoms",
            "forward",
            "dense / fast",
            "back",
            "dense / fast",
            "largest difference",
        ],
        [
            [
                *(r["n"], r["m"], r["atoms"]),
                *(
                    cell
                    for way in ("forward", "back")
                    for cell in (1000 * r["seconds"][way]["fast"], ratio[r["n"], r["atoms"], way])
                ),
                r["apart"],
            ]
            for r in found
        ],
    )
    targets = [
        Target(
            "dense / fast, both ways, n = 256, 10 atoms",
            2.0,
            min(ratio[256, 10, way] for way in ("forward", "back")),
        )
    ]
    report("structured-products", arguments.quick, {"rounds": rounds}, found, targets)


def decode(arguments: argparse.Namespace) -> None:
    """Measure seconds and SSEs of both sketches, on the paper's data."""
    quick = arguments.quick
    seeds = range(arguments.seeds, arguments.seeds + (1 if arguments.quick else 3))
    found = []
    for n in (64,) if quick else (64, 256):
        for seed in seeds:
            X = ckm.datasets.gaussian_mixture(20_000, K, n, random_state=seed).rows
            run: dict[str, Any] = {"n": n, "m": 2 * K * n, "seed": seed}
            for law in LAWS:
                s = ckm.sketch(
                    X,
                    n_clusters=K,
                    sketch_size=2 * K * n,
                    distribution=law,
                    random_state=seed,
                    cells=0,
                )
                with threadpool_limits(1):
                    began = time.process_time()
                    centroids = ckm.decode(s, K, random_state=seed, n_jobs=1).centroids
                run[law] = {"seconds": time.process_time() - began, "sse": sse(X, centroids)}
            found.append(run)
    show(
        f"Decoding K = {K} clusters from m = 2Kn frequencies: seconds of one core",
        ["n", "seed", "dense", "structured", "dense / structured", "SSE, structured / dense"],
        [
            [
                *(
                    r["n"],
                    r["seed"],
                    r[DENSE]["seconds"],
                    r[STRUCTURED]["seconds"],
                    r[DENSE]["seconds"] / r[STRUCTURED]["seconds"],
                ),
                f"{r[STRUCTURED]['sse'] / r[DENSE]['sse']:.4f}",
            ]
            for r in found
        ],
    )
    ratios = {
        f"n = {r['n']}, seed {r['seed']}": r[STRUCTURED]["sse"] / r[DENSE]["sse"] for r in found
    }
    report(
        "structured-decode",
        quick,
        {"K": K, "rows": 20_000},
        found,
        [largest("SSE, structured / dense, largest", WORSE, ratios)],
    )


class Task(NamedTuple):
    """One data set, one seed of its rows, sketches and decoders."""

    data: DataSet
    seed: int


def work(quick: bool, task: Task) -> Outcome:
    """Return the relative SSEs of both laws."""
    data, seed = task
    try:
        X, n_clusters = data.load(seed, quick)
    except Unavailable as error:
        return Outcome(None, [str(error)])
    best = baseline(data.key(seed), X, n_clusters, quick)
    values = {}
    for law in LAWS:
        s = ckm.sketch(
            X, n_clusters=n_clusters, distribution=law, random_state=seed, n_jobs=1, cells=0
        )
        values[law] = (
            sse(X, ckm.decode(s, n_clusters, random_state=seed, n_jobs=1).centroids) / best
        )
    return Outcome({"data": data.name, "seed": seed, **values}, [])


def quality(arguments: argparse.Namespace) -> None:
    """Measure relative SSEs, medians over seeds."""
    quick = arguments.quick
    names = QUICK_SETS if arguments.quick else SETS
    sets = [data for data in data_sets(list(GROUPS), False) if data.name in names]
    prepare(sets)
    # the slowest first
    tasks = [Task(data, seed) for data in reversed(sets) for seed in seeds_of(arguments)]
    runs = [found for found in work_all(partial(work, quick), tasks, arguments.jobs) if found]
    runs.sort(key=lambda run: (names.index(run["data"]), run["seed"]))
    by_set = {
        name: [run for run in runs if run["data"] == name]
        for name in names
        if any(run["data"] == name for run in runs)
    }
    medians = {
        name: {law: float(np.median([run[law] for run in of_set])) for law in LAWS}
        for name, of_set in by_set.items()
    }
    show(
        f"SSE relative to k-means, medians of {len(seeds_of(arguments))} seeds, "
        f"m = {DEFAULT_RATIO}Kn, {rows_made(quick)} rows of synthetic data",
        ["data", "dense", "structured", "structured / dense"],
        [
            [name, *(f"{v:.4f}" for v in (m[DENSE], m[STRUCTURED], m[STRUCTURED] / m[DENSE]))]
            for name, m in medians.items()
        ],
    )
    ratios = {name: m[STRUCTURED] / m[DENSE] for name, m in medians.items()}
    settings = {
        "ratio": DEFAULT_RATIO,
        "first_seed": arguments.seeds,
        "seeds": len(seeds_of(arguments)),
    }
    report(
        "structured-quality", quick, settings, {"medians": medians, "runs": runs}, _promises(ratios)
    )


def _promises(ratios: dict[str, float]) -> Sequence[Target]:
    overall = float(np.exp(np.mean(np.log(list(ratios.values()))))) if ratios else None
    return [
        largest("structured / dense, largest of the sets' medians", WORSE, ratios),
        Target("structured / dense, geometric mean over sets", WORSE, overall, at_most=True),
    ]


SECTIONS = {"sketch": sketch, "products": products, "decode": decode, "quality": quality}


def parse() -> argparse.Namespace:
    parser = options("Compare structured frequencies with dense ones.", first_seed=100)
    process_options(parser, 5, 1)
    sections_option(parser, tuple(SECTIONS))
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    mnist.name_source(arguments.mnist)
    for name in arguments.sections:
        SECTIONS[name](arguments)


if __name__ == "__main__":
    main()
