"""The pilot: a small sample of rows that decides the origin and the scale of the frequencies.

It is drawn from all over the data, so that sorted files do not mislead it, and without outliers
that are most likely mistakes.
"""

from dataclasses import dataclass, replace

import numpy as np

from ckm._core.pool import distinct_rows
from ckm._core.preparation import Preparation
from ckm._sources import Source
from ckm._util.arrays import Array, BoolArray, Float32Array, FloatArray, IntArray
from ckm._util.checks import as_float32, first_nonfinite

# Rows in a pilot: as in Keriven et al. (2016).
PILOT_ROWS = 5000
# Outliers are rows beyond a gap in some column: they lie this many times as far from the median as
# every row before the gap. Heavy tails (Cauchy, log-normal) do not have such gaps.
GAP_RATIO = 1e4
# Largest share of the total weight that outliers may have; larger groups are clusters.
MAX_OUTLIER_SHARE = 0.01
# Largest share that outliers may have of the rows that differ from the median in this column: in a
# column that is mostly constant, a rare value is data.
MAX_OUTLIER_SHARE_OF_VARYING = 0.1

# The interquartile range of a Gaussian, in standard deviations.
GAUSSIAN_RANGE = 1.3489795003921634

# Rows that are read for each row of a pilot that chooses anchors, where rows far from the mean are
# kept first: a handful of outliers may have much of the SSE.
ROWS_READ = 4
MAX_NUMBERS_READ = 2**24
# Share of the rows of such a pilot that is drawn by their squared distance from the mean; the
# others are drawn evenly.
TAIL_SHARE = 0.25
# Rows whose median is the centre that distances are measured from, which need not be exact. Rows
# that are read are in the order of the data: some of all of them are taken.
MEDIAN_ROWS = 2**14


@dataclass(frozen=True)
class Pilot:
    """Distinct rows with their weights, sorted, so that neither the order nor the repetition of
    rows matters.

    Parameters
    ----------
    rows : float64 array (k, n)
        The rows.
    weights : float64 array (k,)
        Their weights.
    outliers : float64 array (j, n), optional
        Rows that were left out.
    """

    rows: FloatArray
    weights: FloatArray
    outliers: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def origin(self) -> FloatArray:
        """The weighted mean of the rows (n,)."""
        # Differences from one of the rows are exact where a mean of large numbers would round.
        anchor = self.rows[0]
        origin: FloatArray = anchor + self.weights @ (self.rows - anchor) / self.weights.sum()
        return origin

    @property
    def total_variance(self) -> float:
        """The variance around the origin, summed over the columns."""
        squares = ((self.rows - self.origin) ** 2).sum(axis=1)
        return float(self.weights @ squares / self.weights.sum())

    @property
    def deviations(self) -> FloatArray:
        """The standard deviation of each column (n,); one where a column is constant."""
        variances = self.variances
        return np.asarray(np.sqrt(np.where(variances > 0, variances, 1.0)))

    @property
    def variances(self) -> FloatArray:
        """The variance of each column (n,)."""
        squares = (self.rows - self.origin) ** 2
        return np.asarray(self.weights @ squares / self.weights.sum())

    @property
    def medians(self) -> FloatArray:
        """The median of each column (n,)."""
        return self._quantiles(0.5)

    @property
    def robust_deviations(self) -> FloatArray:
        """The interquartile range of each column (n,), in multiples of that of a Gaussian of
        variance one; the standard deviation where it is zero.
        """
        ranges = (self._quantiles(0.75) - self._quantiles(0.25)) / GAUSSIAN_RANGE
        return np.where(ranges > 0, ranges, self.deviations)

    def _quantiles(self, share: float) -> FloatArray:
        """The smallest values (n,) that have this share of the weight at or below them."""
        found = np.empty(self.rows.shape[1])
        for j, column in enumerate(self.rows.T):
            order = np.argsort(column)
            mass = np.cumsum(self.weights[order])
            found[j] = column[order[np.searchsorted(mass, share * mass[-1])]]
        return found


@dataclass(frozen=True)
class PilotRows:
    """Rows that were read for a pilot, which keeps some of them.

    Parameters
    ----------
    rows : float array (k, n)
        The rows.
    weights : float64 array (k,)
        Their weights.
    size : int
        About how many rows a pilot keeps of them, at most.
    """

    rows: FloatArray
    weights: FloatArray
    size: int

    def of_columns(self, kept: IntArray) -> "PilotRows":
        """Some columns of these rows, by their numbers."""
        return replace(self, rows=self.rows[:, kept])

    def prepared(self, preparation: Preparation) -> "PilotRows":
        """The rows as they are sketched."""
        return replace(self, rows=preparation.apply(self.rows))

    def pilot(self, rng: np.random.Generator, *, standardize: bool = False) -> Pilot:
        """A pilot of these rows, in which those far from the others are kept first; by their
        distances in standard deviations of the columns, or in the units of the columns.
        """
        rows = self.rows
        weights = self.weights
        if len(rows) > self.size:
            rows, weights = _thin(rows, weights, self.size, rng, standardize)
        return pilot_from_rows(rows, weights)


