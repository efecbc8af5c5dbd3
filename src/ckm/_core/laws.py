"""The laws that frequencies are drawn from, at unit scale (sigma^2 = 1).

Each law maps (rng, m, n) to an (m, n) array. A frequency is a radius times a direction that is
uniform on the sphere: omega = R phi / sigma (Section 3.1 of the paper). "multiscale" and
"structured" are ours; the others are those of Keriven et al. (2016).
"""

from collections.abc import Callable

import numpy as np
from scipy.special import gammaincc, gammainccinv

from ckm._core import hadamard
from ckm._util.arrays import Array
from ckm.errors import ParameterError

Law = Callable[[np.random.Generator, int, int], Array]

SCALES = (0.5, 8.0)  # of "multiscale", around the variance of a cluster
# variances of a cluster that make up the data's, from which on clusters are specks in it
COARSE_RATIO = 128.0
# how much finer than the spacing of clusters the coarse half of the frequencies sees
_COARSE = 12.0


def uniform_directions(rng: np.random.Generator, m: int, n: int) -> Array:
    """m directions, uniform on the unit sphere of R^n."""
    g = rng.standard_normal((m, n))
    directions: Array = g / np.linalg.norm(g, axis=1, keepdims=True)
    return directions


def adapted_radii(rng: np.random.Generator, m: int) -> Array:
    """m radii with density proportional to sqrt(R^2 + R^4/4) exp(-R^2/2), sampled exactly.

    With x = 2 + R^2/2 the density becomes that of a Gamma(3/2) conditioned on x > 2, inverted in
    closed form.
    """
    u = rng.random(m)
    x = gammainccinv(1.5, (1 - u) * gammaincc(1.5, 2.0))
    radii: Array = 2 * np.sqrt(np.maximum(x - 2, 0) / 2)
    return radii


def adapted_radius(rng: np.random.Generator, m: int, n: int) -> Array:
    """The paper's law: radii where the characteristic function of a Gaussian varies most."""
    directions = uniform_directions(rng, m, n)
    return directions * adapted_radii(rng, m)[:, None]


def multiscale(rng: np.random.Generator, m: int, n: int, reach: float = 1.0) -> Array:
    """The paper's law, with a variance of its own for each frequency, log-uniform in `SCALES`.

    Low frequencies say where the bulk and the tails are, high ones what a cluster looks like; with
    both, sigma^2 need not be right. Where the data reaches so far (`reach` is its variance along an
    axis) that clusters are specks in it, every other frequency is low enough to tell where they
    are.
    """
    variances = _variances(rng, m, n, reach)
    return adapted_radius(rng, m, n) * variances[:, None] ** -0.5


def _variances(rng: np.random.Generator, m: int, n: int, reach: float) -> Array:
    low, high = SCALES
    variances: Array = low * (high / low) ** rng.random(m)
    if reach > COARSE_RATIO:
        coarse = variances[::2]
        lowest = max(high, reach / _COARSE / max(1.0, m / (5 * n)) ** (2 / n))
        coarse[:] = lowest * (reach / lowest) ** rng.random(len(coarse))
    return variances


def draw_structure(rng: np.random.Generator, m: int, n: int, reach: float = 1.0) -> tuple[Array, Array]:
    """Lengths (m,) and signs of structured frequencies (`ckm._core.hadamard`): radii of
    "multiscale", corrected for what padding cuts off.
    """
    radii = adapted_radii(rng, m) * _variances(rng, m, n, reach) ** -0.5
    signs = hadamard.draw_signs(rng, m, n)
    return radii / hadamard.row_lengths(signs, m, n), signs


def structured(rng: np.random.Generator, m: int, n: int, reach: float = 1.0) -> Array:
    """As "multiscale", with directions that a fast transform multiplies by: for data of many
    columns.
    """
    lengths, signs = draw_structure(rng, m, n, reach)
    return lengths[:, None] * hadamard.rows(hadamard.factors(signs), m, n)


def folded_gaussian(rng: np.random.Generator, m: int, n: int) -> Array:
    """Radii |N(0, 1)|, whatever the dimension."""
    directions = uniform_directions(rng, m, n)
    return directions * np.abs(rng.standard_normal(m))[:, None]


def gaussian(rng: np.random.Generator, m: int, n: int) -> Array:
    """omega ~ N(0, I): the random Fourier features of a Gaussian kernel."""
    return rng.standard_normal((m, n))


DEFAULT_DISTRIBUTION = "multiscale"
# laws whose radii follow the variance of clusters and the reach of the data
MULTISCALE = ("multiscale", "structured")

DISTRIBUTIONS: dict[str, Law] = {
    "multiscale": multiscale,
    "adapted-radius": adapted_radius,
    "folded-gaussian": folded_gaussian,
    "gaussian": gaussian,
    "structured": structured,
}


def find_law(name: str) -> Law:
    """The law called `name`."""
    try:
        return DISTRIBUTIONS[name]
    except (KeyError, TypeError):
        known = ", ".join(map(repr, DISTRIBUTIONS))
        raise ParameterError(
            f"There is no frequency distribution {name!r}; choose one of {known}."
        ) from None
