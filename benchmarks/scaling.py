"""How the time of a sketch grows with N, m and n, one at a time from N = 10^6, m = 500, n = 10,
with the fitted exponents. Every core is used. Choosing the frequencies from a pilot, which does not
grow with N, is measured separately. decoder.py measures how decoding grows.
"""

import time
from typing import Any

import numpy as np

import ckm
from benchmarks.harness import options, report, show

START = {"N": 1_000_000, "m": 500, "n": 10}
GROWTH = {
    "N": (10_000, 100_000, 1_000_000, 4_000_000),
    "m": (100, 250, 500, 1000, 2500, 5000),
    "n": (2, 5, 10, 20, 50, 100),
}
QUICK_START = {"N": 50_000, "m": 100, "n": 10}
QUICK_GROWTH = {"N": (10_000, 50_000), "m": (50, 100), "n": (5, 10)}


def seconds_of(N: int, m: int, n: int, seed: int, repeats: int) -> dict[str, float]:
    """Return the fastest of `repeats` sketches with given frequencies, and the fastest of as many
    choices of frequencies.
    """
    X = np.random.default_rng(seed).standard_normal((N, n), np.float32)
    like = None
    choosing = []
    sketching = []
    for _ in range(repeats):
        began = time.perf_counter()
        like = (
            ckm.sketch(X[:0], sketch_size=m, scale=1.0, random_state=seed, cells=0)
            if like is None
            else like
        )
        ckm.sketch(X, sketch_size=m, random_state=seed, cells=0)
        both = time.perf_counter()
        ckm.sketch(X, like=like)
        alone = time.perf_counter() - both
        sketching.append(alone)
        choosing.append(max(both - began - alone, 0.0))
    return {"sketch": min(sketching), "choose": min(choosing)}


def main() -> None:
    arguments = options("Measure how sketching grows with N, m and n.", first_seed=100).parse_args()
    start, growth = (QUICK_START, QUICK_GROWTH) if arguments.quick else (START, GROWTH)
    exponents = {}
    runs = []
    seconds_of(1000, 10, 2, arguments.seeds, 1)  # compile
    for what, values in growth.items():
        found: list[dict[str, Any]] = []
        for value in values:
            size = start | {what: value}
            found.append({**size, **seconds_of(**size, seed=arguments.seeds, repeats=3)})
        exponents[what] = float(
            np.polyfit(np.log(values), np.log([run["sketch"] for run in found]), 1)[0]
        )
        show(
            f"Sketching, growth with {what}: seconds ~ {what}^{exponents[what]:.2f}",
            ["N", "m", "n", "seconds", "and to choose the frequencies"],
            [[run["N"], run["m"], run["n"], run["sketch"], run["choose"]] for run in found],
        )
        runs += found
    report(
        "scaling",
        arguments.quick,
        {"from": start, "seed": arguments.seeds},
        {"exponents": exponents, "runs": runs},
        [],
    )


if __name__ == "__main__":
    main()
