"""What the committed results of benchmarks compare: for each question, the numbers of everyone who
was measured, ours and others alike, as (row, contestant, number).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Numbers = Iterator[tuple[str, str, float]]


class Comparison(NamedTuple):
    """One question, and how its answer is found in a file of `benchmarks/results`."""

    question: str
    file: str
    numbers: Callable[[Any], Numbers]
    row: str
    more_is_better: bool = False
    note: str = ""


def _listed(row: str, contestant: str, number: str) -> Callable[[Any], Numbers]:
    """Return the numbers of a list of records; `row` is a format of a record's fields."""

    def numbers(results: Any) -> Numbers:
        for record in results:
            if record.get(number) is not None:
                yield row.format(**record), str(record[contestant]), record[number]

    return numbers


def _within(key: str, inner: Callable[[Any], Numbers]) -> Callable[[Any], Numbers]:
    return lambda results: inner(results[key])


def _nested(number: str) -> Callable[[Any], Numbers]:
    """Return the numbers of {row: {contestant: {number: ...}}}."""

    def numbers(results: Any) -> Numbers:
        for row, contestants in results.items():
            for contestant, found in contestants.items():
                yield row, contestant, found[number]

    return numbers


def _single(row: str, number: str) -> Callable[[Any], Numbers]:
    """Return the numbers of {contestant: {number: ...}}, which are of one row."""
    return lambda results: _nested(number)({row: results})


def _fields(row: str, fields: dict[str, str]) -> Callable[[Any], Numbers]:
    """Return the numbers of records that have a field for each contestant."""

    def numbers(results: Any) -> Numbers:
        for record in results:
            for contestant, field in fields.items():
                yield row.format(**record), contestant, record[field]

    return numbers


def _even(results: Any) -> Numbers:
    for name, found in results.items():
        for run in found["runs"]:
            for contestant in ("ckm", "KMeans"):
                yield f"{name}, {run['N']:,} rows", contestant, run[contestant]


def _many(results: Any) -> Numbers:
    for name, found in results.items():
        for contestant in ("ckm", "KMeans"):
            yield name, contestant, found[contestant]


def _equal_bytes(results: Any) -> Numbers:
    for record in results:
        row = f"{record['data']}, {16 * record['ratio']} K n bytes"
        yield row, record["method"], record["median"]


def _suggestions(results: Any) -> Numbers:
    """Return 100 for every right number of clusters, so that means are per cent."""
    for run in results["rivals"]:
        for contestant, number in {"ckm": run["suggestion"], **run["rivals"]}.items():
            yield run["kind"], contestant, 100.0 * (number == run["K"])


def _likelihoods(results: Any) -> Numbers:
    for run in results["runs"]:
        yield run["data"], f"ckm, {run['variant']}", run["difference"]
        yield run["data"], "GaussianMixture(n_init=5)", 0.0


def _gpu_job(results: Any) -> Numbers:
    job = results["whole job"]
    yield "10⁸ rows x 10, K = 10", "ckm, labels included", job["ours, s"]
    yield (
        "10⁸ rows x 10, K = 10",
        "flash-kmeans, 25 iterations",
        job["flash-kmeans, 25 iterations, s"],
    )


def _gpu_wide(ours: str, theirs: str) -> Callable[[Any], Numbers]:
    def numbers(results: Any) -> Numbers:
        for name, found in results.items():
            for contestant, field in (("ckm", ours), ("flash-kmeans", theirs)):
                for value in found[field]:
                    yield name, contestant, value

    return numbers


_QUALITY = _listed("{data}", "method", "median")
_TORCH = {
    "ckm": "ckm, ms",
    "torch": "torch, ms",
    "torch, float32 sums": "torch, float32 sums, ms",
    "complex torch, float32 sums": "complex torch, float32 sums, ms",
}

