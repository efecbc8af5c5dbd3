"""The laws that frequencies are drawn from, at unit scale (sigma^2 = 1).

A frequency is a radius times a direction that is uniform on the unit sphere: omega = R phi / sigma
(Section 3.1 of the paper). A law maps (rng, m, n) to an array of m frequencies (m, n).

"adapted-radius" is the law of the paper, "folded-gaussian" and "gaussian" are those it is compared
with (Keriven et al., 2016). "multiscale", "structured" and "broad" are additions of this library.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import gammaincc, gammainccinv

from ckm._core import hadamard
from ckm._core.defaults import MIN_CELLS_PER_CLUSTER, MIN_JUDGES
from ckm._messages import Argument
from ckm._util.arrays import FloatArray, SignArray
from ckm.errors import ParameterError

Law = Callable[[np.random.Generator, int, int], FloatArray]

# The default sketch size is m = 5 K n, which is enough in the paper's experiments (Section 4.3).
FREQUENCIES_PER_PARAMETER = 5

# Range of the variance that a "multiscale" frequency is drawn for, in units of the variance within
# clusters. It extends farther upwards, to low frequencies, which see where whole clusters are.
VARIANCE_RANGE = (0.5, 8.0)
# The same for a "broad" frequency, where no sample of the data tells the variance within clusters.
BROAD_RANGE = (0.25, 9.0)
# Ratio of the variance of the data to that within clusters, above which half the frequencies are
# drawn coarse: clusters are then so small that frequencies of VARIANCE_RANGE hardly locate them.
COARSE_RATIO = 128.0
# Ratio of the squared distance between clusters to the smallest coarse variance. The distance is
# that of K = m / (5 n) clusters which fill the data evenly: its square is reach / K^(2/n).
COARSE_DEPTH = 12.0


def uniform_directions(rng: np.random.Generator, m: int, n: int) -> FloatArray:
    """m directions (m, n), uniform on the unit sphere of R^n."""
    g = rng.standard_normal((m, n))
    directions: FloatArray = g / np.linalg.norm(g, axis=1, keepdims=True)
    return directions


def adapted_radii(rng: np.random.Generator, m: int) -> FloatArray:
    """m radii with density proportional to sqrt(R^2 + R^4 / 4) exp(-R^2 / 2).

    With x = 2 + R^2 / 2, this is the density of a Gamma(3/2) variable given x > 2. It is sampled
    exactly, by the inverse of its distribution function.
    """
    u = rng.random(m)
    x = gammainccinv(1.5, (1 - u) * gammaincc(1.5, 2.0))
    radii: FloatArray = 2 * np.sqrt(np.maximum(x - 2, 0) / 2)
    return radii


def adapted_radius(rng: np.random.Generator, m: int, n: int) -> FloatArray:
    """The law of the paper: radii where the characteristic function of a Gaussian varies most."""
    directions = uniform_directions(rng, m, n)
    return directions * adapted_radii(rng, m)[:, None]


def multiscale(rng: np.random.Generator, m: int, n: int, reach: float = 1.0) -> FloatArray:
    """The law of the paper, with a variance of its own for each frequency (`_draw_variances`).

    Low frequencies see where the bulk and the tails of the data are, high ones see the shape of a
    cluster. With both, an error in sigma^2 matters less.
    """
    variances = _draw_variances(rng, m, n, reach)
    return adapted_radius(rng, m, n) * variances[:, None] ** -0.5


def _draw_variances(rng: np.random.Generator, m: int, n: int, reach: float) -> FloatArray:
    """The variance of each frequency (m,), log-uniform in `VARIANCE_RANGE`.

    `reach` is the variance of the data along an axis, in units of the variance within clusters.
    Where it exceeds `COARSE_RATIO`, every other frequency is drawn with a variance up to `reach`:
    low enough to locate clusters that are small and far apart.
    """
    high = VARIANCE_RANGE[1]
    variances = _log_uniform(rng, m, VARIANCE_RANGE)
    if reach > COARSE_RATIO:
        coarse = variances[::2]
        n_clusters = max(1.0, m / (FREQUENCIES_PER_PARAMETER * n))
        lowest = max(high, reach / COARSE_DEPTH / n_clusters ** (2 / n))
        coarse[:] = lowest * (reach / lowest) ** rng.random(len(coarse))
    return variances


def broad(rng: np.random.Generator, m: int, n: int) -> FloatArray:
    """The law of the paper, with a variance of its own for each frequency, log-uniform in
    `BROAD_RANGE`: for a scale that is a guess.
    """
    return adapted_radius(rng, m, n) * _log_uniform(rng, m, BROAD_RANGE)[:, None] ** -0.5


def _log_uniform(rng: np.random.Generator, m: int, ends: tuple[float, float]) -> FloatArray:
    low, high = ends
    drawn: FloatArray = low * (high / low) ** rng.random(m)
    return drawn


def draw_structure(
    rng: np.random.Generator, m: int, n: int, reach: float = 1.0
) -> tuple[FloatArray, SignArray]:
    """Lengths (m,) and signs of structured frequencies (`ckm._core.hadamard`).

    The lengths are the radii of "multiscale", divided by the lengths of the rows they multiply.
    """
    radii = adapted_radii(rng, m) * _draw_variances(rng, m, n, reach) ** -0.5
    signs = hadamard.draw_signs(rng, m, n)
    return radii / hadamard.row_lengths(signs, m, n), signs


def structured(rng: np.random.Generator, m: int, n: int, reach: float = 1.0) -> FloatArray:
    """As "multiscale", in directions that a fast transform multiplies by: for many columns."""
    lengths, signs = draw_structure(rng, m, n, reach)
    return lengths[:, None] * hadamard.rows(hadamard.factors(signs), m, n)


def folded_gaussian(rng: np.random.Generator, m: int, n: int) -> FloatArray:
    """Radii |N(0, 1)|, whatever the dimension."""
    directions = uniform_directions(rng, m, n)
    return directions * np.abs(rng.standard_normal(m))[:, None]


def gaussian(rng: np.random.Generator, m: int, n: int) -> FloatArray:
    """omega ~ N(0, I): the random Fourier features of a Gaussian kernel."""
    return rng.standard_normal((m, n))


DISTRIBUTIONS: dict[str, Law] = {
    "multiscale": multiscale,
    "adapted-radius": adapted_radius,
    "folded-gaussian": folded_gaussian,
    "gaussian": gaussian,
    "structured": structured,
    "broad": broad,
}

# Laws whose radii depend on the variance within clusters and on that of the data.
MULTISCALE = ("multiscale", "structured")


def find_law(name: str) -> Law:
    """The law called `name`."""
    try:
        return DISTRIBUTIONS[name]
    except (KeyError, TypeError):
        known = ", ".join(map(repr, DISTRIBUTIONS))
        raise ParameterError(
            f"There is no frequency distribution {name!r}; choose one of {known}."
        ) from None


def determines_centroids(m: int, n_clusters: int, n_features: int) -> bool:
    """Whether a sketch has at least as many numbers as there are unknowns to decode.

    A sketch has m complex numbers; K centroids with their weights are K (n + 1) real ones.
    """
    return 2 * m >= n_clusters * (n_features + 1)


def require_enough_frequencies(m: int, n_clusters: int, n_features: int, n_cells: int = 0) -> None:
    """Require a sketch that determines the centroids, or cells to place them on and frequencies
    that judge the cells.
    """
    has_cells = n_cells >= MIN_CELLS_PER_CLUSTER * n_clusters and m >= MIN_JUDGES
    if not has_cells and not determines_centroids(m, n_clusters, n_features):
        unknowns = n_clusters * (n_features + 1)
        enough = FREQUENCIES_PER_PARAMETER * n_clusters * n_features
        raise ParameterError(
            f"A sketch of m = {m} frequencies is too small for {n_clusters} clusters in dimension "
            f"{n_features} ({unknowns} unknowns); sketch with ",
            Argument("sketch_size", enough),
            f" ({FREQUENCIES_PER_PARAMETER} K n), or ask for fewer clusters.",
        )
