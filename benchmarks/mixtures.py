"""Mixtures of Gaussians from a sketch against scikit-learn's `GaussianMixture(n_init=5)`: the log
likelihood per row on rows that neither has seen, as a difference (above zero: ours is better).

"grid": the paper's data, and Gaussians with a variance for each column, fitted with "diag".
"full": Gaussians of condition number 10 along random axes, fitted with "full", up to ten columns.
"real": real sets, "diag", without and with passes of expectation-maximisation over the rows.
"speed": a million rows, K = n = 10, processor time on one thread.
"pycle": its mixtures from a sketch of the same frequencies, on part of the grid.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import ckm
from benchmarks import mnist
from benchmarks.data import REAL, DataSet, Unavailable, prepare
from benchmarks.harness import (
    Target,
    options,
    peer,
    process_options,
    report,
    sections_option,
    seeds_of,
    show,
)
from benchmarks.processes import Outcome, work_all

SECTIONS = ("grid", "full", "real", "speed", "pycle")
STARTS = 5
# The share of the rows of a real set that is held out.
HELD_OUT = 0.2
TEST_ROWS = 50_000
POLISH = 10
CONDITION = 10.0
VARIANCES = (0.3, 2.0)
# Name -> arguments of the estimator.
VARIANTS: dict[str, dict[str, Any]] = {
    "fit": {},
    "sketch": {"cells": 0, "pool": 0},
}
REAL_VARIANTS: dict[str, dict[str, Any]] = {
    "fit": {},
    f"polish={POLISH}": {"polish": POLISH},
}


class Made(NamedTuple):
    """Rows to fit, rows to score, and the number of components."""

    train: np.ndarray
    test: np.ndarray
    K: int


class Task(NamedTuple):
    """A section, a data set and a seed."""

    section: str
    data: str
    seed: int


class Run(NamedTuple):
    """One model on one data set: its log likelihood per held-out row, less scikit-learn's."""

    section: str
    data: str
    seed: int
    variant: str
    difference: float
    seconds: float  # processor time
    rival_seconds: float
    residual: float
    status: str


def paper(K: int, n: int, rows: int, seed: int) -> Made:
    """The paper's data: unit Gaussians of equal weights."""
    X = ckm.datasets.gaussian_mixture(rows + TEST_ROWS, K, n, random_state=seed).rows
    return Made(X[:rows], X[rows:], K)


def diagonal(K: int, n: int, rows: int, seed: int) -> Made:
    """The same means, with weights and with a variance for each column."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(K, rows + TEST_ROWS, p=rng.dirichlet(np.full(K, 5.0)))
    deviations = np.exp(rng.uniform(*np.log(VARIANCES), (K, n)) / 2)
    X = rng.standard_normal((len(labels), n)) * deviations[labels]
    X += ckm.datasets.gaussian_mixture(0, K, n, random_state=seed).means[labels]
    return Made(X[:rows], X[rows:], K)


def correlated(K: int, n: int, rows: int, seed: int) -> Made:
    """The same means, with covariances of condition number 10 along random axes."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(K, rows + TEST_ROWS, p=rng.dirichlet(np.full(K, 5.0)))
    variances = np.geomspace(1, CONDITION, n)
    roots = np.sqrt(variances / variances.mean())[:, None] * np.linalg.qr(
        rng.standard_normal((K, n, n))
    ).Q.transpose(0, 2, 1)
    X = rng.standard_normal((len(labels), n))
    means = ckm.datasets.gaussian_mixture(0, K, n, random_state=seed).means
    for k in range(K):
        X[labels == k] = means[k] + X[labels == k] @ roots[k]
    return Made(X[:rows], X[rows:], K)


def real(name: str, seed: int, quick: bool) -> Made:
    """A real set, a fifth of its rows held out."""
    X, K = DataSet(name, "real", (), REAL[name]).load(seed, quick)
    X = np.asarray(X, np.float64)[np.random.default_rng(seed).permutation(len(X))]
    cut = round(HELD_OUT * len(X))
    return Made(X[cut:], X[:cut], K)


def grid(quick: bool) -> dict[str, Callable[[int, int], Made]]:
    """Every set of the grid, by name."""
    clusters = (5, 10) if quick else (5, 10, 20, 50)
    dimensions = (2, 10) if quick else (2, 5, 10, 30)
    return {
        f"{name} K={K} n={n}": partial(make, K, n)
        for name, make in (("paper", paper), ("diagonal", diagonal))
        for K in clusters
        for n in dimensions
    }


def full_grid(quick: bool) -> dict[str, Callable[[int, int], Made]]:
    """Every set with full covariances, by name."""
    return {
        f"full K={K} n={n}": partial(correlated, K, n)
        for K in ((5,) if quick else (5, 10, 20))
        for n in ((2,) if quick else (2, 5, 10))
    }


