"""Spectral features as in the paper: SIFT descriptors, the graph of their nearest neighbours, and
eigenvectors of its Laplacian (Section 4).

OpenCV replaces VLFeat. Exact neighbours on a GPU replace FLANN's; where there is no GPU, faiss's
HNSW does. Everything on the CPU runs in one thread, so that the same images give the same features.
"""

from importlib import import_module
from types import ModuleType

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh
from threadpoolctl import threadpool_limits

KEYPOINT_SIZE = 3.5  # pixels
PADDING = 8  # pixels: the descriptor reaches beyond the image
NEIGHBOURS = 10
DIMENSIONS = 10
# Parameters of HNSW with which nearly every neighbour is found.
LINKS = 16
BUILD_WIDTH = 200
SEARCH_WIDTH = 100
# Rows whose distances to all rows are on the GPU at a time: 16 GB for a million rows.
GPU_ROWS = 4096
SETTINGS = (KEYPOINT_SIZE, PADDING, NEIGHBOURS, DIMENSIONS, LINKS, BUILD_WIDTH, SEARCH_WIDTH)


def descriptors(images: np.ndarray) -> np.ndarray:
    """Return one SIFT descriptor at the centre of each image, of unit norm: float32 (N, 128)."""
    cv2 = _needed("cv2", "opencv-python-headless")
    sift = cv2.SIFT_create()
    padded = np.pad(images, [(0, 0), (PADDING, PADDING), (PADDING, PADDING)])
    centre = [cv2.KeyPoint(padded.shape[2] / 2, padded.shape[1] / 2, KEYPOINT_SIZE)]
    found = np.concatenate([sift.compute(image, centre)[1] for image in padded])
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)


def neighbour_graph(points: np.ndarray) -> sparse.csr_array:
    """Return the symmetric graph (N, N) of nearest neighbours of points of unit norm: 1 if either
    is near the other.
    """
    near = _nearest_exact(points) if on_gpu() else _nearest_hnsw(points)
    rows = np.repeat(np.arange(len(points)), near.shape[1])
    columns = near.ravel()
    keep = (rows != columns) & (columns >= 0)  # -1: not found
    graph = sparse.csr_array(
        (np.ones(keep.sum()), (rows[keep], columns[keep])), shape=(len(points), len(points))
    )
    return graph.maximum(graph.T)


def _nearest_hnsw(points: np.ndarray) -> np.ndarray:
    """Return the nearest neighbours that HNSW finds, nearly all of them right: (N, 11)."""
    faiss = _needed("faiss", "faiss-cpu")
    index = faiss.IndexHNSWFlat(points.shape[1], LINKS)  # draws its levels from a fixed seed
    index.hnsw.efConstruction = BUILD_WIDTH
    index.hnsw.efSearch = SEARCH_WIDTH
    with threadpool_limits(1):  # the order of insertion decides the graph that is searched
        index.add(points)
        _, near = index.search(points, NEIGHBOURS + 1)  # a point is its own nearest
    return near


def _nearest_exact(points: np.ndarray) -> np.ndarray:
    """Return the nearest neighbours of points of unit norm, by all products on a GPU: (N, 11)."""
    torch = import_module("torch")
    held = torch.from_numpy(np.asarray(points, np.float32)).cuda()
    near = [
        (block @ held.T).topk(NEIGHBOURS + 1).indices.cpu().numpy()
        for block in held.split(GPU_ROWS)
    ]
    return np.concatenate(near)


def on_gpu() -> bool:
    """Whether there is a GPU that torch can use."""
    try:
        return bool(import_module("torch").cuda.is_available())
    except ImportError:
        return False


def embedding(graph: sparse.csr_array) -> np.ndarray:
    """Return the first eigenvectors of the normalised Laplacian I - D^(-1/2) W D^(-1/2), with rows
    of length one (Ng, Jordan and Weiss, 2001).
    """
    scaling = sparse.diags_array(1 / np.sqrt(graph.sum(axis=1)))
    start = np.random.default_rng(0).standard_normal(graph.shape[0])
    with threadpool_limits(1):
        # the largest here are the Laplacian's smallest
        _, vectors = eigsh(scaling @ graph @ scaling, DIMENSIONS, which="LA", v0=start)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def largest_part(graph: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the largest connected part of a graph, and the indices of its nodes."""
    _, parts = connected_components(graph, directed=False)
    kept = np.flatnonzero(parts == np.bincount(parts).argmax())
    return graph[kept][:, kept], kept


def require_packages() -> None:
    """Raise ImportError, before long work, if a package is missing."""
    _needed("cv2", "opencv-python-headless")
    if not on_gpu():
        _needed("faiss", "faiss-cpu")


def _needed(module: str, package: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"it needs {package} ({error}); pip install {package}") from None
