"""The quality of the paper's decoder (Algorithm 1), K = n = 10, m = 1000.

(a) Tight clusters: are the true means found? Their standard deviation is 0.05 of the smallest
distance between two means, and a mean is found when its matched centroid is within 3 % of that
distance. Starts from sampled rows, five replicates. (b) The paper's data, whose clusters have
width: SSE relative to the best of five runs of scikit-learn's k-means++, one replicate.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist

import ckm
from benchmarks.baselines import kmeans_sse, sse
from benchmarks.harness import Target, options, report, show

K = 10
N_FEATURES = 10
M = 1000
POOL = 1000
# of the smallest distance between means
WIDTH = 0.05
TOLERANCE = 0.03
INITS = ("sample", "range", "k++")


def tight_error(n_samples: int, seed: int) -> float:
    """Return the largest distance from a true mean to its matched centroid, in units of the
    smallest distance between means.
    """
    rng = np.random.default_rng(seed)
    _, labels, means = ckm.datasets.gaussian_mixture(n_samples, K, N_FEATURES, random_state=seed)
    gap = pdist(means).min()
    X = means[labels] + WIDTH * gap * rng.standard_normal((n_samples, N_FEATURES))
    sketch = ckm.sketch(
        X, sketch_size=M, pool=POOL, distribution="adapted-radius", random_state=seed, cells=0
    )
    centroids = ckm.decode(
        sketch, K, decoder="clompr", init="sample", n_init=5, random_state=seed
    ).centroids
    distances = cdist(means, centroids)
    return float(distances[linear_sum_assignment(distances)].max() / gap)


def relative_sse(n_samples: int, seed: int) -> dict[str, float]:
    """Return the SSE relative to k-means for each init, one replicate, on the paper's data."""
    X = ckm.datasets.gaussian_mixture(n_samples, K, N_FEATURES, random_state=seed).rows
    sketch = ckm.sketch(
        X, sketch_size=M, pool=POOL, distribution="adapted-radius", random_state=seed, cells=0
    )
    baseline = kmeans_sse(X, K, seed)
    found = {
        init: ckm.decode(sketch, K, decoder="clompr", init=init, random_state=seed).centroids
        for init in INITS
    }
    return {init: sse(X, centroids) / baseline for init, centroids in found.items()}


def main() -> None:
    arguments = options(
        "Measure the paper's decoder: means of tight clusters, SSE on the paper's data.",
        first_seed=100,
    ).parse_args()
    quick = arguments.quick
    tight_samples = 10_000 if quick else 100_000
    tight_count = 2 if quick else 20
    samples = 30_000 if quick else 300_000
    count = 2 if quick else 10
    first = arguments.seeds

    errors = {seed: tight_error(tight_samples, seed) for seed in range(first, first + tight_count)}
    found = sum(e <= TOLERANCE for e in errors.values())
    values = list(errors.values())
    show(
        f"(a) Tight clusters, N = {tight_samples}: error / smallest distance between means",
        ["seeds", f"all means within {TOLERANCE:g}", "median", "worst"],
        [[tight_count, found, float(np.median(values)), max(values)]],
    )

    runs = {seed: relative_sse(samples, seed) for seed in range(first, first + count)}
    columns = {init: np.array([run[init] for run in runs.values()]) for init in INITS}
    show(
        f"(b) The paper's data, N = {samples}, {count} seeds: SSE / best of 5 k-means",
        ["init", "median", "spread (std)", "worst"],
        [
            [init, f"{np.median(v):.3f}", f"{v.std(ddof=1):.3f}", f"{v.max():.3f}"]
            for init, v in columns.items()
        ],
    )

    settings = {
        "K": K,
        "n": N_FEATURES,
        "m": M,
        "pool": POOL,
        "N_tight": tight_samples,
        "N": samples,
        "first_seed": first,
    }
    targets = [
        Target(f"share of {tight_count} seeds with every mean found (a)", 0.9, found / tight_count),
        Target(
            "median relative SSE from sampled rows (b)",
            1.25,
            float(np.median(columns["sample"])),
            at_most=True,
        ),
    ]
    report(
        "clompr_quality",
        arguments.quick,
        settings,
        {"tight_error": errors, "relative_sse": runs},
        targets,
    )


if __name__ == "__main__":
    main()
