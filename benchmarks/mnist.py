"""MNIST: its images and digits, and the paper's spectral features of any number of images
(Section 4.1).

The paper used VLFeat, FLANN and infMNIST. Here OpenCV's SIFT, exact neighbours on a GPU or faiss's
HNSW without one (spectral.py), and the deformations of deform.py take their places. Each stage is
cached on disk.
"""

import gzip
import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import spectral
from benchmarks.deform import DEFAULT, enlarged
from benchmarks.harness import CACHE, console
from benchmarks.processes import replacing

ORIGINALS = 70_000
OPENML = "openml"
PARTS = ("train", "t10k")


def name_source(source: str | None) -> None:
    """Store where MNIST is, if given; processes started later inherit it."""
    if source:
        os.environ["MNIST_DIR"] = source if source == OPENML else str(Path(source).resolve())


@cache
def available() -> bool:
    """Whether the images can be read and the packages are installed; else print why not."""
    try:
        originals()
        spectral.require_packages()
    except (ImportError, OSError, ValueError) as error:
        console.print(f"MNIST is left out: {error}", markup=False)
        return False
    return True


@cache
def originals() -> tuple[np.ndarray, np.ndarray]:
    """Return the 70 000 images (N, 28, 28), training images first, and their digits (N,)."""
    source = os.environ.get("MNIST_DIR")
    if not source:
        raise FileNotFoundError(
            "give --mnist FOLDER (make: MNIST=FOLDER) with train-images-idx3-ubyte.gz and the "
            "other three files, or --mnist openml"
        )
    if source == OPENML:
        from sklearn.datasets import fetch_openml

        found = fetch_openml("mnist_784", version=1, as_frame=False)
        return found.data.reshape(-1, 28, 28).astype(np.uint8), found.target.astype(np.uint8)
    folder = Path(source)
    images = np.concatenate([read_images(folder, part) for part in PARTS])
    digits = np.concatenate([read_labels(folder, part) for part in PARTS])
    return images, digits


def training_images() -> np.ndarray:
    """Return the 60 000 training images (N, 28, 28)."""
    return originals()[0][:60_000]


def read_images(folder: Path, part: str) -> np.ndarray:
    """Return the images (N, 28, 28) of a part of MNIST, "train" or "t10k", from its idx file."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)


def read_labels(folder: Path, part: str) -> np.ndarray:
    """Return the digits (N,) of these images."""
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=8)


@cache
def features(n_images: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the features (N, 10) and digits (N,) of the images; beyond 70 000, of deformed ones.

    Images in small separate parts of the neighbour graph (only their own deformations are near
    them) are left out: each part adds an eigenvalue of zero that carries no information.
    """
    images, digits = originals()
    settings = repr((spectral.SETTINGS, DEFAULT, images.shape))
    digest = hashlib.sha256(settings.encode() + images.tobytes()).hexdigest()[:12]
    prefix = f"mnist-{n_images}-{digest}" + "-exact" * spectral.on_gpu()

    def make_graph() -> sparse.csr_array:
        batches = enlarged(images, n_images)
        return spectral.neighbour_graph(
            np.concatenate([spectral.descriptors(batch) for batch in batches])
        )

    def make_features() -> dict[str, np.ndarray]:
        graph_file = CACHE / f"{prefix}-graph.npz"
        graph = _cached(graph_file, sparse.load_npz, sparse.save_npz, make_graph)
        connected, kept = spectral.largest_part(graph)
        return {"features": spectral.embedding(connected), "kept": kept}

    stored = _cached(
        CACHE / f"{prefix}-features.npz",
        np.load,
        lambda file, arrays: np.savez(file, **arrays),
        make_features,
    )
    kept = stored["kept"]
    if len(kept) < n_images:
        console.print(
            f"{n_images - len(kept)} of {n_images:,} images have no path to the others in the "
            "graph and are left out."
        )
    return stored["features"], digits[kept % len(digits)]


def _cached(
    path: Path, load: Callable[..., Any], save: Callable[..., None], make: Callable[[], Any]
) -> Any:
    """Return the content of the file; make and save it first if there is no file."""
    if not path.exists():
        console.print(f"Making {path.name}, once.")
        path.parent.mkdir(parents=True, exist_ok=True)
        value = make()
        with replacing(path) as part, part.open("wb") as file:
            save(file, value)
    return load(path)
