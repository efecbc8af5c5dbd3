"""`CompressiveKMeans`: the method behind scikit-learn's interface. Holds parameters and results, no
mathematics.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ckm._core.laws import DEFAULT_DISTRIBUTION
from ckm._core.pool import Pool
from ckm._core.sketch import Sketch
from ckm._decoding.api import Solution, decode, require_rows, resolve_decoder
from ckm._decoding.diagnosis import Status
from ckm._decoding.starts import FROM_ROWS, require_init
from ckm._kmeans.assign import assign, distances, label_rows
from ckm._kmeans.centroids import Clusters
from ckm._kmeans.polish import polish
from ckm._sketching.api import sketch as make_sketch
from ckm._sketching.choose import resolve_size
from ckm._sketching.stream import Sketcher
from ckm._sklearn import (
    CallbackSupportMixin,
    OfFit,
    Rows,
    begin_fit,
    opened_to_read_twice,
    stage,
    validated,
    with_callbacks,
)
from ckm._sources import Source
from ckm._sources.adapters import in_units
from ckm._sources.engines.base import PartitionedSource
from ckm._util.arrays import Array, read_only
from ckm._util.checks import check_whole_number, require_enough_frequencies
from ckm._util.device import resolve_device, to_host, use_gpu
from ckm._util.parallel import thread_count
from ckm._util.progress import rows_bar
from ckm._util.random import seed_of, stream
from ckm._util.warn import warn_user
from ckm.errors import ClustersWarning, ParameterError

_ROWS_AT_HAND = 1000  # how many rows init="sample" and "k++" draw from when no pool is asked for


class CompressiveKMeans(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """K-means from one pass over the data (Keriven, Tremblay, Traonmilin, Gribonval, 2017).

    `fit` computes a sketch of the data, m complex numbers whatever the number of rows, and decodes
    it to K centroids: argmin over C, alpha of |z - sum_k alpha_k exp(-i Omega c_k)|^2 (equation 4),
    for clusters that have width.

    Parameters
    ----------
    n_clusters : int, default=8
        K.
    sketch_size : "auto" or int, default="auto"
        The number m of frequencies; "auto" is 5 * n_clusters * n_features.
    scale : "auto" or float, default="auto"
        The variance that frequencies are scaled to; "auto" estimates it from a sample of the rows.
    distribution : {"multiscale", "structured", "adapted-radius", "folded-gaussian", "gaussian"},
    default="multiscale"
        The law that frequencies are drawn from; "structured" is much faster for data of many
        columns, see `ckm.sketch`.
    standardize : bool, default=False
        Measure each column in units of its standard deviation, as a sample of the rows has it.
        Distances, `inertia_` and `score` are then in these units; `cluster_centers_` stay in the
        data's own.
    decoder : {"auto", "density", "clompr"}, default="auto"
        How centroids are recovered: "density" (also "auto") is made for a small SSE, "clompr" is
        Algorithm 1 of the paper.
    init : {"auto", "range", "sample", "k++"}, default="auto"
        Where the decoder's searches start, see `ckm.decode`.
    n_init : int, default=1
        How many times to decode from other starts; the best is kept.
    pool : int, default=1000
        How many sampled rows the decoder may start from. They are forgotten after `fit`;
        `partial_fit` keeps them between calls.
    polish : int, default=0
        After decoding, at most this many passes of k-means (Lloyd's algorithm) over the rows, from
        the decoded centroids. Each visits every row once more and costs N * n_clusters * n_features
        multiply-adds, as `predict` does: one pass is then no longer all it takes. Needs the rows,
        so `fit` only: `partial_fit` and `from_sketch` refuse it.
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}, default="auto"
        Where rows are sketched and the sketch is decoded. "auto" is where the rows are: on their
        GPU, else on the CPU. "cuda" is every GPU that torch finds, "cuda:1" that GPU alone; rows on
        the CPU are copied there block by block. "cpu" copies rows on a GPU to the CPU block by
        block. A device that is not there is an error. A GPU decodes if there are many clusters, and
        may then end in other centroids than the CPU would, of about the same SSE. Rows are always
        labelled where they are.
    n_jobs : int, default=None
        Threads; None means every core. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Decides frequencies, pool and starts. None draws a new seed from NumPy's global state (the
        command line's --seed is 0).
    verbose : int, default=0
        Show a progress bar while sketching and polishing when positive.

    Attributes
    ----------
    cluster_centers_ : array (n_clusters, n_features)
        After `partial_fit` they are decoded when first asked for.
    weights_ : array (n_clusters,)
        The share of each cluster; they sum to one. As decoded, or after polish the shares that
        `labels_` count.
    solution_ : Solution
        All the decoder has to say. It stays as decoded when centroids are polished.
    sketch_ : Sketch
        The sketch, without rows: save it, merge it, decode it again.
    labels_ : array (n_samples,)
        Each row's cluster (after `fit` only); of rows on a card a tensor there, as what `predict`
        and `transform` return.
    inertia_ : float
        Sum of squared distances to the nearest centroid, weighted (after `fit` only).
    n_iter_ : int
        Passes of polish made: fewer than `polish` when one moved no centroid (after `fit` only).
    n_features_in_ : int
    feature_names_in_ : array of str, only when the data names its columns

    Examples
    --------
    >>> from ckm import CompressiveKMeans
    >>> from ckm.datasets import gaussian_mixture
    >>> X = gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> model = CompressiveKMeans(n_clusters=3, random_state=0).fit(X)
    >>> model.cluster_centers_.shape, model.predict(X[:5]).shape
    ((3, 2), (5,))
    """

    _growing: Sketcher | None  # batches are added to it; None where all rows were sketched at once
    _base: Sketch | None  # what was there before the first batch
    _sketch: Sketch
    _pool: Pool | None
    _solution: Solution
    _polished: tuple[Array, Array]  # centroids and weights that take the place of the solution's

    labels_: Any = OfFit("fit leaves it for rows in memory; predict(rows) labels any")
    inertia_: Any = OfFit("fit leaves it for rows in memory; score(rows) is minus that of any")
    n_iter_: Any = OfFit("fit leaves it, and nothing else polishes")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        sketch_size: int | str = "auto",
        scale: float | str = "auto",
        distribution: str = DEFAULT_DISTRIBUTION,
        standardize: bool = False,
        decoder: str = "auto",
        init: str = "auto",
        n_init: int = 1,
        pool: int = 1000,
        polish: int = 0,
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.sketch_size = sketch_size
        self.scale = scale
        self.distribution = distribution
        self.standardize = standardize
        self.decoder = decoder
        self.init = init
        self.n_init = n_init
        self.pool = pool
        self.polish = polish
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_sketch(cls, sketch: Sketch, n_clusters: int = 8, **parameters: Any) -> Self:
        """A fitted model from a sketch alone: it predicts and scores, and `partial_fit` adds to it,
        but it has no `labels_`.
        """
        if not isinstance(sketch, Sketch):
            raise ParameterError(
                f"from_sketch takes a Sketch; got {type(sketch).__name__}. ckm.sketch makes one, and ckm.load reads one."
            )
        model = cls(n_clusters=n_clusters, **parameters)
        model._check_polish(at_hand=False)
        model._begin(sketch.frequencies.origin.dtype)
        model._hold(sketch)
        model.n_features_in_ = sketch.frequencies.n
        if sketch.columns is not None:
            model.feature_names_in_ = np.array(sketch.columns, dtype=object)
        model._decode()
        return model

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Sketch the rows of X and decode the sketch; then polish, where asked.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features); or anything else that
        `ckm.sketch` reads: files, a cluster's data
            What is not in memory is read in bounded memory and not kept: there are no `labels_`
            then; use `predict`, which reads it again.
        y : ignored
        sample_weight : array (n_samples,), optional
            A weight of two counts as a row given twice: exactly so for the sums of a sketch, and
            for the whole fit while the rows fit in the pool; polish adds rows up to rounding.
        """
        self._forget()
        rows = validated(self, X, sample_weight, reset=True)
        self._check_parameters(rows)
        self._begin(rows.dtype)
        with begin_fit(self) as stages:
            with stage(stages, self, "sketch"):
                pool = self.pool or (_ROWS_AT_HAND if self.init in FROM_ROWS else 0)
                self._hold(
                    make_sketch(
                        rows.source,
                        random_state=self._seed,
                        progress=self.verbose > 0,
                        **self._options(pool),
                    )
                )
            require_rows(self.sketch_.count, self.n_clusters)  # which some sources only know now
            with stage(stages, self, "decode"):
                self._decode(rows.source.device)
            self._pool = None  # the pool lives during the fit
            with stage(stages, self, "label"):
                self._polish(rows)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """`fit`, and the cluster of each row; what is not in memory is read once more for it."""
        X = opened_to_read_twice(X)
        self.fit(X, sample_weight=sample_weight)
        return self.labels_ if hasattr(self, "labels_") else self.predict(X)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add the rows of X to the sketch. Centroids are decoded when they are next asked for.

        The first 16 384 rows (or those that came before centroids were first asked for) decide the
        frequencies, so they should look like the rest, and a warning says so; or begin with
        `from_sketch`. After `fit`, whose pool is forgotten, further batches are decoded without
        one.
        """
        first = not hasattr(self, "_growing")
        rows = validated(self, X, sample_weight, reset=first)
        self._check_parameters(None)
        if first:
            self._begin(rows.dtype)
            self._growing = Sketcher(random_state=self._seed, **self._options(self.pool))
        # on top of what was fitted, or came from a sketch; its pool is drawn from a stream of its
        # own
        elif self._growing is None:
            seed = int(stream(self._seed, "pool", self.sketch_.count).integers(2**63))
            self._base = replace(self.sketch_, pool=self._pool)
            how: dict[str, Any] = {"pool": self.pool, "device": self.device, "n_jobs": self.n_jobs}
            self._growing = Sketcher(like=self._base, random_state=seed, **how)
        self._growing.update(rows.source)
        # they belonged to fewer rows
        for name in ("_sketch", "_solution", "_polished", "labels_", "inertia_", "n_iter_"):
            self.__dict__.pop(name, None)
        return self

    def predict(self, X: Any) -> Any:
        """The nearest centroid of each row; for a cluster's data one of its own: a dask array, or
        the rows with a column `cluster`.
        """
        rows = self._validated_for_use(X)
        return self._clusters().label(rows.source)

    def transform(self, X: Any) -> Array:
        """The distance from each row to each centroid."""
        rows, units = self._validated_for_use(X), self.sketch_.frequencies.units
        centroids = self.cluster_centers_ if units is None else self.cluster_centers_ / units
        return distances(
            self._measured(rows.source), centroids, thread_count(self.n_jobs), rows.dtype
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of squared distances to the nearest centroid (equation 1): larger is
        better.
        """
        rows = self._validated_for_use(X, sample_weight)
        return -self._clusters().sse(rows.source)

    @property
    def sketch_(self) -> Sketch:
        """The sketch of all rows so far, without those of a pool."""
        if "_sketch" not in self.__dict__:
            growing = self.__dict__.get("_growing")
            if growing is None:
                raise AttributeError(
                    "This model has seen no rows yet; call fit or partial_fit, or begin with from_sketch."
                )
            total = growing.result() if self._base is None else self._base + growing.result()
            self._pool, self._sketch = total.pool, total.without_pool()
        return self._sketch

    @property
    def solution_(self) -> Solution:
        """What the decoder found, decoded now if rows were added since."""
        check_is_fitted(self, "_growing")
        if "_solution" not in self.__dict__:
            self._decode()
        return self._solution

    @property
    def cluster_centers_(self) -> Array:
        """The centroids (n_clusters, n_features), in the precision of the data."""
        centroids = self._found[0]
        return centroids if centroids.dtype == self._dtype else read_only(centroids, self._dtype)

    @property
    def weights_(self) -> Array:
        """The share of each cluster; they sum to one."""
        return self._found[1]

    @property
    def _found(self) -> tuple[Array, Array]:
        """Centroids and weights: the polished ones, else the decoded ones."""
        solution = self.solution_
        return self.__dict__.get("_polished") or (solution.centroids, solution.weights)

    @property
    def _n_features_out(self) -> int:
        return len(self.solution_.centroids)

    def _forget(self) -> None:
        """Drop what was fitted before, so that a fit that fails leaves no half of an old one."""
        for name in (
            "_growing",
            "_base",
            "_sketch",
            "_pool",
            "_solution",
            "_polished",
            "labels_",
            "inertia_",
            "n_iter_",
        ):
            self.__dict__.pop(name, None)

    def _begin(self, dtype: Any) -> None:
        self._forget()
        # None draws from NumPy's global state, as everywhere in scikit-learn.
        random_state = check_random_state(None) if self.random_state is None else self.random_state
        self._seed, self._dtype, self._base = seed_of(random_state), dtype, None

    def _hold(self, sketch: Sketch) -> None:
        """Keep a new sketch, its rows apart from it, to be decoded when asked."""
        self._growing, self._pool, self._sketch = None, sketch.pool, sketch.without_pool()

    def _options(self, pool: int) -> dict[str, Any]:
        """How rows are sketched, unless an earlier sketch says so."""
        how: dict[str, Any] = {
            "pool": pool,
            "device": self.device,
            "n_jobs": self.n_jobs,
            "standardize": self.standardize,
        }
        return how | {
            "n_clusters": self.n_clusters,
            "sketch_size": self._size(),
            "scale": self.scale,
            "distribution": self.distribution,
        }

    def _measured(self, source: Source) -> Source:
        """The rows in the units that distances count in."""
        return in_units(source, self.sketch_.frequencies.units)

    def _clusters(self) -> Clusters:
        return Clusters(self.cluster_centers_, self.sketch_.frequencies.units, n_jobs=self.n_jobs)

    def _size(self) -> Any:
        return None if self.sketch_size == "auto" else self.sketch_size

    def _decode(self, device: Any = None) -> None:
        """On the CPU, or on the card that the rows are on."""
        sketch = self.sketch_
        search: dict[str, Any] = {
            "decoder": self.decoder,
            "init": self.init,
            "n_init": self.n_init,
            "n_jobs": self.n_jobs,
        }
        here = self.device == "auto" and device is not None
        search["device"] = str(device) if here else self.device
        with use_gpu(device):
            self._solution = decode(
                replace(sketch, pool=self._pool), self.n_clusters, random_state=self._seed, **search
            )
        for finding in self._solution.findings:
            if finding.status is not Status.SMALL_SKETCH:  # which `decode` has said
                warn_user(finding.sentence, ClustersWarning)

    def _polish(self, rows: Rows) -> None:
        """Pass over the rows as often as asked, then label those in memory; the solution stays what
        was decoded.
        """
        passes, threads, source = (
            check_whole_number(self.polish, "polish", 0),
            thread_count(self.n_jobs),
            self._measured(rows.source),
        )
        units = 1.0 if self.sketch_.frequencies.units is None else self.sketch_.frequencies.units
        total = None if source.n_rows is None else passes * source.n_rows
        with rows_bar("Polishing", total, enabled=self.verbose > 0 and passes > 0) as on_rows:
            moved = polish(
                source, self.solution_.centroids / units, passes, n_threads=threads, on_rows=on_rows
            )
        self.n_iter_ = len(moved.sse)
        centroids = read_only(moved.centroids * units, self._dtype)  # as `predict` will see them
        if rows.in_memory:
            self.labels_, self.inertia_ = assign(source, centroids / units, n_threads=threads)
        if passes:
            K, near = len(centroids), centroids / units
            mass = (
                np.bincount(to_host(self.labels_), rows.weights, minlength=K)
                if rows.in_memory
                else self._measure(source, near)
            )
            self._polished = centroids, read_only(mass / mass.sum())

    def _measure(self, source: Source, centroids: Array) -> Array:
        """The weight of each cluster, and on the way the SSE."""
        found = label_rows(source, centroids, n_threads=thread_count(self.n_jobs))
        self.inertia_ = float(found.sse.sum())
        return found.mass

    def _check_polish(self, *, at_hand: bool) -> None:
        if check_whole_number(self.polish, "polish", 0) and not at_hand:
            raise ParameterError(
                f"polish={self.polish} visits all rows again, and neither partial_fit nor from_sketch has them; set polish=0, or use fit."
            )

    def _check_parameters(self, rows: Rows | None) -> None:
        """Find out now what decoding would object to after the pass; `partial_fit` has no rows that
        stay at hand.
        """
        n_clusters = check_whole_number(self.n_clusters, "n_clusters", 1)
        check_whole_number(self.n_init, "n_init", 1)
        check_whole_number(self.pool, "pool", 0)
        self._check_polish(at_hand=rows is not None and rows.source.is_rereadable)
        resolve_size(n_clusters, self._size(), self.n_features_in_)
        resolve_decoder(self.decoder)
        resolve_device(self.device)
        so_far = self.__dict__.get("_sketch")
        require_init(
            self.init,
            has_rows=rows is not None
            or (self.pool > 0 if so_far is None else self._pool is not None),
        )
        if so_far is not None:
            require_enough_frequencies(so_far.frequencies.m, n_clusters, self.n_features_in_)
        if rows is not None and isinstance(rows.source, PartitionedSource) and self.polish:
            raise ParameterError(
                f"polish={self.polish} visits all rows again, and these stay with {rows.source.engine}; set polish=0."
            )
        if rows is not None and rows.n_rows is not None:
            require_rows(rows.n_rows, n_clusters)

    def _validated_for_use(self, X: Any, sample_weight: Any = None) -> Rows:
        """Rows to measure, which finds values that are not finite by itself."""
        check_is_fitted(self, "_growing")
        return validated(self, X, sample_weight, reset=False, finite=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags
