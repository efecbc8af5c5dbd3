"""How much the default decoder's quality depends on its seed, and on a wrong scale of the
frequencies. m = 5Kn, no pool.

(a) One sketch of each set, decoded with 20 seeds: the standard deviation of the SSE relative to the
best of 10 k-means++ runs. (b) Four times and a quarter of the scale that "auto" estimates: the SSE
relative to that with the estimated scale.
"""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import ckm
from benchmarks import mnist
from benchmarks.baselines import baseline, sse
from benchmarks.data import (
    DEFAULT_RATIO,
    DataSet,
    Unavailable,
    data_sets,
    grid_cell,
    grid_name,
    prepare,
    rows_made,
)
from benchmarks.harness import (
    Target,
    largest,
    options,
    pooled_median,
    process_options,
    report,
    seeds_of,
    show,
)
from benchmarks.processes import Outcome, work_all

# Outliers and heavy tails are measured by quality alone.
SETTLED_GROUPS = ("gaussian", "synthetic", "real")
CELLS = ((10, 2), (10, 10), (20, 5))  # K and n
QUICK = (grid_name(10, 2), "mnist-spectral", "china.jpg")
FACTORS = (4.0, 0.25)
GAUSSIAN_SPREAD = 0.01
REAL_SPREAD = 0.02
WRONG_SCALE = 1.03


class Task(NamedTuple):
    """A data set, the seed of its rows and sketch, and the decoder's seed (None: wrong scales)."""

    data: DataSet
    seed: int
    decoder: int | None = None


class Found(NamedTuple):
    """The result of a task: SSE ratios by the decoder's seed or by the factor of the scale; empty
    if decoding failed.
    """

    data: str
    seed: int
    part: str
    values: dict[Any, float]


def work(quick: bool, task: Task) -> Outcome:
    """Run a task."""
    data, seed, decoder = task
    found = Found(data.name, seed, "scale" if decoder is None else "spread", {})
    try:
        X, K = data.load(seed, quick)
    except Unavailable as error:
        return Outcome(None, [str(error)])
    try:
        if decoder is None:
            return Outcome(found._replace(values=wrong_scales(X, K, seed)), [])
        best = baseline(data.key(seed), X, K, quick)
        return Outcome(
            found._replace(values={decoder: _sse(X, _sketch(X, K, seed), K, decoder) / best}), []
        )
    except Exception as error:  # reported; the other sets go on
        return Outcome(
            found, [f"Decoding failed on {data.name}, seed {seed}: {type(error).__name__}: {error}"]
        )


def wrong_scales(X: np.ndarray, K: int, seed: int) -> dict[float, float]:
    """Return the SSE by the factor of the wrong scale, relative to the SSE with the right scale.

    The directions of the frequencies are the same.
    """
    right = _sketch(X, K, seed)
    reference = _sse(X, right, K, seed)
    return {
        factor: _sse(X, _sketch(X, K, seed, factor * right.frequencies.scale), K, seed) / reference
        for factor in FACTORS
    }


def _sketch(X: np.ndarray, K: int, seed: int, scale: float | str = "auto") -> ckm.Sketch:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckm.errors.PhaseWarning)  # the scale is wrong on purpose
        return ckm.sketch(
            X,
            n_clusters=K,
            sketch_size=DEFAULT_RATIO * K * X.shape[1],
            scale=scale,
            random_state=seed,
            n_jobs=1,
            cells=0,
        )


def _sse(X: np.ndarray, sketch: ckm.Sketch, K: int, seed: int) -> float:
    return sse(X, ckm.decode(sketch, K, random_state=seed, n_jobs=1).centroids)