def pycle_grid(quick: bool) -> dict[str, Callable[[int, int], Made]]:
    """The part of the grid that pycle is measured on: it takes minutes for more."""
    made = {f"paper K={K} n={n}": partial(paper, K, n) for K in (5, 10) for n in (2, 5, 10)}
    made |= {f"diagonal K={K} n={n}": partial(diagonal, K, n) for K in (5, 10) for n in (2, 5, 10)}
    return dict(list(made.items())[:1]) if quick else made


def rows_of(quick: bool) -> int:
    return 20_000 if quick else 100_000


def rival(made: Made, covariance_type: str, seed: int) -> tuple[float, float]:
    """scikit-learn's log likelihood per held-out row, and its processor time."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianMixture(
            made.K, covariance_type=covariance_type, n_init=STARTS, random_state=seed
        ).fit(made.train)
    return model.score(made.test), time.process_time() - began


def fit(
    made: Made, covariance_type: str, seed: int, given: dict[str, Any]
) -> tuple[float, float, Any]:
    """Our log likelihood per held-out row, the processor time, and what was found."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckm.errors.ClustersWarning)
        model = ckm.CompressiveGaussianMixture(
            made.K, covariance_type=covariance_type, random_state=seed, n_jobs=1, **given
        ).fit(made.train)
    seconds = time.process_time() - began
    return model.score(made.test), seconds, model.solution_


def work(quick: bool, task: Task) -> Outcome:
    """Fit both models to one data set."""
    rows = rows_of(quick)
    covariance_type = "diag"
    variants = VARIANTS
    try:
        if task.section == "real":
            made = real(task.data, task.seed, quick)
            variants = REAL_VARIANTS
        elif task.section == "full":
            made = full_grid(quick)[task.data](rows, task.seed)
            covariance_type = "full"
        else:
            made = grid(quick)[task.data](rows, task.seed)
    except Unavailable as error:
        return Outcome([], [str(error)])
    best, rival_seconds = rival(made, covariance_type, task.seed)
    found = []
    for name, given in variants.items():
        score, seconds, solution = fit(made, covariance_type, task.seed, given)
        found.append(
            Run(
                *task,
                name,
                round(score - best, 6),
                round(seconds, 3),
                round(rival_seconds, 3),
                round(solution.residual, 4),
                str(solution.status),
            )
        )
    return Outcome(found, [])


def pycle_score(made: Made, sketch: ckm.Sketch, seed: int) -> float:
    """The log likelihood per held-out row of pycle's mixture from our sketch."""
    from pycle.compressive_learning import CLOMP_dGMM
    from pycle.sketching import SimpleFeatureMap

    frequencies = sketch.frequencies
    np.random.seed(seed)  # noqa: NPY002  # pycle draws from NumPy's global state
    features = SimpleFeatureMap("complexExponential", frequencies.omega.T)
    bounds = np.stack([sketch.lower, sketch.upper]) - frequencies.origin
    # pycle's sign is +i
    solver = CLOMP_dGMM(features, made.K, bounds, np.conj(sketch.z))
    solver.fit_once()
    weights, means, covariances = solver.get_GMM()
    model = GaussianMixture(made.K, covariance_type="diag")
    model.weights_ = np.maximum(weights, 1e-12) / np.maximum(weights, 1e-12).sum()
    model.means_ = np.asarray(means) + frequencies.origin
    variances = np.array([np.diag(c) for c in covariances])
    model.covariances_ = np.maximum(variances, 1e-6)
    model.precisions_cholesky_ = 1 / np.sqrt(model.covariances_)
    return float(model.score(made.test))


