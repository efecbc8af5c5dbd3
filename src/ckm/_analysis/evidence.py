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
from operator import attrgetter

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from ckm._analysis.feature_covariance import mixture_covariance, some_frequencies
from ckm._analysis.fitting import Target, fit, misfit
from ckm._analysis.one_shape import OneShapeMixture
from ckm._analysis.verdict import Explanation
from ckm._decoding.problem import Problem

# Frequencies that are asked: as many features as parameters, times 1.6, between these limits.
_FREQUENCIES_PER_PARAMETER = 0.8
_MIN_FREQUENCIES = 256
_MAX_FREQUENCIES = 384
# Parameters, as a share of the features, up to which the means of components are fitted to them;
# else they stay where the measure has them, and shares and widths are fitted.
_MAX_FITTED_SHARE = 0.85
# Ridge on S, as a share of its mean variance. S is that of a fit, and wrong where it is small.
_RIDGE = 1e-3
# Numbers whose components are fitted to the sketch, if those of none explain it.
_FITTED_NUMBERS = 2
# They are not fitted where their residual is so many times chance, and so large in units of the
# variance of one row's features: Gaussians of a million rows whose fit explained the sketch started
# at 4 to 107 times chance, 1e-4 and less, real data at 1.6e-3 and more.
_MAX_RESIDUAL = 150.0
_MAX_VARIANCE_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class Chance:
    """What chance does to a sketch, and the sketch.

    Parameters
    ----------
    target : Target
        The sketch at the frequencies that are asked, and a root of (S/N + ridge)^-1.
    expected : float
        The mean of J if components were right and nothing was fitted.
    size : float
        The number of rows N that S is divided by.
    """

    target: Target
    expected: float
    size: float

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
        # Real and imaginary parts share the noise of a private release.
        noise[np.diag_indices_from(noise)] += problem.noise_variance / 2
        # Rows that are all equal leave no noise at all.
        ridge = max(float(_RIDGE * np.trace(noise) / len(noise)), np.finfo(float).eps)
        noise[np.diag_indices_from(noise)] += ridge
        # (S/N + ridge)^-1 = whitening whitening^T.
        root = cholesky(noise, lower=True, check_finite=False)
        whitening = dtrtri(root, lower=1)[0].T
        fits_means = parameters <= _MAX_FITTED_SHARE * 2 * len(chosen)
        return cls(
            Target(problem, omega, problem.z[chosen], np.ascontiguousarray(whitening), fits_means),
            expected=float(len(noise) - ridge * (whitening**2).sum()),
            size=size,
        )

    def explain(self, components: OneShapeMixture) -> Explanation:
        """What these components leave, as they are."""
        return self._explanation(components, misfit(self.target, components))

    def improve(self, start: Explanation) -> Explanation:
        """The same after its components are fitted to the sketch, unless they are far from
        explaining it.
        """
        most = max(_MAX_RESIDUAL, _MAX_VARIANCE_SHARE * self.size)
        if start.K == 1 or start.residual > most:
            return start
        return self._explanation(*fit(self.target, start.components, start.expected))

    def _explanation(self, components: OneShapeMixture, value: float) -> Explanation:
        K = len(components.means)
        expected = max(self.expected - self._parameters(K), 1.0)
        return Explanation(components, value, expected, value + self._penalty(K))

    def _penalty(self, K: int) -> float:
        return self._parameters(K) * float(np.log(self.size))

    def _parameters(self, K: int) -> int:
        """The number of parameters that are fitted for K components: none for one, which has the
        moments of the data.
        """
        if K == 1:
            return 0
        n = self.target.omega.shape[1]
        return K * (n + 2) - 1 if self.target.fits_means else 2 * K - 1


def explain_every_number(chance: Chance, starts: list[OneShapeMixture]) -> list[Explanation]:
    """What components for K = 1, 2, ... leave.

    They are compared as the measure suggests them: it knows more than the frequencies that are
    asked, and a fit to these would hide a small cluster. But with many rows the error of the
    measure is larger than chance. So where none explains the sketch, the best are fitted to it, and
    kept where that explains it.
    """
    found = [chance.explain(start) for start in starts]
    if any(one.is_chance for one in found):
        return found
    for best in sorted(found, key=attrgetter("criterion"))[:_FITTED_NUMBERS]:
        fitted = chance.improve(best)
        if fitted.is_chance:
            found[best.K - 1] = fitted
            break
    return found
