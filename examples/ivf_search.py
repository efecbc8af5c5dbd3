"""Inverted-file search: the centroids of ckm cut vectors into lists, and a query scans a few lists
instead of all vectors.

If faiss is installed (pip install faiss-cpu), its own training is the measure; the index here is
some lines of NumPy.
"""

import importlib.util

import numpy as np

from ckm import CompressiveKMeans

VECTORS = 50_000
COLUMNS = 128
QUERIES = 200
LISTS = 100
NEIGHBOURS = 10
rng = np.random.default_rng(0)


def make_vectors(count: int) -> np.ndarray:
    """Return vectors on a curved surface of few dimensions, as descriptors of images are."""
    bend = np.random.default_rng(1)
    latent = rng.standard_normal((count, 16), np.float32)
    hidden = np.tanh(0.5 * latent @ bend.standard_normal((16, 64), np.float32))
    return np.maximum(hidden @ bend.standard_normal((64, COLUMNS), np.float32), 0)


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return squared distances (len(a), len(b)), up to a term that depends on `a` alone."""
    return (b**2).sum(axis=1) - 2 * a @ b.T


def recall(centroids: np.ndarray, probes: int) -> float:
    """Return the share of the nearest vectors that are in the lists of the nearest centroids."""
    labels = squared_distances(vectors, centroids).argmin(axis=1)
    visited = np.argsort(squared_distances(queries, centroids), axis=1)[:, :probes]
    found = 0
    for query, lists, exact in zip(queries, visited, nearest, strict=True):
        members = np.flatnonzero(np.isin(labels, lists))
        distances = squared_distances(query[None], vectors[members])[0]
        found += len(np.intersect1d(members[np.argsort(distances)[:NEIGHBOURS]], exact))
    return found / nearest.size


vectors = make_vectors(VECTORS)
queries = make_vectors(QUERIES)
nearest = np.argsort(squared_distances(queries, vectors), axis=1)[:, :NEIGHBOURS]

centroids = {"ckm": CompressiveKMeans(LISTS, random_state=0).fit(vectors).cluster_centers_}
if importlib.util.find_spec("faiss"):
    import faiss

    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(COLUMNS), COLUMNS, LISTS)
    index.train(vectors)
    centroids["faiss"] = index.quantizer.reconstruct_n(0, LISTS)

print(f"{VECTORS} vectors in {LISTS} lists, {NEIGHBOURS} neighbours of {QUERIES} queries")
for probes in (1, 4, 16):
    shares = ", ".join(f"{name} {recall(C, probes):.3f}" for name, C in centroids.items())
    print(f"  recall with {probes:2} of {LISTS} lists scanned: {shares}")

# In faiss itself: an index of these lists, trained by ckm.
#   quantizer = faiss.IndexFlatL2(COLUMNS)
#   quantizer.add(centroids["ckm"])
#   index = faiss.IndexIVFFlat(quantizer, COLUMNS, LISTS)
#   index.is_trained = True
#   index.add(vectors)
