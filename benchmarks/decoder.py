"""Decoding time, in sections that can be run by themselves (--sections), each written to its own
file. BLAS has one thread; in "growth" and "large" the decoder uses every core.

- peers: ours against pycle's: the paper's data, K = n = 10, m = 1000, one thread. pycle and our
  "clompr" run Algorithm 1 on the same sketch, the paper's, with uniform starts in the data's
  bounding box; "density" is our default, on our default sketch of the same size.
- gradient: one evaluation of the cost and its gradients, against NumPy, at the same size.
- growth: how the default decoder's time grows with K, n and m, one at a time from K = n = 10,
  m = 5Kn.
- large: many clusters: K = 200, n = 5, m = 5Kn.

SSEs are relative to the best of five k-means++ runs of scikit-learn, of ten for "large".
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import ckm
from benchmarks.baselines import BASELINE_RUNS, PYCLE, kmeans_sse, pycle_centroids, sse
from benchmarks.harness import Target, options, peer, report, sections_option, show, timed

# Not public, but this one evaluation is what the section "gradient" measures.
from ckm._decoding.problem import Problem

K = 10
N_FEATURES = 10
M = 1000
RATIO = 5
TARGETS = {"clompr": 5, "density": 15}
GROWTH = {"K": (5, 10, 20, 50), "n": (2, 5, 10, 20, 30), "m/(Kn)": (2, 5, 10, 20)}
QUICK_GROWTH = {"K": (5, 10, 20), "n": (5, 10, 20), "m/(Kn)": (2, 5, 10)}
LARGE_K = 200
LARGE_N = 5

Decode = Callable[[ckm.Sketch, int], np.ndarray]  # (sketch, seed) to centroids


def decode_timed(decode: Decode, sketch: ckm.Sketch, seed: int) -> tuple[np.ndarray, float]:
    """Return centroids and the seconds they took, with one BLAS thread."""
    with threadpool_limits(1):
        return timed(decode, sketch, seed)


def load_once() -> None:
    """Load compiled code, so that no measured time includes it."""
    X = ckm.datasets.gaussian_mixture(2000, 3, 2, random_state=0).rows
    sketch = ckm.sketch(X, n_clusters=3, random_state=0, cells=0)
    for name in TARGETS:
        ckm.decode(sketch, 3, decoder=name, random_state=0)


def ckm_decode(name: str, sketch: ckm.Sketch, seed: int) -> np.ndarray:
    return ckm.decode(sketch, K, decoder=name, init="range", random_state=seed, n_jobs=1).centroids


def by_default(n_clusters: int, sketch: ckm.Sketch, seed: int) -> np.ndarray:
    return ckm.decode(sketch, n_clusters, random_state=seed).centroids


def peers(quick: bool, first_seed: int) -> None:
    """Measure each decoder's seconds and relative SSE, seed by seed."""
    n_samples, count = (30_000, 1) if quick else (300_000, 3)
    decoders: dict[str, Decode] = {name: partial(ckm_decode, name) for name in TARGETS}
    if peer(*PYCLE):
        decoders["pycle"] = lambda sketch, seed: pycle_centroids(sketch, K, seed)
    runs = {
        seed: _compare(n_samples, seed, decoders) for seed in range(first_seed, first_seed + count)
    }
    show(
        f"Decoding, K = n = {K}, m = {M}, N = {n_samples}; SSE relative to the best of 5 k-means",
        ["seed", "decoder", "seconds", "relative SSE"],
        [
            [seed, name, r["seconds"], f"{r['relative_sse']:.4f}"]
            for seed, found in runs.items()
            for name, r in found.items()
        ],
    )
    total = {name: sum(found[name]["seconds"] for found in runs.values()) for name in decoders}
    targets = [
        Target(
            f"pycle's time / {name}'s, all seeds together",
            least,
            total["pycle"] / total[name] if "pycle" in total else None,
        )
        for name, least in TARGETS.items()
    ]
    settings = {"K": K, "n": N_FEATURES, "m": M, "N": n_samples, "first_seed": first_seed}
    report("decoder", quick, settings, runs, targets)


