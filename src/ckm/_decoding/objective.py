"""The objectives of the decoders, with exact gradients: the cost of equation (4) and the
correlation of step 1.

A Dirac at c has the sketch a(c) = exp(-i Omega c), an *atom*, whose norm is sqrt(m) whatever c is.
A cluster has width: a Gaussian of variance w around c has the *blurred* atom a(c) exp(-w |omega|^2
/ 2). Everything here is in the coordinates of a `Problem`: relative to the sketch's origin and in
units of sigma, so that decoding does not depend on the data's place or units.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls

from ckm._core.laws import COARSE_RATIO
from ckm._core.sketch import Sketch
from ckm._decoding import fused
from ckm._decoding.lbfgs import Limits, descend
from ckm._decoding.operator import Omega, omega_of
from ckm._util.arrays import Array

if TYPE_CHECKING:
    from ckm._decoding.objective_gpu import CardCosts

_REACH = 10.0  # standard deviations of a sample, within which nearly all rows are
_NARROW = 1e-3  # of the largest variance: a column all of whose squares are below it matters little
_CLEAR = 4.0  # standard deviations of the noise, of an atom that a search will hardly miss
_MUCH = 0.5  # of the mean variance of a column
# |omega|^2 times the variance where the paper's radii end; and the step to the next stage
_WHOLE, _FINER = 7.0, 8.0


@dataclass(frozen=True, eq=False)
class Problem:
    """Find atoms whose mixture has the sketch z.

    Parameters
    ----------
    frequencies : Omega
        Times sigma, to multiply by.
    z : complex array (m,)
        The data's sketch.
    lower, upper : float64 arrays (n,)
        The box that holds the data.
    mean : float64 array (n,)
        The data's mean.
    covariance : float64 array (n, n) or (n,)
        The data's covariance, or only its diagonal.
    size : float
        The number of rows.
    trusted : bool array (n,)
        The columns whose moments say something that the sketch can be matched to; they do not where
        rows so few that the sketch cannot see them may have made them.
    spread : float or None
        The variance along an axis in a sample of the rows, which hardly has those few.
    device : torch.device or None
        The card that evaluates mixtures, where one does.
    """

    frequencies: Omega
    z: Array
    lower: Array
    upper: Array
    mean: Array
    covariance: Array
    size: float
    trusted: Array
    spread: float | None = None
    device: Any = None

    @classmethod
    def of(cls, sketch: Sketch, device: Any = None) -> "Problem":
        """The problem that a sketch poses."""
        frequencies, z = sketch.frequencies, sketch.z
        step = frequencies.step
        lower, upper, mean = (
            frequencies.relative(point) for point in (sketch.lower, sketch.upper, sketch.mean)
        )
        covariance = sketch.covariance / (
            np.outer(step, step) if sketch.covariance.ndim == 2 else step**2
        )
        # The last bits of moments depend on the order of rows; once rounded, they do so only by
        # rare chance.
        grid = 2.0**-20 * max(float(np.abs(covariance).max()), 2.0**-40)
        mean, covariance = _rounded(mean, np.sqrt(grid) * 2.0**-10), _rounded(covariance, grid)
        # Whole-number weights count as repetition, as everywhere.
        size = max(sketch.count, sketch.weight)
        trusted = _seen(lower - mean, upper - mean, covariance, size, len(z))
        spread = None if frequencies.spread is None else frequencies.spread / frequencies.scale
        return cls(
            omega_of(frequencies), z, lower, upper, mean, covariance, size, trusted, spread, device
        )

    @cached_property
    def moments(self) -> bool:
        """Whether the moments of every column can be trusted."""
        return bool(self.trusted.all())

    @property
    def m(self) -> int:
        """The number of frequencies."""
        return len(self.z)

    @property
    def n(self) -> int:
        """The dimension."""
        return self.frequencies.shape[1]

    @cached_property
    def noise(self) -> float:
        """What |z - E z|^2 is expected to be for a sample of this size, sum_j (1 - |z_j|^2) / N: a
        cost at this floor leaves nothing to explain.
        """
        return float(np.maximum(1 - np.abs(self.z) ** 2, 0).sum() / self.size)

    @property
    def box(self) -> list[tuple[float, float]]:
        """The bounds of each coordinate."""
        return list(zip(self.lower, self.upper, strict=True))

    @property
    def omega(self) -> Array:
        """The frequencies as a matrix, float64 (m, n)."""
        return 2 * np.pi * self.frequencies.turns.T

    @property
    def squares(self) -> Array:
        """|omega_j|^2 (m,)."""
        return self.frequencies.squares

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        """Real and imaginary part of z, each contiguous."""
        return np.ascontiguousarray(self.z.real), np.ascontiguousarray(self.z.imag)

    @cached_property
    def card(self) -> "CardCosts | None":
        """The same on its card, if there is one."""
        if self.device is None:
            return None
        from ckm._decoding.objective_gpu import CardCosts

        return CardCosts.of(self.z, self.frequencies.turns, self.device)

    @cached_property
    def stages(self) -> "tuple[Problem, ...]":
        """The problem from coarse to fine: with the frequencies that see the whole data at once,
        then with more, at last with all.

        Where clusters are small in the data, all frequencies at once are a landscape of narrow
        valleys.
        """
        variances = np.diag(self.covariance) if self.covariance.ndim == 2 else self.covariance
        reach, stages = float(variances.max()), []
        bound = _WHOLE / reach if reach > COARSE_RATIO else np.inf
        while bound < self.squares.max():
            kept = self.squares <= bound
            if kept.sum() >= 2 * self.n:
                stages.append(self._only(kept))
            bound *= _FINER
        return (*stages, self)

    def _only(self, kept: Array) -> "Problem":
        return replace(self, frequencies=self.frequencies.only(kept), z=self.z[kept])

    @property
    def unseen(self) -> int:
        """Rows that in one place would hardly escape the sketch."""
        return max(2, int(_CLEAR * np.sqrt(self.size / self.m)))

    def narrowed(self) -> "Problem":
        """Where a few rows far out make the moments and the bounds: the same problem where the
        other rows are.
        """
        if self.moments or self.spread is None:
            return self
        kept, spread = self.trusted, np.full(self.n, self.spread)
        if self.covariance.ndim == 2:
            covariance = np.where(np.outer(kept, kept), self.covariance, np.diag(spread))
        else:
            covariance = np.where(kept, self.covariance, spread)
        reach = np.where(kept, np.inf, _REACH * np.sqrt(self.spread))
        lower, upper = np.maximum(self.lower, -reach), np.minimum(self.upper, reach)
        return replace(
            self,
            lower=np.minimum(lower, upper),
            upper=upper,
            mean=np.where(kept, self.mean, 0.0),
            covariance=covariance,
        )

    def without(self, points: Array, shares: Array, lower: Array, upper: Array) -> "Problem":
        """The problem that the other rows pose, once some are known: these points, with their
        shares of the weight. The others lie in the box from `lower` to `upper`.
        """
        left = 1 - shares.sum()
        z = (self.z - shares @ atoms(self, points)) / left
        mean = (self.mean - shares @ points) / left
        if self.covariance.ndim == 2:
            second = (
                self.covariance
                + np.outer(self.mean, self.mean)
                - (shares[:, None] * points).T @ points
            )
            covariance = second / left - np.outer(mean, mean)
            variances = np.diag(covariance)
        else:
            covariance = variances = (
                self.covariance + self.mean**2 - shares @ points**2
            ) / left - mean**2
        # Shares of sampled rows are estimates, and may take away more than there was.
        most = _rows_at_bounds(lower - mean, upper - mean, covariance, self.size * left)
        trusted = np.full(
            self.n, ((most >= np.sqrt(self.size * left / self.m)) & (variances >= 0)).all()
        )
        return replace(
            self,
            z=z,
            lower=lower,
            upper=upper,
            mean=mean,
            covariance=covariance,
            size=self.size * left,
            trusted=trusted,
        )

    def blur(self, width: float) -> Array:
        """What a Gaussian of this variance does to an atom: exp(-width |omega_j|^2 / 2)."""
        return np.asarray(np.exp(-0.5 * width * self.squares))


def _rows_at_bounds(lower: Array, upper: Array, covariance: Array, size: float) -> Array:
    """How few rows can make up the variance of each column: rows at a bound make the most of it."""
    variances = np.diag(covariance) if covariance.ndim == 2 else covariance
    reach = np.maximum(np.abs(lower), np.abs(upper))
    return np.asarray(
        np.divide(size * variances, reach**2, out=np.full(len(reach), np.inf), where=reach > 0)
    )


def _seen(lower: Array, upper: Array, covariance: Array, size: float, m: int) -> Array:
    """Of which columns it takes more rows to make up the variance than a sketch of m frequencies
    can miss.

    An atom of weight w stands out of the noise where m w > sqrt(m / size), so fewer than sqrt(size
    / m) rows do not. Where much of the whole variance is in question, they should stand out
    clearly. Where no row is far out by the measure of another column, nothing is.
    """
    variances = np.diag(covariance) if covariance.ndim == 2 else covariance
    times = np.where(variances >= _MUCH * variances.mean(), _CLEAR, 1.0)
    narrow = np.maximum(-lower, upper) ** 2 <= _NARROW * variances.max()
    return np.asarray(
        narrow | (_rows_at_bounds(lower, upper, covariance, size) >= times * np.sqrt(size / m))
    )


def _rounded(values: Array, grid: float) -> Array:
    # a power of two, so that rounding follows a change of units by one
    step = 2.0 ** np.round(np.log2(grid))
    return np.asarray(np.rint(values / step) * step)


def atoms(problem: Problem, C: Array) -> Array:
    """The sketches of Diracs at the rows of C: exp(-i C Omega^T), complex (K, m)."""
    phases = 2 * np.pi * problem.frequencies.all_phases(C)
    a: Array = np.cos(phases) - 1j * np.sin(phases)
    return a


def residual(problem: Problem, C: Array, alpha: Array, width: float = 0.0) -> Array:
    """r = z - sum_k alpha_k a(c_k), blurred."""
    if problem.card is not None:
        return problem.card.residual(C, alpha, width)
    r: Array = problem.z - problem.blur(width) * (alpha @ atoms(problem, C))
    return r


def correlations(problem: Problem, r: Array, points: Array) -> Array:
    """Re <a(c), r> for every row c of `points`."""
    if problem.card is not None:
        return problem.card.correlations(points, r)
    return fused.correlations(
        problem.frequencies, points, np.ascontiguousarray(r.real), np.ascontiguousarray(r.imag)
    )


def correlation(problem: Problem, r: Array, c: Array) -> tuple[float, Array]:
    """Re <a(c)/|a(c)|, r> and its gradient in c (step 1 of Algorithm 1)."""
    phase = 2 * np.pi * problem.frequencies.all_phases(c[None])[0]
    cosine, sine = np.cos(phase), np.sin(phase)
    root_m = np.sqrt(problem.m)
    value = (cosine @ r.real - sine @ r.imag) / root_m
    pull = sine * r.real + cosine * r.imag
    gradient = problem.frequencies.projections(pull[None])[0] * (-2 * np.pi / root_m)
    return float(value), gradient


def cost(problem: Problem, C: Array, alpha: Array) -> tuple[float, Array, Array]:
    """|z - sum_k alpha_k a(c_k)|^2 (equation 4) and its gradients in C (K, n) and alpha (K,)."""
    return blurred_cost(problem, C, alpha, 0.0)[:3]


def blurred_cost(
    problem: Problem, C: Array, alpha: Array, width: float
) -> tuple[float, Array, Array, float]:
    """|z - sum_k alpha_k a(c_k) exp(-width |omega|^2 / 2)|^2 and its gradients in C (K, n), alpha
    (K,) and the width.
    """
    if problem.card is not None:
        return problem.card.blurred_cost(C, alpha, width)
    gradient_C, gradient_alpha = np.empty(C.shape), np.empty(len(alpha))
    C, alpha = np.ascontiguousarray(C, np.float64), np.ascontiguousarray(alpha, np.float64)
    total, slope = fused.cost_and_gradients(
        problem.frequencies,
        *problem.parts,
        problem.blur(width),
        problem.squares,
        C,
        alpha,
        gradient_C,
        gradient_alpha,
    )
    return total, gradient_C, gradient_alpha, slope


def gaussian_cost(
    problem: Problem, C: Array, alpha: Array, widths: Array
) -> tuple[float, Array, Array, Array]:
    """|z - sum_k alpha_k a(c_k) exp(-widths_k . omega^2 / 2)|^2 and its gradients in C (K, n),
    alpha (K,) and the widths (K, n).
    """
    if problem.card is not None:
        return problem.card.gaussian_cost(C, alpha, widths)
    C, alpha, widths = (np.ascontiguousarray(x, np.float64) for x in (C, alpha, widths))
    gradients = np.empty(C.shape), np.empty(len(alpha)), np.empty(C.shape)
    total = fused.gaussian_cost_and_gradients(
        problem.frequencies,
        problem.frequencies.halves,
        *problem.parts,
        C,
        alpha,
        widths,
        *gradients,
    )
    return total, *gradients


def moment_misfit(
    problem: Problem, C: Array, alpha: Array, widths: Array
) -> tuple[float, Array, Array, Array]:
    """How far a mixture's mean and covariance are from the data's, relative to its spread, and the
    gradients as in `gaussian_cost`.
    """
    trace = float(
        np.trace(problem.covariance) if problem.covariance.ndim == 2 else problem.covariance.sum()
    )
    total = alpha.sum()
    if not problem.trusted.any() or trace <= 0 or total <= 0:
        return 0.0, np.zeros(C.shape), np.zeros(len(alpha)), np.zeros(C.shape)
    shares = alpha / total
    mean = shares @ C
    off, D = mean - problem.mean, C - mean
    full = problem.covariance.ndim == 2
    covariance = (
        (D * shares[:, None]).T @ D + np.diag(shares @ widths) if full else shares @ (D**2 + widths)
    )
    excess = covariance - problem.covariance
    if not problem.moments:
        off, excess = (
            off * problem.trusted,
            excess * (np.outer(problem.trusted, problem.trusted) if full else problem.trusted),
        )
    pull, axes = (D @ excess, np.diag(excess)) if full else (D * excess, excess)
    value = float(off @ off / trace + (excess**2).sum() / trace**2)
    gradient_C = shares[:, None] * (2 * off / trace + 4 * pull / trace**2)
    own = (pull * D).sum(axis=1) + widths @ axes - (excess * covariance).sum()
    gradient_alpha = (2 * D @ off / trace + 2 * own / trace**2) / total
    return value, gradient_C, gradient_alpha, 2 * shares[:, None] * axes / trace**2


def fit_weights(problem: Problem, C: Array, width: float = 0.0) -> Array:
    """argmin over alpha >= 0 of |z - sum_k alpha_k a(c_k)|: non-negative least squares (steps 3 and
    4).
    """
    return nonnegative(*fewer_equations(problem, C, width))


def fewer_equations(problem: Problem, C: Array, width: float = 0.0) -> tuple[Array, Array]:
    """A (K + 1, K) and b whose |b - A alpha| is |z - sum_k alpha_k a(c_k)|, for all alpha: instead
    of 2 m equations.
    """
    if problem.card is not None:
        return problem.card.fewer_equations(C, width)
    phases, blur = 2 * np.pi * problem.frequencies.all_phases(C), problem.blur(width)
    real, imag = (
        np.vstack([blur * part, z])
        for part, z in zip((np.cos(phases), -np.sin(phases)), problem.parts, strict=True)
    )
    r = np.asarray(np.linalg.qr(np.concatenate([real, imag], axis=1).T, mode="r"))
    return r[:, :-1], r[:, -1]


def nonnegative(A: Array, b: Array) -> Array:
    """argmin over alpha >= 0 of |b - A alpha|."""
    return np.asarray(nnls(A, b)[0])


def maximise_correlation(problem: Problem, r: Array, start: Array, iterations: int = 100) -> Array:
    """Climb from `start` to a local maximum of the correlation inside the box (step 1)."""

    def cost(c: Array) -> tuple[float, Array]:
        value, gradient = correlation(problem, r, c)
        return -value, -gradient

    return descend(cost, start, problem.lower, problem.upper, Limits(iterations, slope=1e-5)).x


def minimise_cost(problem: Problem, C: Array, alpha: Array) -> tuple[Array, Array]:
    """Descend the cost over all centroids, kept in the box, and weights, kept non-negative (step
    5).
    """
    K, n = C.shape

    def expense(x: Array) -> tuple[float, Array]:
        # Weights are counted in units of 1/K, so that a step in them is as long as one in
        # coordinates: it took half the time.
        value, gradient_C, gradient_alpha = cost(problem, x[: K * n].reshape(K, n), x[K * n :] / K)
        return value, np.concatenate([gradient_C.ravel(), gradient_alpha / K])

    lower = np.concatenate([np.tile(problem.lower, K), np.zeros(K)])
    upper = np.concatenate([np.tile(problem.upper, K), np.full(K, np.inf)])
    x = descend(
        expense, np.concatenate([C.ravel(), alpha * K]), lower, upper, Limits(200, slope=1e-7)
    ).x
    return x[: K * n].reshape(K, n), x[K * n :] / K
