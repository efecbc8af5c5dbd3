"""Inverted-file search: recall with the centroids of ckm and with those of faiss's own training.

Vectors are put into K lists, one for each centroid, and a query scans the lists of the few nearest
centroids ("probes"). All centroids go into the same index, faiss's IndexIVFFlat, so only training
differs: ckm reads all vectors once, projected to as many axes as it chooses itself and to 24 of
them; `IndexIVFFlat.train` runs ten iterations of k-means on a sample of 256 vectors per list.
Recall@10 is the share of the ten nearest vectors that are found, over queries that are drawn as the
vectors are. Since equal probes of unequal lists are unequal work, the table also has the vectors
scanned per query.

Seconds are processor time of one thread: training alone, since filling the lists is the same work
for both.
"""

import argparse
from typing import Any

import numpy as np

import ckm
from benchmarks.harness import Target, options, peer, report, show
from benchmarks.sections import Clock

COLUMNS = 128
LATENT = 16  # dimensions that vectors vary in, beside a little noise
HIDDEN = 64
NEIGHBOURS = 10
PROBES = (1, 4, 16, 64)
QUERIES = 1000
# Axes that ckm projects vectors to, beside those that it chooses itself.
FEW_AXES = 24
# Points of recall that ckm may be behind.
MOST_BEHIND = 1.0


def make_clusters(N: int, rng: np.random.Generator) -> np.ndarray:
    """Vectors (N, 128) around 3000 centres of unequal shares, each along some directions more."""
    count = 3000
    centres = rng.standard_normal((count, COLUMNS), np.float32)
    shares = np.arange(1, count + 1) ** -0.5
    falling = np.arange(1, LATENT + 1) ** -0.5
    directions = rng.standard_normal((20, LATENT, COLUMNS), np.float32)
    directions *= (0.6 * falling[:, None]).astype(np.float32)
    labels = rng.choice(count, N, p=shares / shares.sum())
    X = centres[labels] + 0.4 * rng.standard_normal((N, COLUMNS), np.float32)
    for kind, axes in enumerate(directions):
        members = np.flatnonzero(labels % len(directions) == kind)
        X[members] += rng.standard_normal((len(members), LATENT), np.float32) @ axes
    return X


def make_descriptors(N: int, rng: np.random.Generator) -> np.ndarray:
    """Vectors (N, 128) without clusters, on a curved surface of 16 dimensions, none negative, as
    descriptors of images are.
    """
    first = rng.standard_normal((LATENT, HIDDEN)).astype(np.float32)
    second = rng.standard_normal((HIDDEN, COLUMNS)).astype(np.float32)
    latent = rng.standard_normal((N, LATENT), np.float32)
    X = np.tanh(0.5 * latent @ first) @ second
    X += 0.3 * rng.standard_normal(X.shape, np.float32)
    return np.maximum(X, 0.0)


KINDS = {"clusters": make_clusters, "descriptors": make_descriptors}


