"""What a pilot says about the data: above all the scale sigma^2, for which there are two rules.

Frequencies should distinguish what K centroids distinguish. The default rule is therefore the
variance within K clusters of the pilot. The paper's rule, for its own laws, does not know K: the
modulus of a Gaussian's characteristic function decays as exp(-R^2 sigma^2 / 2), and a small sketch
of the pilot shows where that of the data does (Keriven et al., 2016).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from ckm._core.categories import Categories, coded_columns, pooled_variances
from ckm._core.cells import Anchors
from ckm._core.drawing import scaled_turns
from ckm._core.frequencies import Frequencies
from ckm._core.laws import FREQUENCIES_PER_PARAMETER, MULTISCALE, adapted_radius
from ckm._core.projection import Projection
from ckm._core.tally import UNIT
from ckm._kernels import load_kernel
from ckm._kmeans.init import kmeans_plus_plus
from ckm._kmeans.lloyd import lloyd
from ckm._kmeans.points import WeightedPoints
from ckm._messages import Argument, Aside
from ckm._sketching.anchors import anchor_pilot_rows, choose_anchors
from ckm._sketching.options import SketchOptions
from ckm._sketching.pilot import PILOT_ROWS, Pilot
from ckm._util.arrays import FloatArray
from ckm._util.random import stream
from ckm.errors import DataError

# Pilot rows per cluster: with fewer, the variance within clusters is mostly chance.
MIN_ROWS_PER_CLUSTER = 4
# More would only take longer.
MAX_ROWS_PER_CLUSTER = 50
# Lloyd iterations: frequencies cover a range of scales, so the variance need not be exact.
LLOYD_ITERATIONS = 10
# Size of the paper's small sketch: as in Keriven et al. (2016).
PILOT_FREQUENCIES = 500
# Bands of |omega|, each of which gives one modulus to fit: as in Keriven et al. (2016).
RADIUS_BANDS = 30
# The modulus of a band is this quantile of those in it. Their largest, as in Keriven et al. (2016),
# is that of the direction in which the data varies least: with fewer clusters than columns, the
# width of one cluster. Their median gives many clusters in few columns too large a scale.
# `benchmarks.scale_rule` shows the SSE at parts and multiples of the scale.
MODULUS_QUANTILE = 0.75
# Range of the logarithm of sigma^2 that is searched, around the mean variance of a column.
LOG_RANGE = 7.0


class PilotSummary(NamedTuple):
    """What a pilot says about the data: everything that frequencies are drawn by.

    Parameters
    ----------
    origin : float64 array (n,)
        The mean of the rows.
    scale : float
        The variance sigma^2 that frequencies are scaled to.
    n_rows : int
        The number of rows that it is based on.
    variance : float or None
        The mean variance of a column; None where there are no rows, or all are equal.
    units : float64 array (n,) or None
        The standard deviation of each column, where columns are to be standardized; `scale` and
        `variance` are then in these units.
    anchors : Anchors or None
        The anchors, if cells are to be kept.
    projection : Projection or None
        What maps wide rows to the numbers that all the above is about.
    """

    origin: FloatArray
    scale: float
    n_rows: int
    variance: float | None = None
    units: FloatArray | None = None
    anchors: Anchors | None = None
    projection: Projection | None = None


def pilot_rows(options: SketchOptions, n: int, m: int) -> int:
    """How many rows the pilot should have: more if they also choose anchors."""
    s = options.count_cells(m, n)
    return max(PILOT_ROWS, anchor_pilot_rows(s, n)) if s else PILOT_ROWS


def summarise_pilot(
    pilot: Pilot, options: SketchOptions, n: int, m: int, seed: int
) -> PilotSummary:
    """Estimate what is needed to draw m frequencies in dimension n; an empty pilot counts as data
    of unit variance around zero.
    """
    is_empty = not len(pilot)
    origin = np.zeros(n) if is_empty else pilot.origin
    units = None
    if options.is_robust:
        origin = np.zeros(n) if is_empty else pilot.medians
        units = np.ones(n) if is_empty else pilot.robust_deviations
    elif options.standardize:
        units = np.ones(n) if is_empty else pilot.deviations
    if units is not None and options.categories and not is_empty:
        units = with_units_of_categories(units, pilot, options.categories)
    anchors = None
    s = options.count_cells(m, n)
    if s:
        anchors = choose_anchors(pilot, origin, units, s, stream(seed, "anchors"))
    if units is not None:
        pilot = Pilot((pilot.rows - origin) / units, pilot.weights)
    scale = options.given_scale
    if scale is None:
        n_clusters = options.n_clusters or max(1, m // (FREQUENCIES_PER_PARAMETER * n))
        rng = stream(seed, "scale")
        scale = estimate_scale(pilot, n_clusters, options.distribution, rng)
    variance = None if is_empty else pilot.total_variance / n or None
    return PilotSummary(origin, scale, len(pilot), variance, units, anchors)


def with_units_of_categories(units: FloatArray, pilot: Pilot, categories: Categories) -> FloatArray:
    """Units in which the columns of a category together have the variance of one column."""
    pooled = np.sqrt(pooled_variances(pilot.variances, categories))
    is_coded = np.arange(len(units)) >= len(units) - len(coded_columns(categories))
    return np.where(is_coded & (pooled > 0), pooled, units)


def estimate_scale(
    pilot: Pilot, n_clusters: int, distribution: str, rng: np.random.Generator
) -> float:
    """Estimate sigma^2 by the rule of the law called `distribution`; one without rows."""
    if not len(pilot):
        return 1.0
    if distribution in MULTISCALE:
        return cluster_variance(pilot, n_clusters, rng)
    return decay_scale(pilot, rng)


def cluster_variance(pilot: Pilot, K: int, rng: np.random.Generator) -> float:
    """The mean variance along an axis within K clusters of the pilot.

    Multiplying the data by s multiplies it by s^2.
    """
    total_variance = _positive_total_variance(pilot)
    # A pilot for anchors has more rows than this needs. They are sorted: some of each region.
    step = -(-len(pilot) // max(PILOT_ROWS, MAX_ROWS_PER_CLUSTER * K))
    rows = pilot.rows[::step] - pilot.origin
    weights = pilot.weights[::step]
    K = min(K, max(1, len(rows) // MIN_ROWS_PER_CLUSTER))
    points = WeightedPoints(rows, weights, subtract=True)
    seeds = kmeans_plus_plus(points, K, rng, stop_when_covered=True)
    clusters = lloyd(points, seeds, tolerance=None, max_iterations=LLOYD_ITERATIONS, empty="stay")
    squares = ((rows - clusters.centroids[clusters.labels]) ** 2).sum(axis=1)
    within = float((weights * squares).sum() / weights.sum() / rows.shape[1])
    # With as many centroids as distinct rows, any scale distinguishes them.
    return within or total_variance / rows.shape[1]


def decay_scale(pilot: Pilot, rng: np.random.Generator) -> float:
    """The sigma^2 for which exp(-R^2 sigma^2 / 2) best follows the modulus of the pilot's sketch,
    at frequencies so low that it has only begun to fall.

    Multiplying the data by s multiplies it by s^2.
    """
    # Deviation: the frequencies are those of the pilot's total variance, not of a variance of 1,
    # which would tie the answer to the data's units; and there is one round. Where clusters are
    # tighter than the distances between them, the modulus first falls with the variance of the
    # whole, and then stays at about 1 / sqrt(K) until their width. A second round would fit that
    # plateau, and every further one ends at a smaller scale. Frequencies so high are no use to the
    # decoder: around each centroid they leave a maximum as narrow as the tightest cluster, which no
    # search from elsewhere finds.
    n = pilot.rows.shape[1]
    scale = _positive_total_variance(pilot)
    unit = adapted_radius(rng, PILOT_FREQUENCIES, n)
    frequencies = Frequencies(scaled_turns(unit, scale), pilot.origin, scale, "adapted-radius")
    sums = load_kernel("cpu").tally(frequencies, pilot.rows, pilot.weights).sums
    cosines, sines = sums * (UNIT / pilot.weights.sum())
    radii = np.linalg.norm(unit, axis=1)
    return scale * _fit_decay(radii, np.hypot(cosines, sines), -math.log(n))


def _fit_decay(radii: FloatArray, moduli: FloatArray, log_centre: float) -> float:
    """The s for which exp(-R^2 s / 2) best follows, by least squares, the modulus in each band of
    radii R; log s is searched in `LOG_RANGE` around `log_centre`.
    """
    bands = np.array_split(np.argsort(radii), RADIUS_BANDS)
    r2 = np.array([np.mean(radii[band] ** 2) for band in bands])
    y = np.array([np.quantile(moduli[band], MODULUS_QUANTILE) for band in bands])

    def misfit(log_s: float) -> float:
        return float(((np.exp(-0.5 * r2 * math.exp(log_s)) - y) ** 2).sum())

    # The misfit may have several minima: a grid finds the lowest, and a bounded search refines it.
    grid = log_centre + np.linspace(-LOG_RANGE, LOG_RANGE, 57)
    step = grid[1] - grid[0]
    best = grid[np.argmin([misfit(g) for g in grid])]
    bounds = (best - step, best + step)
    found = minimize_scalar(misfit, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return math.exp(found.x)


def _positive_total_variance(pilot: Pilot) -> float:
    """The total variance of the pilot; raises `DataError` where it is zero."""
    variance = pilot.total_variance
    if variance > 0:
        return variance
    total_weight = pilot.weights.sum()
    if total_weight == 1:
        seen = ("There is one row", Aside(" (n_samples=1)"))
    else:
        seen = ("All rows are equal", Aside(f" (n_samples={total_weight:.12g})"))
    raise DataError(
        *seen,
        ", so there is no scale to estimate and there are no clusters to find; ",
        "check the data, or give ",
        Argument("scale", ...),
        " (a variance), or ",
        Argument("like", ..., function="ckm.sketch"),
        ".",
    )