class Findings(NamedTuple):
    """Results of all tasks, by set."""

    sets: Sequence[DataSet]
    found: Sequence[Found]

    def runs(self, data: DataSet, part: str) -> list[Found]:
        """Return the results on one set, by seed."""
        return sorted(
            (run for run in self.found if (run.data, run.part) == (data.name, part)),
            key=lambda run: (run.seed, *run.values),
        )

    def spreads(self, groups: Sequence[str]) -> dict[str, np.ndarray]:
        """Return (a), the relative SSEs of each set that could be loaded."""
        found = {data.name: self.runs(data, "spread") for data in self.sets if data.group in groups}
        return {
            name: np.array([value for run in runs for value in run.values.values()])
            for name, runs in found.items()
            if runs
        }

    def ratios(self, factor: float) -> dict[str, np.ndarray]:
        """Return (b), the ratios of each set that could be loaded, seed by seed."""
        found = {data.name: self.runs(data, "scale") for data in self.sets}
        return {
            name: np.array([run.values[factor] for run in runs if run.values])
            for name, runs in found.items()
            if runs
        }

    def targets(self) -> list[Target]:
        """Return the targets; not measured if a decoding failed. Missing sets are named."""
        targets = []
        for group, bound in (("gaussian", GAUSSIAN_SPREAD), ("real", REAL_SPREAD)):
            values = self.spreads([group])
            whole = all(
                run.values
                for data in self.sets
                if data.group == group
                for run in self.runs(data, "spread")
            )
            deviations = {name: v.std(ddof=1) for name, v in values.items()} if whole else {}
            absent = self._absent(values, [group])
            what = f"{group}{absent}: standard deviation over the decoder's seeds"
            targets.append(largest(what, bound, deviations))
        whole = all(run.values for data in self.sets for run in self.runs(data, "scale"))
        for factor in FACTORS:
            values = self.ratios(factor)
            absent = self._absent(values, SETTLED_GROUPS)
            what = f"{factor:g} times the scale{absent}: SSE / with the scale, median"
            targets.append(pooled_median(what, WRONG_SCALE, values if whole else {}))
        return targets

    def _absent(self, present: dict[str, Any], groups: Sequence[str]) -> str:
        absent = [
            data.name for data in self.sets if data.group in groups and data.name not in present
        ]
        return f" ({', '.join(absent)} not loaded)" if absent else ""


def together(found: Sequence[Found]) -> list[Found]:
    """Merge results of the same set, seed and part."""
    values = dict[tuple[str, int, str], dict[Any, float]]()
    for run in found:
        values.setdefault(run[:3], {}).update(run.values)
    return [Found(*key, values[key]) for key in sorted(values)]


def show_tables(findings: Findings) -> None:
    rows = [
        [name, len(v), f"{np.median(v):.4f}", f"{v.max():.4f}", f"{v.std(ddof=1):.4f}"]
        for name, v in findings.spreads(SETTLED_GROUPS).items()
        if len(v)
    ]
    show(
        "(a) Relative SSE of one sketch over the decoder's seeds",
        ["data", "decodings", "median", "worst", "deviation"],
        rows,
    )
    ratios = {factor: findings.ratios(factor) for factor in FACTORS}
    rows = [
        [
            name,
            len(v),
            *(
                f"{np.median(ratios[factor][name]):.4f} / {ratios[factor][name].max():.4f}"
                for factor in FACTORS
            ),
        ]
        for name, v in ratios[FACTORS[0]].items()
        if len(v)
    ]
    columns = ["data", "seeds", *(f"{factor:g} times" for factor in FACTORS)]
    show(
        "(b) SSE with a wrong scale / with the estimated scale, over seeds: median / worst",
        columns,
        rows,
    )


def main() -> None:
    parser = options(
        "Measure how much the decoder's quality depends on its seed and on the scale.",
        first_seed=100,
    )
    process_options(parser, count=5, quick_count=1)
    arguments = parser.parse_args()
    mnist.name_source(arguments.mnist)
    sets = [grid_cell(K, n, (DEFAULT_RATIO,)) for K, n in CELLS] + data_sets(
        ["real"], arguments.quick
    )
    seeds = seeds_of(arguments)
    decodings = 20
    if arguments.quick:
        sets = [data for data in sets if data.name in QUICK]
        decodings = 2
    prepare(sets)
    decoders = range(seeds[0], seeds[0] + decodings)
    tasks = [Task(data, seeds[0], seed) for seed in decoders for data in sets] + [
        Task(data, seed) for seed in seeds for data in sets
    ]
    found = [
        run
        for run in work_all(partial(work, arguments.quick), tasks, arguments.jobs)
        if run is not None
    ]
    findings = Findings(sets, found)
    show_tables(findings)
    settings = {
        "m": "5Kn",
        "N": rows_made(arguments.quick),
        "decodings": decodings,
        "first_seed": seeds[0],
        "seeds": len(seeds),
    }
    report(
        "robustness",
        arguments.quick,
        settings,
        [run._asdict() for run in together(found)],
        findings.targets(),
    )


if __name__ == "__main__":
    main()
