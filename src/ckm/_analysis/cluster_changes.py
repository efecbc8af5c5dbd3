"""Which clusters differ between two sketches: their shares of the rows, and where they are.

Clusters are those of both sketches together, so that none has to be matched. Where there are cells,
a cluster is a set of cells, whose rows both sketches have counted and summed up. Without cells it
is a Gaussian, and a small change of its share and mean changes the sketch by known directions:

    z_b - z_a = sum_k  d_alpha_k g_k(omega) - i alpha_k (d_c_k . omega) g_k(omega),

which least squares solves, with errors that follow from the covariance of the features.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr

from ckm._analysis.explanation import Explanation
from ckm._analysis.feature_covariance import some_frequencies
from ckm._analysis.mixture_columns import mixture_columns
from ckm._analysis.two_samples import Null, Pair
from ckm._core.sketch import Sketch
from ckm._decoding.problem import Problem
from ckm._kmeans.breathing import place
from ckm._util.arrays import FloatArray, IntArray

# Rows that a cluster should have in each sketch to be counted on its own.
_MIN_EXPECTED_ROWS = 10
# Directions in which frequencies see so little, relative to the best seen, are left out.
_BLIND = 1e-3


@dataclass(frozen=True, eq=False)
class ClusterEvidence:
    """What is known of every cluster, in the coordinates of a problem.

    Parameters
    ----------
    shares_a, shares_b : float64 arrays (K,)
        The share of the rows of each sketch.
    share_errors : float64 array (K,)
        Standard errors of the differences of shares.
    means_a, means_b : float64 arrays (K, n)
        Where the clusters are.
    mean_errors : float64 array (K, n)
        Standard errors of the differences of means; infinite where one sketch has no rows.
    deviations : float64 array (K, n)
        Standard deviations within the clusters.
    shifts_within : float64 array (n,)
        The mean over all rows of how far their clusters moved along each axis.
    shift_errors : float64 array (n,)
        Its standard errors.
    p_all_shares : float or None
        The probability, by chance, of such differences between all shares; None without cells,
        which count rows.
    variances : VariancesWithin or None
        Variances within all clusters together; None without cells.
    """

    shares_a: FloatArray
    shares_b: FloatArray
    share_errors: FloatArray
    means_a: FloatArray
    means_b: FloatArray
    mean_errors: FloatArray
    deviations: FloatArray
    shifts_within: FloatArray
    shift_errors: FloatArray
    p_all_shares: float | None = None
    variances: "VariancesWithin | None" = None

    @property
    def p_shares(self) -> FloatArray:
        """The probability, by chance, of such a difference of shares (K,)."""
        return _two_sided(self.shares_b - self.shares_a, self.share_errors)

    @property
    def z_within(self) -> FloatArray:
        """`shifts_within` in standard errors (n,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            z = self.shifts_within / self.shift_errors
        return np.where(self.shifts_within == 0, 0.0, z)

    @property
    def p_means(self) -> FloatArray:
        """The probability, by chance, of such a difference along the axis that moved most (K,)."""
        own = _two_sided(self.means_b - self.means_a, self.mean_errors)
        return np.asarray(np.minimum(own.shape[1] * own.min(axis=1), 1.0))

    @property
    def shifts(self) -> FloatArray:
        """The distance that each cluster moved, in its own standard deviations (K,), without what
        chance adds to it.
        """
        squares = (self.means_b - self.means_a) ** 2 - self.mean_errors**2
        moved = np.maximum(squares.sum(axis=1), 0.0)
        variance = (self.deviations**2).mean(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(moved == 0, 0.0, np.sqrt(moved / variance))


class VariancesWithin(NamedTuple):
    """Variances of rows around the means of their clusters, along each axis (n,)."""

    first: FloatArray
    second: FloatArray
    fourth_moments: FloatArray  # of both sketches together


def _two_sided(difference: FloatArray, error: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(difference == 0, 0.0, np.abs(difference) / error)
    return np.asarray(2 * ndtr(-z))


def clusters_of_cells(
    a: Sketch,
    b: Sketch,
    both: Sketch,
    explanation: Explanation,
    K: int,
    rng: np.random.Generator,
) -> ClusterEvidence:
    """Clusters as sets of cells; `explanation` is that of the cells of both sketches together."""
    shares, means, variances, _ = explanation
    assert both.cells is not None
    step = a.frequencies.step
    K = min(K, len(shares))
    C, _, _ = place(means, shares, K, rng)
    owners = np.argmin(((means[:, None] - C) ** 2).sum(axis=2), axis=1)
    owners = np.unique(owners, return_inverse=True)[1]
    is_used = np.asarray(both.cells.mass > 0, bool)
    columns = both.central_moment.scaled(step).diagonal
    widths = mixture_columns(shares, means, variances, columns).variances
    found = [_sums_of_cells(sketch, is_used, owners) for sketch in (a, b)]
    (shares_a, means_a), (shares_b, means_b) = found
    # Where a sketch has no rows of a cluster, it has not moved.
    means_a = np.where(shares_a[:, None] > 0, means_a, means_b)
    means_b = np.where(shares_b[:, None] > 0, means_b, means_a)
    spreads = _spreads_within(shares, means, widths, owners)
    factors = _mean_factors(a, b, shares_a, shares_b)[:, None]
    is_known = np.isfinite(factors)
    squared_errors = np.where(is_known, spreads * np.where(is_known, factors, 0.0), np.inf)
    # Clusters that only one sketch has say nothing of how far rows moved.
    common = np.where((shares_a > 0) & (shares_b > 0), np.bincount(owners, shares), 0.0)
    weights = common / max(common.sum(), np.finfo(float).tiny)
    finite = np.where(np.isfinite(squared_errors), squared_errors, 0.0)
    return ClusterEvidence(
        shares_a,
        shares_b,
        _share_errors(a, b, shares_a, shares_b),
        means_a,
        means_b,
        np.sqrt(squared_errors),
        np.sqrt(spreads),
        weights @ (means_b - means_a),
        np.sqrt(weights**2 @ finite),
        _p_all_shares(a, b, shares_a, shares_b),
        VariancesWithin(
            _variances_within(a, shares_a, means_a),
            _variances_within(b, shares_b, means_b),
            _fourth_moments_within(both, shares, means, widths, owners),
        ),
    )


def _variances_within(sketch: Sketch, shares: FloatArray, means: FloatArray) -> FloatArray:
    """The variance that is not between the means of clusters (n,): exact, as both are."""
    total = sketch.central_moment.scaled(sketch.frequencies.step).diagonal
    between = shares @ (means - shares @ means) ** 2
    return np.maximum(total - between, 0.0)


def _fourth_moments_within(
    both: Sketch, shares: FloatArray, means: FloatArray, widths: FloatArray, owners: IntArray
) -> FloatArray:
    """E (x - mean of its cluster)^4 along each axis (n,)."""
    centres = _averages(shares, means, owners)
    squares = (means - centres[owners]) ** 2
    found = shares @ (squares**2 + 6 * squares * widths + 3 * widths**2)
    # The Gaussians do not know how far outliers are, but rows at the bounds are there.
    lower = np.minimum(both.frequencies.relative(both.lower) - centres.min(axis=0), 0.0)
    upper = np.maximum(both.frequencies.relative(both.upper) - centres.max(axis=0), 0.0)
    assert both.effective_size is not None
    return np.asarray(found + (lower**4 + upper**4) / both.effective_size)


def _p_all_shares(a: Sketch, b: Sketch, shares_a: FloatArray, shares_b: FloatArray) -> float:
    """Pearson's chi-square test that all shares are the same. Clusters of few rows count as one:
    its law is wrong for them.
    """
    size_a, size_b = _sizes(a, b)
    both = (size_a * shares_a + size_b * shares_b) / (size_a + size_b)
    is_large = both * min(size_a, size_b) >= _MIN_EXPECTED_ROWS
    groups = np.where(is_large, np.cumsum(is_large), 0)
    shares = np.bincount(groups, both)
    differences = np.bincount(groups, shares_b - shares_a)
    is_used = shares > 0
    squares = differences[is_used] ** 2 / shares[is_used]
    joint_size = size_a * size_b / (size_a + size_b)
    degrees = int(is_used.sum()) - 1
    return float(chdtrc(degrees, joint_size * squares.sum())) if degrees else 1.0


def _sums_of_cells(
    sketch: Sketch, is_used: FloatArray, owners: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Shares (K,) and means (K, n) of sets of cells."""
    cells = sketch.cells
    assert cells is not None
    K = owners.max() + 1
    mass = cells.mass[is_used].astype(np.float64)
    sums = cells.sums[is_used].astype(np.float64) * cells.anchors.steps / sketch.frequencies.step
    weights = np.bincount(owners, mass, minlength=K)
    totals = np.zeros((K, sums.shape[1]))
    np.add.at(totals, owners, sums)
    means = totals / np.where(weights > 0, weights, 1.0)[:, None]
    return weights / weights.sum(), means


def _spreads_within(
    shares: FloatArray, means: FloatArray, widths: FloatArray, owners: IntArray
) -> FloatArray:
    """Variances (K, n) within sets of components of a mixture."""
    centres = _averages(shares, means, owners)
    return _averages(shares, widths + (means - centres[owners]) ** 2, owners)


def _averages(shares: FloatArray, values: FloatArray, owners: IntArray) -> FloatArray:
    """Averages (K, n) of values (Q, n) over sets of components of a mixture."""
    sums = np.zeros((owners.max() + 1, values.shape[1]))
    np.add.at(sums, owners, shares[:, None] * values)
    return np.asarray(sums / np.bincount(owners, shares)[:, None])


def _share_errors(a: Sketch, b: Sketch, shares_a: FloatArray, shares_b: FloatArray) -> FloatArray:
    size_a, size_b = _sizes(a, b)
    # One row more for and one against each share (Agresti and Caffo 2000): shares of zero have
    # errors, too.
    terms = []
    for shares, size in ((shares_a, size_a), (shares_b, size_b)):
        near = (shares * size + 1) / (size + 2)
        terms.append(near * (1 - near) / (size + 2))
    return np.sqrt(terms[0] + terms[1])


def _mean_factors(a: Sketch, b: Sketch, shares_a: FloatArray, shares_b: FloatArray) -> FloatArray:
    """1 / N_a + 1 / N_b of the rows of each cluster (K,); infinite if a sketch has none."""
    size_a, size_b = _sizes(a, b)
    with np.errstate(divide="ignore"):
        return np.asarray(1 / (shares_a * size_a) + 1 / (shares_b * size_b))


def _sizes(a: Sketch, b: Sketch) -> tuple[float, float]:
    assert a.effective_size is not None
    assert b.effective_size is not None
    return a.effective_size, b.effective_size


def clusters_of_gaussians(
    problem: Problem, explanation: Explanation, pair: Pair, null: Null
) -> ClusterEvidence | None:
    """Clusters as Gaussians whose shares and means differ a little between the sketches; None if
    there are fewer numbers in the sketch than they have.
    """
    shares, means, variances, _ = explanation
    K, n = means.shape
    chosen = some_frequencies(problem.m)
    if 2 * len(chosen) < K * (n + 1):
        return None
    omega = 2 * np.pi * problem.omega.turns.T[chosen]
    widths = np.broadcast_to(variances[:, None] if variances.ndim == 1 else variances, means.shape)
    directions = _directions(omega, shares, means, widths)
    solve = np.linalg.pinv(directions, rcond=_BLIND)
    d = pair.difference[chosen]
    change = solve @ np.concatenate([d.real, d.imag])
    covariance = solve @ null.covariance.matrix @ solve.T / pair.joint_size
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    # Both sketches together are at the mixture, each in proportion to its size.
    part = pair.size_b / (pair.size_a + pair.size_b)
    by_share = change[:K]
    by_mean = change[K:].reshape(K, n)
    # From the means of all clusters to their average.
    average = np.hstack([np.zeros((n, K)), np.kron(shares, np.eye(n))])
    return ClusterEvidence(
        np.clip(shares - part * by_share, 0.0, 1.0),
        np.clip(shares + (1 - part) * by_share, 0.0, 1.0),
        errors[:K],
        means - part * by_mean,
        means + (1 - part) * by_mean,
        errors[K:].reshape(K, n),
        np.sqrt(widths),
        average @ change,
        np.sqrt(np.maximum(np.diag(average @ covariance @ average.T), 0.0)),
    )


def _directions(
    omega: FloatArray, shares: FloatArray, means: FloatArray, widths: FloatArray
) -> FloatArray:
    """What a unit of each share, then of each coordinate of each mean, changes in the real and
    imaginary parts of a sketch: (2s, K + K n).
    """
    atoms = np.exp(-1j * (means @ omega.T) - 0.5 * (widths @ (omega**2).T))
    by_mean = -1j * (shares[:, None] * atoms)[:, None, :] * omega.T
    columns = np.vstack([atoms, by_mean.reshape(-1, len(omega))]).T
    return np.vstack([columns.real, columns.imag])
