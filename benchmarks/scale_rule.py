"""The scale that the paper's rule finds for its own frequencies, and what parts and multiples of it
give: SSE of the paper's decoder, from Range, relative to scikit-learn's k-means++.

Clusters are as wide as the paper's, tight, of very different widths, few, many, or in few columns.
"""

from typing import NamedTuple

import numpy as np

import ckm
from benchmarks.baselines import kmeans_sse, sse
from benchmarks.harness import Target, options, report, show

M = 1000
FACTORS = (1 / 16, 1 / 4, 1 / 2, 1, 2, 4)


class Clusters(NamedTuple):
    """Clusters whose means have the paper's distances, and their standard deviations, which go
    from the first width to the second in equal ratios.
    """

    name: str
    K: int
    n: int
    widths: tuple[float, float]

    def rows(self, n_samples: int, seed: int) -> np.ndarray:
        """Return the rows (N, n)."""
        rng = np.random.default_rng(seed)
        _, labels, means = ckm.datasets.gaussian_mixture(
            n_samples, self.K, self.n, random_state=seed
        )
        widths = np.geomspace(*self.widths, self.K)
        return means[labels] + widths[labels, None] * rng.standard_normal((n_samples, self.n))


SETS = (
    Clusters("as the paper's", 10, 10, (1, 1)),
    Clusters("tight", 10, 10, (0.05, 0.05)),
    Clusters("of very different widths", 10, 10, (0.02, 1)),
    Clusters("few and tight", 3, 10, (0.05, 0.05)),
    Clusters("many and tight", 30, 10, (0.05, 0.05)),
    Clusters("many columns", 10, 30, (1, 1)),
    Clusters("two columns", 10, 2, (1, 1)),
)


def measure(kind: Clusters, n_samples: int, seed: int) -> dict[str, float]:
    """Return the scale over the mean variance of a column, and the relative SSE by factor."""
    X = kind.rows(n_samples, seed)
    size = max(M, 5 * kind.K * kind.n)
    best = kmeans_sse(X, kind.K, seed)

    def sketched(scale: float | str) -> ckm.Sketch:
        return ckm.sketch(
            X,
            sketch_size=size,
            distribution="adapted-radius",
            cells=0,
            scale=scale,
            random_state=seed,
        )

    found = sketched("auto").frequencies.scale
    centroids = {
        factor: ckm.decode(
            sketched(factor * found), kind.K, decoder="clompr", init="range", random_state=seed
        ).centroids
        for factor in FACTORS
    }
    return {"scale": found / X.var(axis=0).mean()} | {
        f"{factor:g}": sse(X, C) / best for factor, C in centroids.items()
    }


def main() -> None:
    arguments = options(
        "Measure the scale of the paper's rule, and parts and multiples of it.", first_seed=100
    ).parse_args()
    n_samples = 5000 if arguments.quick else 30_000
    seeds = range(arguments.seeds, arguments.seeds + (2 if arguments.quick else 10))
    runs = {
        kind.name: [measure(kind, n_samples, seed) for seed in seeds]
        for kind in (SETS[:3] if arguments.quick else SETS)
    }
    medians = {
        name: {key: float(np.median([run[key] for run in found])) for key in found[0]}
        for name, found in runs.items()
    }
    show(
        f"Median over {len(seeds)} seeds: scale / variance of a column, SSE / k-means by factor",
        ["clusters", "scale", *(f"x {factor:g}" for factor in FACTORS)],
        [[name, *(f"{value:.3f}" for value in found.values())] for name, found in medians.items()],
    )
    targets = [
        Target(f"median relative SSE, clusters {name}", 1.1, medians[name]["1"], at_most=True)
        for name in ("tight", "of very different widths", "few and tight", "many and tight")
        if name in medians
    ]
    settings = {"m": M, "N": n_samples, "first_seed": arguments.seeds}
    report("scale_rule", arguments.quick, settings, {"runs": runs}, targets)


if __name__ == "__main__":
    main()
