"""What chance does to the difference between two parts of a stream.

The features of a row are the m cosines and m sines of its phases, and a sketch is their mean. With
N_1 rows before and N_2 after a possible change,

    T = N_1 N_2 / (N_1 + N_2) |P (mean after - mean before)|^2

where P weighs the directions of the features by their variance. Without a change T has the mean
tr S, the variance 2 tr S^2 and the third cumulant 8 tr S^3, with S the covariance of P times the
features of a row, or, for rows that depend on each other, N times that of P times the mean of N.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc, fdtri

from ckm._core.frequencies import Frequencies
from ckm._sources.adapters import measured_rows
from ckm._util.arrays import Array, FloatArray

# The share of the total variance that is added to the variance of each direction before it is
# divided by: small ones are not known well. The rows that it takes to notice that one cluster of
# ten moved by a deviation (K = n = 10, m = 500, power 1/2 at the level 1e-4) are 1340, 1260 and
# 1345 with a third, this and three times as much, 1690 without any, and 2960 with all directions
# weighed alike, as in MMD.
RIDGE = 0.003
# Principal directions that are kept: they are part of the state that is saved, 4 kB each for 1000
# features.
MAX_DIRECTIONS = 448
# Random directions among all others, in which the reference hardly varies: they stand for what it
# does not have, such as a new cluster.
RANDOM_DIRECTIONS = 64
# Variance of a feature below which it is rounding.
MIN_VARIANCE = 1e-9
# T without a change, on average, below which nothing but rounding varies, and T that is a change
# then.
MIN_MEAN = 1e-6
CERTAIN = 1.0
# Correlation between batches and the next, at most: beyond, forty of them tell nothing.
MAX_CORRELATION = 0.9


def row_features(frequencies: Frequencies, rows: Array) -> FloatArray:
    """Cosines and sines of the phases of some rows (b, 2m), in float64."""
    x = np.asarray(measured_rows(rows, frequencies.metric), np.float64)
    if frequencies.projection is not None:
        x = frequencies.projection.reduce(x)
    phases = (x - frequencies.origin) @ frequencies.omega.T
    return np.hstack([np.cos(phases), np.sin(phases)])


def find_directions(features: FloatArray) -> FloatArray:
    """P (d, 2m): the principal directions of features (b, 2m), each divided by its deviation, and
    some random ones that are orthogonal to them.

    Its numbers are those of float32, in which it is saved.
    """
    variances, lines = _principal_directions(features - features.mean(axis=0))
    n_features = features.shape[1]
    ridge = RIDGE * max(variances.sum(), MIN_VARIANCE * n_features)
    # As many as half the features, and as the rows tell apart.
    d = min(n_features // 2, MAX_DIRECTIONS, int((variances > MIN_VARIANCE).sum()))
    kept = lines[:d] / np.sqrt(variances[:d] + ridge)[:, None]
    # The frequencies are random, so that these need no seed of their own.
    drawn = np.random.default_rng(0).standard_normal((RANDOM_DIRECTIONS, n_features))
    drawn -= (drawn @ lines[:d].T) @ lines[:d]
    others = drawn / np.sqrt(RANDOM_DIRECTIONS * ridge)
    # The order in memory decides the last bits of products.
    P = np.concatenate([kept, others]).astype(np.float32)
    return np.ascontiguousarray(P, np.float64)


def _principal_directions(centred: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variances, in descending order, and unit vectors (k, 2m) of centred features (b, 2m)."""
    n_rows, n_features = centred.shape
    is_long = n_rows >= n_features
    gram = centred.T @ centred if is_long else centred @ centred.T
    variances, vectors = np.linalg.eigh(gram / max(n_rows - 1, 1))
    variances = np.maximum(variances[::-1], 0.0)
    lines = vectors[:, ::-1].T
    if not is_long:
        lines = lines @ centred
        lengths = np.sqrt((lines**2).sum(axis=1))
        lines = lines / np.maximum(lengths, np.finfo(float).tiny)[:, None]
    return variances, lines


