"""`CompressiveKMeans`: the method with scikit-learn's interface.

It holds parameters and results, no mathematics.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)

from ckm._core.defaults import DEFAULT_DISTRIBUTION, DEFAULT_MAX_CLUSTERS, DEFAULT_POOL
from ckm._core.preparation import categories_of
from ckm._core.sketch import Sketch
from ckm._decoding.numbering import as_centroids
from ckm._decoding.solution import Solution
from ckm._kmeans.lloyd import MAX_ITERATIONS
from ckm._sklearn.fitted_attribute import FittedAttribute
from ckm._sklearn.fitting import SketchedEstimator
from ckm._sklearn.parameters import check_parameters, check_polish, require_metric
from ckm._sklearn.rows import open_rereadable, validate_rows
from ckm._util.arrays import Array, FloatArray, read_only
from ckm._util.checks import EUCLIDEAN
from ckm._util.random import RandomState
from ckm.errors import ParameterError


class CompressiveKMeans(
    SketchedEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """K-means clustering from one pass over the data.

    `fit` computes a sketch of the data, m complex numbers for any number of rows, and decodes it to
    K centroids and weights: argmin over C, alpha of ‖z - sum_k alpha_k exp(-i Omega c_k)‖^2
    (equation 4 of Keriven, Tremblay, Traonmilin and Gribonval, 2017), extended to clusters that
    have a width.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        The number K of clusters. "auto" takes the number that `ckm.curve` suggests for the sketch;
        if that finds no clear number, `fit` raises `DataError`, and the model keeps its `sketch_`
        and `curve_`.
    max_clusters : int, default=20
        The largest number of clusters for `n_clusters="auto"`, which the sketch is made for.
    sketch_size : "auto" or int, default="auto"
        The number m of frequencies; "auto" is at most 5 * n_clusters * n_features. Where `fit` can
        sample the rows before its pass (arrays, files), the cells are chosen for these rows, and
        2 * n_clusters * n_features frequencies (at least 100) are enough to check them. Give a
        size if the sketch is to be used for more than this fit.
    scale : "auto" or float, default="auto"
        The variance that the frequencies are adapted to; "auto" estimates it from a sample of the
        rows.
    distribution : str, default="multiscale"
        The distribution of the frequencies: "multiscale", "structured" (much faster for data of
        many columns), "adapted-radius" (the paper's), "folded-gaussian" or "gaussian".
    standardize : bool or "robust", default=False
        Divide each column by its standard deviation, or by the interquartile range of a sample
        ("robust"). Distances, `inertia_` and `score` are then in these units; `cluster_centers_`
        stay in the units of the data.
    log : list of str, default=None
        Columns of a table that are replaced by their logarithms first, `sign(x) log(1 + |x|)`.
        `cluster_centers_` stay in the units of the data.
    categories : list of str or dict, default=None
        Columns of a table that are used too, coded as numbers: a column of zeros and ones per
        value, or with "frequency" in a dict the share of sampled rows with that value; a dict may
        give weights too, as in `ckm.sketch`. `n_features_in_` and `feature_names_in_` are those of
        the coded columns.
    columns : list of str, default=None
        The columns of a table to use; by default all of a data frame, which must be numbers, and
        all numeric ones of a file. `n_features_in_` counts those that are used.
    exclude : list of str, default=None
        The columns of a table that are not used.
    nan : {"error", "drop", "impute"}, default="error"
        What to do with missing values: raise an error, drop their rows (which have the label -1),
        or replace them by about the mean of their column.
    projection : "auto", int, array (d, n) or None, default="auto"
        Project rows of many columns to d numbers first, and draw frequencies for these: d axes in
        which a sample of the rows varies most ("auto": as many as k-means needs, for 64 columns
        and more and the default distribution; an int: so many), or the lines of a matrix. None
        leaves rows as they are. `cluster_centers_` have all
        columns.
    metric : {"euclidean", "cosine"}, default="euclidean"
        With "cosine", each row is divided by its length before anything else, in `fit` as in
        `predict`, `transform` and `score`, so that only directions count; nothing is copied but a
        block at a time. This is k-means of unit rows, not spherical k-means: `cluster_centers_`
        are means of unit rows, which are shorter than one, and `inertia_` is the SSE of unit rows.
        A row of zeros stays as it is: it counts, at the distance 1 from every unit row. Not for
        `standardize`.
    decoder : {"auto", "density", "clompr"}, default="auto"
        The decoding algorithm: "density" (also "auto") aims at a small SSE, "clompr" is Algorithm 1
        of the paper.
    init : str, array (n_clusters, n_features), Solution or callable, default="auto"
        Where the searches of the decoder start: "range" at random points in the range of the data,
        "sample" or "random" at sampled rows, "k++" or "k-means++" at sampled rows far from the
        centroids found so far; "auto" uses sampled rows if there are any. Centroids that are given,
        as an array or as an earlier solution, are where k-means on the recovered measure starts,
        and clusters are numbered as these: give those of yesterday, and clusters keep their
        numbers. A search replaces them only if its SSE is lower by 0.1 %. A callable takes
        ``(X, n_clusters, random_state)`` and returns such an array; it is called with the rows of
        `fit` or of the first `partial_fit`, which must be in memory.
    n_init : int or "auto", default=1
        The number of decodings from different starts, of which the best is kept; one if centroids
        are given. "auto" is 10 for `init="random"`, "sample" or a callable, else 1.
    max_iter : int, default=300
        The largest number of iterations of each run of k-means on the recovered measure, or on the
        rows themselves if the pool holds all of them.
    cells : "auto" or int, default="auto"
        The number of anchors around which rows are counted and summed in the same pass, by which
        centroids are placed; "auto" is 16 per cluster (48 from 500 clusters on), at least 160
        (none on a GPU without Triton), 0 decodes the frequencies alone.
    pool : int, default=1000
        The number of sampled rows that decoding may start from. `fit` discards them at its end;
        `partial_fit` keeps them between calls.
    polish : int, default=0
        After decoding, run at most this many passes of k-means (Lloyd's algorithm) over the rows,
        from the decoded centroids. Each pass reads every row once more and costs n_samples *
        n_clusters * n_features multiply-adds, as `predict` does. Only `fit` can polish, because
        `partial_fit` and `from_sketch` do not have the rows.
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}, default="auto"
        Where rows are sketched and the sketch is decoded. "auto" is where the rows are: on their
        GPU, else on the CPU. "cuda" is every GPU that torch finds, "cuda:1" that GPU alone. Rows
        that are elsewhere are copied there block by block. A GPU decodes only if there are many
        clusters, and may then find other centroids than the CPU, of about the same SSE. Rows are
        always labelled where they are.
    n_jobs : int, default=None
        The number of threads; None means one per core. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Determines the frequencies, the pool and the starts. None draws a new seed from NumPy's
        global state.
    verbose : int, default=0
        If positive, show a progress bar while sketching and polishing.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centroids, in descending order of their decoded weights (those of equal weight by their
        coordinates), or numbered as the ones that `init` gives.
    weights_ : array of shape (n_clusters,)
        The share of each cluster; they sum to one.
    solution_ : Solution
        The result of decoding, with its cost and findings. Polishing does not change it.
    curve_ : KCurve
        What `ckm.curve` says of every number of clusters, and why it suggests the one that was
        taken; only with `n_clusters="auto"`.
    sketch_ : Sketch
        The sketch, without sampled rows: it can be saved, merged and decoded again.
    labels_ : array of shape (n_samples,)
        The cluster of each row; only `fit` on data in memory sets it. For data on a GPU it is a
        tensor there, as are the results of `predict` and `transform`.
    inertia_ : float
        The SSE: the weighted sum of squared distances to the nearest centroid. Only `fit` sets it,
        on data in memory or with `polish`.
    n_iter_ : int
        The number of passes over the data: one for the sketch, and those of `polish` that were
        made; fewer than asked for if one moved no centroid. Only `fit` sets it.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : array of shape (n_features,)
        The names of the columns; only if the data names them.

    Examples
    --------
    >>> from ckm import CompressiveKMeans
    >>> from ckm.datasets import gaussian_mixture
    >>> X = gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> model = CompressiveKMeans(n_clusters=3, random_state=0).fit(X)
    >>> model.cluster_centers_.shape, model.predict(X[:5]).shape
    ((3, 2), (5,))
    """

    curve_: Any = FittedAttribute('it is there with n_clusters="auto"; ckm.curve makes one')
    labels_: Any = FittedAttribute("fit sets it for rows in memory; predict(rows) labels any rows")
    inertia_: Any = FittedAttribute("fit sets it for rows in memory; score(rows) is minus the SSE")
    n_iter_: Any = FittedAttribute("fit sets it, and nothing else polishes")

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        max_clusters: int = DEFAULT_MAX_CLUSTERS,
        sketch_size: int | str = "auto",
        scale: float | str = "auto",
        distribution: str = DEFAULT_DISTRIBUTION,
        standardize: bool | str = False,
        log: Sequence[str] | None = None,
        categories: Any = None,
        columns: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        nan: str = "error",
        projection: Any = "auto",
        metric: str = EUCLIDEAN,
        decoder: str = "auto",
        init: Any = "auto",
        n_init: int | str = 1,
        max_iter: int = MAX_ITERATIONS,
        cells: int | str = "auto",
        pool: int = DEFAULT_POOL,
        polish: int = 0,
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.sketch_size = sketch_size
        self.scale = scale
        self.distribution = distribution
        self.standardize = standardize
        self.log = log
        self.categories = categories
        self.columns = columns
        self.exclude = exclude
        self.nan = nan
        self.projection = projection
        self.metric = metric
        self.decoder = decoder
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.cells = cells
        self.pool = pool
        self.polish = polish
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_sketch(cls, sketch: Sketch, n_clusters: int | str = 8, **parameters: Any) -> Self:
        """Make a fitted model from a sketch alone.

        The model predicts and scores, and `partial_fit` adds rows to it, but it has no `labels_`.

        Parameters
        ----------
        sketch : Sketch
            A sketch made by `ckm.sketch`, read by `ckm.load`, or taken from another model.
        n_clusters : int or "auto", default=8
            The number K of clusters, or "auto" for the one that `ckm.curve` suggests.
        **parameters : dict
            Other parameters of `CompressiveKMeans`. `metric` is that of the sketch.

        Returns
        -------
        CompressiveKMeans
            The fitted model.

        Raises
        ------
        ParameterError
            If `sketch` is not a sketch, is too small for `n_clusters`, or has another metric than
            the one given.
        DataError
            If the sketch has fewer rows than `n_clusters`.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, random_state=0)
        >>> model = ckm.CompressiveKMeans.from_sketch(sketch, 3, random_state=0)
        >>> model.predict(X[:5]).shape
        (5,)
        """
        if not isinstance(sketch, Sketch):
            raise ParameterError(
                f"from_sketch takes a Sketch; got {type(sketch).__name__}. ckm.sketch makes one, "
                "and ckm.load reads one."
            )
        metric = sketch.frequencies.metric
        model = cls(n_clusters=n_clusters, **({"metric": metric} | parameters))
        require_metric(model.metric, metric)
        check_polish(model.polish, is_rereadable=False)
        model.n_features_in_ = sketch.frequencies.n_features
        if sketch.columns is not None:
            model.feature_names_in_ = np.array(sketch.columns, dtype=object)
        model._categories = categories_of(sketch.frequencies.preparation)
        model._start(sketch.frequencies.origin.dtype, None)
        model._store(sketch)
        model._decode()
        return model

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Sketch the rows of X, decode the sketch, and polish if requested.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or other data
            The rows; anything that `ckm.sketch` reads, such as the names of files. Data that is not
            in memory is read in bounded memory and not kept: the model then has no `labels_`, and
            `predict` reads the data again.
        y : None
            Ignored.
        sample_weight : array of shape (n_samples,), default=None
            A row of weight two counts as two equal rows: exactly so in the sketch, in the whole fit
            if all rows fit into the pool, and up to rounding in polish.

        Returns
        -------
        CompressiveKMeans
            The fitted model itself.

        Raises
        ------
        ParameterError
            If a parameter is invalid.
        DataError
            If the rows are not finite numbers, or fewer than `n_clusters`.
        """
        self._reset()
        rows = validate_rows(self, X, sample_weight, reset=True)
        check_parameters(self, rows)
        self._start(rows.dtype, rows)
        self._sketch_rows(rows)
        self._decode(rows.source.device, warn=False)
        self._pool = None
        self._polish_and_label(rows)
        self._warn_after_fit()
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model and return the cluster of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or other data
            The rows; anything that `ckm.sketch` reads and that can be read twice.
        y : None
            Ignored.
        sample_weight : array of shape (n_samples,), default=None
            The weights of the rows.

        Returns
        -------
        array of shape (n_samples,)
            The labels; see `predict` for data on a GPU or on a cluster of machines.
        """
        X = open_rereadable(self, X)
        self.fit(X, sample_weight=sample_weight)
        return self.labels_ if hasattr(self, "labels_") else self.predict(X)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add the rows of X to the sketch. Centroids are decoded when they are next used.

        The first 16 384 rows (or those added before centroids were first used) determine the
        frequencies, so they should resemble the rest, and a warning says so; starting with
        `from_sketch` avoids this. `fit` discards its pool, so batches after it are decoded without
        one. Several threads may add batches to one model. If an exception is raised, nothing of the
        batch was added.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or other data
            The rows of one batch; anything that `ckm.sketch` reads.
        y : None
            Ignored, as in `fit`.
        sample_weight : array of shape (n_samples,), default=None
            The weights of the rows of this batch.

        Returns
        -------
        CompressiveKMeans
            The model itself.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> model = ckm.CompressiveKMeans(3, random_state=0)
        >>> model.partial_fit(X[:1000]).partial_fit(X[1000:]).sketch_.count
        2000
        """
        with self._all_or_nothing():
            rows = validate_rows(self, X, sample_weight, reset=not self.__sklearn_is_fitted__())
            sketch = self.__dict__.get("_sketch")
            has_pool = self.pool > 0 if sketch is None else self._pool is not None
            check_parameters(self, None, sketch, has_pool)
            self._add_rows(rows)
        return self

    def predict(self, X: Any) -> Any:
        """Return the nearest centroid of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or other data
            The rows to label; anything that `ckm.sketch` reads, such as the names of files.

        Returns
        -------
        array of shape (n_samples,)
            The labels, from 0 to n_clusters - 1. For data on a GPU they are a tensor there. For
            data on a cluster of machines they are a collection there: a Dask array, or the rows
            with a column `cluster`.
        """
        rows = self._validate_for_use(X)
        policy = self._label_policy
        return self._centroids.label(rows.source, nan=policy, n_jobs=self.n_jobs)

    def transform(self, X: Any) -> Any:
        """Return the distance from each row to each centroid.

        Parameters
        ----------
        X : array, sparse matrix, data frame or other data of shape (n_samples, n_features)
            The rows to measure from; anything that `ckm.sketch` reads.

        Returns
        -------
        array of shape (n_samples, n_clusters)
            Euclidean distances, in the precision of X; a tensor for data on a GPU.
        """
        rows = self._validate_for_use(X)
        jobs = self.n_jobs
        distances: Array = self._centroids.distances(rows.source, n_jobs=jobs, dtype=rows.dtype)
        return distances

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the SSE (equation 1), so that larger is better.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or other data
            The rows to measure; anything that `ckm.sketch` reads.
        y : None
            Not used; scikit-learn passes it.
        sample_weight : array of shape (n_samples,), default=None
            The weight of each row in the sum.

        Returns
        -------
        float
            Minus the weighted sum of squared distances to the nearest centroid.
        """
        rows = self._validate_for_use(X, sample_weight)
        policy = self._label_policy
        return -self._centroids.sse(rows.source, nan=policy, n_jobs=self.n_jobs)

    @property
    def sketch_(self) -> Sketch:
        """The sketch of all rows so far, without sampled rows."""
        return self._current_sketch()

    @property
    def solution_(self) -> Solution:
        """The result of decoding; decoded now if rows were added since."""
        return self._current_solution()

    @property
    def cluster_centers_(self) -> Array:
        """The centroids, of shape (n_clusters, n_features), in the precision of the data.

        They can be replaced by others of the same shape, by which rows are then labelled.
        """
        return self._rounded_centroids()

    @cluster_centers_.setter
    def cluster_centers_(self, values: Any) -> None:
        with self._lock:
            centres, weights = self._centroids_and_weights
            given = as_centroids(values, "cluster_centers_")
            if given.shape != centres.shape:
                raise ParameterError(
                    f"cluster_centers_ has the shape {centres.shape}; got {given.shape}."
                )
            self._polished = (read_only(given, self._dtype), weights)

    @property
    def weights_(self) -> FloatArray:
        """The share of each cluster, of shape (n_clusters,); they sum to one."""
        return self._centroids_and_weights[1]

    @property
    def _n_features_out(self) -> int:
        return len(self.solution_.centroids)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags
