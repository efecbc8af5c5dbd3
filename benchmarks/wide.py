"""Wide data against its rivals, in sections that can be run by themselves (--sections).

- mnist: the 70 000 images, 784 columns, K = 10.
- embeddings: made embeddings of 384 columns, K = 50, three kinds.
- sparse: TF-IDF of made texts, 100 000 columns, K = 20.
- files: 768 columns of float16 in files, K = 100, against MiniBatchKMeans over chunks.
- growth: seconds of a fit over the number of columns, and over K.

The SSE says little here: with one cluster it is only 1.1 to 1.4 times that of k-means. So quality
is the explained share, (SSE_1 - SSE) / (SSE_1 - SSE of the best rival), SSE_1 that of one cluster,
and the adjusted Rand index (ARI) to the made labels. Contenders take turns, and each keeps its best
time. `--clock cpu` gives each one thread and counts its processor time, for a machine that others
use too.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score

import ckm
from benchmarks import mnist
from benchmarks.embeddings import KINDS, Wide, embeddings, texts
from benchmarks.harness import (
    Target,
    console,
    options,
    peer,
    report,
    show,
)
from benchmarks.sections import Clock, run_sections

# Points per centroid that faiss samples by default.
FAISS_SAMPLE = 256
FAISS_ROUNDS = 25

Contenders = dict[str, Callable[[], np.ndarray]]


def contenders(X: Any, K: int, seed: int, clock: Clock, with_faiss: bool = True) -> Contenders:
    """Functions that return the centroids of each contender."""
    found: Contenders = {
        "ckm": lambda: (
            ckm.CompressiveKMeans(K, random_state=seed, n_jobs=clock.n_jobs).fit(X).cluster_centers_
        ),
        "KMeans(n_init=1)": lambda: KMeans(K, n_init=1, random_state=seed).fit(X).cluster_centers_,
        "MiniBatchKMeans": lambda: (
            MiniBatchKMeans(K, n_init=1, random_state=seed).fit(X).cluster_centers_
        ),
    }
    modules = peer("faiss") if with_faiss else None
    if modules is not None:
        faiss = modules[0]
        faiss.omp_set_num_threads(clock.n_jobs or 2)

        def train(sample: int) -> np.ndarray:
            means = faiss.Kmeans(
                X.shape[1],
                K,
                niter=FAISS_ROUNDS,
                seed=seed + 1,
                max_points_per_centroid=sample,
                min_points_per_centroid=1,
            )
            means.train(X)
            # As the others, it ends with the labels of all rows.
            means.index.search(X, 1)
            return np.asarray(means.centroids)

        found["faiss, all rows"] = lambda: train(len(X))
        found["faiss, its sample"] = lambda: train(FAISS_SAMPLE)
    return found


def judge(data: Wide, centroids: dict[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """The explained share of each contender relative to the best rival, and its ARI."""
    X, labels = data
    one = float(_sse_of_one(X))
    explained = dict[str, float]()
    ari = dict[str, float]()
    for name, C in centroids.items():
        own, sse = _assign(X, C)
        explained[name] = one - sse
        ari[name] = float(adjusted_rand_score(labels, own))
    best = max(value for name, value in explained.items() if name != "ckm")
    return {
        name: {"explained": value / best, "ari": ari[name]} for name, value in explained.items()
    }


def _assign(X: Any, C: np.ndarray) -> tuple[np.ndarray, float]:
    """Labels of all rows and their SSE, a part of the rows at a time."""
    labels = []
    sse = 0.0
    halves = (C.astype(np.float64) ** 2).sum(axis=1) / 2
    for start in range(0, X.shape[0], 20_000):
        part = X[start : start + 20_000]
        part = part.astype(np.float32)
        scores = halves - np.asarray(part @ C.T.astype(np.float32), np.float64)
        own = scores.argmin(axis=1)
        squares = part.multiply(part).sum() if sparse.issparse(part) else (part**2).sum(dtype=float)
        sse += float(squares) + 2 * float(scores[np.arange(len(own)), own].sum())
        labels.append(own)
    return np.concatenate(labels), sse


def _sse_of_one(X: Any) -> float:
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    return _assign(X, mean[None])[1]


def compare(
    name: str, data: Wide, K: int, arguments: argparse.Namespace, clock: Clock, faiss: bool = True
) -> dict[str, Any]:
    """Run all contenders on several seeds: best seconds, median explained share and ARI."""
    ckm.CompressiveKMeans(K, random_state=0, n_jobs=clock.n_jobs).fit(data.rows[: 40 * K])
    runs = list[dict[str, dict[str, float]]]()
    seconds = dict[str, float]()
    for seed in range(arguments.seeds, arguments.seeds + arguments.count):
        times, centroids = clock.best(1, contenders(data.rows, K, seed, clock, faiss))
        for key, value in times.items():
            seconds[key] = min(seconds.get(key, np.inf), value)
        runs.append(judge(data, centroids))
    found = {
        key: {
            "seconds": seconds[key],
            "explained": float(np.median([run[key]["explained"] for run in runs])),
            "least explained": float(min(run[key]["explained"] for run in runs)),
            "ari": float(np.median([run[key]["ari"] for run in runs])),
        }
        for key in seconds
    }
    show(
        f"{name}: {data.rows.shape[0]:,} x {data.rows.shape[1]:,}, K = {K}",
        ["", "seconds", "explained share", "least", "ARI"],
        [
            [key, r["seconds"], f"{r['explained']:.4f}", f"{r['least explained']:.4f}", r["ari"]]
            for key, r in found.items()
        ],
    )
    return found


def faster(name: str, found: dict[str, Any], rival: str, bound: float) -> Target:
    """The target that ckm is so many times as fast as a rival."""
    ratio = found[rival]["seconds"] / found["ckm"]["seconds"]
    return Target(f"{name}: times as fast as {rival}", bound, ratio, False)


def explains(name: str, found: dict[str, Any], bound: float) -> Target:
    """The target of the median explained share against the best rival's."""
    return Target(f"{name}: explained share", bound, found["ckm"]["explained"], False)