def _compare(n_samples: int, seed: int, decoders: dict[str, Decode]) -> dict[str, dict[str, float]]:
    X = ckm.datasets.gaussian_mixture(n_samples, K, N_FEATURES, random_state=seed).rows
    paper = ckm.sketch(X, sketch_size=M, distribution="adapted-radius", random_state=seed, cells=0)
    ours = ckm.sketch(X, n_clusters=K, sketch_size=M, random_state=seed, cells=0)
    best = kmeans_sse(X, K, seed)
    found = {}
    for name, decode in decoders.items():
        centroids, seconds = decode_timed(decode, ours if name == "density" else paper, seed)
        found[name] = {"seconds": seconds, "relative_sse": sse(X, centroids) / best}
    return found


def numpy_cost(
    problem: Problem, C: np.ndarray, alpha: np.ndarray, width: float
) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Compute what `blurred_cost` does, with matrix products and a cosine and a sine per phase."""
    omega = 2 * np.pi * problem.omega.turns.T
    squared_norms = problem.omega.squared_norms
    phases = C @ omega.T
    cosine = np.cos(phases)
    sine = np.sin(phases)
    blur = np.exp(-0.5 * width * squared_norms)
    real = blur * (alpha @ cosine)
    imag = -blur * (alpha @ sine)
    r_real = problem.z.real - real
    r_imag = problem.z.imag - imag
    total = r_real @ r_real + r_imag @ r_imag
    slope = squared_norms @ (r_real * real + r_imag * imag)
    r_real *= blur
    r_imag *= blur
    gradient_alpha = 2 * (sine @ r_imag - cosine @ r_real)
    sine *= r_real
    cosine *= r_imag
    sine += cosine
    return total, 2 * alpha[:, None] * (sine @ omega), gradient_alpha, slope


def compiled_cost(
    problem: Problem, C: np.ndarray, alpha: np.ndarray, width: float
) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Compute the cost and its gradients as the decoder does."""
    return problem.objective.blurred_cost(C, alpha, width)


def gradient(quick: bool, first_seed: int) -> None:
    """Measure one evaluation, ours and NumPy's by turns, and the difference of their values."""
    rounds, evaluations = (20, 20) if quick else (100, 100)
    X, _, C = ckm.datasets.gaussian_mixture(30_000, K, N_FEATURES, random_state=first_seed)
    sketch = ckm.sketch(X, sketch_size=M, random_state=first_seed, cells=0)
    problem = Problem.of(sketch)
    C = (C - sketch.frequencies.origin) / np.sqrt(sketch.frequencies.scale)
    rng = np.random.default_rng(first_seed)
    arguments = (problem, C + 0.3 * rng.standard_normal(C.shape), rng.dirichlet(np.ones(K)), 0.5)
    with threadpool_limits(1):
        ours = compiled_cost(*arguments)
        theirs = numpy_cost(*arguments)
        apart = max(
            float(np.max(np.abs(np.subtract(a, b))) / np.max(np.abs(b)))
            for a, b in zip(ours, theirs, strict=True)
        )
        pairs = [
            [_seconds(f, arguments, evaluations) for f in (compiled_cost, numpy_cost)]
            for _ in range(rounds)
        ]
    seconds = dict(zip(("ckm", "numpy"), map(float, np.median(pairs, axis=0)), strict=True))
    title = (
        f"One evaluation of the cost and its gradients, K = n = {K}, m = {M}, float64, "
        f"median of {rounds} x {evaluations}"
    )
    show(title, ["by", "milliseconds"], [[name, 1000 * value] for name, value in seconds.items()])
    targets = [
        Target("NumPy's time / ckm's", 5, seconds["numpy"] / seconds["ckm"]),
        Target("largest difference between them, relative", 1e-9, apart, at_most=True),
    ]
    settings = {
        "K": K,
        "n": N_FEATURES,
        "m": M,
        "rounds": rounds,
        "evaluations": evaluations,
        "first_seed": first_seed,
    }
    report(
        "decoder-gradient",
        quick,
        settings,
        {"seconds": seconds, "relative_difference": apart},
        targets,
    )


def _seconds(evaluate: Callable[..., Any], arguments: Sequence[Any], evaluations: int) -> float:
    began = time.perf_counter()
    for _ in range(evaluations):
        evaluate(*arguments)
    return (time.perf_counter() - began) / evaluations