def against_pycle(quick: bool, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Both on the same sketches, without cells."""
    if peer("pycle.sketching", "pycle.compressive_learning") is None:
        return []
    fit(paper(5, 2, 20_000, seeds[0]), "diag", seeds[0], VARIANTS["sketch"])  # compiles
    found = []
    for name, make in pycle_grid(quick).items():
        for seed in seeds:
            made = make(rows_of(quick), seed)
            size = 10 * made.K * made.train.shape[1]
            sketch = ckm.sketch(
                made.train, n_clusters=made.K, sketch_size=size, cells=0, random_state=seed
            )
            began = time.process_time()
            ours = ckm.fit_mixture(sketch, made.K, random_state=seed, n_jobs=1).score(made.test)
            middle = time.process_time()
            theirs = pycle_score(made, sketch, seed)
            found.append(
                {
                    "data": name,
                    "seed": seed,
                    "difference": ours - theirs,
                    "seconds": middle - began,
                    "rival_seconds": time.process_time() - middle,
                }
            )
    return found


def speed(quick: bool, seed: int) -> dict[str, float]:
    """Processor time of both on a million rows, K = n = 10, after a first fit that compiles."""
    rows = 100_000 if quick else 1_000_000
    for given in VARIANTS.values():
        fit(paper(10, 10, 20_000, seed), "diag", seed, given)
    found = {}
    for name, make in (("paper", paper), ("diagonal", diagonal)):
        made = make(10, 10, rows, seed)
        best, rival_seconds = rival(made, "diag", seed)
        found[f"{name}, scikit-learn's seconds"] = rival_seconds
        for variant, given in VARIANTS.items():
            ours, seconds, _ = fit(made, "diag", seed, given)
            found |= {
                f"{name}, {variant}: seconds": seconds,
                f"{name}, {variant}: ratio": rival_seconds / seconds,
                f"{name}, {variant}: difference": ours - best,
            }
    return found


def summarise(runs: Sequence[Run]) -> None:
    """Print one line per data set and variant."""
    lines = []
    for key in dict.fromkeys((run.data, run.variant) for run in runs):
        same = [run for run in runs if (run.data, run.variant) == key]
        differences = [run.difference for run in same]
        lines.append(
            [
                *key,
                f"{np.median(differences):+.4f}",
                f"{min(differences):+.4f}",
                float(np.median([run.seconds for run in same])),
                float(np.median([run.rival_seconds for run in same])),
                ", ".join(sorted({run.status for run in same})),
            ]
        )
    head = ["data", "variant", "median", "worst", "seconds", "scikit-learn's", "status"]
    show("Log likelihood per held-out row, less scikit-learn's", head, lines)


def targets(runs: Sequence[Run], fast: dict[str, float], pycle: list[Any]) -> list[Target]:
    """What should hold."""
    found = []
    for section, limits in (("grid", (-0.005, -0.05)), ("full", (-0.02, None))):
        for variant in VARIANTS:
            values = _differences(runs, section, variant)
            if not values:
                continue
            what = f"{section}, {variant}: {len(values)} runs"
            found.append(Target(f"{what}, median", limits[0], float(np.median(values))))
            if limits[1] is not None:
                found.append(Target(f"{what}, worst", limits[1], min(values)))
    for variant in REAL_VARIANTS:
        own = {run.data for run in runs if run.section == "real" and run.variant == variant}
        medians = {
            name: float(np.median([r.difference for r in runs if r[1::2][:2] == (name, variant)]))
            for name in own
        }
        if medians:
            at = min(medians, key=lambda name: medians[name])
            what = f"real, {variant}: least median of {len(medians)} sets ({at})"
            found.append(Target(what, -0.1, medians[at]))
    for name, value in fast.items():
        if name.endswith("ratio"):
            found.append(Target(f"{name}, times as fast", 20, value))
    if pycle:
        least = min(run["difference"] for run in pycle)
        found.append(Target(f"above pycle, least of {len(pycle)}", 0, least))
        cells = {run["data"]: [] for run in pycle}
        for run in pycle:
            cells[run["data"]].append(run["difference"])
        medians = [float(np.median(own)) for own in cells.values()]
        found.append(Target(f"above pycle, least median of {len(cells)} sets", 0, min(medians)))
    return found


def _differences(runs: Sequence[Run], section: str, variant: str) -> list[float]:
    return [r.difference for r in runs if r.section == section and r.variant == variant]


def main() -> None:
    parser = options("Compare mixtures with scikit-learn's and pycle's.", first_seed=100)
    process_options(parser, count=5, quick_count=1)
    sections_option(parser, SECTIONS)
    parser.add_argument("--data", help="only sets whose names contain this text")
    arguments = parser.parse_args()
    mnist.name_source(arguments.mnist)
    quick = arguments.quick
    seeds = seeds_of(arguments)
    chosen = {"grid": list(grid(quick)), "full": list(full_grid(quick)), "real": list(REAL)}
    tasks = [
        Task(section, name, seed)
        for seed in seeds
        for section, names in chosen.items()
        for name in names
        if section in arguments.sections and (arguments.data or "") in name
    ]
    # The longest first, so that no process is left alone with one at the end.
    tasks.sort(key=lambda task: -_numbers(task.data))
    if "real" in arguments.sections:
        prepare([DataSet(name, "real", (), make) for name, make in REAL.items()])
    done = work_all(partial(work, quick), tasks, arguments.jobs) if tasks else []
    runs = sorted(run for found in done for run in found)
    summarise(runs)
    fast = speed(quick, seeds[0]) if "speed" in arguments.sections else {}
    if fast:
        show("A million rows, K = n = 10", ["what", "value"], list(fast.items()))
    pycle = against_pycle(quick, seeds) if "pycle" in arguments.sections else []
    if pycle:
        lines = [list(run.values()) for run in pycle]
        show("Log likelihood per held-out row, less pycle's", list(pycle[0]), lines)
    settings = {"starts": STARTS, "first_seed": seeds[0], "seeds": len(seeds)}
    results = {"runs": [run._asdict() for run in runs], "speed": fast, "pycle": pycle}
    name = "-".join(["mixtures", *(s for s in SECTIONS if arguments.sections == [s])])
    report(name, quick, settings, results, targets(runs, fast, pycle))


def _numbers(name: str) -> int:
    """K n of a set of the grid, by its name; zero for others."""
    parts = [part.split("=")[1] for part in name.split() if "=" in part]
    return int(np.prod([int(part) for part in parts])) if parts else 0


if __name__ == "__main__":
    main()
