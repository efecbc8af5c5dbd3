"""The input of the estimator's methods, checked and opened as a source of rows."""

from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_array, validate_data

from ckm._core.categories import as_categories
from ckm._messages import Argument
from ckm._sources import IN_MEMORY, ColumnRequest, Source, kind_of, open_rows, open_source
from ckm._sources.arrays import ArraySource, as_array
from ckm._sources.column_checks import require_order
from ckm._sources.column_request import ColumnChoice, is_count, listed
from ckm._sources.frames import as_frame, frame_rows, require_numeric
from ckm._sources.opening import checked_sample_weight
from ckm._sources.sparse import SparseSource
from ckm._util.arrays import FloatArray, float_type
from ckm._util.checks import refuse_masked
from ckm._util.device import DeviceRows, as_tensor, is_tensor, to_host
from ckm.errors import DataError, MismatchError


class ValidatedRows(NamedTuple):
    """Rows that have passed the checks.

    Parameters
    ----------
    source : Source
    dtype : dtype
        The precision of the rows: float32 or float64.
    weights : array (n_samples,), optional
        The weights of rows in memory.
    is_in_memory : bool
    nan : str
        What is still to be done with missing values: "impute", or nothing.
    """

    source: Source
    dtype: np.dtype
    weights: FloatArray | None = None
    is_in_memory: bool = False
    nan: str = "error"

    @property
    def n_rows(self) -> int | None:
        """The number of rows whose weight is not zero; None where it is not known."""
        if self.weights is None:
            return self.source.n_rows
        return int(np.count_nonzero(self.weights))


def validate_rows(
    model: Any, X: Any, sample_weight: Any, *, reset: bool, require_finite: bool = True
) -> ValidatedRows:
    """Check rows and weights.

    Rows in memory pass scikit-learn's own checks of shape, type and names, and of finite values if
    `require_finite`; other rows are checked while they are read.
    """
    kind = "source" if isinstance(X, Source) else kind_of(X)
    refuse_masked(sample_weight, Argument("sample_weight"))
    if reset:
        model._columns = ()
        model._categories = ()
    if kind not in IN_MEMORY:
        return _open(model, X, sample_weight, reset)
    if kind in ("arrays", "frames") and _has_choices(model):
        return _open_chosen(model, X, sample_weight, reset)
    if kind == "tensors":
        return _open_tensor(model, X, sample_weight, reset)
    if kind == "arrays":
        refuse_masked(X, "The array")
    rows = _validate_array(model, X, kind, reset)
    weights = None
    if sample_weight is not None:
        N = rows.shape[0]
        is_single = isinstance(sample_weight, Number)
        weights = checked_sample_weight([sample_weight] * N if is_single else sample_weight, N)
        if N and not weights.any():
            raise DataError(
                Argument("sample_weight"),
                " is zero for every row, so there is nothing to cluster; check the weights.",
            )
    names = fitted_columns(model) or None
    make_source = SparseSource if kind == "sparse" else ArraySource
    source = make_source(rows, names, weights)
    if require_finite:
        _require_finite(rows, source)
    return ValidatedRows(source, float_type(rows.dtype), weights, True)


def _validate_array(model: Any, X: Any, kind: str, reset: bool) -> Any:
    """Return an array, sparse matrix or data frame as a float array or sparse matrix."""
    # Half precision stays as it is, without a copy.
    types = [np.float64, np.float32, np.float16]
    checks: dict[str, Any] = {"dtype": types, "ensure_all_finite": False}
    if is_tensor(X):
        X = as_array(X)
    if kind != "frames":
        return validate_data(model, X, reset=reset, accept_sparse="csr", **checks)
    frame = as_frame(X)
    assert frame is not None
    rows = frame_rows(frame)
    if reset or not _has_names_of_fit(model, frame):
        validate_data(model, X, reset=reset, skip_check_array=True)
    if reset:
        model._columns = ColumnChoice(frame.columns, None).columns or ()
    return check_array(rows, estimator=model, input_name="X", **checks)


def fitted_columns(model: Any) -> tuple[str, ...]:
    """The names of the columns that the model was fitted to, none if they had no names.

    scikit-learn's `feature_names_in_` has only names that are text, ours have those of a data frame
    with integers too.
    """
    if hasattr(model, "feature_names_in_"):
        return tuple(model.feature_names_in_)
    columns: tuple[str, ...] = getattr(model, "_columns", ())
    return columns


