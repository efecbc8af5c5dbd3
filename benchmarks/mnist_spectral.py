"""MNIST as the paper clusters it: SIFT descriptors, the graph of their nearest neighbours,
eigenvectors of its Laplacian (Section 4).

OpenCV stands in for VLFeat and faiss's HNSW for FLANN. Everything runs in one thread, so that the
same images give the same features.
"""

import gzip
import hashlib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh
from threadpoolctl import threadpool_limits

from common import replacing

KEYPOINT_SIZE, PADDING = 3.5, 8  # pixels; the descriptor reaches beyond the image
NEIGHBOURS, DIMENSIONS = 10, 10
# of HNSW: with these nearly every neighbour is found
LINKS, BUILD_WIDTH, SEARCH_WIDTH = 16, 200, 100
SETTINGS = (KEYPOINT_SIZE, PADDING, NEIGHBOURS, DIMENSIONS, LINKS, BUILD_WIDTH, SEARCH_WIDTH)


def read_images(folder: Path, part: str) -> np.ndarray:
    """The images (N, 28, 28) of a part of MNIST, "train" or "t10k", from its idx file."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)


def read_labels(folder: Path, part: str) -> np.ndarray:
    """The digits (N,) that these images show."""
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=8)


def spectral_features(images: np.ndarray, cache: Path) -> np.ndarray:
    """The features (N, 10) of these images, computed once: `cache` keeps them under a name made of
    the images and the settings.
    """
    digest = hashlib.sha256(repr((images.shape, *SETTINGS)).encode() + images.tobytes()).hexdigest()
    path = cache / f"mnist-spectral-{digest[:12]}.npy"
    if not path.exists():
        features = embedding(neighbour_graph(descriptors(images)))
        cache.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part, part.open("wb") as file:
            np.save(file, features)
    return np.load(path)


def descriptors(images: np.ndarray) -> np.ndarray:
    """One SIFT descriptor at the centre of each image, of unit norm: float32 (N, 128)."""
    cv2 = _needed("cv2", "opencv-python-headless")
    sift = cv2.SIFT_create()
    padded = np.pad(images, [(0, 0), (PADDING, PADDING), (PADDING, PADDING)])
    centre = [cv2.KeyPoint(padded.shape[2] / 2, padded.shape[1] / 2, KEYPOINT_SIZE)]
    found = np.concatenate([sift.compute(image, centre)[1] for image in padded])
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)


def neighbour_graph(points: np.ndarray) -> sparse.csr_array:
    """Who is among the nearest neighbours of whom, in either direction: 0 or 1, symmetric (N, N)."""
    faiss = _needed("faiss", "faiss-cpu")
    index = faiss.IndexHNSWFlat(points.shape[1], LINKS)  # draws its levels from a fixed seed
    index.hnsw.efConstruction, index.hnsw.efSearch = BUILD_WIDTH, SEARCH_WIDTH
    with threadpool_limits(1):  # the order of insertion decides the graph that is searched
        index.add(points)
        _, near = index.search(points, NEIGHBOURS + 1)  # a point is its own nearest
    rows, columns = np.repeat(np.arange(len(points)), near.shape[1]), near.ravel()
    keep = (rows != columns) & (columns >= 0)  # -1: not found
    graph = sparse.csr_array(
        (np.ones(keep.sum()), (rows[keep], columns[keep])), shape=(len(points), len(points))
    )
    return graph.maximum(graph.T)


def embedding(graph: sparse.csr_array) -> np.ndarray:
    """The first eigenvectors of the normalised Laplacian I - D^(-1/2) W D^(-1/2), rows of length
    one (Ng, Jordan and Weiss, 2001).
    """
    scaling = sparse.diags_array(1 / np.sqrt(graph.sum(axis=1)))
    start = np.random.default_rng(0).standard_normal(graph.shape[0])
    with threadpool_limits(1):
        # the largest here are the Laplacian's smallest
        _, vectors = eigsh(scaling @ graph @ scaling, DIMENSIONS, which="LA", v0=start)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def require_packages() -> None:
    """Refuse, before long work, where a package is missing."""
    _needed("cv2", "opencv-python-headless")
    _needed("faiss", "faiss-cpu")


def _needed(module: str, package: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"it needs {package} ({error}); pip install {package}") from None
