"""How much a sketch says for K clusters: the residual of K components against chance.

If rows were drawn from the components, the residual r = z - psi would be chance alone, with the
covariance S/N of features (`feature_covariance`). So

    J = r^T (S/N + ridge)^-1 r

is about chi-square with as many degrees of freedom as the sketch has numbers that chance moves,
less the p that were fitted. One S serves every K. A component more lowers J by its p/K parameters
even where it explains nothing; it is worth having where it lowers J + p ln N (Schwarz's
criterion).
"""

from dataclasses import dataclass

import numpy as np

from ckm._analysis.feature_covariance import mixture_covariance, some_frequencies
from ckm._analysis.one_shape import MAX_WIDTH, MIN_WIDTH, OneShapeMixture
from ckm._decoding.lbfgs import Limits, descend
from ckm._decoding.problem import Problem
from ckm._util.arrays import ComplexArray, FloatArray

# Frequencies that are asked: as many features as parameters, times 1.6, between these limits.
_FREQUENCIES_PER_PARAMETER = 0.8
_MIN_FREQUENCIES = 256
_MAX_FREQUENCIES = 384
# Parameters, as a share of the features, up to which the means of components are fitted to them;
# else they stay where the measure has them, and shares and widths are fitted.
_MAX_FITTED_SHARE = 0.85
# Ridge on S, as a share of its mean variance. S is that of a fit, and wrong where it is small.
_RIDGE = 1e-3
# Steps of the descent of one number of components. With 20, overlapping clusters of half a million
# rows were not told apart.
_STEPS = 40
# Gain, as a share of J, that ends it after two such steps: 0.4 where J is chance, and a component
# costs tens.
_GAIN = 1e-3
# Standard deviations within clusters that a mean may move: frequencies do not see a component that
# has left the data.
_MAX_MOVE = 3.0
# Share of the average weight: a lighter component moves as if it had this weight.
_LIGHT = 0.2


@dataclass(frozen=True, eq=False)
class Chance:
    """What chance does to a sketch, and the sketch.

    Parameters
    ----------
    omega : float64 array (s, n)
        The frequencies that are asked, in the coordinates of the problem.
    z : complex array (s,)
        The sketch there.
    precision : float64 array (2s, 2s)
        (S/N + ridge)^-1.
    expected : float
        The mean of J if components were right and nothing was fitted.
    size : float
        The number of rows N that S is divided by.
    fits_means : bool
        Whether the means of components are fitted, and not their shares and widths alone.
    """

    omega: FloatArray
    z: ComplexArray
    precision: FloatArray
    expected: float
    size: float
    fits_means: bool

    @classmethod
    def of(cls, problem: Problem, components: OneShapeMixture, size: float) -> "Chance":
        """Chance for rows from the largest number of components that is asked about."""
        K, n = components.means.shape
        parameters = K * (n + 2)
        wanted = int(_FREQUENCIES_PER_PARAMETER * parameters)
        count = int(np.clip(wanted, _MIN_FREQUENCIES, _MAX_FREQUENCIES))
        chosen = some_frequencies(problem.m, count)
        omega = 2 * np.pi * np.ascontiguousarray(problem.omega.turns.T[chosen], np.float64)
        S = mixture_covariance(
            omega @ components.root, components.shares, components.means, components.widths
        ).matrix
        noise = S / size
        ridge = _RIDGE * np.trace(noise) / len(noise)
        # Rows that are all equal leave no noise at all.
        ridge = max(float(ridge), np.finfo(float).eps)
        precision = np.asarray(np.linalg.inv(noise + ridge * np.eye(len(noise))), np.float64)
        return cls(
            omega,
            problem.z[chosen],
            precision,
            expected=float(len(noise) - ridge * np.trace(precision)),
            size=size,
            fits_means=parameters <= _MAX_FITTED_SHARE * 2 * len(chosen),
        )

    def parameters(self, K: int) -> int:
        """The number of parameters that are fitted for K components: none for one, which has the
        moments of the data.
        """
        if K == 1:
            return 0
        n = self.omega.shape[1]
        return K * (n + 2) - 1 if self.fits_means else 2 * K - 1

    def misfit(self, components: OneShapeMixture) -> float:
        """J of these components."""
        return _Misfit(self, components).value(components)

    def improve(self, start: OneShapeMixture) -> tuple[OneShapeMixture, float]:
        """Components near these of a smaller J, and that J."""
        if len(start.means) == 1:
            return start, self.misfit(start)
        cost = _Misfit(self, start)
        lower, upper = cost.bounds
        # What is right leaves this much on average; less is chance that was fitted.
        target = self.expected - self.parameters(len(start.means))
        limits = Limits(_STEPS, gain=_GAIN, target=target)
        found = descend(cost, cost.pack(start), lower, upper, limits)
        return cost.unpack(found.x), found.value