def _has_names_of_fit(model: Any, frame: Any) -> bool:
    """Whether a frame has the names of fit, in that order, where not all of them are text.

    False if scikit-learn is to compare them. Names in another order are an error, as there.
    """
    is_text = all(isinstance(name, str) for name in frame.columns)
    if is_text and hasattr(model, "feature_names_in_"):
        return False
    found = tuple(map(str, frame.columns))
    fitted = fitted_columns(model)
    if not fitted:
        require_order(found, "this model", "X")
        return False
    # Names that only count the columns are no names, unless the model has those.
    if is_count(frame.columns) and set(found) != set(fitted):
        return False
    if found != fitted:
        raise MismatchError(
            f"X has the columns {listed(found)} where this model was fitted to {listed(fitted)}; "
            "give the same columns in the same order."
        )
    return True


def _require_finite(rows: Any, source: Source) -> None:
    """Refuse values that are not finite. scikit-learn finds fast that there are some, but not where
    they are.
    """
    try:
        assert_all_finite(rows)
    except ValueError:
        for chunk in source.chunks():
            chunk.require_finite(source.columns)


def _open(model: Any, X: Any, sample_weight: Any, reset: bool) -> ValidatedRows:
    """Open rows that are not in memory. The columns that the model was fitted to are found by name,
    in any order.
    """
    nan = getattr(model, "nan", "error")
    request = ColumnRequest(
        getattr(model, "columns", None),
        exclude=getattr(model, "exclude", None),
        categories=as_categories(getattr(model, "categories", None)),
    )
    if not reset:
        request = ColumnRequest(
            like=fitted_columns(model),
            like_name="this model",
            categories=getattr(model, "_categories", ()),
            like_features=model.n_features_in_,
        )
    # Labels of rows with missing values keep their places.
    drops = "drop" if reset and nan == "drop" else "error"
    source = open_rows(X, request, sample_weight, drops)
    if reset:
        model._categories = source.categories
        model.n_features_in_ = source.n_features
        model.__dict__.pop("feature_names_in_", None)
        if source.columns is not None:
            model.feature_names_in_ = np.array(source.columns, dtype=object)
    elif source.n_features != model.n_features_in_:
        raise MismatchError(
            f"X has {source.n_features} columns where this model has {model.n_features_in_}; give "
            "the same columns."
        )
    imputes = "impute" if nan == "impute" else "error"
    return ValidatedRows(source, np.dtype(np.float64), nan=imputes)


def _has_choices(model: Any) -> bool:
    """Whether a model chooses columns, codes some, or does anything with missing values."""
    is_coded = bool(getattr(model, "_categories", ()))
    return is_coded or _names_columns(model) or getattr(model, "nan", "error") != "error"


def _names_columns(model: Any) -> bool:
    """Whether a model is told which columns to use."""
    asked = [getattr(model, name, None) for name in ("columns", "exclude", "categories")]
    return any(names is not None for names in asked)


def _open_chosen(model: Any, X: Any, sample_weight: Any, reset: bool) -> ValidatedRows:
    """Open rows in memory whose columns are chosen, or of which values may be missing."""
    refuse_masked(X, "The array")
    frame = as_frame(X)
    if frame is not None and reset and not _names_columns(model):
        require_numeric(frame)
    opened = _open(model, as_array(X) if is_tensor(X) else X, sample_weight, reset)
    weights = None
    if sample_weight is not None:
        weights = checked_sample_weight(sample_weight, opened.source.n_rows)
    return opened._replace(weights=weights, is_in_memory=True)


def _open_tensor(model: Any, X: Any, sample_weight: Any, reset: bool) -> ValidatedRows:
    """Open rows on a GPU, which stay there."""
    source = _open(model, X, sample_weight, reset).source
    is_single = DeviceRows(as_tensor(X)).dtype == np.float32
    dtype = np.dtype(np.float32 if is_single else np.float64)
    weights = None if sample_weight is None else np.asarray(to_host(sample_weight), np.float64)
    return ValidatedRows(source, dtype, weights, True)


def open_rereadable(model: Any, X: Any) -> Any:
    """Open data that is not in memory, and refuse it if it can be read only once. It is opened
    again, if the model has columns to choose.
    """
    source = X if isinstance(X, Source) or kind_of(X) in IN_MEMORY else open_source(X)
    if isinstance(source, Source) and not source.is_rereadable:
        raise DataError(
            "Labels of all rows take a second pass, and this data can be read once only; use fit, "
            "or write it to a file."
        )
    return X if _has_choices(model) else source
