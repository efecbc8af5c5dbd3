"""Labels and SSE for given centroids: `predict` and `score` of ckm.Solution and of scikit-learn's
KMeans, in one run.

Contenders take turns and each keeps its best time. Both get the same number of threads and the same
data in memory, and validate it as usual. Memory is what a call to `predict` allocates beyond the
labels that it returns.
"""

import tracemalloc
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import ckm
from benchmarks.harness import Target, best_times, options, report, show

CLUSTERS = (10, 100, 1000)
DIMENSIONS = (2, 10, 64, 256)
THREADS = (1, 2)
MOST_ROWS = 10**6
MOST_NUMBERS = 3e7  # of X
MOST_WORK = 2e10  # multiply-adds and comparisons per call
VERBS = ("predict", "score")


def grid(quick: bool) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Yield (K, n, rows, centroids) as float64: overlapping clusters around the centroids."""
    for n in DIMENSIONS:
        for K in CLUSTERS:
            N = int(min(MOST_ROWS, MOST_NUMBERS / n, MOST_WORK / (K * (n + 40)))) // (
                20 if quick else 1
            )
            rng = np.random.default_rng(K + n)
            C = rng.normal(size=(K, n))
            yield K, n, C[rng.integers(K, size=N)] + 0.5 * rng.normal(size=(N, n)), C


def their_model(C: np.ndarray) -> KMeans:
    """Return a KMeans with these centroids."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(len(C), init=C, n_init=1, max_iter=1).fit(C)
    model.cluster_centers_ = np.ascontiguousarray(C)
    return model


class OurModel(NamedTuple):
    """A solution with given centroids, and the number of threads it uses."""

    solution: ckm.Solution
    threads: int

    @classmethod
    def at(cls, C: np.ndarray, threads: int) -> "OurModel":
        """Return a model with these centroids."""
        shares = np.full(len(C), 1 / len(C))
        solution = ckm.Solution(
            centroids=C.astype(np.float64),
            weights=shares,
            raw_weights=shares,
            cost=0.0,
            noise_floor=0.0,
            findings=(),
            columns=None,
            decoder="density",
        )
        return cls(solution, threads)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return labels."""
        return self.solution.predict(X, n_jobs=self.threads)

    def score(self, X: np.ndarray) -> float:
        """Return minus the SSE."""
        return self.solution.score(X, n_jobs=self.threads)


def extra_memory(model: Any, X: np.ndarray) -> float:
    """Return the peak of megabytes allocated during `predict`, beyond the labels."""
    tracemalloc.start()
    labels = model.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(peak - labels.nbytes) / 1e6


def measure(
    K: int, n: int, X: np.ndarray, C: np.ndarray, threads: int, rounds: int
) -> dict[str, Any]:
    """Measure the times of both, the share of labels that differ, and the ratio of scores."""
    with threadpool_limits(threads):
        # KMeans predicts with the number of threads that it was fitted with.
        rivals = {"ckm": OurModel.at(C, threads), "KMeans": their_model(C)}
        # This also loads compiled code.
        ours, theirs = (model.predict(X) for model in rivals.values())
        row: dict[str, Any] = {
            "n": n,
            "K": K,
            "rows": len(X),
            "dtype": X.dtype.name,
            "threads": threads,
        }
        for verb in VERBS:
            calls = {name: partial(getattr(model, verb), X) for name, model in rivals.items()}
            best = best_times(rounds, calls)
            row |= {
                f"{verb}_s": best["ckm"],
                f"kmeans_{verb}_s": best["KMeans"],
                f"{verb}_ratio": best["KMeans"] / best["ckm"],
            }
        row["labels_differ"] = float((ours != theirs).mean())
        row["sse_over_kmeans"] = rivals["ckm"].score(X) / rivals["KMeans"].score(X)
        row["extra_mb"], row["kmeans_extra_mb"] = (
            extra_memory(model, X) for model in rivals.values()
        )
    return row


def smallest(what: str, verb: str, rows: list[dict[str, Any]]) -> Target:
    """Return the target that ckm is at least as fast everywhere; it names the worst case."""
    worst = min(rows, key=lambda row: row[f"{verb}_ratio"])
    where = f"{worst['dtype']}, n = {worst['n']}, K = {worst['K']}"
    return Target(f"{what}, smallest of {len(rows)} ({where})", 1, worst[f"{verb}_ratio"])


def figures(row: dict[str, Any], verb: str) -> tuple[float, float]:
    return row[f"{verb}_s"] / row["rows"] * 1e9, row[f"{verb}_ratio"]


def memory(row: dict[str, Any]) -> tuple[float, float]:
    return row["extra_mb"], row["kmeans_extra_mb"]


def main() -> None:
    arguments = options(
        "Measure how fast rows are labelled, against scikit-learn's KMeans at equal threads."
    ).parse_args()
    rounds = 2 if arguments.quick else 5
    rows = []
    for K, n, X, C in grid(arguments.quick):
        for dtype in (np.float32, np.float64):
            rows += [
                measure(K, n, X.astype(dtype), C.astype(dtype), threads, rounds)
                for threads in THREADS
            ]
    show(
        "Labelling rows for given centroids: KMeans' time over ckm's",
        [
            "dtype",
            "n",
            "K",
            "rows",
            "threads",
            "predict ns/row",
            "KMeans / ckm",
            "score ns/row",
            "KMeans / ckm",
            "extra MB",
            "KMeans",
        ],
        [
            [
                *(r[name] for name in ("dtype", "n", "K", "rows", "threads")),
                *figures(r, "predict"),
                *figures(r, "score"),
                *memory(r),
            ]
            for r in rows
        ],
    )
    targets = [
        smallest(
            f"KMeans.{verb} / ours, threads: {threads}",
            verb,
            [r for r in rows if r["threads"] == threads],
        )
        for verb in VERBS
        for threads in THREADS
    ]
    most = max(r["extra_mb"] for r in rows)
    targets.append(Target("MB beyond input and labels, most of all", 100, most, at_most=True))
    report(
        "predict",
        arguments.quick,
        {"rounds": rounds, "clusters": CLUSTERS, "dimensions": DIMENSIONS},
        rows,
        targets,
    )


if __name__ == "__main__":
    main()