COMPARISONS = (
    Comparison(
        "Seconds of the whole job, data in memory (K = n = 10, two threads)",
        "end_to_end",
        _within("runs", _listed("{N:,}", "contestant", "seconds")),
        "rows",
        note="*ckm* is `ckm.sketch` and `ckm.decode`; *ckm fit* is the estimator, labels included.",
    ),
    Comparison(
        "SSE there, relative to KMeans(n_init=5)",
        "end_to_end",
        _within("runs", _listed("{N:,}", "contestant", "relative_sse")),
        "rows",
    ),
    Comparison(
        "Seconds of a fit by the number of rows, real data",
        "cells-even",
        _even,
        "data",
    ),
    Comparison("Seconds for many clusters, a million rows", "cells-many", _many, "data"),
    Comparison(
        "SSE relative to the best of 10 k-means++ runs, medians of 10 seeds",
        "quality-synthetic-real",
        _QUALITY,
        "data",
        note="*fit* is the default, a sketch with cells and a pool of 1000 rows; *ckm* has the "
        "frequencies alone, *ckm+pool* also 1000 sampled rows. *clompr* is the paper's decoder "
        "with the paper's frequencies, one replicate. *pool-alone* is the best of 10 k-means on "
        "those sampled rows with their weights, *equal-bytes* on as many rows as fit in the bytes "
        "of the sketch. *minibatch* and *kmeans* (one random start) have all rows.",
    ),
    Comparison("The same on heavy tails and outliers", "quality-heavy", _QUALITY, "data"),
    Comparison(
        "SSE at equal bytes, relative to the best of 10 k-means++ runs, medians of 5 seeds",
        "quality-rivals",
        _equal_bytes,
        "data",
        note="*mix* is a sketch of frequencies and cells, *cells* has cells alone; others are a "
        "uniform sample, coresets (*sensitivity*, *lightweight*, *streamkm++*), BICO and a "
        "merge-and-reduce tree of means. All are solved by the same placing.",
    ),
    Comparison(
        "Seconds of one decoding (m = 1000), by the seed of the data",
        "decoder",
        _nested("seconds"),
        "seed",
    ),
    Comparison(
        "SSE there, relative to the best of 5 k-means runs",
        "decoder",
        _nested("relative_sse"),
        "seed",
    ),
    Comparison(
        "Rows times frequencies per second, sketching",
        "kernel",
        _within("rivals", _listed("n = {n}, {threads} threads", "contender", "pairs_per_s")),
        "data",
        more_is_better=True,
    ),
    Comparison(
        "Seconds of labels for given centroids, a million rows or fewer",
        "predict",
        _fields(
            "K = {K}, n = {n}, {dtype}, {threads} threads",
            {"ckm": "predict_s", "KMeans.predict": "kmeans_predict_s"},
        ),
        "data",
    ),
    Comparison(
        "Seconds of a fit, a million made embeddings of 384 columns (one processor)",
        "wide-embeddings",
        _nested("seconds"),
        "data",
    ),
    Comparison(
        "What their centroids explain, relative to KMeans(n_init=1)",
        "wide-embeddings",
        _nested("explained"),
        "data",
        more_is_better=True,
    ),
    Comparison(
        "Seconds of a fit, MNIST's 784 columns", "wide-mnist", _single("MNIST", "seconds"), "data"
    ),
    Comparison(
        "What centroids of MNIST explain, relative to KMeans(n_init=1)",
        "wide-mnist",
        _single("MNIST", "explained"),
        "data",
        more_is_better=True,
    ),
    Comparison(
        "Seconds of a fit, TF-IDF of made texts (2·10⁵ x 10⁵, sparse)",
        "wide-sparse",
        _single("texts", "seconds"),
        "data",
    ),
    Comparison(
        "What centroids of texts explain, relative to KMeans(n_init=1)",
        "wide-sparse",
        _single("texts", "explained"),
        "data",
        more_is_better=True,
    ),
    Comparison(
        "Seconds from float16 files, 10⁶ x 768, K = 100", "wide-files", _nested("seconds"), "data"
    ),
    Comparison("SSE there", "wide-files", _nested("sse"), "data"),
    Comparison(
        "Recall in per cent, inverted-file search over rows in clusters",
        "ivf-clusters",
        _listed("{probes} probes", "by", "recall"),
        "lists searched",
        more_is_better=True,
    ),
    Comparison(
        "The same over made image descriptors",
        "ivf-descriptors",
        _listed("{probes} probes", "by", "recall"),
        "lists searched",
        more_is_better=True,
    ),
    Comparison(
        "Seconds of training these indexes",
        "ivf-clusters",
        _listed("training", "by", "train_s"),
        "what",
    ),
    Comparison(
        "Seconds of a fit on local clusters, 2 million rows",
        "engines",
        _listed("{engine}", "method", "seconds"),
        "engine",
    ),
    Comparison(
        "Right numbers of clusters in per cent",
        "curve-rivals",
        _suggestions,
        "data",
        more_is_better=True,
    ),
    Comparison(
        "Log-likelihood per unseen row, less that of scikit-learn's mixtures",
        "mixtures-real",
        _likelihoods,
        "data",
        more_is_better=True,
    ),
    Comparison(
        "SSE of private releases, relative to k-means without privacy",
        "privacy-rivals",
        _listed("{data}, ε = {epsilon:g}", "method", "relative"),
        "data",
    ),
    Comparison(
        "The same on Gaussian data, for every ε",
        "privacy-rivals-gaussian",
        _listed("{data}, ε = {epsilon:g}", "method", "relative"),
        "data",
    ),
    Comparison(
        "Milliseconds of a sketch on a GPU",
        "gpu",
        _within("resident", _fields("{N:,} rows x {n}", _TORCH)),
        "data",
    ),
    Comparison("Seconds of the whole job on a GPU", "gpu", _gpu_job, "data"),
    Comparison(
        "Seconds of a fit on a GPU, 10⁷ x 768 in float16, K = 100",
        "gpu-wide",
        _gpu_wide("fit with labels, s", "flash-kmeans, s"),
        "data",
    ),
    Comparison("SSE there", "gpu-wide", _gpu_wide("SSE", "its SSE"), "data"),
)
