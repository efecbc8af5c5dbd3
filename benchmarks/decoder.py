"""Decoding time, ours against pycle's, from the same sketch and frequencies: the paper's data, K = n = 10, m = 1000.

Both run Algorithm 1 with uniform starts in the data's box, BLAS at one thread. SSEs are relative to the best of five runs of
scikit-learn's k-means++.
"""

import time
from collections.abc import Callable
from functools import partial
from types import ModuleType

import numpy as np
from threadpoolctl import threadpool_limits

import ckm
from common import Target, kmeans_sse, options, peer, report, show, sse

K, N_FEATURES, M = 10, 10, 1000
TARGET = 5

Decode = Callable[[ckm.Sketch, int], np.ndarray]  # (sketch, seed) to centroids


def pycle_decode(modules: list[ModuleType], sketch: ckm.Sketch, seed: int) -> np.ndarray:
    """Centroids by pycle, in the data's coordinates."""
    sketching, learning = modules
    frequencies = sketch.frequencies
    np.random.seed(seed)  # noqa: NPY002  # pycle draws from NumPy's global state
    features = sketching.SimpleFeatureMap("complexExponential", frequencies.omega.T)
    bounds = np.stack([sketch.lower, sketch.upper]) - frequencies.origin
    solver = learning.CLOMP_CKM(features, K, bounds, np.conj(sketch.z))  # pycle's sign is +i
    solver.fit_once()
    return frequencies.origin + solver.get_centroids()


def ckm_decode(sketch: ckm.Sketch, seed: int) -> np.ndarray:
    return ckm.decode(sketch, K, decoder="clompr", init="range", random_state=seed).centroids


def measure(n_samples: int, seed: int, decoders: dict[str, Decode]) -> dict[str, dict[str, float]]:
    """Each decoder's seconds and relative SSE on one data set."""
    X = ckm.datasets.gaussian_mixture(n_samples, K, N_FEATURES, random_state=seed).rows
    sketch = ckm.sketch(X, sketch_size=M, random_state=seed)
    baseline = kmeans_sse(X, K, seed)
    ckm.decode(sketch, 1, decoder="clompr", random_state=seed)  # loads what is loaded once
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
    decoders: dict[str, Decode] = {"ckm": ckm_decode}
    if modules := peer("pycle.sketching", "pycle.compressive_learning"):
        decoders["pycle"] = partial(pycle_decode, modules)
    runs = {seed: measure(n_samples, seed, decoders) for seed in range(arguments.seeds, arguments.seeds + count)}
    show(
        f"Decoding, K = n = {K}, m = {M}, N = {n_samples}; SSE relative to the best of 5 k-means",
        ["seed", "decoder", "seconds", "times ckm", "relative SSE"],
        [
            [seed, name, r["seconds"], r["seconds"] / found["ckm"]["seconds"], f"{r['relative_sse']:.3f}"]
            for seed, found in runs.items()
            for name, r in found.items()
        ],
    )
    total = {name: sum(found[name]["seconds"] for found in runs.values()) for name in decoders}
    ratio = total["pycle"] / total["ckm"] if "pycle" in total else None
    settings = {"K": K, "n": N_FEATURES, "m": M, "N": n_samples, "first_seed": arguments.seeds}
    report("decoder", arguments.quick, settings, runs, [Target("pycle's time / ckm's, all seeds together", TARGET, ratio)])


if __name__ == "__main__":
    main()
