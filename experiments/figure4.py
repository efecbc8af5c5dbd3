"""Figure 4: time, memory and SSE relative to one run of Lloyd, over N and m / (K n), on Gaussian
data (K = n = 10).

The paper leaves the time of sketching out; both are measured here. Lloyd, sketching and our decoder
use every core; the paper's decoder uses one.
"""

from pathlib import Path

import numpy as np

import ckm
from benchmarks.harness import timed
from experiments.drawing import panels, style
from experiments.experiment import Experiment, Plan, Row, Run, Task, pick, reproduce
from experiments.methods import LABELS, SKETCHES, decoded, judge, lloyd
from experiments.paper import FIGURE_4_SSE, FIGURE_4_TIME

K = 10
N_FEATURES = 10
RATIOS = [1, 2, 5, 10, 32]
QUICK_RATIOS = [2, 10, 32]
SHOWN = 10  # the m / (K n) of the panel over N: the paper's m = 1000
QUICK_SIZES = {10_000: 10, 100_000: 10, 1_000_000: 2}  # N: most repetitions


def tasks(plan: Plan) -> list[Task]:
    """Return the tasks, size by size, so that an interrupted run has all sizes."""
    sizes = (
        dict.fromkeys((10**4, 10**5, 10**6, 10**7), len(plan.seeds)) if plan.full else QUICK_SIZES
    )
    ratios = RATIOS if plan.full else QUICK_RATIOS
    return [
        {"N": N, "ratios": ratios, "seed": seed}
        for seed in plan.seeds
        for N, most in sizes.items()
        if seed < most
    ]


def work(task: Task) -> list[Run]:
    """Run Lloyd once, then both decoders at every sketch size."""
    warm_up()
    seed = task["seed"]
    X = ckm.datasets.gaussian_mixture(task["N"], K, N_FEATURES, random_state=seed).rows
    centroids, lloyd_seconds = timed(lloyd, X, K, "range", seed)
    lloyd_sse = judge(X, centroids).sse
    found: list[Run] = [
        {"method": "lloyd", "ratio": None, "seconds": lloyd_seconds, "relative_sse": 1.0}
    ]
    for ratio in task["ratios"]:
        for method, make in SKETCHES.items():
            sketch, sketching = timed(make, X, K, ratio * K * N_FEATURES, seed)
            C, seconds = timed(decoded, sketch, K, method, seed)
            found.append(
                {
                    "method": method,
                    "ratio": ratio,
                    "seconds": seconds,
                    "sketch_seconds": sketching,
                    "relative_time": seconds / lloyd_seconds,
                    "relative_whole": (seconds + sketching) / lloyd_seconds,
                    # held while decoding; Lloyd holds X
                    "relative_memory": (sketch.nbytes + sketch.frequencies.omega.nbytes) / X.nbytes,
                    "relative_sse": judge(X, C).sse / lloyd_sse,
                }
            )
    return found


def warm_up() -> None:
    """Compile and load code, so that no measured time includes it; the second call is cheap."""
    X = np.random.default_rng(0).standard_normal((2000, 2))
    lloyd(X, 3, "range", 0)
    for method, make in SKETCHES.items():
        decoded(make(X, 3, 30, 0), 3, method, 0)


def draw(rows: list[Row], path: Path) -> None:
    """Draw time and memory over N at m = 1000, and SSE over m / (K n) at the largest N.

    The paper's ranges are bars.
    """
    largest = max(row["N"] for row in rows)
    at_shown = pick(rows, ratio=SHOWN)
    with panels(path, 3) as (time, memory, sse):
        for method in [method for method in LABELS if method != "lloyd"]:
            known = sorted(pick(at_shown, method=method), key=lambda row: row["N"])
            sizes = [row["N"] for row in known]
            time.plot(sizes, [row["relative_time"]["mean"] for row in known], **style(method))
            time.plot(
                sizes,
                [row["relative_whole"]["mean"] for row in known],
                **style(method, linestyle="--", label=f"{LABELS[method]}, with sketching"),
            )
            memory.plot(sizes, [row["relative_memory"]["mean"] for row in known], **style(method))
            known = sorted(pick(rows, N=largest, method=method), key=lambda row: row["ratio"])
            sse.errorbar(
                [row["ratio"] for row in known],
                *zip(
                    *[(row["relative_sse"]["mean"], row["relative_sse"]["std"]) for row in known],
                    strict=True,
                ),
                **style(method),
            )
        for ax, ranges in ((time, FIGURE_4_TIME), (sse, FIGURE_4_SSE)):
            ax.vlines(
                [*ranges],
                *zip(*ranges.values(), strict=True),
                color="black",
                linewidth=4,
                alpha=0.6,
                label="the paper",
            )
        for ax, title, xlabel in (
            (time, f"time over one Lloyd run, m = {SHOWN}Kn", "N"),
            (memory, "memory over the data's", "N"),
            (sse, f"SSE over one Lloyd run, N = {largest:,}", "m / (K n)"),
        ):
            ax.axhline(1, color="#666666", linewidth=1)
            ax.set(title=title, xlabel=xlabel, xscale="log", yscale="log")
            ax.legend(fontsize=8)


MEASURES = (
    "seconds",
    "sketch_seconds",
    "relative_time",
    "relative_whole",
    "relative_memory",
    "relative_sse",
)

if __name__ == "__main__":
    reproduce(
        Experiment("figure4", "time, memory and SSE", tasks, work, MEASURES, draw, timed=True)
    )
