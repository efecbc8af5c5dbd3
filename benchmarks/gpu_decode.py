"""Decoding on a GPU, in sections that can be run by themselves (--sections).

- sizes: against the CPU of the same machine: for how many clusters the GPU is faster, and whether
  its centroids are as good.
- many: K = 1000 clusters in five columns from a sketch of a million rows on the GPU, against
  KMeans(n_init=1) on all cores.

Rows are the paper's Gaussian mixture, whose clusters overlap, drawn on the CPU; sketches have
m = 5Kn frequencies, no cells and no pool.
"""

import argparse
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans

import ckm
from benchmarks.baselines import sse
from benchmarks.harness import Target, console, options, report, sections_option, show, timed

# Not public, but ckm.decode uses the GPU above its limit only, and that limit is what is measured.
from ckm._decoding.api import Run
from ckm._decoding.density import by_density
from ckm._decoding.settings import DEFAULT
from ckm._util.parallel import thread_count

SIZES = [(20, 5), (50, 5), (100, 5), (200, 5), (50, 10), (100, 10), (10, 100), (10, 400)]  # K and n
QUICK = [(10, 5), (20, 5)]
LARGE = 200  # clusters
N = 100_000
LIMIT = DEFAULT.min_gpu_pairs  # K m from which on the GPU is used by default
MANY = (1000, 5, 1_000_000)  # K, n and N
QUICK_MANY = (100, 5, 50_000)
MAX_SECONDS = 20
MAX_RATIO = 1.05


def compared(K: int, n: int, seed: int) -> dict[str, Any]:
    """Decode one sketch on both devices."""
    X = ckm.datasets.gaussian_mixture(N, K, n, random_state=seed).rows
    sketch = ckm.sketch(X, n_clusters=K, random_state=seed, cells=0)
    run = Run("density", by_density, K, "auto", None, seed, threads=thread_count(None))
    here, cpu = timed(run.decode, sketch)
    there, gpu = timed(run.decode, sketch, torch.device("cuda", torch.cuda.current_device()))
    work = K * sketch.frequencies.m
    row = {
        "K": K,
        "n": n,
        "m": sketch.frequencies.m,
        "seed": seed,
        "K m": work,
        "CPU, s": cpu,
        "GPU, s": gpu,
    }
    console.print(f"K = {K}, n = {n}: {cpu:.2f} s on the CPU, {gpu:.2f} s on the GPU")
    return row | {
        "times faster": cpu / gpu,
        "SSE, GPU / CPU": there.score(X) / here.score(X),
        "by default": work >= LIMIT,
    }


def measure_sizes(arguments: argparse.Namespace) -> None:
    """Decoding on both devices, for several sizes."""
    sizes = QUICK if arguments.quick else SIZES
    rows = [compared(K, n, seed) for K, n in sizes for seed in range(100, 100 + arguments.runs)]
    show("Decoding on the GPU and on the CPU", list(rows[0]), [list(row.values()) for row in rows])
    largest = [row for row in rows if row["K"] == LARGE]
    chosen = [row for row in rows if row["by default"]]
    targets = [
        Target(
            "where it is used by default: times faster, least",
            1,
            min((row["times faster"] for row in chosen), default=None),
        ),
        Target(
            f"K = {LARGE}: times faster, least",
            2,
            min((row["times faster"] for row in largest), default=None),
        ),
        Target(
            "SSE over the CPU's, largest",
            1.02,
            max(row["SSE, GPU / CPU"] for row in rows),
            at_most=True,
        ),
    ]
    report("gpu-decode", arguments.quick, _settings(N=N, limit=LIMIT), rows, targets)


def decoded(K: int, n: int, rows: int, seed: int) -> dict[str, Any]:
    """Sketch rows on the GPU, decode the sketch there, and compare with one run of k-means."""
    X = ckm.datasets.gaussian_mixture(rows, K, n, random_state=seed).rows.astype(np.float32)
    on_gpu = torch.tensor(X, device="cuda")
    options: dict[str, Any] = {"n_clusters": K, "random_state": seed, "cells": 0}
    sketch, sketching = timed(ckm.sketch, on_gpu, **options)
    found, decoding = timed(ckm.decode, sketch, K, random_state=seed, device="cuda")
    console.print(f"K = {K}, seed {seed}: sketch {sketching:.2f} s, decode {decoding:.2f} s")
    rival, fitting = timed(KMeans(K, n_init=1, random_state=seed).fit, X)
    return {
        "K": K,
        "n": n,
        "N": rows,
        "m": sketch.frequencies.m,
        "seed": seed,
        "sketch, s": sketching,
        "decode, s": decoding,
        "KMeans(n_init=1), s": fitting,
        "SSE / KMeans": sse(X, found.centroids) / sse(X, rival.cluster_centers_),
        "status": found.status,
    }


def measure_many(arguments: argparse.Namespace) -> None:
    """A thousand clusters from the sketch alone."""
    size = QUICK_MANY if arguments.quick else MANY
    decoded(100, 5, 20_000, 0)  # compiles
    rows = [decoded(*size, seed) for seed in range(100, 100 + arguments.runs)]
    show("Many clusters, sketch only", list(rows[0]), [list(row.values()) for row in rows])
    seconds = max(row["sketch, s"] + row["decode, s"] for row in rows)
    ratio = max(row["SSE / KMeans"] for row in rows)
    targets = [
        Target(f"K = {size[0]}: seconds, largest", MAX_SECONDS, seconds, at_most=True),
        Target(f"K = {size[0]}: SSE over KMeans(n_init=1)'s", MAX_RATIO, ratio, at_most=True),
    ]
    report("gpu-decode-many", arguments.quick, _settings(), rows, targets)


def _settings(**more: Any) -> dict[str, Any]:
    return {"GPU": torch.cuda.get_device_name(), "torch": torch.__version__, **more}


SECTIONS = {"sizes": measure_sizes, "many": measure_many}


def main() -> None:
    parser = options("Measure decoding on the GPU.")
    sections_option(parser, tuple(SECTIONS))
    parser.add_argument(
        "--runs", type=int, default=3, help="number of seeds per size (default: %(default)s)"
    )
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU that torch can use.")
    compared(5, 2, 0)  # compiles
    for name in arguments.sections:
        SECTIONS[name](arguments)


if __name__ == "__main__":
    main()
