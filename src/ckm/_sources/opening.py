"""Open any data as a `Source`: which module reads which kind of data, weights, missing values."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from ckm._messages import Argument, Message
from ckm._sources.adapters import Weighted, WithoutMissing
from ckm._sources.base import Source
from ckm._sources.category_columns import code_categories, numbers_of, refuse_categories
from ckm._sources.column_checks import checked_weights
from ckm._sources.column_request import ColumnRequest
from ckm._sources.engines.base import PartitionedSource
from ckm._sources.paths import import_reader
from ckm._sources.settings import DEFAULT_SETTINGS, ReadSettings
from ckm._sources.sparse import is_sparse
from ckm._sources.user_cap import UserCapped
from ckm._util.arrays import FloatArray
from ckm._util.checks import check_nan_of_sketch, refuse_masked
from ckm._util.device import is_on_gpu, to_host
from ckm.errors import DataError, ParameterError

# The module that opens an object, by the top package and the name of its class: nothing needs to
# be imported to find out.
_MODULES_BY_CLASS = {
    ("polars", "LazyFrame"): "queries",
    ("duckdb", "DuckDBPyRelation"): "queries",
    ("_duckdb", "DuckDBPyRelation"): "queries",
    ("h5py", "Dataset"): "hdf5",
    ("zarr", "Array"): "zarr",
    ("pyarrow", "RecordBatch"): "arrow",
    ("pyarrow", "RecordBatchReader"): "arrow",
    ("pyarrow", "Dataset"): "arrow",
    ("pyarrow", "Scanner"): "arrow",
    ("pyarrow", "ParquetFile"): "arrow",
    # The readers of pandas iterate over data frames.
    ("pandas", "TextFileReader"): "batches",
    ("pandas", "JsonReader"): "batches",
    ("dask", "Array"): "engines.dask",
    ("dask", "DataFrame"): "engines.dask",
    ("dask", "Bag"): "engines.dask",
    ("ray", "Dataset"): "engines.ray",
    ("pyspark", "DataFrame"): "engines.spark",
}
# Objects of this library that are not rows, and what to do with them instead.
_ADVICE_BY_CLASS = {
    "Sketch": (
        "ckm.decode finds its centroids, and CompressiveKMeans.from_sketch makes a model of it"
    ),
    "Sketcher": "its result() is a sketch, in which ckm.decode finds centroids",
    "Solution": "its centroids are rows",
    "Frequencies": Message("give them as ", Argument("like", ...)),
}
IN_MEMORY = ("arrays", "frames", "sparse", "tensors")
ALL_COLUMNS = ColumnRequest()


def open_source(
    data: Any,
    request: ColumnRequest = ALL_COLUMNS,
    settings: ReadSettings = DEFAULT_SETTINGS,
) -> Source:
    """Open data of any kind: an array, a data frame, file names, a query, a stream, batches.

    Parameters
    ----------
    data : object
        Anything that `ckm.sketch` accepts as data, or a `Source`, which is returned as it is.
    request : ColumnRequest
        The columns to read. By default all that hold numbers.
    settings : ReadSettings
        How much is read at a time. Workers of an engine read with the default settings.

    Returns
    -------
    Source

    Raises
    ------
    DataError
        If `data` holds no rows of numbers.
    ParameterError
        If the columns asked for do not exist, or cannot be chosen any more.

    Examples
    --------
    >>> source = open_source([[1.0, 2.0], [3.0, 4.0]])
    >>> source.n_rows, source.n_features
    (2, 2)
    """
    if isinstance(data, Source):
        asked = (request.columns, request.weight, request.user, request.exclude)
        is_coded = request.categories not in ((), data.categories)
        if is_coded or any(part is not None for part in asked):
            raise ParameterError(
                "The columns of a source are chosen when it is opened; leave out ",
                Argument("columns", ...),
                " and ",
                Argument("weight_column", ...),
                ".",
            )
        return data
    levels = numbers_of(request.categories)
    request = request._replace(levels=levels)
    source: Source = import_reader(kind_of(data)).open_data(data, request, settings)
    if not request.categories:
        return source
    if isinstance(source, PartitionedSource):
        refuse_categories(request.categories, source.engine)
    return code_categories(source, request.categories, levels, request.user is not None)


def open_rows(
    data: Any,
    request: ColumnRequest = ALL_COLUMNS,
    sample_weight: Any = None,
    nan: str = "error",
) -> Source:
    """Open data with weights given beside the rows, and without incomplete rows if asked.

    Parameters
    ----------
    data : object
        See `open_source`.
    request : ColumnRequest
        The columns to read.
    sample_weight : array-like of shape (N,), optional
        A weight for each row. Data of an engine takes its weights from a column only.
    nan : {"error", "drop", "impute"}
        "drop" leaves out rows with missing values; "error" keeps them, for the kernels to refuse,
        and "impute" for `ckm.sketch` to fill in.

    Returns
    -------
    Source
    """
    check_nan_of_sketch(nan)
    source = open_source(data, request)
    if isinstance(source, PartitionedSource):
        if request.user is not None:
            raise ParameterError(
                Argument("max_rows_per_user", request.user.max_rows),
                " needs one pass that counts the rows of each user in order, and the workers of "
                f"{source.engine} read their partitions apart; read the files here instead, "
                "without an engine.",
            )
        return _open_partitions(source, sample_weight, nan)
    if sample_weight is not None:
        if request.weight is not None:
            raise ParameterError(
                Argument("weight_column", request.weight),
                " and ",
                Argument("sample_weight", ...),
                " are both given; leave one out.",
            )
        source = Weighted(source, checked_sample_weight(sample_weight, source.n_rows))
    source = WithoutMissing(source) if nan == "drop" else source
    return source if request.user is None else UserCapped(source, request.user.max_rows)


def kind_of(data: Any) -> str:
    """Name the module of this package that opens `data`."""
    name = type(data).__name__
    for base in type(data).__mro__:
        kind = _MODULES_BY_CLASS.get((base.__module__.split(".")[0], base.__name__))
        if kind is not None:
            return kind
    if type(data).__module__.startswith("ckm.") and name in _ADVICE_BY_CLASS:
        advice = _ADVICE_BY_CLASS[name]
        raise DataError(f"Got a {name} where rows are expected: ", advice, ".")
    if isinstance(data, (str, PathLike)) or _are_paths(data):
        return "paths"
    if isinstance(data, np.ndarray):
        return "arrays"
    if is_on_gpu(data):
        return "tensors"
    if is_sparse(data):
        return "sparse"
    if isinstance(data, (dict, set, bytes)):
        raise DataError(
            f"Got a {name} where rows are expected; pass an array (rows, columns), a data frame, "
            f"or a file name."
        )
    if isinstance(data, (list, tuple)):
        return "batches" if data and _is_table(data[0]) else "arrays"
    return _kind_by_methods(data)


def _kind_by_methods(data: Any) -> str:
    """Name the module for an object that is recognised by the methods it has."""
    from ckm._sources.frames import as_frame

    if as_frame(data) is not None:
        return "frames"
    # A series, perhaps: opened as an array it is refused for its shape.
    if hasattr(data, "__array__") and len(getattr(data, "shape", ())) != 2:
        return "arrays"
    if hasattr(data, "__arrow_c_stream__"):
        return "arrow"
    if hasattr(data, "fetchmany") and hasattr(data, "description"):
        return "queries"
    if hasattr(data, "read"):
        return "stdin"
    if hasattr(data, "__array__"):
        return "arrays"
    return "batches" if callable(data) or isinstance(data, Iterable) else "arrays"


def _are_paths(data: Any) -> bool:
    """Whether `data` is a sequence of file names."""
    return (
        isinstance(data, Sequence)
        and bool(data)
        and all(isinstance(item, (str, PathLike)) for item in data)
    )


def _is_table(item: Any) -> bool:
    """Whether an item of a list is a batch of rows rather than one row."""
    return len(getattr(item, "shape", ())) == 2


def _open_partitions(source: PartitionedSource, sample_weight: Any, nan: str) -> PartitionedSource:
    """Apply weights and `nan` to data that stays with an engine."""
    if sample_weight is not None:
        raise ParameterError(
            Argument("sample_weight", ...),
            f" is an array of this process, and these rows are with {source.engine}; keep weights"
            f" in a column, for ",
            Argument("weight_column", ..., function="ckm.sketch"),
            ".",
        )
    if nan == "impute":
        raise ParameterError(
            Argument("nan", "impute"),
            f" is for rows that this process reads, and these are with {source.engine}; fill them "
            f"in there, or use ",
            Argument("nan", "drop"),
            ".",
        )
    if nan == "drop":
        return source.with_reader(replace(source.reader, drop_missing=True))
    return source


def checked_sample_weight(sample_weight: Any, n_rows: int | None) -> FloatArray:
    """Check that there is one finite, non-negative weight for each row."""
    refuse_masked(sample_weight, Argument("sample_weight"))
    try:
        weights = np.asarray(to_host(sample_weight), np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            Argument("sample_weight"), f" must be numbers, one for each row: {error}."
        ) from None
    if weights.ndim != 1 or (n_rows is not None and len(weights) != n_rows):
        raise DataError(
            Argument("sample_weight"),
            f" has shape {weights.shape} for {n_rows} rows; give one weight for each row.",
        )
    if np.isnan(weights.min(initial=0.0)):
        missing = int(np.argmax(np.isnan(weights)))
        raise DataError(
            Argument("sample_weight"),
            f" must be finite and not negative; weight {missing} is nan.",
        )
    return checked_weights(weights, Argument("sample_weight"))