@dataclass(frozen=True)
class ChangeLaw:
    """The law of T without a change.

    Parameters
    ----------
    first, second, third : float
        tr S, tr S^2 and tr S^3.
    fourth : float
        The fourth cumulant of a row, summed over pairs of directions: windows of few rows vary by
        more, or less, than Gaussian ones.
    degrees : int
        The rows, or batches, that these were estimated from, less one.
    """

    first: float
    second: float
    third: float
    fourth: float
    degrees: int

    @classmethod
    def of_rows(cls, y: FloatArray) -> "ChangeLaw":
        """The law for independent rows, from P times the features of some of them (b, d)."""
        y = y - y.mean(axis=0)
        first, second, third = _traces(y, len(y) - 1)
        return cls(first, second, third, _fourth_cumulant(y, first, second), len(y) - 1)

    @classmethod
    def of_batches(cls, y: FloatArray, counts: FloatArray) -> "ChangeLaw":
        """The law for batches of dependent rows, from P times the means of their features (b, d)
        and their numbers of rows (b,). The mean of a batch varies in proportion to 1 / its rows.

        What is left of the dependence between one batch and the next adds to the variance of long
        windows: as for an autoregressive process with that correlation.
        """
        y = np.sqrt(counts)[:, None] * (y - counts @ y / counts.sum())
        n = len(y)
        total = (y**2).sum()
        # The mean of the batches is estimated from them, which costs 1 / n.
        correlation = (y[1:] * y[:-1]).sum() / total + 1 / n if total > 0 else 0.0
        r = float(np.clip(correlation, 0.0, MAX_CORRELATION))
        excess = (1 + r) / (1 - r)
        first, second, third = _traces(y, n - 1)
        # Per row, as if a batch were so many independent ones.
        fourth = _fourth_cumulant(y, first, second) * counts.mean()
        return cls(excess * first, excess**2 * second, excess**3 * third, fourth, n - 1)

    def tail(self, values: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
        """The probability of a larger T, for so many rows before and after."""
        degrees, unit = self._shape(before, after)
        with np.errstate(all="ignore"):
            chi_square = np.maximum((values - self.first) / unit + degrees, 0.0)
            tail = np.asarray(fdtrc(degrees, degrees * self.degrees, chi_square / degrees))
        return tail if self.first > MIN_MEAN else np.where(values > CERTAIN, 0.0, 1.0)

    def quantile(self, level: float, before: float, after: float) -> float:
        """The T that is exceeded with this probability."""
        degrees, unit = self._shape(np.asarray(before), np.asarray(after))
        if not self.first > MIN_MEAN:
            return CERTAIN
        chi_square = degrees * fdtri(degrees, degrees * self.degrees, 1 - level)
        return float(self.first + unit * (chi_square - degrees))

    def _shape(self, before: FloatArray, after: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Degrees of freedom and unit of the chi-square law, shifted, with three cumulants of T.

        What is estimated from few batches makes it an F law.
        """
        factor = before * after / (before + after)
        excess = self.fourth * factor**2 * (1 / before**3 + 1 / after**3)
        second = np.maximum(self.second + excess / 2, self.second / 2)
        with np.errstate(all="ignore"):
            third = self.third * (second / self.second) ** 2
            return np.asarray(second**3 / third**2), np.asarray(third / second)


def _fourth_cumulant(y: FloatArray, first: float, second: float) -> float:
    """The fourth cumulant of centred rows y, summed over pairs of directions."""
    return float(((y**2).sum(axis=1) ** 2).mean()) - first**2 - 2 * second


def _traces(y: FloatArray, n: int) -> tuple[float, float, float]:
    """tr S, tr S^2 and tr S^3 without bias, from the centred rows y of n degrees of freedom.

    For a Wishart matrix W of n degrees, E tr W^2 = n (n + 1) t_2 + n t_1^2 and E tr W^3 =
    n (n^2 + 3 n + 4) t_3 + 3 n (n + 1) t_1 t_2 + n t_1^3.
    """
    gram = y.T @ y if y.shape[0] >= y.shape[1] else y @ y.T
    first = float(np.trace(gram)) / n
    raw_second = float((gram**2).sum()) / n**2
    raw_third = float(((gram @ gram) * gram).sum()) / n**3
    second = n * (n * raw_second - first**2) / ((n - 1) * (n + 2)) if n > 1 else raw_second
    third = n * n * raw_third - 3 * (n + 1) * first * second - first**3
    third /= n * n + 3 * n + 4
    # What the eigenvalues of a covariance allow.
    second = float(np.clip(second, first**2 / y.shape[1], first**2))
    least = second**2 / first if first > 0 else 0.0
    return first, second, float(np.clip(third, least, second**1.5))
