"""The scale sigma^2 and the origin, from a pilot: a small sample of rows.

Frequencies should tell apart what K centroids tell apart, so their scale is the variance within
clusters that a rough k-means on the pilot leaves. The paper's rule, kept for its laws, does not
know K: the modulus of a Gaussian's characteristic function falls as exp(-R^2 sigma^2 / 2), and a
small sketch of the pilot shows where the data's does (Keriven et al., 2016).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from ckm._core.frequencies import Frequencies, scaled_turns
from ckm._core.laws import adapted_radius
from ckm._core.pool import distinct_rows
from ckm._core.tally import UNIT
from ckm._kernels import load_kernel
from ckm._kmeans.nearest import Targets, find_nearest
from ckm._sources import Source
from ckm._util.arrays import Array
from ckm._util.checks import as_float32
from ckm.errors import DataError, NonFiniteError

PILOT_ROWS = 5000
_FREQUENCIES = 500
_BLOCKS = 30
_ROWS_PER_CLUSTER = 4  # at least, or the variance left is that of chance
_PASSES = 10  # of k-means: a scale need not be exact
# the gap, and the shares of all rows and of those that vary that may lie beyond it
_FAR, _FEW, _FEWER = 1e4, 0.01, 0.1
# more rounds end at scales so small that the decoder's Diracs no longer look like clusters
_ROUNDS = 3


@dataclass(frozen=True)
class Pilot:
    """Distinct rows with their weights: sorted, so that neither order nor repetition of small data
    matters.
    """

    rows: Array
    weights: Array

    @property
    def origin(self) -> Array:
        """The weighted mean of the rows."""
        # differences from a row are exact where a plain mean of large numbers would round
        anchor = self.rows[0]
        origin: Array = anchor + self.weights @ (self.rows - anchor) / self.weights.sum()
        return origin


def draw_pilot(source: Source, rng: np.random.Generator) -> Pilot:
    """At most `PILOT_ROWS` rows, spread over the whole source."""
    rows, beta = source.sample(PILOT_ROWS, rng)
    usable = rows[np.isfinite(rows).all(axis=1)]
    centre = np.median(usable, axis=0) if len(usable) else np.zeros(source.n_features)
    with np.errstate(over="ignore", invalid="ignore"):
        centred = as_float32(rows - centre)
    if not np.isfinite(centred).all():
        _report_first_bad(source, centre)
    return pilot_of(rows, beta)


def pilot_of(rows: Array, weights: Array) -> Pilot:
    """The pilot that sampled rows make."""
    pilot = Pilot(*distinct_rows(rows, weights))
    return _without_far_out(pilot) if len(pilot.rows) else pilot


def _without_far_out(pilot: Pilot) -> Pilot:
    """The pilot without rows that are so far out, and so few, that they would take scale and origin
    away from all others.

    In some column, a gap separates them from the rest: the nearest of them lies 10 000 times as far
    from the median as any other row. They are a mistake, most likely. The sketch counts them all
    the same.
    """
    far = np.logical_or.reduce([_beyond_a_gap(column, pilot.weights) for column in pilot.rows.T])
    if pilot.weights[far].sum() > _FEW * pilot.weights.sum():
        return pilot
    return Pilot(pilot.rows[~far], pilot.weights[~far])


def _beyond_a_gap(column: Array, weights: Array) -> Array:
    """Which values are few and far from all others; a value that most rows share does not make a
    gap.
    """
    by_value = np.argsort(column)
    middle = column[by_value[np.searchsorted(np.cumsum(weights[by_value]), weights.sum() / 2)]]
    distances, far = np.abs(column - middle), np.zeros(len(column), bool)
    # then no gap has so few rows beyond it
    if weights[distances >= distances.max() / _FAR].sum() > 2 * _FEW * weights.sum():
        return far
    order = np.argsort(distances, kind="stable")
    distance, mass = distances[order], np.cumsum(weights[order])
    outside = mass[-1] - mass[:-1]
    varied = mass[:-1] - mass[np.searchsorted(distance, 0.0, side="right") - 1]
    with np.errstate(over="ignore"):
        gap = (distance[:-1] > 0) & (distance[1:] > _FAR * distance[:-1])
    places = np.flatnonzero(gap & (outside <= _FEW * mass[-1]) & (outside <= _FEWER * varied))
    if len(places):
        far[order[places[0] + 1 :]] = True
    return far


def cluster_variance(pilot: Pilot, K: int, rng: np.random.Generator) -> float:
    """The mean variance along an axis within K clusters of the pilot. Multiplying the data by s
    multiplies it by s^2.
    """
    _some_variance(pilot)  # equal rows have none
    rows, weights = pilot.rows - pilot.origin, pilot.weights
    K = min(K, max(1, len(rows) // _ROWS_PER_CLUSTER))
    C, labels = _spread_rows(rows, weights, K, rng), np.empty(len(rows), np.int32)
    for _ in range(_PASSES):
        find_nearest(rows, Targets(C), labels)
        masses = np.bincount(labels, weights, minlength=K)
        sums = np.stack(
            [np.bincount(labels, weights * column, minlength=K) for column in rows.T], axis=1
        )
        C = np.where(
            masses[:, None] > 0, sums / np.maximum(masses, np.finfo(float).tiny)[:, None], C
        )
    find_nearest(rows, Targets(C), labels)
    within = float(
        (weights * ((rows - C[labels]) ** 2).sum(axis=1)).sum() / weights.sum() / rows.shape[1]
    )
    # a few distinct rows, each with a centroid: any scale tells them apart
    return within or _some_variance(pilot) / rows.shape[1]


def _spread_rows(rows: Array, weights: Array, K: int, rng: np.random.Generator) -> Array:
    """K of the rows, each drawn in proportion to the squared distance to those before it
    (k-means++).
    """
    chosen, squares = [], np.ones(len(rows))
    for _ in range(K):
        masses = np.cumsum(weights * squares)
        if not masses[-1] > 0:
            break
        chosen.append(
            min(
                int(np.searchsorted(masses, rng.random() * masses[-1], side="right")), len(rows) - 1
            )
        )
        gaps = ((rows - rows[chosen[-1]]) ** 2).sum(axis=1)
        squares = gaps if len(chosen) == 1 else np.minimum(squares, gaps)
    return rows[chosen + chosen[:1] * (K - len(chosen))]


def total_variance(pilot: Pilot) -> float:
    """Summed over the axes."""
    return float(
        pilot.weights @ ((pilot.rows - pilot.origin) ** 2).sum(axis=1) / pilot.weights.sum()
    )


def _some_variance(pilot: Pilot) -> float:
    """The total variance; refused where it is zero."""
    variance, total = total_variance(pilot), pilot.weights.sum()
    if not variance > 0:
        seen = (
            "There is one row (n_samples=1)"
            if total == 1
            else f"All rows are equal (n_samples={total:.12g})"
        )
        raise DataError(
            f"{seen}, so there is no scale to estimate and nothing to tell apart; check the data, or give scale= (a variance), "
            f"or ckm.sketch(..., like=)."
        )
    return variance


def estimate_scale(pilot: Pilot, rng: np.random.Generator) -> float:
    """sigma^2 such that exp(-R^2 sigma^2 / 2) follows the modulus of the pilot's sketch.
    Multiplying the data by s multiplies it by s^2.
    """
    origin, total = pilot.origin, pilot.weights.sum()
    # Deviation: the search starts at the pilot's total variance, not at 1, which would tie the
    # answer to the data's units. From there the first round finds the spread of the whole, and each
    # further one comes closer to that of a cluster.
    scale = _some_variance(pilot)
    kernel = load_kernel("numba")
    for _ in range(_ROUNDS):
        unit = adapted_radius(rng, _FREQUENCIES, len(origin))
        frequencies = Frequencies(scaled_turns(unit, scale), origin, scale, "adapted-radius")
        cosines, sines = kernel(frequencies, pilot.rows, pilot.weights).sums * (UNIT / total)
        scale *= _decay(np.linalg.norm(unit, axis=1), np.hypot(cosines, sines))
    return scale


def _decay(radii: Array, moduli: Array) -> float:
    """The s for which exp(-R^2 s / 2) best follows the largest modulus in each of 30 bands of R, by
    least squares.
    """
    order = np.argsort(radii)
    bands = np.array_split(order, _BLOCKS)
    peaks = np.array([band[np.argmax(moduli[band])] for band in bands])
    r2, y = radii[peaks] ** 2, moduli[peaks]

    def misfit(log_s: float) -> float:
        return float(((np.exp(-0.5 * r2 * math.exp(log_s)) - y) ** 2).sum())

    grid = np.linspace(-7, 7, 57)
    best = grid[np.argmin([misfit(g) for g in grid])]
    step = grid[1] - grid[0]
    found = minimize_scalar(
        misfit, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-9}
    )
    return math.exp(found.x)


def _report_first_bad(source: Source, centre: Array) -> None:
    """Raise with the place of the first value that is not finite, now rather than somewhere in the
    long pass.
    """
    for chunk in source.chunks():
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(as_float32(chunk.rows - centre))
        if chunk.weights is not None:
            finite |= (chunk.weights == 0)[:, None]
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise chunk.located(
                NonFiniteError(0, int(column), float(chunk.rows[row, column])),
                int(row),
                source.columns,
            )
