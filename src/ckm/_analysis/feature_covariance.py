"""The covariance of the features of one row: what chance does to a sketch.

The features of a row x are the real and imaginary parts of f_j = exp(-i omega_j^T x). A sketch is
their mean, so that N times its covariance is theirs. For a measure with characteristic function psi

    C_jk = E f_j conj(f_k) - psi_j conj(psi_k) = psi(omega_j - omega_k) - psi_j conj(psi_k)
    P_jk = E f_j f_k - psi_j psi_k             = psi(omega_j + omega_k) - psi_j psi_k
    S    = [[Re(C + P), Im(P - C)], [Im(P + C), Re(C - P)]] / 2     (2m, 2m)

and a mixture of Gaussians gives psi at every frequency, also between those of the sketch.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ckm._util.arrays import ComplexArray, FloatArray, IntArray

# Frequencies whose covariance stands for that of all: 768 features, a product of matrices of which
# takes 30 ms. With half as many, tr S^2 is within 5 % of its value.
MAX_FREQUENCIES = 384
# Variances of isotropic components within this ratio count as one: each costs a matrix of
# exponentials.
VARIANCE_RATIO = 1.3


@dataclass(frozen=True, eq=False)
class FeatureCovariance:
    """The covariance S of the features of one row, at some of the frequencies of a sketch.

    Parameters
    ----------
    matrix : float64 array (2s, 2s)
        S at s frequencies: their s real parts come first, then their s imaginary parts.
    m : int
        The number of frequencies that these s stand for.
    """

    matrix: FloatArray
    m: int

    def plus_diagonal(self, variance: float) -> "FeatureCovariance":
        """The covariance with independent noise of this variance on each feature."""
        if not variance:
            return self
        return FeatureCovariance(self.matrix + variance * np.eye(len(self.matrix)), self.m)

    def plus_outer(self, features: FloatArray, variance: float) -> "FeatureCovariance":
        """The covariance with a multiple of these features (2s,) added that has this variance."""
        if not variance:
            return self
        return FeatureCovariance(self.matrix + variance * np.outer(features, features), self.m)

    @property
    def eigenvalues(self) -> FloatArray:
        """The eigenvalues of S at the s frequencies, in descending order; none is negative."""
        return np.asarray(np.maximum(np.linalg.eigvalsh(self.matrix)[::-1], 0.0))

    @cached_property
    def traces(self) -> tuple[float, float, float]:
        """tr S, tr S^2 and tr S^3 for all m frequencies.

        Of fewer frequencies, each sum over pairs or triples of different ones is extrapolated in
        proportion to the number of these.
        """
        S = self.matrix
        s = len(S) // 2
        square = S @ S
        first = float(np.trace(S))
        second = float((S * S).sum())
        third = float((square * S).sum())
        if s == self.m:
            return first, second, third
        own, crossed, cubed = _diagonal_traces(S, square)
        singles = self.m / s
        pairs = singles * (self.m - 1) / max(s - 1, 1)
        triples = pairs * (self.m - 2) / max(s - 2, 1)
        # A triple of frequencies has one, two (in three ways) or three different ones.
        two = 3 * (crossed - cubed)
        return (
            singles * first,
            singles * own + pairs * (second - own),
            singles * cubed + pairs * two + triples * (third - cubed - two),
        )


def mixture_covariance(
    omega: FloatArray,
    shares: FloatArray,
    means: FloatArray,
    variances: FloatArray,
    weights: FloatArray | None = None,
    *,
    limit: int = MAX_FREQUENCIES,
) -> FeatureCovariance:
    """The covariance of the features of a row that is drawn from a mixture of Gaussians.

    Parameters
    ----------
    omega : float64 array (m, n)
        The frequencies, in the coordinates of the means.
    shares : float64 array (Q,)
        The weights of the Gaussians; normalised here.
    means : float64 array (Q, n)
        Their means.
    variances : float64 array (Q,) or (Q, n)
        Their variances: one along every axis, or one for each axis.
    weights : float64 array (m,), optional
        What the squares of features are multiplied by; 1 by default.
    limit : int
        The number of frequencies at most.

    Returns
    -------
    FeatureCovariance
        At all frequencies, or at `limit` of them, which stand for all.
    """
    m = len(omega)
    chosen = some_frequencies(m, limit)
    shares = shares / shares.sum()
    if variances.ndim == 1:
        variances = round_variances(shares, variances)
    C, P = _complex_covariances(omega[chosen], shares, means, variances)
    S = np.block([[(C + P).real, (P - C).imag], [(P + C).imag, (C - P).real]]) / 2
    if weights is not None:
        factors = np.tile(np.sqrt(weights[chosen]), 2)
        S *= factors * factors[:, None]
    return FeatureCovariance(S, m)


def mixture_features(
    omega: FloatArray, shares: FloatArray, means: FloatArray, variances: FloatArray
) -> FloatArray:
    """The expected features (2s,) of a row of a mixture, where `mixture_covariance` has them."""
    chosen = omega[some_frequencies(len(omega))]
    columns = np.broadcast_to(variances[:, None] if variances.ndim == 1 else variances, means.shape)
    decay = np.exp(-(columns @ chosen.T**2) / 2)
    psi = (shares / shares.sum()) @ (decay * np.exp(-1j * (means @ chosen.T)))
    return np.concatenate([psi.real, psi.imag])


def some_frequencies(m: int, limit: int = MAX_FREQUENCIES) -> IntArray:
    """The frequencies that stand for all m: at most `limit`, always the same, in their order."""
    if m <= limit:
        return np.arange(m)
    # At random, so that no pattern in the order of structured frequencies is met.
    return np.sort(np.random.default_rng(m).choice(m, size=limit, replace=False))


def round_variances(shares: FloatArray, variances: FloatArray) -> FloatArray:
    """Variances (Q,) of few values: those within a ratio of `VARIANCE_RATIO` become their mean."""
    is_positive = variances > 0
    levels = np.zeros(len(variances), int)
    levels[is_positive] = np.round(np.log(variances[is_positive]) / np.log(VARIANCE_RATIO))
    levels[~is_positive] = levels.min(initial=0) - 1
    _, owners = np.unique(levels, return_inverse=True)
    mass = np.bincount(owners, shares)
    means = np.bincount(owners, shares * variances) / np.where(mass > 0, mass, 1.0)
    return np.asarray(means[owners])


def _complex_covariances(
    omega: FloatArray, shares: FloatArray, means: FloatArray, variances: FloatArray
) -> tuple[ComplexArray, ComplexArray]:
    """C and P (s, s) of the module's formulas."""
    s = len(omega)
    C = np.zeros((s, s), np.complex128)
    P = np.zeros((s, s), np.complex128)
    psi = np.zeros(s, np.complex128)
    columns = variances[:, None] if variances.ndim == 1 else variances
    distinct, owners = np.unique(columns, axis=0, return_inverse=True)
    for k, variance in enumerate(distinct):
        is_own = owners.ravel() == k
        waves = np.exp(-1j * (means[is_own] @ omega.T))
        weighted = shares[is_own, None] * waves
        scaled = omega * np.sqrt(variance)
        # Of an array and its own transpose, a product of few columns takes eight times as long.
        products = scaled @ scaled.T.copy()
        halves = np.diag(products) / 2
        decay = halves[:, None] + halves
        # exp(-|omega_j -+ omega_k|^2 / 2) in the metric of this variance.
        C += (weighted.T @ waves.conj()) * np.exp(products - decay)
        P += (weighted.T @ waves) * np.exp(-products - decay)
        psi += weighted.sum(axis=0) * np.exp(-halves)
    return C - np.outer(psi, psi.conj()), P - np.outer(psi, psi)


def _diagonal_traces(S: FloatArray, square: FloatArray) -> tuple[float, float, float]:
    """The parts of the traces of powers of S in which a frequency meets itself, from the 2 x 2
    blocks B_jj of S: sum_j tr B_jj^2, sum_j tr B_jj (S^2)_jj, sum_j tr B_jj^3.
    """
    own = _own_blocks(S)
    squared = own @ own
    return (
        float(np.einsum("jaa->", squared)),
        float(np.einsum("jab,jba->", own, _own_blocks(square))),
        float(np.einsum("jab,jba->", squared, own)),
    )


def _own_blocks(S: FloatArray) -> FloatArray:
    """The 2 x 2 blocks of each frequency with itself, (s, 2, 2)."""
    s = len(S) // 2
    j = np.arange(s)
    return S.reshape(2, s, 2, s)[:, j, :, j]
