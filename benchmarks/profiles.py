"""Profiles of clusters from a sketch alone: how often the interval of a share holds the share of
the rows, and the gaps between clusters that are there and between slices of one cloud.

    python -m benchmarks.profiles --quick
"""

import warnings
from collections.abc import Iterator

import numpy as np

import ckm
from benchmarks import harness

CLUSTERS = 6
ROWS = 20_000


def data_sets(seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Rows of several shapes."""
    rng = np.random.default_rng(seed)
    for name, separation in (("far apart", 6.0), ("apart", 4.0), ("close", 1.0)):
        mixture = ckm.datasets.gaussian_mixture(
            ROWS, CLUSTERS, 4, separation=separation, random_state=seed
        )
        yield name, mixture.rows
    yield "one Gaussian", rng.normal(size=(ROWS, 4))
    yield "uniform", rng.uniform(size=(ROWS, 3))
    yield "heavy tails", np.exp(rng.normal(size=(ROWS, 4)))


def measure(X: np.ndarray, cells: str | int, seed: int) -> tuple[float, float, float, float]:
    """Coverage of the intervals, their mean width, separation and gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sketch = ckm.sketch(X, n_clusters=CLUSTERS, cells=cells, random_state=seed)
        solution = ckm.decode(sketch, CLUSTERS, random_state=seed)
    found = ckm.profile(sketch, solution)
    shares = np.bincount(solution.predict(X), minlength=CLUSTERS) / len(X)
    low, high = found.share_interval.T
    inside = ((low <= shares) & (shares <= high)).mean()
    return (
        float(inside),
        float((high - low).mean()),
        found.overall_separation,
        found.overall_gap,
    )


def main() -> None:
    parser = harness.options(__doc__, first_seed=100)
    arguments = parser.parse_args()
    seeds = range(arguments.seeds, arguments.seeds + (2 if arguments.quick else 6))
    rows = []
    for cells in ("auto", 0):
        found: dict[str, list[tuple[float, float, float, float]]] = {}
        for seed in seeds:
            for name, X in data_sets(seed):
                found.setdefault(name, []).append(measure(X, cells, seed))
        for name, values in found.items():
            coverage, width, separation, gap = np.mean(values, axis=0)
            figures = (f"{coverage:.2f}", f"{width:.4f}", f"{separation:.2f}", f"{gap:.2f}")
            rows.append([name, str(cells), *figures])
    header = ["data", "cells", "coverage", "width", "separation", "gap"]
    harness.show(f"K = {CLUSTERS}, {len(seeds)} seeds", header, rows)


if __name__ == "__main__":
    main()
