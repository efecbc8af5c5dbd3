"""Decoding on a GPU and on the CPU of the same machine: for how many clusters the GPU is faster,
and whether its centroids are as good.

Rows are a Gaussian mixture whose clusters overlap, drawn on the CPU; sketches have m = 5Kn
frequencies and no pool.
"""

from typing import Any

import torch

import ckm
from benchmarks.harness import Target, console, options, report, show, timed

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


def main() -> None:
    parser = options("Measure decoding on the GPU.")
    parser.add_argument(
        "--runs", type=int, default=3, help="number of seeds per size (default: %(default)s)"
    )
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU that torch can use.")
    sizes = QUICK if arguments.quick else SIZES
    compared(5, 2, 0)  # compiles
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
    settings = {
        "N": N,
        "GPU": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "limit": LIMIT,
    }
    report("gpu-decode", arguments.quick, settings, rows, targets)


if __name__ == "__main__":
    main()