def read_pilot_rows(source: Source, rng: np.random.Generator, size: int = PILOT_ROWS) -> PilotRows:
    """Read rows from all over the source for a pilot of at most `size` rows. A `size` beyond
    `PILOT_ROWS` is that of a pilot that chooses anchors, for which more rows are read.
    """
    read = size
    if size > PILOT_ROWS:
        read = max(size, min(ROWS_READ * size, MAX_NUMBERS_READ // source.n_features))
    rows, weights = source.sample(read, rng)
    centre = _rough_centre(rows)
    if first_nonfinite(_centred(rows, centre)) is not None:
        _raise_first_nonfinite(source, centre)
    return PilotRows(rows, weights, size)


def _rough_centre(rows: FloatArray) -> FloatArray:
    """The median of each column, of enough of the rows; zero if none is finite."""
    some = rows[:: -(-len(rows) // MEDIAN_ROWS) or 1]
    is_finite = np.isfinite(some)
    if not is_finite.all():
        some = some[is_finite.all(axis=1)]
    return np.median(some, axis=0) if len(some) else np.zeros(rows.shape[1])


def _thin(
    rows: FloatArray,
    weights: FloatArray,
    size: int,
    rng: np.random.Generator,
    standardize: bool,
) -> tuple[FloatArray, FloatArray]:
    """About `size` of the rows, weighted so that they stand for all of them."""
    offsets = rows - _rough_centre(rows)
    if standardize:
        largest = np.abs(offsets).max(axis=0)
        offsets /= np.where(largest > 0, largest, 1.0)
        deviations = np.sqrt(np.einsum("ij,ij->j", offsets, offsets) / len(offsets))
        offsets /= np.where(deviations > 0, deviations, 1.0)
    offsets /= max(offsets.max(), -offsets.min(), np.finfo(float).tiny)
    tails = weights * np.einsum("ij,ij->i", offsets, offsets)
    shares = weights / weights.sum()
    if tails.sum() > 0:
        shares = (1 - TAIL_SHARE) * shares + TAIL_SHARE * tails / tails.sum()
    probabilities = np.minimum(1.0, size * shares)
    is_kept = rng.random(len(rows)) < probabilities
    return rows[is_kept], weights[is_kept] / probabilities[is_kept]


def pilot_from_rows(rows: FloatArray, weights: FloatArray) -> Pilot:
    """Make a pilot of sampled rows: merge equal rows, and remove outliers."""
    pilot = Pilot(*distinct_rows(rows, weights))
    return _without_outliers(pilot) if len(pilot) else pilot


def _without_outliers(pilot: Pilot) -> Pilot:
    """Remove rows that are so far from all others, and so few, that they would determine the scale
    and the origin alone. They are most likely mistakes; the sketch counts them all the same.
    """
    columns = np.ascontiguousarray(pilot.rows.T)
    outliers = np.logical_or.reduce([_beyond_gap(column, pilot.weights) for column in columns])
    if pilot.weights[outliers].sum() > MAX_OUTLIER_SHARE * pilot.weights.sum():
        return pilot
    return Pilot(pilot.rows[~outliers], pilot.weights[~outliers], pilot.rows[outliers])


def _beyond_gap(column: FloatArray, weights: FloatArray) -> BoolArray:
    """Mark the values of a column beyond the first gap in their distances from the median."""
    outliers = np.zeros(len(column), bool)
    distances = np.abs(column - _weighted_median(column, weights))
    # Shortcut: with so many rows near the largest distance, no gap has few enough beyond it.
    is_distant = distances >= distances.max() / GAP_RATIO
    if weights[is_distant].sum() > 2 * MAX_OUTLIER_SHARE * weights.sum():
        return outliers

    order = np.argsort(distances, kind="stable")
    distance = distances[order]
    mass = np.cumsum(weights[order])
    mass_beyond = mass[-1] - mass[:-1]
    # Rows equal to the median do not count as varying, nor do they make a gap.
    n_at_median = np.searchsorted(distance, 0.0, side="right")
    mass_varying = mass[:-1] - mass[n_at_median - 1]
    with np.errstate(over="ignore"):
        is_gap = (distance[:-1] > 0) & (distance[1:] > GAP_RATIO * distance[:-1])
    is_gap &= mass_beyond <= MAX_OUTLIER_SHARE * mass[-1]
    is_gap &= mass_beyond <= MAX_OUTLIER_SHARE_OF_VARYING * mass_varying
    gaps = np.flatnonzero(is_gap)
    if len(gaps):
        outliers[order[gaps[0] + 1 :]] = True
    return outliers


def _weighted_median(column: FloatArray, weights: FloatArray) -> float:
    """The first value, in increasing order, that has half of the weight at or below it."""
    if (weights == 1).all():
        middle = (len(column) - 1) // 2
        return float(np.partition(column, middle)[middle])
    by_value = np.argsort(column)
    middle = np.searchsorted(np.cumsum(weights[by_value]), weights.sum() / 2)
    return float(column[by_value[middle]])


def _raise_first_nonfinite(source: Source, centre: FloatArray) -> None:
    """Raise with the position of the first value that is not finite, now rather than late in the
    pass.
    """
    for chunk in source.chunks():
        values = _centred(chunk.rows, centre)
        chunk.require_finite(source.columns, values=values, ignore_weightless=True)


def _centred(rows: Array, centre: FloatArray) -> Float32Array:
    """The rows as kernels see them: relative to the centre, in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        return as_float32(rows - centre)