def as_good_labels(name: str, found: dict[str, Any]) -> Target:
    """The target that the ARI is within 0.01 of the best."""
    best = max(result["ari"] for key, result in found.items() if key != "ckm")
    return Target(f"{name}: ARI - the best rival's", -0.01, found["ckm"]["ari"] - best, False)


def measure_mnist(arguments: argparse.Namespace, clock: Clock) -> None:
    """Handwritten digits as they are."""
    if not mnist.available():
        return
    images, digits = mnist.originals()
    rows = (np.asarray(images, np.float32) / 255).reshape(len(images), -1)
    if arguments.quick:
        rows, digits = rows[:10_000], digits[:10_000]
    found = compare("MNIST", Wide(rows, np.asarray(digits)), 10, arguments, clock)
    targets = [
        faster("MNIST", found, "KMeans(n_init=1)", 4),
        faster("MNIST", found, "MiniBatchKMeans", 1),
        explains("MNIST", found, 0.99),
    ]
    report("wide-mnist", arguments.quick, _settings(arguments), found, targets)


def measure_embeddings(arguments: argparse.Namespace, clock: Clock) -> None:
    """Made embeddings."""
    N = 20_000 if arguments.quick else arguments.rows
    results = dict[str, Any]()
    targets = list[Target]()
    for kind in KINDS:
        data = embeddings(N, 384, 50, kind, arguments.seeds)
        found = results[kind] = compare(kind, data, 50, arguments, clock)
        targets += [
            faster(kind, found, "KMeans(n_init=1)", 10),
            faster(kind, found, "MiniBatchKMeans", 1),
            explains(kind, found, 0.98),
            as_good_labels(kind, found),
        ]
        for rival in ("MiniBatchKMeans", "faiss, its sample"):
            if rival in found:
                ahead = found["ckm"]["explained"] - found[rival]["explained"]
                targets.append(Target(f"{kind}: explained share - {rival}'s", 0, ahead, False))
    report("wide-embeddings", arguments.quick, _settings(arguments), results, targets)


