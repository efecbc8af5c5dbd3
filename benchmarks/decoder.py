"""Decoding time, ours against pycle's, from the same sketch and frequencies: the paper's data, K = n = 10, m = 1000.

pycle and our "clompr" run Algorithm 1 with uniform starts in the data's box; "density" is our default, also from the sketch alone. BLAS has
one thread. SSEs are relative to the best of five runs of scikit-learn's k-means++.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

import ckm
from common import PYCLE, Target, kmeans_sse, options, peer, pycle_centroids, report, show, sse

K, N_FEATURES, M = 10, 10, 1000
TARGETS = {"clompr": 5, "density": 15}

Decode = Callable[[ckm.Sketch, int], np.ndarray]  # (sketch, seed) to centroids


def ckm_decode(name: str, sketch: ckm.Sketch, seed: int) -> np.ndarray:
    return ckm.decode(sketch, K, decoder=name, init="range", random_state=seed).centroids


def measure(n_samples: int, seed: int, decoders: dict[str, Decode]) -> dict[str, dict[str, float]]:
    """Each decoder's seconds and relative SSE on one data set."""
    X = ckm.datasets.gaussian_mixture(n_samples, K, N_FEATURES, random_state=seed).rows
    sketch = ckm.sketch(X, sketch_size=M, random_state=seed)
    baseline = kmeans_sse(X, K, seed)
    for name in TARGETS:
        ckm.decode(sketch, 1, decoder=name, random_state=seed)  # loads what is loaded once
    found = {}
    for name, decode in decoders.items():
        with threadpool_limits(1):
            began = time.perf_counter()
            centroids = decode(sketch, seed)
            seconds = time.perf_counter() - began
        found[name] = {"seconds": seconds, "relative_sse": sse(X, centroids) / baseline}
    return found


def main() -> None:
    arguments = options("Measure how long decoding takes, against pycle on the same sketch.", first_seed=100).parse_args()
    n_samples, count = (30_000, 1) if arguments.quick else (300_000, 3)
    decoders: dict[str, Decode] = {name: partial(ckm_decode, name) for name in TARGETS}
    if peer(*PYCLE):
        decoders["pycle"] = lambda sketch, seed: pycle_centroids(sketch, K, seed)
    runs = {seed: measure(n_samples, seed, decoders) for seed in range(arguments.seeds, arguments.seeds + count)}
    show(
        f"Decoding, K = n = {K}, m = {M}, N = {n_samples}; SSE relative to the best of 5 k-means",
        ["seed", "decoder", "seconds", "relative SSE"],
        [[seed, name, r["seconds"], f"{r['relative_sse']:.4f}"] for seed, found in runs.items() for name, r in found.items()],
    )
    total = {name: sum(found[name]["seconds"] for found in runs.values()) for name in decoders}
    targets = [
        Target(f"pycle's time / {name}'s, all seeds together", least, total["pycle"] / total[name] if "pycle" in total else None)
        for name, least in TARGETS.items()
    ]
    settings = {"K": K, "n": N_FEATURES, "m": M, "N": n_samples, "first_seed": arguments.seeds}
    report("decoder", arguments.quick, settings, runs, targets)


if __name__ == "__main__":
    main()