class _Misfit:
    """J as a function of a vector: means (unless they are fixed), shares and widths, in units in
    which it is about as curved along each of them.
    """

    def __init__(self, chance: Chance, start: OneShapeMixture) -> None:
        self._chance = chance
        self._start = start
        self._omega = chance.omega @ start.root
        self._half_squares = (self._omega**2).sum(axis=1) / 2
        K, n = start.means.shape
        heavy = np.maximum(start.shares, _LIGHT / K)
        units = [np.sqrt(heavy), start.widths / np.sqrt(heavy * n / 2)]
        if chance.fits_means:
            units.insert(0, np.repeat(np.sqrt(start.widths / heavy), n))
        self._unit = np.concatenate(units)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Means stay near their start, shares are at least zero, widths between their limits."""
        K = len(self._start.means)
        start = self.pack(self._start) * self._unit
        lower = start - _MAX_MOVE
        upper = start + _MAX_MOVE
        lower[-2 * K : -K] = 0
        upper[-2 * K : -K] = 1
        lower[-K:] = MIN_WIDTH
        upper[-K:] = MAX_WIDTH
        return lower / self._unit, upper / self._unit

    def pack(self, components: OneShapeMixture) -> FloatArray:
        parts = [components.shares, components.widths]
        if self._chance.fits_means:
            parts.insert(0, components.means.ravel())
        return np.asarray(np.concatenate(parts) / self._unit)

    def unpack(self, x: FloatArray) -> OneShapeMixture:
        values = x * self._unit
        K, n = self._start.means.shape
        means = self._start.means
        if self._chance.fits_means:
            means = values[: K * n].reshape(K, n)
        return OneShapeMixture(means, values[-2 * K : -K], values[-K:], self._start.root)

    def value(self, components: OneShapeMixture) -> float:
        return self._evaluate(components)[0]

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        components = self.unpack(x)
        value, pull, atoms = self._evaluate(components)
        # What each component's atoms have in common with the whitened residual.
        along = pull.real * atoms.real + pull.imag * atoms.imag
        across = pull.real * atoms.imag - pull.imag * atoms.real
        gradients = [
            -2 * along.sum(axis=1),
            2 * components.shares * (along @ self._half_squares),
        ]
        if self._chance.fits_means:
            by_means = -2 * components.shares[:, None] * (across @ self._omega)
            gradients.insert(0, by_means.ravel())
        return value, np.concatenate(gradients) * self._unit

    def _evaluate(self, components: OneShapeMixture) -> tuple[float, ComplexArray, ComplexArray]:
        """J, the whitened residual (s,) as complex numbers, and the atoms (K, s)."""
        phases = components.means @ self._omega.T
        fading = np.exp(-components.widths[:, None] * self._half_squares)
        atoms = np.empty(phases.shape, np.complex128)
        np.multiply(fading, np.cos(phases), out=atoms.real)
        np.multiply(-fading, np.sin(phases), out=atoms.imag)
        r = self._chance.z - components.shares @ atoms
        parts = np.concatenate([r.real, r.imag])
        whitened = self._chance.precision @ parts
        s = len(r)
        return float(parts @ whitened), whitened[:s] + 1j * whitened[s:], atoms