def measure_sparse(arguments: argparse.Namespace, clock: Clock) -> None:
    """TF-IDF of made texts, and the memory that a fit of it takes beside the rows."""
    N, n = (5000, 20_000) if arguments.quick else (200_000, 100_000)
    data = texts(N, n, 20, arguments.seeds)
    found = compare("texts", data, 20, arguments, clock, faiss=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.npz"
        sparse.save_npz(path, data.rows, compressed=False)
        code = f"X = sparse.load_npz({str(path)!r}); fit = lambda: M(20, random_state=0).fit(X)"
        found["ckm"]["peak, MB"] = _peak(code)
    console.print(f"peak memory of a fit, with rows: {found['ckm']['peak, MB']:.0f} MB")
    targets = [
        faster("texts", found, "KMeans(n_init=1)", 3),
        faster("texts", found, "MiniBatchKMeans", 3),
        explains("texts", found, 0.98),
        as_good_labels("texts", found),
        Target("texts: peak memory, MB", 1000, found["ckm"]["peak, MB"], True),
    ]
    report("wide-sparse", arguments.quick, _settings(arguments), found, targets)


def measure_files(arguments: argparse.Namespace, clock: Clock) -> None:
    """Float16 rows in files, against MiniBatchKMeans over chunks of them."""
    N, n, K = (20_000, 768, 20) if arguments.quick else (arguments.rows, 768, 100)
    results = dict[str, Any]()
    targets = list[Target]()
    for kind in KINDS:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            names = _write_parts(Path(folder), N, n, K, kind, arguments.seeds)
            found = results[kind] = _compare_on_files(names, K, arguments.seeds, clock)
        show(
            f"float16 files, {kind}: {N:,} x {n}, K = {K}",
            ["", "seconds", "explained", "peak, MB"],
            [
                [k, r["seconds"], f"{r['explained']:.5f}", r.get("peak, MB")]
                for k, r in found.items()
            ],
        )
        ratio = found["ckm"]["sse"] / found["MiniBatchKMeans"]["sse"]
        targets += [
            faster(f"files, {kind}", found, "MiniBatchKMeans", 1),
            Target(f"files, {kind}: SSE / MiniBatchKMeans'", 1, ratio, True),
            Target(f"files, {kind}: peak memory, MB", 600, found["ckm"]["peak, MB"], True),
        ]
    report("wide-files", arguments.quick, _settings(arguments), results, targets)


def _write_parts(folder: Path, N: int, n: int, K: int, kind: str, seed: int) -> list[str]:
    """Ten files of rows around the same centres."""
    rows = embeddings(N, n, K, kind, seed, np.float16).rows
    names = [str(folder / f"{number}.npy") for number in range(10)]
    for name, part in zip(names, np.array_split(rows, 10), strict=True):
        np.save(name, part)
    return names


def _compare_on_files(names: list[str], K: int, seed: int, clock: Clock) -> dict[str, Any]:
    """Seconds and SSE of both contenders, and the peak memory of ours."""
    jobs = clock.n_jobs
    work: dict[str, Callable[[], Any]] = {
        "ckm": lambda: (
            ckm.decode(
                ckm.sketch(names, n_clusters=K, random_state=seed, n_jobs=jobs),
                K,
                random_state=seed,
                n_jobs=jobs,
            ).centroids
        ),
        "MiniBatchKMeans": lambda: _over_chunks(names, K, seed),
    }
    # The first turn also loads modules and compiled code.
    seconds, centroids = clock.best(2, work)
    results = dict[str, Any]()
    one = sum(_sse_of_one(np.load(name, mmap_mode="r")) for name in names)
    for key, C in centroids.items():
        sse = sum(_assign(np.load(name, mmap_mode="r"), C)[1] for name in names)
        results[key] = {"seconds": seconds[key], "sse": sse, "explained": 1 - sse / one}
    code = f"fit = lambda: ckm.decode(ckm.sketch({names!r}, n_clusters={K}), {K})"
    results["ckm"]["peak, MB"] = _peak(code)
    return results


def _over_chunks(names: list[str], K: int, seed: int) -> np.ndarray:
    """MiniBatchKMeans in one pass over files, as scikit-learn's users do it."""
    model = MiniBatchKMeans(K, n_init=1, random_state=seed)
    for name in names:
        rows = np.load(name, mmap_mode="r")
        for start in range(0, len(rows), 10_000):
            model.partial_fit(rows[start : start + 10_000].astype(np.float32))
    return np.asarray(model.cluster_centers_)


def _peak(code: str) -> float:
    """The peak memory, in MB, of a process that runs `fit` of some code."""
    program = (
        "import numpy as np, ckm\nfrom scipy import sparse\n"
        "from ckm import CompressiveKMeans as M\n"
        # Not what getrusage says: that includes the process that started this one.
        f"{code}\nfit()\nprint(open('/proc/self/status').read())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    lines = done.stdout.decode().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def measure_growth(arguments: argparse.Namespace, clock: Clock) -> None:
    """Seconds of a fit over n at K = 50, and over K at n = 384."""
    N = 5000 if arguments.quick else 100_000
    cases = [(n, 50) for n in (64, 128, 384, 768, 1536)] + [(384, K) for K in (10, 25, 100, 200)]
    results = dict[str, Any]()
    for n, K in cases:
        X = embeddings(N, n, K, "low-rank", arguments.seeds).rows
        like = ckm.sketch(X, n_clusters=K, random_state=0, n_jobs=clock.n_jobs)
        work: dict[str, Callable[[], Any]] = {
            "pass": lambda X=X, like=like: ckm.sketch(X, like=like, n_jobs=clock.n_jobs),
            "decode": lambda like=like, K=K: ckm.decode(
                like, K, random_state=0, n_jobs=clock.n_jobs
            ),
            "fit": lambda X=X, K=K: ckm.CompressiveKMeans(
                K, random_state=0, n_jobs=clock.n_jobs
            ).fit(X),
        }
        seconds, _ = clock.best(2, work)
        results[f"n = {n}, K = {K}"] = seconds | {"axes": like.frequencies.n}
    show(
        f"Growth, {N:,} rows",
        ["", "axes", "pass, s", "decode, s", "fit, s"],
        [[k, r["axes"], r["pass"], r["decode"], r["fit"]] for k, r in results.items()],
    )
    slope = results["n = 1536, K = 50"]["fit"] / results["n = 384, K = 50"]["fit"]
    decoding = results["n = 384, K = 200"]["decode"] / results["n = 384, K = 50"]["decode"]
    targets = [
        Target("a fit of 4 times the columns takes so many times as long", 4, slope, True),
        Target("decoding 4 times the clusters takes so many times as long", 4, decoding, True),
    ]
    report("wide-growth", arguments.quick, _settings(arguments), results, targets)


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"clock": arguments.clock, "seeds": arguments.seeds, "count": arguments.count}


SECTIONS = {
    "mnist": measure_mnist,
    "embeddings": measure_embeddings,
    "sparse": measure_sparse,
    "files": measure_files,
    "growth": measure_growth,
}


def main() -> None:
    parser = options("Measure wide data against its rivals.", first_seed=100)
    parser.add_argument("--count", type=int, default=3, help="the number of seeds")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of made embeddings")
    parser.add_argument("--folder", help="where files are written (default: a temporary folder)")
    run_sections(parser, SECTIONS)


if __name__ == "__main__":
    main()
