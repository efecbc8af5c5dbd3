"""How far centroids move over seeds, and how far `Solution.seed_movement` says that they do.

Each set is sketched and decoded with several seeds. Measured: the root mean square distance of
matched centroids from their mean over the seeds. Estimated: the mean of what each solution says.
Both relative to the width of a cluster, the root of the mean squared distance of rows.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

import ckm
from benchmarks.harness import options, report, show, timed

SEEDS = 10
QUICK_SEEDS = 3


def data_sets() -> dict[str, tuple[np.ndarray, int]]:
    """Rows and numbers of clusters, from determined to arbitrary."""
    rng = np.random.default_rng(0)
    return {
        "separate": (_mixture(20.0), 6),
        "overlapping": (_mixture(2.0), 6),
        "digits, 20 pixels": (load_digits().data[:, 10:30], 10),
        "uniform": (rng.random((20_000, 2)), 6),
        "lognormal": (np.exp(rng.normal(size=(20_000, 3))), 6),
    }


def _mixture(separation: float) -> np.ndarray:
    return ckm.datasets.gaussian_mixture(20_000, 6, 4, separation=separation, random_state=3).rows


def measured(solutions: list[ckm.Solution]) -> float:
    """The root mean square distance of matched centroids from their mean over the solutions."""
    first = solutions[0].centroids
    matched = []
    for solution in solutions:
        distances = cdist(first, solution.centroids)
        matched.append(solution.centroids[linear_sum_assignment(distances)[1]])
    squares = np.var(matched, axis=0, ddof=1).sum(axis=1)
    return float(np.sqrt(squares.mean()))


def main() -> None:
    """Measure, print and write."""
    arguments = options(__doc__.splitlines()[0], first_seed=100).parse_args()
    count = QUICK_SEEDS if arguments.quick else SEEDS
    rows = []
    for name, (X, K) in data_sets().items():
        for cells in ("auto", 0):
            solutions = []
            for seed in range(arguments.seeds, arguments.seeds + count):
                sketch = ckm.sketch(X, n_clusters=K, cells=cells, random_state=seed)
                solutions.append(ckm.decode(sketch, K, random_state=seed))
            width = float(np.sqrt(-solutions[0].score(X) / len(X)))
            found, seconds = timed(lambda: [each.seed_movement() for each in solutions])  # noqa: B023
            estimated = float(np.sqrt(np.mean(np.square(found)))) / width
            kind = "cells" if cells else "frequencies alone"
            rows.append((name, kind, measured(solutions) / width, estimated, seconds / count))
    columns = ("data", "sketch", "measured", "estimated", "seconds")
    show("Movement of centroids over seeds, in widths of a cluster", columns, rows)
    results = [dict(zip(columns, row, strict=True)) for row in rows]
    settings = {"seeds": count, "first": arguments.seeds}
    report("seed_movement", arguments.quick, settings, results, [])


if __name__ == "__main__":
    main()
