"""The state of a fit of a mixture: the sketch is kept as for k-means, what is found is another."""

from dataclasses import replace
from typing import Any

from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from ckm._analysis.components import check_covariance_type, recommended_size
from ckm._analysis.mixture_fit import (
    CELLS_PER_COMPONENT,
    check_components,
    check_reg_covar,
    fit_mixture,
    require_mixture_size,
    shape_of,
)
from ckm._analysis.mixture_pass import polish_components
from ckm._analysis.mixture_solution import GaussianMixtureSolution
from ckm._decoding.requirements import require_rows
from ckm._decoding.status import Status
from ckm._messages import Argument
from ckm._sketching.api import sketch
from ckm._sketching.options import SketchOptions, check_cells
from ckm._sklearn.fitting import SketchedEstimator
from ckm._sklearn.parameters import check_polish, require_rows_here
from ckm._sklearn.rows import ValidatedRows, validate_rows
from ckm._util.checks import check_whole_number
from ckm._util.device import resolve_device
from ckm._util.warn import warn_user
from ckm.errors import ClustersWarning, DataError, ParameterError


def validate_dense_rows(
    model: Any, X: Any, sample_weight: Any, *, reset: bool, require_finite: bool = True
) -> ValidatedRows:
    """Check rows and weights, and refuse sparse matrices."""
    if issparse(X):
        raise DataError(
            "Sparse input is not supported: covariances of columns that are mostly zero are not "
            "what a mixture is for. Give dense rows (X.toarray()), or reduce the columns first."
        )
    return validate_rows(model, X, sample_weight, reset=reset, require_finite=require_finite)


class SketchedMixture(SketchedEstimator):
    """Base of the estimator of mixtures."""

    n_components: int | str
    max_components: int
    covariance_type: str
    reg_covar: float

    _solution: Any
    _polished: Any

    @property
    def _mixture(self) -> GaussianMixtureSolution:
        """The polished mixture if there is one, else the one found in the sketch."""
        with self._lock:
            found: GaussianMixtureSolution = self._current_solution()  # type: ignore[assignment]
            polished: GaussianMixtureSolution | None = self.__dict__.get("_polished")
            return found if polished is None else polished

    def _sketch_rows(self, rows: ValidatedRows) -> None:
        progress = self.verbose > 0
        self._store(sketch(rows.source, progress=progress, **self._sketch_arguments(self.pool)))
        # Some sources know their number of rows only now.
        require_rows(self._sketch.count, least_components(self), name="n_components")

    def _sketch_arguments(self, pool: int) -> dict[str, Any]:
        """Return the arguments of `ckm.sketch` for a new sketch."""
        K = most_components(self)
        n = self.n_features_in_
        is_auto = isinstance(self.sketch_size, str)
        cells = CELLS_PER_COMPONENT * K if self.cells == "auto" else self.cells
        return {
            "n_clusters": K,
            "sketch_size": recommended_size(self.covariance_type, K, n)
            if is_auto
            else self.sketch_size,
            "scale": self.scale,
            "distribution": self.distribution,
            "standardize": self.standardize,
            # Covariances need all columns.
            "projection": None,
            "cells": cells,
            "pool": pool,
            "device": self.device,
            "n_jobs": self.n_jobs,
            "random_state": self._seed,
        }

    def _choose_starts(self, rows: ValidatedRows | None) -> None:
        """Leave it to `fit_mixture` where to start."""

    def _decode(self, rows_device: Any = None, *, warn: bool = True) -> None:
        """Find the mixture in the sketch; always on the CPU."""
        self._solution = fit_mixture(
            replace(self._current_sketch(), pool=self._pool),
            self.n_components,
            self.covariance_type,
            max_components=self.max_components,
            reg_covar=self.reg_covar,
            n_init=self.n_init,
            n_jobs=self.n_jobs,
            random_state=self._seed,
        )
        for finding in self._solution.findings:
            # `fit_mixture` itself warns of a sketch that is too small; passes over the rows are the
            # remedy for the last.
            is_polished = finding.status is Status.UNEXPLAINED and self.polish
            if warn and finding.status is not Status.SMALL_SKETCH and not is_polished:
                warn_user(finding.sentence, ClustersWarning)

    def _validate_for_use(self, X: Any, sample_weight: Any = None) -> ValidatedRows:
        """Check rows to be scored; scoring itself reports values that are not finite."""
        check_is_fitted(self)
        return validate_dense_rows(self, X, sample_weight, reset=False, require_finite=False)

    def _polish(self, rows: ValidatedRows) -> None:
        """Run the passes of EM over the rows; the solution stays as it was found."""
        passes = check_whole_number(self.polish, "polish", 0)
        found: GaussianMixtureSolution = self._current_solution()  # type: ignore[assignment]
        frequencies = self._current_sketch().frequencies
        shape = shape_of(self.covariance_type, self.reg_covar, frequencies)
        shape = replace(shape, floor=shape.floor * frequencies.step**2)
        polished = polish_components(
            found.components,
            rows.source,
            shape,
            passes,
            n_jobs=self.n_jobs,
            progress=self.verbose > 0,
        )
        self.n_iter_ = len(polished.log_likelihoods)
        if passes:
            self._polished = replace(found, components=polished.components, findings=())


def most_components(model: Any) -> int:
    """The number of components that a sketch is made for."""
    return int(model.max_components if model.n_components == "auto" else model.n_components)


def least_components(model: Any) -> int:
    """The number of components that there must be rows for."""
    return 1 if model.n_components == "auto" else int(model.n_components)


def check_mixture_parameters(model: Any, rows: ValidatedRows | None, sketch: Any = None) -> None:
    """Report, before the pass over the data, what fitting would report after it.

    `rows` are those that `fit` can read again; `partial_fit` has none, but may have a `sketch`
    whose frequencies are fixed.
    """
    check_components(model.n_components, model.max_components)
    K = most_components(model)
    check_whole_number(model.n_init, "n_init", 1)
    check_whole_number(model.pool, "pool", 0)
    check_covariance_type(model.covariance_type)
    check_reg_covar(model.reg_covar)
    check_cells(model.cells)
    check_polish(model.polish, rows is not None and rows.source.is_rereadable)
    resolve_device(model.device)
    n = model.n_features_in_
    m = recommended_size(model.covariance_type, K, n)
    if sketch is not None:
        m = sketch.frequencies.m
    elif not isinstance(model.sketch_size, str):
        m = check_whole_number(model.sketch_size, "sketch_size", 1)
    elif model.sketch_size != "auto":
        raise ParameterError(
            Argument("sketch_size"),
            f' must be "auto" or a whole number from 1 on; got {model.sketch_size!r}.',
        )
    cells = CELLS_PER_COMPONENT * K if isinstance(model.cells, str) else model.cells
    require_mixture_size(m, K, n, model.covariance_type, cells)
    SketchOptions(K, m, distribution=model.distribution, projection=None, cells=cells).check(n)
    if rows is None:
        return
    require_rows_here(rows, model.polish)
    if rows.n_rows is not None:
        require_rows(rows.n_rows, least_components(model), name="n_components")
