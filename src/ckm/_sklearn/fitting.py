"""The state of a fit and the steps that change it: sketch, decode, polish, label."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ckm._analysis.every_k import curve
from ckm._core.categories import Categories
from ckm._core.defaults import DEFAULT_POOL
from ckm._core.pool import Pool
from ckm._core.sketch import Sketch
from ckm._decoding.api import find_centroids, uses_cells, warn_of_findings
from ckm._decoding.requirements import require_rows
from ckm._decoding.settings import DEFAULT
from ckm._decoding.solution import Solution
from ckm._decoding.starts import FROM_ROWS
from ckm._decoding.status import Status
from ckm._kmeans.assign import Centroids
from ckm._kmeans.polish import polish_centroids
from ckm._messages import Argument
from ckm._sketching.screened_pass import sketch_screened
from ckm._sketching.screening import Screening, warn_of_certain_ids
from ckm._sketching.stream import Sketcher
from ckm._sklearn.parameters import AUTO, largest_clusters, least_clusters
from ckm._sklearn.rows import ValidatedRows, validate_rows
from ckm._sklearn.starts import choose_starts
from ckm._sources import Source
from ckm._sources.adapters import Imputed, WithoutMissing
from ckm._util.arrays import Array, FloatArray, read_only
from ckm._util.checks import check_whole_number
from ckm._util.device import to_host, use_gpu
from ckm._util.random import RandomState, seed_of, stream
from ckm._util.warn import warn_user
from ckm.errors import ClustersWarning, DataError

_log = logging.getLogger(__name__)

# What a fit leaves behind, and the part of it that further rows invalidate.
_STATE = ("_sketcher", "_base", "_pool", "_n_init", "_starts")
_RESULTS = ("_sketch", "_solution", "_polished", "curve_", "labels_", "inertia_", "n_iter_")
# The columns are those that the model was given, as in every estimator of scikit-learn.
_SCREENING = Screening(leaves_out=False, on_advice=warn_of_certain_ids)
# Findings of clusters that may have no rows.
_MISSING = (Status.MERGED, Status.STARVED)


class FewerClustersWarning(ClustersWarning, ConvergenceWarning):
    """Some clusters have no rows: our warning, and the one that scikit-learn's KMeans gives."""


