"""MNIST's spectral features for any number of images, kept on disk stage by stage (Section 4.1).

Where the paper used VLFeat, FLANN and infMNIST, OpenCV's SIFT, faiss's HNSW and the deformations of
deform.py stand in.
"""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from deform import DEFAULT, enlarged
from shared import console, mnist_spectral, replacing

CACHE = Path(__file__).parent / "cache"
ORIGINALS = 70_000
OPENML = "openml"


def name_source(source: str | None) -> None:
    """Say where MNIST is, if it is said here; processes started later inherit it."""
    if source:
        os.environ["MNIST_DIR"] = source if source == OPENML else str(Path(source).resolve())


@cache
def available() -> bool:
    """Whether images are named and can be read, and the packages that features need are there; else
    a sentence says why not.
    """
    try:
        _originals()
        mnist_spectral.require_packages()
    except (ImportError, OSError, ValueError) as error:
        console.print(f"MNIST is left out: {error}", markup=False)
        return False
    return True


@cache
def _originals() -> tuple[np.ndarray, np.ndarray]:
    source = os.environ.get("MNIST_DIR")
    if not source:
        raise FileNotFoundError(
            "give --mnist FOLDER (make: MNIST=FOLDER) with train-images-idx3-ubyte.gz and its kin, or --mnist openml."
        )
    if source == OPENML:
        from sklearn.datasets import fetch_openml

        found = fetch_openml("mnist_784", version=1, as_frame=False)
        return found.data.reshape(-1, 28, 28).astype(np.uint8), found.target.astype(np.uint8)
    folder, parts = Path(source), ("train", "t10k")
    images, classes = (
        np.concatenate([read(folder, part) for part in parts])
        for read in (mnist_spectral.read_images, mnist_spectral.read_labels)
    )
    return images, classes


@cache
def features(n_images: int) -> tuple[np.ndarray, np.ndarray]:
    """The features (N, 10) and the classes (N,) of the images and, beyond 70 000, of deformed ones.

    A few images whose only neighbours are their own deformations may have no path to the others;
    they are left out.
    """
    images, classes = _originals()
    settings = repr((mnist_spectral.SETTINGS, DEFAULT, images.shape))
    digest = hashlib.sha256(settings.encode() + images.tobytes()).hexdigest()[:12]
    graph, found = (
        CACHE / f"mnist-{n_images}-{digest}-{stage}.npz" for stage in ("graph", "features")
    )

    def make_graph() -> sparse.csr_array:
        return mnist_spectral.neighbour_graph(
            np.concatenate(
                [mnist_spectral.descriptors(part) for part in enlarged(images, n_images)]
            )
        )

    def make_features() -> dict[str, np.ndarray]:
        connected, kept = largest_part(_kept(graph, sparse.load_npz, sparse.save_npz, make_graph))
        return {"features": mnist_spectral.embedding(connected), "kept": kept}

    stored = _kept(found, np.load, lambda file, arrays: np.savez(file, **arrays), make_features)
    kept = stored["kept"]
    if len(kept) < n_images:
        console.print(
            f"{n_images - len(kept)} of {n_images:,} images have no path to the others in the graph and are left out."
        )
    return stored["features"], classes[kept % len(classes)]


def largest_part(graph: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray]:
    """The largest connected part of a graph, and which nodes are in it. More parts than one have
    more eigenvalues of zero than one.
    """
    _, parts = connected_components(graph, directed=False)
    kept = np.flatnonzero(parts == np.bincount(parts).argmax())
    return graph[kept][:, kept], kept


def _kept(
    path: Path, load: Callable[..., Any], save: Callable[..., None], make: Callable[[], Any]
) -> Any:
    """What the file holds; it is made where there is none."""
    if not path.exists():
        console.print(f"Making {path.name}, once.")
        CACHE.mkdir(parents=True, exist_ok=True)
        value = make()
        with replacing(path) as part, part.open("wb") as file:
            save(file, value)
    return load(path)
