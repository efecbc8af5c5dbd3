"""More images from few: small random affine and smooth elastic deformations, in place of infMNIST
(Loosli, Canu and Bottou, 2007).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

BATCH = 1000  # images that share a stream of random numbers


class Deformation(NamedTuple):
    """The standard deviations of the random deformation of an image."""

    rotation: float = 0.06  # radians
    scaling: float = 0.04
    shear: float = 0.06
    shift: float = 0.35  # pixels
    bend: float = 0.45  # pixels, of the elastic displacement
    smoothness: float = 4.0  # pixels over which the displacement hardly changes


DEFAULT = Deformation()


def deform(
    images: np.ndarray, rng: np.random.Generator, settings: Deformation = DEFAULT
) -> np.ndarray:
    """Deform each image (N, h, w) of bytes at random; pixels from outside an image are black."""
    count, height, width = images.shape
    centre = np.array([(height - 1) / 2, (width - 1) / 2]).reshape(2, 1, 1)
    grid = np.indices((height, width)) - centre
    places = np.einsum("bij,jhw->bihw", _matrices(count, rng, settings), grid) + centre
    places += settings.shift * rng.standard_normal((count, 2, 1, 1))
    places += _bends(images.shape, rng, settings)
    which = np.broadcast_to(np.arange(count).reshape(-1, 1, 1), images.shape)
    moved = map_coordinates(
        images.astype(np.float32), [which, places[:, 0], places[:, 1]], order=1, mode="constant"
    )
    return np.rint(np.clip(moved, 0, 255)).astype(np.uint8)


def _matrices(count: int, rng: np.random.Generator, settings: Deformation) -> np.ndarray:
    """Return a matrix of rotation, shear and scaling per image: (N, 2, 2)."""
    angles = settings.rotation * rng.standard_normal(count)
    shears = settings.shear * rng.standard_normal(count)
    scales = np.exp(settings.scaling * rng.standard_normal((count, 2)))
    turn = np.stack(
        [np.cos(angles), -np.sin(angles), np.sin(angles), np.cos(angles)], axis=1
    ).reshape(count, 2, 2)
    lean = np.stack([np.ones(count), np.zeros(count), shears, np.ones(count)], axis=1).reshape(
        count, 2, 2
    )
    return turn @ lean * scales[:, None, :]


def _bends(shape: tuple[int, ...], rng: np.random.Generator, settings: Deformation) -> np.ndarray:
    """Return smooth random displacements (N, 2, h, w): white noise through a Gaussian filter,
    scaled to a standard deviation of `bend`.
    """
    noise = rng.standard_normal((shape[0], 2, *shape[1:]), dtype=np.float32)
    s = settings.smoothness
    smooth = gaussian_filter(noise, (0, 0, s, s), mode="wrap")
    # The Gaussian filter divides the standard deviation of white noise by 2 sqrt(pi) s.
    return settings.bend * smooth * (2 * np.sqrt(np.pi) * s)


def enlarged(
    images: np.ndarray, n_images: int, seed: int = 0, settings: Deformation = DEFAULT
) -> Iterator[np.ndarray]:
    """Yield the images in batches, then deformed copies of them, pass after pass.

    The first images of a longer sequence are those of a shorter one.
    """
    yield from (
        images[start : min(start + BATCH, n_images)]
        for start in range(0, min(len(images), n_images), BATCH)
    )
    for start in range(len(images), n_images, BATCH):
        places = np.arange(start, start + BATCH) % len(images)
        batch = deform(images[places], np.random.default_rng([seed, start]), settings)
        yield batch[: n_images - start]
