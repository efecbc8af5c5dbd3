"""`GaussianMixtureSolution`: a mixture of Gaussians found in a sketch, for users."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ckm._analysis.components import Components, count_parameters
from ckm._analysis.mixture_pass import (
    label_rows,
    score_rows,
    share_rows,
    sum_log_densities,
)
from ckm._core.preparation import Preparation, categories_of, prepared_names
from ckm._decoding.status import Finding, Status
from ckm._sources import ColumnRequest, Source, open_source
from ckm._sources.adapters import in_preparation
from ckm._sources.engines.base import PartitionedSource
from ckm._util.arrays import FloatArray, Frozen, IntArray, LabelArray
from ckm._util.checks import check_whole_number
from ckm._util.random import RandomState, seed_of, stream
from ckm._util.summary import Shown, Summary
from ckm.errors import MismatchError

# Columns that a printed table shows at most.
_SHOWN_COLUMNS = 6


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMixtureSolution(Frozen, Shown):
    """A mixture of K Gaussians found in a sketch, as `ckm.fit_mixture` returns it.

    `print` shows it as a table, a notebook as HTML. Densities are per unit of volume in the data's
    own columns, also where the sketch standardised them.

    Parameters
    ----------
    components : Components
        Weights, means and covariances, as one value.
    covariance_type : {"full", "tied", "diag", "spherical"}
        What the covariances look like, as in scikit-learn.
    residual : float
        How far the mixture's sketch is from the data's: the mean over frequencies of the squared
        difference relative to its sampling variance. Up to about one, nothing is left to explain.
    is_matched : bool
        Whether the mixture explains the sketch. If not, the data is no mixture of so few Gaussians,
        and this is the one of largest likelihood on a measure that does explain it.
    size : float
        The number of rows, or their weight, that the sketch is of.
    findings : tuple of Finding
        What may be wrong, each a status and a sentence; empty if nothing was found.
    columns : tuple of str or None
        The names of the data's columns, if it had any.
    preparation : Preparation or None
        What is done to the columns of rows first, such as logarithms: means, covariances, drawn
        rows and densities are those of prepared rows.

    See Also
    --------
    fit_mixture : Finds a mixture in a sketch.
    CompressiveGaussianMixture : Sketches and fits, as a scikit-learn estimator.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
    >>> mixture = ckm.fit_mixture(sketch, 3, random_state=0)
    >>> mixture.means.shape, mixture.covariances.shape
    ((3, 2), (3, 2))
    """

    components: Components
    covariance_type: str
    residual: float
    is_matched: bool
    size: float
    findings: tuple[Finding, ...] = ()
    columns: tuple[str, ...] | None = None
    preparation: Preparation | None = None

    @property
    def weights(self) -> FloatArray:
        """The share of each component (K,); they sum to one."""
        return self.components.weights

    @property
    def means(self) -> FloatArray:
        """The means of the components (K, n)."""
        return self.components.means

    @cached_property
    def covariances(self) -> FloatArray:
        """The covariances: (K, n, n) if full, (n, n) if tied, (K, n) if diagonal, (K,) if
        spherical.
        """
        return self.components.in_shape_of(self.covariance_type)

    @cached_property
    def precisions(self) -> FloatArray:
        """The inverses of the covariances, in the same shape."""
        return self.components.precisions_in_shape_of(self.covariance_type)

    @property
    def n_parameters(self) -> int:
        """The free numbers of the mixture, which `bic` and `aic` count."""
        K, n = self.means.shape
        return count_parameters(self.covariance_type, K, n)

    @property
    def status(self) -> Status:
        """The kind of the first finding, or "ok" if there is none."""
        return self.findings[0].status if self.findings else Status.OK

    @property
    def message(self) -> str:
        """What was found, in sentences."""
        if self.findings:
            return " ".join(finding.sentence for finding in self.findings)
        return (
            f"Found {len(self.weights)} Gaussians; the residual is {self.residual:.2g} times what "
            "chance leaves."
        )

    def predict(self, data: Any, *, n_jobs: int | None = None) -> LabelArray:
        """Find the most probable component of each row.

        Parameters
        ----------
        data : array, data frame, path or any other data that `ckm.sketch` reads
            Rows with the columns of the sketched data. If these had names, columns are found by
            name; other columns are ignored.
        n_jobs : int, optional
            The number of threads; None means every core. The result does not depend on it.

        Returns
        -------
        int32 array (N,)
            The number of a component for each row, from 0.

        Raises
        ------
        ckm.errors.NonFiniteError
            If a value is missing or infinite.
        ckm.errors.MismatchError
            If the data has other columns.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
        >>> mixture = ckm.fit_mixture(sketch, 3, random_state=0)
        >>> mixture.predict(mixture.means)
        array([0, 1, 2], dtype=int32)
        """
        return label_rows(self.components, self._open(data), n_jobs)

    def predict_proba(self, data: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Compute the probability of each component for each row.

        Parameters
        ----------
        data : array, data frame, path or any other data that `ckm.sketch` reads
            Rows with the columns of the sketched data.
        n_jobs : int, optional
            The number of threads; None means every core. The result does not depend on it.

        Returns
        -------
        float64 array (N, K)
            Probabilities, which sum to one for each row.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
        >>> ckm.fit_mixture(sketch, 3, random_state=0).predict_proba(X[:5]).shape
        (5, 3)
        """
        return share_rows(self.components, self._open(data), n_jobs)

    def score_samples(self, data: Any, *, n_jobs: int | None = None) -> FloatArray:
        """Compute the log density of each row.

        Parameters
        ----------
        data : array, data frame, path or any other data that `ckm.sketch` reads
            Rows with the columns of the sketched data.
        n_jobs : int, optional
            The number of threads; None means every core. The result does not depend on it.

        Returns
        -------
        float64 array (N,)
            log sum_k weight_k N(x; mean_k, covariance_k) of each row x.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
        >>> ckm.fit_mixture(sketch, 3, random_state=0).score_samples(X[:5]).shape
        (5,)
        """
        return score_rows(self.components, self._open(data), n_jobs)

    def score(self, data: Any, *, n_jobs: int | None = None) -> float:
        """Compute the mean log density of the rows.

        Parameters
        ----------
        data : array, data frame, path or any other data that `ckm.sketch` reads
            Rows with the columns of the sketched data.
        n_jobs : int, optional
            The number of threads; None means every core. The result does not depend on it.

        Returns
        -------
        float
            The log likelihood per row; larger is better.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
        >>> one, three = (ckm.fit_mixture(sketch, K, random_state=0) for K in (1, 3))
        >>> three.score(X) > one.score(X)
        True
        """
        total, weight = sum_log_densities(self.components, self._open(data), n_jobs)
        return total / weight

    def bic(self, data: Any, *, n_jobs: int | None = None) -> float:
        """Compute the Bayesian information criterion on some rows.

        Parameters
        ----------
        data : array, data frame, path or any other data that `ckm.sketch` reads
            Rows with the columns of the sketched data.
        n_jobs : int, optional
            The number of threads; None means every core.

        Returns
        -------
        float
            -2 log likelihood + n_parameters log N; smaller is better.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
        >>> one, three = (ckm.fit_mixture(sketch, K, random_state=0) for K in (1, 3))
        >>> three.bic(X) < one.bic(X)
        True
        """
        total, weight = sum_log_densities(self.components, self._open(data), n_jobs)
        return -2 * total + self.n_parameters * float(np.log(weight))

    def aic(self, data: Any, *, n_jobs: int | None = None) -> float:
        """Compute Akaike's information criterion on some rows.

        Parameters
        ----------
        data : array, data frame, path or any other data that `ckm.sketch` reads
            Rows with the columns of the sketched data.
        n_jobs : int, optional
            The number of threads; None means every core.

        Returns
        -------
        float
            -2 log likelihood + 2 n_parameters; smaller is better.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
        >>> one, three = (ckm.fit_mixture(sketch, K, random_state=0) for K in (1, 3))
        >>> three.aic(X) < one.aic(X)
        True
        """
        total, _ = sum_log_densities(self.components, self._open(data), n_jobs)
        return -2 * total + 2 * self.n_parameters

    def sample(
        self, n_samples: int = 1, *, random_state: RandomState = None
    ) -> tuple[FloatArray, IntArray]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            The number of rows.
        random_state : None, int, Generator or RandomState, optional
            The seed; None draws a new one each time.

        Returns
        -------
        tuple of float64 array (n_samples, n) and int64 array (n_samples,)
            The rows, and the component that each was drawn from, in order of these.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
        >>> rows, labels = ckm.fit_mixture(sketch, 3, random_state=0).sample(100, random_state=0)
        >>> rows.shape, labels.shape
        ((100, 2), (100,))
        """
        count = check_whole_number(n_samples, "n_samples", 1)
        rng = stream(seed_of(random_state), "mixture")
        counts = rng.multinomial(count, self.weights)
        rows = self.components.draw(rng, counts)
        return rows, np.repeat(np.arange(len(counts)), counts)

    def _open(self, data: Any) -> Source:
        coded = categories_of(self.preparation)
        n = self.means.shape[1]
        request = ColumnRequest(
            like=self.columns or (), like_name="this mixture", categories=coded, like_features=n
        )
        source = open_source(data, request)
        if source.n_features != n:
            raise MismatchError(
                f"The data has {source.n_features} columns where this mixture has {n}; give the "
                "data it was made for."
            )
        if isinstance(source, PartitionedSource):
            return source
        return in_preparation(source, self.preparation)

    def summary(self) -> Summary:
        """What `print` and notebooks show.

        Returns
        -------
        Summary
            One line per component: its weight, and its mean and standard deviation in the first
            columns.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
        >>> ckm.fit_mixture(sketch, 3, random_state=0).summary().header
        ('component', 'weight', '[0]', '[1]')
        """
        K, n = self.means.shape
        shown = min(n, _SHOWN_COLUMNS)
        names = self.columns or tuple(f"[{d}]" for d in range(n))
        names = prepared_names(names, self.preparation)
        deviations = np.sqrt(self.components.variances)
        rows = tuple(
            (
                str(k),
                f"{self.weights[k]:.4f}",
                *(f"{self.means[k, d]:.4g} ± {deviations[k, d]:.2g}" for d in range(shown)),
            )
            for k in range(K)
        )
        left = () if shown == n else (f"{n - shown} more columns are not shown.",)
        return Summary(
            f"{K} {'Gaussian' if K == 1 else 'Gaussians'} with {_adjective(self.covariance_type)} "
            f"covariances, from {self.size:,.0f} rows: weights, means ± standard deviations",
            ("component", "weight", *map(str, names[:shown])),
            rows,
            (*left, self.message),
        )

    def __repr__(self) -> str:
        K, n = self.means.shape
        return (
            f"GaussianMixtureSolution(n_components={K}, n_features={n}, "
            f"covariance_type={self.covariance_type!r}, residual={self.residual:.3g}, "
            f"status={self.status.value!r})"
        )


def _adjective(covariance_type: str) -> str:
    return "diagonal" if covariance_type == "diag" else covariance_type
