"""`CompressiveGaussianMixture`: mixtures of Gaussians with scikit-learn's interface.

It holds parameters and results, no mathematics.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin

from ckm._analysis.mixture_fit import DEFAULT_REG_COVAR
from ckm._analysis.mixture_model import STARTS
from ckm._analysis.mixture_pass import label_rows, score_rows, share_rows
from ckm._core.defaults import DEFAULT_DISTRIBUTION, DEFAULT_MAX_CLUSTERS
from ckm._core.sketch import Sketch
from ckm._sklearn.fitted_attribute import FittedAttribute
from ckm._sklearn.fitted_mixture import FittedMixture
from ckm._sklearn.mixture_state import check_mixture_parameters, validate_dense_rows
from ckm._sklearn.parameters import check_polish
from ckm._sklearn.rows import open_rereadable
from ckm._util.arrays import FloatArray, IntArray, LabelArray
from ckm._util.random import RandomState
from ckm.errors import ParameterError

# Rows that `fit` samples beside the sketch. Where the data is no mixture of K Gaussians they decide
# what shape components have: with 2000, real sets lost up to 0.2 nats per row, with 10 000 none
# lost 0.1 (benchmarks/mixtures.py).
_DEFAULT_POOL = 10_000


class CompressiveGaussianMixture(FittedMixture, DensityMixin, BaseEstimator):
    """Mixture of Gaussians from one pass over the data.

    `fit` computes a sketch of the data, m complex numbers and some cells for any number of rows,
    and finds in it K Gaussians whose characteristic function is the data's. Parameters, attributes
    and methods are those of scikit-learn's `GaussianMixture` where both have them.

    Parameters
    ----------
    n_components : int or "auto", default=1
        The number K of Gaussians. "auto" is the one that `ckm.curve` suggests, up to
        `max_components`; it is an error if there is no clear number.
    covariance_type : {"diag", "full", "tied", "spherical"}, default="diag"
        What their covariances look like: a variance for each column, a matrix for each Gaussian,
        one matrix for all, one variance for each. scikit-learn's default is "full", for which a
        sketch takes (n + 3) / 4 times as many frequencies as for "diag".
    max_components : int, default=20
        The largest number that "auto" may choose. The sketch is then made for as many.
    reg_covar : float, default=1e-6
        Added to the variances, in the data's squared units, so that none is zero.
    sketch_size : "auto" or int, default="auto"
        The number m of frequencies; "auto" is five for each number of the means and covariances:
        10 K n for "diag", 5 K (n + 1) for "spherical", 2.5 K n (n + 3) for "full".
    scale : "auto" or float, default="auto"
        The variance that the frequencies are adapted to; "auto" estimates it from a sample of the
        rows.
    distribution : str, default="multiscale"
        The distribution of the frequencies: "multiscale", "structured" (much faster for data of
        many columns), "adapted-radius", "folded-gaussian" or "gaussian".
    standardize : bool, default=False
        If True, columns are sketched in units of their standard deviations. Means, covariances
        and densities are in the data's own units all the same.
    cells : "auto" or int, default="auto"
        The number of anchors around which rows are counted and summed in the same pass; "auto" is
        32 per component, 0 fits to the frequencies alone.
    pool : int, default=10000
        The number of sampled rows that `fit` may use where no mixture of K Gaussians explains the
        sketch. Data of so few rows is fitted exactly, by expectation-maximisation on all of them.
        `fit` discards them at its end; `partial_fit` keeps them between calls.
    n_init : int, default=10
        The largest number of starts of expectation-maximisation on what was recovered from the
        sketch: it ends once four of them agree.
    polish : int, default=0
        After that, run at most this many passes of expectation-maximisation over the rows. Each
        pass reads every row once more. Only `fit` can polish, because `partial_fit` and
        `from_sketch` do not have the rows.
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}, default="auto"
        Where rows are sketched; "auto" is where they are. The rest is computed on the CPU.
    n_jobs : int, default=None
        The number of threads; None means one per core. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Determines the frequencies, the pool and the starts. None draws a new seed from NumPy's
        global state.
    verbose : int, default=0
        If positive, show a progress bar while sketching and polishing.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
        The share of each Gaussian; they sum to one.
    means_ : array of shape (n_components, n_features)
        Their means.
    covariances_ : array
        Their covariances: of shape (n_components, n_features, n_features) if full, (n_features,
        n_features) if tied, (n_components, n_features) if diagonal, (n_components,) if spherical.
    precisions_ : array
        The inverses of the covariances, in the same shape.
    n_components_ : int
        The number of Gaussians.
    solution_ : GaussianMixtureSolution
        What was found in the sketch, with its residual and findings. Polishing does not change it.
    sketch_ : Sketch
        The sketch, without sampled rows: it can be saved, merged and fitted again.
    n_iter_ : int
        The number of polish passes made; fewer than `polish` if one gained next to nothing. Only
        `fit` sets it.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : array of shape (n_features,)
        The names of the columns; only if the data names them.

    See Also
    --------
    fit_mixture : Finds a mixture in a sketch.
    CompressiveKMeans : K-means from one pass over the data.

    Examples
    --------
    >>> from ckm import CompressiveGaussianMixture
    >>> from ckm.datasets import gaussian_mixture
    >>> X = gaussian_mixture(5000, 3, 2, separation=20, random_state=1).rows
    >>> model = CompressiveGaussianMixture(n_components=3, random_state=0).fit(X)
    >>> model.means_.shape, model.covariances_.shape, model.predict(X[:5]).shape
    ((3, 2), (3, 2), (5,))
    """

    n_iter_: Any = FittedAttribute("fit sets it, and nothing else polishes")

    def __init__(
        self,
        n_components: int | str = 1,
        *,
        covariance_type: str = "diag",
        max_components: int = DEFAULT_MAX_CLUSTERS,
        reg_covar: float = DEFAULT_REG_COVAR,
        sketch_size: int | str = "auto",
        scale: float | str = "auto",
        distribution: str = DEFAULT_DISTRIBUTION,
        standardize: bool = False,
        cells: int | str = "auto",
        pool: int = _DEFAULT_POOL,
        n_init: int = STARTS,
        polish: int = 0,
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.max_components = max_components
        self.reg_covar = reg_covar
        self.sketch_size = sketch_size
        self.scale = scale
        self.distribution = distribution
        self.standardize = standardize
        self.cells = cells
        self.pool = pool
        self.n_init = n_init
        self.polish = polish
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_sketch(cls, sketch: Sketch, n_components: int | str = 1, **parameters: Any) -> Self:
        """Make a fitted model from a sketch alone.

        Parameters
        ----------
        sketch : Sketch
            A sketch made by `ckm.sketch`, read by `ckm.load`, or taken from another model.
        n_components : int or "auto", default=1
            The number K of Gaussians.
        **parameters : dict
            Other parameters of `CompressiveGaussianMixture`.

        Returns
        -------
        CompressiveGaussianMixture
            The fitted model.

        Raises
        ------
        ParameterError
            If `sketch` is not a sketch, is too small for such a mixture, or is of rows that were
            projected or divided by their lengths.
        DataError
            If the sketch has fewer rows than `n_components`.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(5000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
        >>> model = ckm.CompressiveGaussianMixture.from_sketch(sketch, 3, random_state=0)
        >>> model.predict(X[:5]).shape
        (5,)
        """
        if not isinstance(sketch, Sketch):
            raise ParameterError(
                f"from_sketch takes a Sketch; got {type(sketch).__name__}. ckm.sketch makes one, "
                "and ckm.load reads one."
            )
        preparation = sketch.frequencies.preparation
        if preparation is not None and preparation.changes_rows:
            raise ParameterError(
                "The columns of this sketch are prepared (logarithms, weighted categories), which "
                "this model would not do to further rows; use ckm.fit_mixture."
            )
        model = cls(n_components=n_components, **parameters)
        check_polish(model.polish, is_rereadable=False)
        model._start(sketch.frequencies.origin.dtype)
        model._store(sketch)
        model.n_features_in_ = sketch.frequencies.n_features
        if sketch.columns is not None:
            model.feature_names_in_ = np.array(sketch.columns, dtype=object)
        model._decode()
        return model

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Sketch the rows of X, find the mixture in the sketch, and polish if requested.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or other data
            The rows; anything that `ckm.sketch` reads, such as the names of files. Data that is not
            in memory is read in bounded memory and not kept.
        y : None
            Ignored.
        sample_weight : array of shape (n_samples,), default=None
            A row of weight two counts as two equal rows.

        Returns
        -------
        CompressiveGaussianMixture
            The fitted model itself.

        Raises
        ------
        ParameterError
            If a parameter is invalid.
        DataError
            If the rows are not finite numbers, or fewer than `n_components`.
        """
        self._reset()
        rows = validate_dense_rows(self, X, sample_weight, reset=True)
        check_mixture_parameters(self, rows)
        self._start(rows.dtype)
        self._sketch_rows(rows)
        self._decode()
        self._pool = None
        self._polish(rows)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> LabelArray:
        """Fit the model and return the most probable component of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or other data
            The rows; anything that `ckm.sketch` reads and that can be read twice.
        y : None
            Ignored.
        sample_weight : array of shape (n_samples,), default=None
            The weights of the rows.

        Returns
        -------
        array of shape (n_samples,)
            The labels.
        """
        X = open_rereadable(self, X)
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add the rows of X to the sketch. The mixture is fitted when it is next used.

        The first 16 384 rows (or those added before it was first used) determine the frequencies,
        so they should resemble the rest; starting with `from_sketch` avoids this. If an exception
        is raised, nothing of the batch was added.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or other data
            The rows of one batch; anything that `ckm.sketch` reads.
        y : None
            Ignored, as in `fit`.
        sample_weight : array of shape (n_samples,), default=None
            The weights of the rows of this batch.

        Returns
        -------
        CompressiveGaussianMixture
            The model itself.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> model = ckm.CompressiveGaussianMixture(3, random_state=0)
        >>> model.partial_fit(X[:1000]).partial_fit(X[1000:]).sketch_.count
        2000
        """
        with self._all_or_nothing():
            rows = validate_dense_rows(
                self, X, sample_weight, reset=not self.__sklearn_is_fitted__()
            )
            check_mixture_parameters(self, None, self.__dict__.get("_sketch"))
            self._add_rows(rows)
        return self

    def predict(self, X: Any) -> LabelArray:
        """Return the most probable component of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or other data
            The rows; anything that `ckm.sketch` reads, such as the names of files.

        Returns
        -------
        array of shape (n_samples,)
            Labels from 0 to n_components - 1.
        """
        rows = self._validate_for_use(X)
        return label_rows(self._mixture.components, rows.source, self.n_jobs)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each component for each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or other data
            The rows; anything that `ckm.sketch` reads.

        Returns
        -------
        array of shape (n_samples, n_components)
            Probabilities, which sum to one for each row.
        """
        rows = self._validate_for_use(X)
        return share_rows(self._mixture.components, rows.source, self.n_jobs)

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log density of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or other data
            The rows; anything that `ckm.sketch` reads.

        Returns
        -------
        array of shape (n_samples,)
            Log densities, in the data's own units.
        """
        rows = self._validate_for_use(X)
        return score_rows(self._mixture.components, rows.source, self.n_jobs)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log density of the rows, so that larger is better.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), or other data
            The rows; anything that `ckm.sketch` reads.
        y : None
            Not used; scikit-learn passes it.
        sample_weight : array of shape (n_samples,), default=None
            The weight of each row in the mean.

        Returns
        -------
        float
            The log likelihood per row.
        """
        total, weight = self._likelihood(X, sample_weight)
        return total / weight

    def sample(self, n_samples: int = 1) -> tuple[FloatArray, IntArray]:
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            The number of rows.

        Returns
        -------
        tuple of array of shape (n_samples, n_features) and array of shape (n_samples,)
            The rows, and the component that each was drawn from.
        """
        return self._mixture.sample(n_samples, random_state=self.random_state)