class SketchedEstimator:
    """Base of the estimator: the state of a fit, and the steps that change it."""

    n_clusters: int | str
    max_clusters: int
    sketch_size: int | str
    scale: float | str
    distribution: str
    standardize: bool | str
    log: Any
    categories: Any
    columns: Any
    exclude: Any
    nan: str
    projection: Any
    metric: str
    decoder: str
    init: Any
    n_init: Any
    max_iter: int
    cells: int | str
    pool: int
    polish: int
    device: str
    n_jobs: int | None
    random_state: RandomState
    verbose: int
    n_features_in_: int
    curve_: Any
    labels_: Any
    inertia_: Any
    n_iter_: Any

    # How categories were coded.
    _categories: Categories
    # The sketch that batches are added to; None if all rows were sketched at once.
    _sketcher: Sketcher | None
    # The sketch before the first batch.
    _base: Sketch | None
    _sketch: Sketch
    _pool: Pool | None
    # The number of decodings, and the centroids that each starts from, if some are given.
    _n_init: int
    _starts: tuple[FloatArray, ...]
    _solution: Solution
    # Centroids and weights that replace those of the solution.
    _polished: tuple[Array, FloatArray]

    def __sklearn_is_fitted__(self) -> bool:
        return "_sketcher" in self.__dict__

    @property
    def _lock(self) -> Any:
        """The lock under which batches are added, and results are computed when first used.

        scikit-learn lets `__init__` set parameters only, so it is made here.
        """
        return self.__dict__.setdefault("_state_lock", RLock())

    def __getstate__(self) -> dict[str, Any]:
        # The order of these lines matters: the lock is made before the state is copied.
        with self._lock:
            inherited: Any = super().__getstate__()
            return {name: value for name, value in inherited.items() if name != "_state_lock"}

    def _current_sketch(self) -> Sketch:
        """Return the sketch of all rows so far, without sampled rows."""
        with self._lock:
            if "_sketch" not in self.__dict__:
                sketcher = self.__dict__.get("_sketcher")
                if sketcher is None:
                    raise AttributeError(
                        "This model has seen no rows yet; call fit or partial_fit, or begin with "
                        "from_sketch."
                    )
                new = sketcher.result()
                total = new if self._base is None else self._base + new
                self._pool = total.pool
                self._sketch = total.without_pool()
            return self._sketch

    def _current_solution(self) -> Solution:
        """Return what the decoder found in the sketch of all rows so far."""
        check_is_fitted(self)
        with self._lock:
            if "_solution" not in self.__dict__:
                self._decode()
            return self._solution

    @property
    def _centroids_and_weights(self) -> tuple[Array, FloatArray]:
        """The polished centroids and weights if there are any, else the decoded ones."""
        with self._lock:
            solution = self._current_solution()
            return self.__dict__.get("_polished") or (solution.centroids, solution.weights)

    @property
    def _centroids(self) -> Centroids:
        """The centroids that rows are labelled by: those that users see, in their precision."""
        with self._lock:
            return self._measured(self._rounded_centroids())

    def _measured(self, values: Array) -> Centroids:
        """Return centroids that are measured as the solution says."""
        solution = self._current_solution()
        return Centroids(
            values,
            solution.units,
            metric=solution.metric,
            preparation=solution.preparation,
        )

    def _rounded_centroids(self) -> Array:
        """Return the centroids in the precision of the data."""
        with self._lock:
            values = self._centroids_and_weights[0]
            return values if values.dtype == self._dtype else read_only(values, self._dtype)

    def _discard(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.__dict__.pop(name, None)

    def _reset(self) -> None:
        """Discard the previous fit, so that a fit that fails leaves no part of it."""
        self._discard(_STATE + _RESULTS)

    def _start(self, dtype: Any, rows: ValidatedRows | None = None) -> None:
        """Begin a fit in this precision; `rows` are those that it begins with, if it has them."""
        self._reset()
        # None draws from NumPy's global state, as everywhere in scikit-learn.
        random_state = check_random_state(None) if self.random_state is None else self.random_state
        self._seed = seed_of(random_state)
        self._dtype = dtype
        self._base = None
        self._choose_starts(rows)

    def _choose_starts(self, rows: ValidatedRows | None) -> None:
        """Decide how often to decode, and from which centroids."""
        self._n_init, self._starts = choose_starts(self, rows, self._seed)

    def _store(self, sketch: Sketch) -> None:
        """Keep a sketch of all rows, and its sampled rows apart from it."""
        self._sketcher = None
        self._pool = sketch.pool
        self._sketch = sketch.without_pool()

    def _sketch_rows(self, rows: ValidatedRows) -> None:
        """Sketch all rows at once."""
        # init="sample" and "k++" draw from as many rows as there are by default, if pool=0.
        needs_rows = isinstance(self.init, str) and self.init in FROM_ROWS
        pool = self.pool or (DEFAULT_POOL if needs_rows else 0)
        progress = self.verbose > 0
        arguments = self._sketch_arguments(pool)
        source = rows.source
        # The first rows of a stream may not be like the others, and a curve asks frequencies more.
        serves_one_fit = (
            source.is_rereadable and self.n_clusters != AUTO and uses_cells(self.decoder)
        )
        self._store(
            sketch_screened(
                source,
                _SCREENING,
                nan=rows.nan,
                progress=progress,
                serves_one_fit=serves_one_fit,
                **arguments,
            )
        )
        # Some sources know their number of rows only now.
        require_rows(self._sketch.count, least_clusters(self.n_clusters))

    def _add_rows(self, rows: ValidatedRows) -> None:
        """Add one batch to the sketch; what was found for fewer rows is discarded."""
        if not self.__sklearn_is_fitted__():
            self._start(rows.dtype, rows)
            self._sketcher = Sketcher(**self._sketch_arguments(self.pool), nan=rows.nan)
        elif self._sketcher is None:
            self._sketcher = self._continue_sketch(rows.nan)
        self._discard(_RESULTS)
        self._sketcher.update(rows.source)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Around a change of the model: if an exception is raised, nothing has changed."""
        with self._lock:
            before = dict(self.__dict__)
            try:
                yield
            except BaseException:
                self.__dict__ = before
                raise

    def _continue_sketch(self, nan: str) -> Sketcher:
        """Return a sketcher that adds to a sketch of all rows so far."""
        # A stream of its own: the pool must not repeat the draws of the one in the sketch.
        seed = int(stream(self._seed, "pool", self._current_sketch().count).integers(2**63))
        self._base = replace(self._current_sketch(), pool=self._pool)
        return Sketcher(
            like=self._base,
            pool=self.pool,
            device=self.device,
            n_jobs=self.n_jobs,
            random_state=seed,
            nan=nan,
        )

    def _sketch_arguments(self, pool: int) -> dict[str, Any]:
        """Return the arguments of `ckm.sketch` for a new sketch."""
        return {
            "n_clusters": largest_clusters(self.n_clusters, self.max_clusters),
            "sketch_size": None if self.sketch_size == "auto" else self.sketch_size,
            "scale": self.scale,
            "distribution": self.distribution,
            "standardize": self.standardize,
            "log": self.log,
            "projection": self.projection,
            "metric": self.metric,
            "cells": self.cells,
            "pool": pool,
            "device": self.device,
            "n_jobs": self.n_jobs,
            "random_state": self._seed,
        }

    def _decode(self, rows_device: Any = None, *, warn: bool = True) -> None:
        """Decode the sketch, on the CPU or on the GPU that the rows are on."""
        is_with_rows = self.device == "auto" and rows_device is not None
        whole = replace(self._current_sketch(), pool=self._pool)
        K = self._choose_clusters(whole)
        with use_gpu(rows_device):
            self._solution = find_centroids(
                whole,
                K,
                decoder=self.decoder,
                init=self.init if isinstance(self.init, str) else "auto",
                starts=self._starts,
                replicates=self._n_init,
                n_jobs=self.n_jobs,
                device=str(rows_device) if is_with_rows else self.device,
                random_state=self._seed,
                settings=replace(DEFAULT, placing_iterations=self.max_iter),
            )
        if warn:
            warn_of_findings(self._solution.findings)

    def _warn_after_fit(self) -> None:
        """Warn of what may be wrong with the centroids. Clusters without rows are counted, and
        said in scikit-learn's words, where the rows are labelled.
        """
        findings = self._solution.findings
        K = len(self._solution.weights)
        labels = self.__dict__.get("labels_")
        if labels is not None and any(finding.status in _MISSING for finding in findings):
            distinct = len(np.unique(to_host(labels)))
            if distinct < K:
                findings = tuple(each for each in findings if each.status not in _MISSING)
                warn_user(
                    f"Number of distinct clusters ({distinct}) found smaller than n_clusters "
                    f"({K}). Possibly due to duplicate points in X; ask for fewer.",
                    FewerClustersWarning,
                )
        warn_of_findings(findings)

    def _choose_clusters(self, whole: Sketch) -> int:
        """The number of clusters, chosen by the sketch if it is "auto"."""
        if not isinstance(self.n_clusters, str):
            return self.n_clusters
        largest = largest_clusters(self.n_clusters, self.max_clusters)
        found = curve(whole, largest, random_state=self._seed, n_jobs=self.n_jobs)
        self.curve_ = found
        if found.suggestion is None:
            raise DataError(
                f"{found.reason} Give ",
                Argument("n_clusters", ...),
                "; the model keeps its sketch_, which needs no further pass, and its curve_ shows "
                "what speaks for each number.",
            )
        _log.info("%d clusters: %s", found.suggestion, found.reason)
        return found.suggestion

    def _polish_and_label(self, rows: ValidatedRows) -> None:
        """Run the polish passes, then label rows in memory; the solution stays as decoded."""
        passes = check_whole_number(self.polish, "polish", 0)
        source = self._complete(rows.source)
        polished = polish_centroids(
            self._measured(self._current_solution().centroids),
            source,
            passes,
            n_jobs=self.n_jobs,
            progress=self.verbose > 0,
        )
        self.n_iter_ = 1 + len(polished.sse)
        # In the precision in which `predict` will use them.
        values = read_only(polished.centroids, self._dtype)
        centroids = self._measured(values)
        if rows.is_in_memory:
            # Rows with missing values keep their places.
            every = source.inside if isinstance(source, WithoutMissing) else source
            self.labels_, self.inertia_ = centroids.assign(
                every, nan=self._label_policy, n_jobs=self.n_jobs
            )
        if not passes:
            return
        mass: Array
        if rows.is_in_memory:
            labels = to_host(self.labels_)
            is_labelled = labels >= 0
            weights = None if rows.weights is None else rows.weights[is_labelled]
            mass = np.bincount(labels[is_labelled], weights, minlength=len(values))
        else:
            summary = centroids.summarise(source, n_jobs=self.n_jobs)
            mass = summary.mass
            self.inertia_ = float(summary.sse.sum())
        self._polished = (values, read_only(mass / mass.sum()))

    def _validate_for_use(self, X: Any, sample_weight: Any = None) -> ValidatedRows:
        """Check rows to be labelled; labelling itself reports values that are not finite."""
        check_is_fitted(self)
        rows = validate_rows(self, X, sample_weight, reset=False, require_finite=False)
        return rows._replace(source=self._complete(rows.source))

    def _complete(self, source: Source) -> Source:
        """The rows with their missing values filled in, if that is asked for."""
        if self.nan != "impute":
            return source
        return Imputed(source, self._current_sketch().frequencies.fill_values)

    @property
    def _label_policy(self) -> str:
        """What labels say of rows with missing values."""
        return "drop" if self.nan == "drop" else "error"


def centroids_and_fill(model: SketchedEstimator) -> tuple[Centroids, FloatArray | None]:
    """What labels rows, and what their missing values are replaced by, if they are."""
    centroids = replace(model._centroids, columns=model._current_solution().columns)
    if model.nan != "impute":
        return centroids, None
    return centroids, model._current_sketch().frequencies.fill_values