def exact_neighbours(faiss: Any, X: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """The numbers (q, 10) of the nearest vectors of each query."""
    return np.asarray(faiss.knn(queries, X, NEIGHBOURS)[1])


def new_index(faiss: Any, K: int) -> Any:
    """An empty index of K lists."""
    return faiss.IndexIVFFlat(faiss.IndexFlatL2(COLUMNS), COLUMNS, K)


def train_faiss(faiss: Any, X: np.ndarray, K: int, seed: int) -> np.ndarray:
    """The centroids (K, n) of faiss's own training."""
    index = new_index(faiss, K)
    index.cp.seed = seed + 1
    index.train(X)
    return np.asarray(index.quantizer.reconstruct_n(0, K))


def train_ckm(
    X: np.ndarray, K: int, seed: int, n_jobs: int | None, projection: int | str = "auto"
) -> np.ndarray:
    """The centroids (K, n) of ckm."""
    sketch = ckm.sketch(X, n_clusters=K, projection=projection, random_state=seed, n_jobs=n_jobs)
    return ckm.decode(sketch, K, random_state=seed, n_jobs=n_jobs).centroids


def fill_index(faiss: Any, X: np.ndarray, centroids: np.ndarray) -> Any:
    """An index of all vectors whose lists are those of given centroids."""
    index = new_index(faiss, len(centroids))
    index.quantizer.add(np.ascontiguousarray(centroids, np.float32))
    index.is_trained = True
    index.add(X)
    return index


def measure_recall(
    faiss: Any, index: Any, queries: np.ndarray, nearest: np.ndarray, probes: int
) -> dict[str, float]:
    """Recall@10 in points, and vectors scanned per query."""
    faiss.cvar.indexIVF_stats.reset()
    index.nprobe = probes
    found = index.search(queries, NEIGHBOURS)[1]
    hits = sum(len(np.intersect1d(a, b)) for a, b in zip(found, nearest, strict=True))
    scanned = faiss.cvar.indexIVF_stats.ndis / len(queries)
    return {"recall": 100 * hits / nearest.size, "scanned": scanned}


def compare(
    faiss: Any, kind: str, arguments: argparse.Namespace, clock: Clock
) -> list[dict[str, Any]]:
    """Train, fill and search with both, for one kind of vectors."""
    N, K = arguments.rows, arguments.clusters
    rng = np.random.default_rng(arguments.seeds)
    X = KINDS[kind](N + QUERIES, rng)
    queries = X[N:]
    X = X[:N]
    nearest = exact_neighbours(faiss, X, queries)
    train_ckm(X[: 40 * K], max(2, K // 20), 0, clock.n_jobs)  # compiles
    seed = arguments.seeds
    contenders = {
        "ckm": lambda: train_ckm(X, K, seed, clock.n_jobs),
        f"ckm, {FEW_AXES} axes": lambda: train_ckm(X, K, seed, clock.n_jobs, FEW_AXES),
        "faiss": lambda: train_faiss(faiss, X, K, seed),
    }
    seconds, centroids = clock.best(1, contenders)
    rows = []
    for name, C in centroids.items():
        index = fill_index(faiss, X, C)
        for probes in PROBES:
            found = measure_recall(faiss, index, queries, nearest, probes)
            shared = {"by": name, "train_s": seconds[name], "probes": probes}
            rows.append(shared | found)
        del index
    show(
        f"{kind}: {N:,} x {COLUMNS}, K = {K}",
        ["centroids of", "training, s", "probes", "recall@10", "vectors scanned"],
        [[r["by"], r["train_s"], r["probes"], r["recall"], r["scanned"]] for r in rows],
    )
    return rows


def most_behind(rows: list[dict[str, Any]]) -> float:
    """The most points by which ckm's recall is behind faiss's at equal probes."""
    recall = {(r["by"], r["probes"]): r["recall"] for r in rows}
    return max(recall["faiss", probes] - recall["ckm", probes] for probes in PROBES)


def main() -> None:
    parser = options(__doc__.split("\n", 1)[0], first_seed=0)
    parser.add_argument("--rows", type=lambda text: int(float(text)), help="default: 1e6")
    parser.add_argument("--clusters", type=int, help="number of lists (default: 1000)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    arguments = parser.parse_args()
    modules = peer("faiss")
    if modules is None:
        return
    faiss = modules[0]
    faiss.omp_set_num_threads(1)
    arguments.rows = arguments.rows or (50_000 if arguments.quick else 1_000_000)
    arguments.clusters = arguments.clusters or (100 if arguments.quick else 1000)
    clock = Clock("cpu")
    what = "points of recall@10 behind faiss's own training at equal probes, largest"
    settings = {"rows": arguments.rows, "clusters": arguments.clusters, "seed": arguments.seeds}
    for kind in arguments.kinds:
        rows = compare(faiss, kind, arguments, clock)
        target = Target(f"{kind}: {what}", MOST_BEHIND, most_behind(rows), at_most=True)
        report(f"ivf-{kind}", arguments.quick, settings, rows, [target])


if __name__ == "__main__":
    main()
