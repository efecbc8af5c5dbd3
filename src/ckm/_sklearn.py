"""Where the estimator meets scikit-learn: what its methods are given, as a source of rows that has
passed scikit-learn's checks or our own; and callbacks around the stages of a fit.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from ckm._sources import IN_MEMORY, ColumnRequest, Source, kind_of, open_rows, open_source
from ckm._sources.arrays import ArraySource
from ckm._sources.frames import as_frame, frame_rows
from ckm._sources.sparse import SparseSource
from ckm._util.arrays import Array
from ckm._util.device import DeviceRows, as_tensor, to_host
from ckm.errors import DataError, MismatchError

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # nothing to call
    _Method = TypeVar("_Method", bound=Callable[..., Any])

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """In place of scikit-learn's."""

    def with_callbacks(method: _Method) -> _Method:
        """The method as it is."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "OfFit",
    "Rows",
    "begin_fit",
    "opened_to_read_twice",
    "stage",
    "validated",
    "with_callbacks",
]


class OfFit:
    """A result that only `fit` leaves, as an attribute of the model; where there is none, a
    sentence says what to do instead.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> "OfFit":
        if model is None:
            return self
        if "_growing" not in vars(model):
            raise NotFittedError(f"This model has no {self._name} before fit; call that first.")
        raise AttributeError(f"This model has no {self._name}: {self._reason}.")


class Rows(NamedTuple):
    """The rows as a source, with their precision; their weights and whether they stay at hand; how
    many count, where that is known.
    """

    source: Source
    dtype: np.dtype
    weights: Array | None = None
    in_memory: bool = False

    @property
    def n_rows(self) -> int | None:
        """The number of rows whose weight is not zero."""
        return self.source.n_rows if self.weights is None else int(np.count_nonzero(self.weights))


def validated(model: Any, X: Any, sample_weight: Any, *, reset: bool, finite: bool = True) -> Rows:
    """Rows and weights, after scikit-learn's own checks of shape, type and names where they are in
    memory; and of finiteness, if asked.
    """
    kind = "source" if isinstance(X, Source) else kind_of(X)
    if kind not in IN_MEMORY:
        return _opened(model, X, sample_weight, reset)
    if kind == "tensors":
        return _on_card(model, X, sample_weight, reset)
    if kind == "frames":
        frame = as_frame(X)
        assert frame is not None
        rows = frame_rows(frame)
        validate_data(model, X, reset=reset, skip_check_array=True)
        rows = check_array(
            rows,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            estimator=model,
            input_name="X",
        )
    else:
        rows = validate_data(
            model,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            accept_sparse="csr",
        )
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
    names = tuple(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None
    source = (
        SparseSource(rows, names, weights)
        if kind == "sparse"
        else ArraySource(rows, names, weights)
    )
    if finite:
        _require_finite(rows, source)
    return Rows(source, rows.dtype, weights, True)


def _require_finite(rows: Any, source: Source) -> None:
    """scikit-learn looks fast for values that are not finite, but does not say where they are."""
    try:
        assert_all_finite(rows)
    except ValueError:
        for chunk in source.chunks():
            chunk.require_finite(source.columns)


def _opened(model: Any, X: Any, sample_weight: Any, reset: bool) -> Rows:
    """Rows that are not in memory; the columns that a model was fitted to are found by name, in any
    order.
    """
    names = (
        None if reset or not hasattr(model, "feature_names_in_") else tuple(model.feature_names_in_)
    )
    source = open_rows(X, ColumnRequest(like=names, made="this model"), sample_weight)
    if reset:
        model.n_features_in_ = source.n_features
        model.__dict__.pop("feature_names_in_", None)
        if source.columns is not None:
            model.feature_names_in_ = np.array(source.columns, dtype=object)
    elif source.n_features != model.n_features_in_:
        raise MismatchError(
            f"X has {source.n_features} columns where this model has {model.n_features_in_}; give the same columns."
        )
    return Rows(source, np.dtype(np.float64))


def _on_card(model: Any, X: Any, sample_weight: Any, reset: bool) -> Rows:
    """Rows on a card, which stay at hand there."""
    source, single = (
        _opened(model, X, sample_weight, reset).source,
        DeviceRows(as_tensor(X)).dtype == np.float32,
    )
    weights = None if sample_weight is None else np.asarray(to_host(sample_weight), np.float64)
    return Rows(source, np.dtype(np.float32 if single else np.float64), weights, True)


def opened_to_read_twice(X: Any) -> Any:
    """What is not in memory as an open source, known to be readable more than once."""
    source = X if isinstance(X, Source) or kind_of(X) in IN_MEMORY else open_source(X)
    if isinstance(source, Source) and not source.is_rereadable:
        raise DataError(
            "Labels of all rows take a second pass, and this data can be read once only; use fit, or write it to a file."
        )
    return source


_STAGES = 3


@contextmanager
def begin_fit(estimator: Any) -> Iterator[Any]:
    """Around a whole fit, inside a method `with_callbacks`: what its stages belong to, or None."""
    if not hasattr(estimator, "_init_callback_context"):
        yield None
        return
    context = estimator._init_callback_context(max_subtasks=_STAGES)
    context.call_on_fit_task_begin(estimator=estimator)
    yield context
    context.call_on_fit_task_end(estimator=estimator)


@contextmanager
def stage(context: Any, estimator: Any, name: str) -> Iterator[None]:
    """Around one stage: "sketch", "decode" or "label"."""
    if context is None:
        yield
        return
    inner = context.subcontext(task_name=name)
    inner.call_on_fit_task_begin(estimator=estimator)
    yield
    inner.call_on_fit_task_end(estimator=estimator)