def growth(quick: bool, first_seed: int) -> None:
    """Measure the default decoder as one of K, n and m grows, and fit the exponent of growth."""
    n_samples, count = (20_000, 1) if quick else (100_000, 5)
    at = {"K": K, "n": N_FEATURES, "m/(Kn)": RATIO}
    exponents = {}
    known = {}
    for what, values in (QUICK_GROWTH if quick else GROWTH).items():
        sizes = [tuple((at | {what: value}).values()) for value in values]
        for size in sizes:  # the size that all three share is measured once
            known[size] = known.get(size) or [
                _decoding_seconds(*size, n_samples, seed)
                for seed in range(first_seed, first_seed + count)
            ]
        medians = [float(np.median(known[size])) for size in sizes]
        exponents[what] = float(np.polyfit(np.log(values), np.log(medians), 1)[0])
        size_of_m = "" if what == "m/(Kn)" else f", m = {RATIO}Kn"
        show(
            f"Growth with {what}{size_of_m}: seconds ~ {what}^{exponents[what]:.2f}",
            [what, "m", "seconds, median", "fastest", "slowest"],
            [
                [v, k * n * r, s, min(known[k, n, r]), max(known[k, n, r])]
                for v, s, (k, n, r) in zip(values, medians, sizes, strict=True)
            ],
        )
    runs = [
        {"K": k, "n": n, "m": k * n * ratio, "seconds": seconds}
        for (k, n, ratio), seconds in known.items()
    ]
    settings = {"from": at, "N": n_samples, "first_seed": first_seed, "seeds": count}
    report("decoder-growth", quick, settings, {"exponents": exponents, "runs": runs}, [])


def _decoding_seconds(
    n_clusters: int, n_features: int, ratio: int, n_samples: int, seed: int
) -> float:
    X = ckm.datasets.gaussian_mixture(n_samples, n_clusters, n_features, random_state=seed).rows
    sketch = ckm.sketch(
        X,
        n_clusters=n_clusters,
        sketch_size=ratio * n_clusters * n_features,
        random_state=seed,
        cells=0,
    )
    return decode_timed(partial(by_default, n_clusters), sketch, seed)[1]


def large(quick: bool, first_seed: int) -> None:
    """Measure seconds and relative SSE of many clusters, at two numbers of rows.

    More rows leave less noise in the sketch, and so more structure to explain.
    """
    n_clusters, sizes = (30, (20_000,)) if quick else (LARGE_K, (100_000, 300_000))
    m = RATIO * n_clusters * LARGE_N
    runs = []
    for n_samples in sizes:
        X = ckm.datasets.gaussian_mixture(
            n_samples, n_clusters, LARGE_N, random_state=first_seed
        ).rows
        sketch = ckm.sketch(
            X, n_clusters=n_clusters, sketch_size=m, random_state=first_seed, cells=0
        )
        centroids, seconds = decode_timed(partial(by_default, n_clusters), sketch, first_seed)
        best = KMeans(n_clusters, n_init=BASELINE_RUNS, random_state=first_seed).fit(X)
        runs.append(
            {
                "N": n_samples,
                "seconds": seconds,
                "relative_sse": sse(X, centroids) / sse(X, best.cluster_centers_),
            }
        )
    show(
        f"Many clusters, K = {n_clusters}, n = {LARGE_N}, m = {m}; SSE relative to the best of "
        f"{BASELINE_RUNS} k-means++",
        ["N", "seconds", "relative SSE"],
        [[run["N"], run["seconds"], f"{run['relative_sse']:.4f}"] for run in runs],
    )
    targets = [
        Target(
            f"K = {n_clusters}: seconds to decode, slowest",
            180,
            max(run["seconds"] for run in runs),
            at_most=True,
        ),
        Target(
            f"K = {n_clusters}: relative SSE, largest",
            1.05,
            max(run["relative_sse"] for run in runs),
            at_most=True,
        ),
    ]
    settings = {"K": n_clusters, "n": LARGE_N, "m": m, "first_seed": first_seed}
    report("decoder-large", quick, settings, runs, targets)


SECTIONS = {"peers": peers, "gradient": gradient, "growth": growth, "large": large}


def parse() -> argparse.Namespace:
    parser = options("Measure how long decoding takes.", first_seed=100)
    sections_option(parser, tuple(SECTIONS))
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    load_once()
    for name in arguments.sections:
        SECTIONS[name](arguments.quick, arguments.seeds)


if __name__ == "__main__":
    main()
