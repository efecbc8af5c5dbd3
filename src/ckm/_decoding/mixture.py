"""Mixtures of atoms, and one parametrisation for every descent over them.

A descent moves a vector x = (centres, weights, widths): centres within the problem's box, weights
at least zero, and no width (Diracs), one width that all atoms share, or one width per atom and
axis.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from ckm._decoding.lbfgs import Limits, Point, descend
from ckm._decoding.moments import moment_misfit
from ckm._decoding.problem import Problem
from ckm._kmeans.assign import Centroids
from ckm._sources.arrays import ArraySource
from ckm._util.arrays import ComplexArray, FloatArray


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians around the rows of C.

    Parameters
    ----------
    C : float64 array (Q, n)
        Centres.
    alpha : float64 array (Q,)
        Weights.
    width : float or float64 array (Q, n)
        The variance that all atoms share, or the variance of each along each axis.
    cost : float
        |z - sum_k alpha_k a(c_k) exp(-widths_k . omega^2 / 2)|^2.
    """

    C: FloatArray
    alpha: FloatArray
    width: Any
    cost: float

    @property
    def shares(self) -> FloatArray:
        """The weights, so that they sum to one; equal ones if there is no weight."""
        total = self.alpha.sum()
        return self.alpha / total if total > 0 else np.full(len(self.alpha), 1 / len(self.alpha))

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Points from the mixture (count, n), stratified: each atom gets its share of the points,
        and the noise comes in opposite pairs.
        """
        return self._draw(rng, count)[0]

    def own_variance(self, rng: np.random.Generator, count: int) -> float:
        """The share of the squared distance to their own centres that is left when points go to the
        nearest centre: one where atoms do not overlap.
        """
        points, centres = self._draw(rng, count)
        squares = float(((points - centres) ** 2).sum())
        if not squares > 0:
            return 1.0
        return Centroids(self.C).sse(ArraySource(points), n_jobs=1) / squares

    def may_split(self, clear_ratio: float) -> bool:
        """Whether k-means may rather give the heaviest atom two centroids and two atoms one, for
        atoms of one width that are far apart.

        Splitting an atom of weight alpha and variance w gains alpha 2 w / pi; merging two loses
        alpha_i alpha_j / (alpha_i + alpha_j) |c_i - c_j|^2.
        """
        both = np.maximum(self.alpha[:, None] + self.alpha, np.finfo(float).tiny)
        gaps = ((self.C[:, None] - self.C) ** 2).sum(axis=2)
        losses = self.alpha[:, None] * self.alpha / both * gaps
        least = losses[~np.eye(len(self.C), dtype=bool)].min(initial=np.inf)
        return bool(least < clear_ratio * 2 / np.pi * self.alpha.max() * self.width)

    def _draw(self, rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray]:
        """Points, and the centre that each was drawn around."""
        Q, n = self.C.shape
        levels = (np.arange(count) + rng.random()) / count
        which = np.minimum(np.searchsorted(np.cumsum(self.shares), levels), Q - 1)
        centres = self.C[which]
        points = np.empty(((count + 1) // 2, 2, n))
        points[:, 0] = rng.standard_normal((len(points), n))
        np.negative(points[:, 0], out=points[:, 1])
        points = points.reshape(-1, n)[:count]
        has_one_width = np.ndim(self.width) == 0
        points *= np.sqrt(self.width) if has_one_width else np.sqrt(self.width)[which]
        points += centres
        return points, centres


class Widths(Enum):
    """Which widths a descent moves."""

    NONE = "none"  # the atoms are Diracs
    SHARED = "shared"  # one variance for all atoms
    PER_AXIS = "per-axis"  # one variance per atom and axis


@dataclass(frozen=True, eq=False)
class Parametrisation:
    """A mixture of Q atoms in dimension n as a vector x for L-BFGS, and back.

    x holds the centres, then the weights, then the widths, each number in a unit of its own: in
    good units the cost is about as curved along every axis, and a descent takes a sixth of the
    steps.

    Parameters
    ----------
    Q, n : int
        Number of atoms and dimension.
    widths : Widths
        Which widths are in x.
    unit : float64 array
        The unit of each number in x.
    shares : float64 array (Q,), optional
        Weights that stay fixed and are not in x: those of particles.
    """

    Q: int
    n: int
    widths: Widths
    unit: FloatArray
    shares: FloatArray | None = None

    @classmethod
    def of_diracs(cls, C: FloatArray) -> "Parametrisation":
        """For CLOMPR: weights are in units of 1/Q, so that a step in a weight is about as long as
        one in a coordinate (this halved its time).
        """
        Q, n = C.shape
        return cls(Q, n, Widths.NONE, np.concatenate([np.ones(Q * n), np.full(Q, 1 / Q)]))

    @classmethod
    def of_particles(cls, points: FloatArray, shares: FloatArray) -> "Parametrisation":
        """A centre is in units of one over the root of its share, so that the first step of a heavy
        particle is as long as that of a light one.
        """
        Q, n = points.shape
        return cls(Q, n, Widths.NONE, np.repeat(1 / np.sqrt(Q * shares), n), shares)

    @classmethod
    def of_gaussians(
        cls, problem: Problem, alpha: FloatArray, width: float, widths: Widths
    ) -> "Parametrisation":
        """In units of one over the root of the diagonal of the Gauss-Newton matrix, for atoms of
        these weights and about this width: for the centre of atom k along axis d that is
        alpha_k^2 sum_j omega_jd^2 exp(-width |omega_j|^2).
        """
        settings = problem.settings
        Q = len(alpha)
        omega = problem.omega
        decays = np.exp(-width * omega.squared_norms)
        half_squares = omega.half_squares
        # The curvature along each axis in a centre and in a width, for an atom of weight one.
        by_centre = _positive(2 * half_squares @ decays)
        by_width = _positive(half_squares**2 @ decays)
        heavy = np.maximum(alpha, settings.light_atom / Q)
        length = np.sqrt(problem.m) / Q
        units = [
            (length / np.sqrt(by_centre) / heavy[:, None]).ravel(),
            np.full(Q, settings.weight_unit * length / np.sqrt(_positive(decays.sum()))),
        ]
        if widths is Widths.PER_AXIS:
            units.append((length / np.sqrt(by_width) / heavy[:, None]).ravel())
        else:
            units.append(length / np.sqrt(by_width.sum()) / np.sqrt([heavy @ heavy]))
        return cls(Q, problem.n, widths, np.concatenate(units))

    @property
    def cost_factor(self) -> int:
        """What the cost is multiplied by: Q for particles, so that their gradients, which have
        shares of about 1/Q, are as large as those of centres alone.
        """
        return 1 if self.shares is None else self.Q

    def pack(self, C: FloatArray, alpha: FloatArray, width: Any) -> FloatArray:
        """The vector x of a mixture."""
        return np.asarray(self._join(C, alpha, width) / self.unit)

    def unpack(self, x: FloatArray) -> tuple[FloatArray, FloatArray, Any]:
        """Centres (Q, n), weights (Q,) and widths of a vector x: 0.0, a float or (Q, n)."""
        values = x * self.unit
        end = self.Q * self.n
        C = values[:end].reshape(self.Q, self.n)
        alpha = self.shares
        if alpha is None:
            alpha = values[end : end + self.Q]
            end += self.Q
        if self.widths is Widths.NONE:
            return C, alpha, 0.0
        if self.widths is Widths.SHARED:
            return C, alpha, values[end]
        return C, alpha, values[end:].reshape(self.Q, self.n)

    def pack_gradient(
        self, by_C: FloatArray, by_alpha: FloatArray, by_width: Any = 0.0
    ) -> FloatArray:
        """The gradient in x, from those in centres, weights and widths."""
        return self._join(by_C, by_alpha, by_width) * self.unit

    def bounds(self, problem: Problem) -> tuple[FloatArray, FloatArray]:
        """Bounds of x: centres in the box, weights at least zero, widths from zero to the widest
        that frequencies see. In float32 weights have an upper bound, too.
        """
        lower = np.zeros(len(self.unit))
        upper = np.full(len(self.unit), np.inf)
        end = self.Q * self.n
        lower[:end] = np.tile(problem.lower, self.Q)
        upper[:end] = np.tile(problem.upper, self.Q)
        if self.widths is not Widths.NONE:
            upper[end : end + self.Q] = problem.settings.max_weight
            upper[end + self.Q :] = problem.settings.max_width
        return lower / self.unit, upper / self.unit

    def _join(self, of_C: FloatArray, of_alpha: FloatArray, of_width: Any) -> FloatArray:
        parts = [of_C.ravel()]
        if self.shares is None:
            parts.append(of_alpha)
        if self.widths is not Widths.NONE:
            parts.append(np.ravel(of_width))
        return np.concatenate(parts)


def _positive(curvatures: FloatArray) -> FloatArray:
    """Curvatures to divide by: an axis that no frequency sees has none of its own."""
    return np.maximum(curvatures, max(1e-12 * curvatures.max(), np.finfo(float).tiny))


# From centres, weights and widths to a cost and its gradients in them.
MixtureCost = Callable[[FloatArray, FloatArray, Any], tuple[Any, ...]]


def _descend(
    problem: Problem,
    parameters: Parametrisation,
    start: tuple[FloatArray, FloatArray, Any],
    cost: MixtureCost,
    limits: Limits,
) -> Point:
    """A local minimum of the cost over the parameters of a mixture."""
    factor = parameters.cost_factor

    def packed_cost(x: FloatArray) -> tuple[float, FloatArray]:
        value, *gradients = cost(*parameters.unpack(x))
        return factor * value, factor * parameters.pack_gradient(*gradients)

    lower, upper = parameters.bounds(problem)
    x = parameters.pack(*start)
    return descend(packed_cost, x, lower, upper, limits, problem.settings)


def _with_moments(problem: Problem, cost: MixtureCost) -> MixtureCost:
    """The cost plus m times the misfit of the moments."""

    def combined(C: FloatArray, alpha: FloatArray, width: Any) -> tuple[Any, ...]:
        widths = np.zeros(C.shape) if np.ndim(width) == 0 else width
        value, *gradients = cost(C, alpha, width)
        misfit, *slopes = moment_misfit(problem, C, alpha, widths)
        pairs = zip(gradients, slopes, strict=True)
        return value + problem.m * misfit, *(g + problem.m * s for g, s in pairs)

    return combined


def descend_diracs(
    problem: Problem, C: FloatArray, alpha: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """argmin over C in the box and alpha >= 0 of |z - sum_k alpha_k a(c_k)|^2 near these (step 5 of
    Algorithm 1).
    """
    parameters = Parametrisation.of_diracs(C)
    limits = Limits(problem.settings.clompr_steps, slope=problem.settings.clompr_slope)

    def cost(C: FloatArray, alpha: FloatArray, _: float) -> tuple[float, FloatArray, FloatArray]:
        return problem.objective.cost(C, alpha)

    found = _descend(problem, parameters, (C, alpha, 0.0), cost, limits)
    C, alpha, _ = parameters.unpack(found.x)
    return C, alpha


def descend_atoms(
    problem: Problem,
    C: FloatArray,
    alpha: FloatArray,
    width: float,
    limits: Limits,
    *,
    exact: bool = False,
    keep_width: bool = False,
) -> Mixture:
    """A mixture of atoms of one width near this one whose sketch is closest to the data's; up to
    the rounding of float32 unless `exact` is True.
    """
    parameters = Parametrisation.of_gaussians(problem, alpha, width, Widths.SHARED)
    objective = problem.objective if exact else problem.rough_objective
    cost = _at_width(objective.blurred_cost) if keep_width else objective.blurred_cost
    found = _descend(problem, parameters, (C, alpha, width), cost, limits)
    C, alpha, width = parameters.unpack(found.x)
    return Mixture(C, alpha, float(width), found.value)


def _at_width(cost: MixtureCost) -> MixtureCost:
    """The same cost, without a slope in the width: a descent then leaves it as it is."""

    def flat(C: FloatArray, alpha: FloatArray, width: float) -> tuple[Any, ...]:
        value, by_C, by_alpha, _ = cost(C, alpha, width)
        return value, by_C, by_alpha, 0.0

    return flat


def maximise_correlations(
    problem: Problem, r: ComplexArray, starts: FloatArray, steps: int
) -> FloatArray:
    """Local maxima of Re <a(c), r> over c in the box, one from each row of `starts`: step 1 of
    Algorithm 1 for many centroids at once.
    """
    count = len(starts)
    objective = problem.rough_objective
    unit = 1 / (np.sqrt(problem.m) * max(float(np.abs(r).max()), np.finfo(float).tiny))

    def cost(x: FloatArray) -> tuple[float, FloatArray]:
        values, slopes = objective.correlation_slopes(x.reshape(starts.shape), r)
        return -unit * float(values.sum()), -unit * slopes.ravel()

    lower = np.tile(problem.lower, count)
    upper = np.tile(problem.upper, count)
    settings = problem.settings
    limits = Limits(steps, slope=settings.ascent_slope)
    return descend(cost, starts.ravel(), lower, upper, limits, settings).x.reshape(starts.shape)


def descend_gaussians(
    problem: Problem, C: FloatArray, alpha: FloatArray, widths: FloatArray, steps: int
) -> Mixture:
    """A mixture near this one whose sketch and moments are the data's, as far as `steps` go; each
    atom has a width along each axis.
    """
    settings = problem.settings
    target = min(settings.target_residual * problem.m, settings.target_noise * problem.noise)
    limits = Limits(steps, slope=settings.member_slope, target=target)
    parameters = Parametrisation.of_gaussians(problem, alpha, float(widths.mean()), Widths.PER_AXIS)
    cost = _with_moments(problem, problem.rough_objective.gaussian_cost)
    found = _descend(problem, parameters, (C, alpha, widths), cost, limits)
    C, alpha, widths = parameters.unpack(found.x)
    return Mixture(C, alpha, widths, problem.objective.gaussian_cost(C, alpha, widths)[0])


def descend_particles(
    problem: Problem, points: FloatArray, shares: FloatArray, steps: int
) -> FloatArray:
    """Points (M, n) of fixed shares, moved together until their sketch, mean and covariance are the
    data's, as far as `steps` go.
    """
    parameters = Parametrisation.of_particles(points, shares)
    cost = _with_moments(problem, problem.rough_objective.blurred_cost)
    limits = Limits(steps, slope=problem.settings.particle_slope)
    found = _descend(problem, parameters, (points, shares, 0.0), cost, limits)
    return parameters.unpack(found.x)[0]
