"""Are two sketches of the same frequencies from one distribution? Statistic, null and effect.

With z_a and z_b the sketches of N_a and N_b rows, M = N_a N_b / (N_a + N_b) and S the covariance of
the features of one row,

    T = M |z_a - z_b|^2   is, for large N and one distribution, |v|^2 of v ~ N(0, S),

whose mean tr S = sum_j (1 - |psi_j|^2) the sketches tell exactly, also for small N, and whose
spread tr S^2, tr S^3 comes from a mixture of Gaussians that explains both together. For weighted
rows N is the effective size, (sum of weights)^2 / sum of squared weights.

A private release has noise on its sums, E |noise|^2 on each number, and on its number of rows: with
a relative error e of the latter, z is psi / (1 + e), so that e adds a multiple of psi to z_a - z_b.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ckm._analysis.explanation import Explanation
from ckm._analysis.feature_covariance import (
    FeatureCovariance,
    mixture_covariance,
    mixture_features,
    some_frequencies,
)
from ckm._analysis.quadratic_form import QuadraticForm
from ckm._decoding.operator import Omega
from ckm._util.arrays import ComplexArray

# The coverage of every interval of a comparison.
CONFIDENCE = 0.95
# Half the width of an interval, in standard errors.
Z_INTERVAL = float(ndtri((1 + CONFIDENCE) / 2))


@dataclass(frozen=True)
class Pair:
    """Two sketches (m,) of the same frequencies, the sizes of their samples, and, for private
    releases, E |noise|^2 of the noise that was added to each number, and the variance of the
    relative error of their numbers of rows, of both together.
    """

    z_a: ComplexArray
    z_b: ComplexArray
    size_a: float
    size_b: float
    noise_a: float = 0.0
    noise_b: float = 0.0
    count_noise: float = 0.0

    @property
    def added_noise(self) -> float:
        """E |noise|^2 on each number of z_a - z_b, of private releases."""
        return self.noise_a + self.noise_b

    @property
    def joint_size(self) -> float:
        """M = N_a N_b / (N_a + N_b): a difference of means varies as the mean of M rows does."""
        return self.size_a * self.size_b / (self.size_a + self.size_b)

    @property
    def difference(self) -> ComplexArray:
        """z_b - z_a, complex (m,)."""
        return np.asarray(self.z_b - self.z_a)

    @property
    def squared_distance(self) -> float:
        """|z_a - z_b|^2, which chance makes larger."""
        return float((np.abs(self.difference) ** 2).sum())

    @property
    def variance_a(self) -> float:
        """The unbiased estimate of sum_j (1 - |psi_j|^2) from the first sketch."""
        return _feature_variance(self.z_a, self.size_a, self.noise_a)

    @property
    def variance_b(self) -> float:
        """The same from the second sketch."""
        return _feature_variance(self.z_b, self.size_b, self.noise_b)

    @property
    def variance_within(self) -> float:
        """tr S from both sketches: unbiased, and not larger where the two differ."""
        free_a = self.size_a - 1
        free_b = self.size_b - 1
        total = free_a * self.variance_a + free_b * self.variance_b
        return total / (free_a + free_b)

    @property
    def excess(self) -> float:
        """The unbiased estimate of |psi_a - psi_b|^2; below zero by chance."""
        noise = self.variance_a / self.size_a + self.variance_b / self.size_b
        return self.squared_distance - noise - self.total_noise

    @property
    def total_noise(self) -> float:
        """E |noise|^2 of all of z_a - z_b, of private releases."""
        # sum_j |psi_j|^2, which noise in the numbers of rows multiplies.
        power = max(0.0, len(self.z_a) - self.variance_within)
        return len(self.z_a) * self.added_noise + self.count_noise * power


def _feature_variance(z: ComplexArray, size: float, noise: float) -> float:
    # Noise makes |z|^2 larger.
    return float(max(0.0, (1 + noise - np.abs(z) ** 2).sum())) * size / (size - 1)


@dataclass(frozen=True, eq=False)
class Null:
    """What T is by chance alone.

    Parameters
    ----------
    law : QuadraticForm
        The law of T.
    covariance : FeatureCovariance
        The covariance of features that it comes from.
    """

    law: QuadraticForm
    covariance: FeatureCovariance

    @classmethod
    def of(cls, pair: Pair, omega: Omega, explanation: Explanation) -> "Null":
        """The null of two sketches that a mixture explains together."""
        shares, means, variances, _ = explanation
        frequencies = 2 * np.pi * omega.turns.T
        covariance = mixture_covariance(frequencies, shares, means, variances)
        if pair.total_noise:
            M = pair.joint_size
            psi = mixture_features(frequencies, shares, means, variances)
            # Real and imaginary parts share the noise of private releases.
            covariance = covariance.plus_diagonal(M * pair.added_noise / 2)
            covariance = covariance.plus_outer(psi, M * pair.count_noise)
        first, second, third = covariance.traces
        # The sketches know the mean exactly. The shape of the law is the mixture's.
        mean = pair.variance_within + pair.joint_size * pair.total_noise
        factor = mean / first if first > 0 else 0.0
        law = QuadraticForm(factor * first, factor**2 * second, factor**3 * third)
        return cls(law, covariance)

    def effect_variance(self, pair: Pair) -> float:
        """The variance of `pair.excess`: 4 d^T S d / M + 2 tr S^2 / M^2, d the true difference."""
        chosen = some_frequencies(len(pair.z_a))
        d = pair.difference[chosen]
        d = np.concatenate([d.real, d.imag])
        ratio = len(pair.z_a) / len(chosen)
        M = pair.joint_size
        # Chance adds to the observed difference.
        along = ratio**2 * float(d @ self.covariance.matrix @ d) - self.law.second / M
        return 4 * max(0.0, along) / M + 2 * self.law.second / M**2


@dataclass(frozen=True)
class Effect:
    """The RMS difference per frequency between two characteristic functions, and its interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, pair: Pair, null: Null) -> "Effect":
        """The effect between two sketches, without what chance adds to it."""
        error = Z_INTERVAL * np.sqrt(null.effect_variance(pair))
        squares = np.array([pair.excess, pair.excess - error, pair.excess + error])
        value, low, high = np.sqrt(np.maximum(squares, 0.0) / len(pair.z_a))
        return cls(float(value), float(low), float(high))
