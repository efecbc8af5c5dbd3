"""What a fitted mixture tells: its attributes, and criteria that compare it with others."""

from typing import Any

import numpy as np

from ckm._analysis.mixture_pass import sum_log_densities
from ckm._analysis.mixture_solution import GaussianMixtureSolution
from ckm._core.sketch import Sketch
from ckm._sklearn.mixture_state import SketchedMixture
from ckm._util.arrays import FloatArray


class FittedMixture(SketchedMixture):
    """Attributes of a mixture, which are found when they are first asked for."""

    @property
    def sketch_(self) -> Sketch:
        """The sketch of all rows so far, without sampled rows."""
        return self._current_sketch()

    @property
    def solution_(self) -> GaussianMixtureSolution:
        """What was found in the sketch; found now if rows were added since."""
        found: Any = self._current_solution()
        return found  # type: ignore[no-any-return]

    @property
    def n_components_(self) -> int:
        """The number of Gaussians, also where it was chosen."""
        return len(self._mixture.weights)

    @property
    def weights_(self) -> FloatArray:
        """The share of each Gaussian, of shape (n_components,); they sum to one."""
        return self._mixture.weights

    @property
    def means_(self) -> FloatArray:
        """The means, of shape (n_components, n_features)."""
        return self._mixture.means

    @property
    def covariances_(self) -> FloatArray:
        """The covariances, in scikit-learn's shape for the covariance type."""
        return self._mixture.covariances

    @property
    def precisions_(self) -> FloatArray:
        """The inverses of the covariances, in the same shape."""
        return self._mixture.precisions

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion, -2 log likelihood + parameters log N.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or other data
            The rows; anything that `ckm.sketch` reads.

        Returns
        -------
        float
            The criterion; smaller is better.
        """
        total, weight = self._likelihood(X)
        return -2 * total + self._mixture.n_parameters * float(np.log(weight))

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion, -2 log likelihood + 2 parameters.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or other data
            The rows; anything that `ckm.sketch` reads.

        Returns
        -------
        float
            The criterion; smaller is better.
        """
        total, _ = self._likelihood(X)
        return -2 * total + 2 * self._mixture.n_parameters

    def _likelihood(self, X: Any, sample_weight: Any = None) -> tuple[float, float]:
        """The sum of the log densities of the rows, and of their weights."""
        rows = self._validate_for_use(X, sample_weight)
        return sum_log_densities(self._mixture.components, rows.source, self.n_jobs)
