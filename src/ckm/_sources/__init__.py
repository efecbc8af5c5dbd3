"""Sources: arrays, data frames, files, queries and streams, all turned into chunks of rows.

To add one: a module in this folder with `open_data(data, wanted)`, and a line in `kind_of` that
recognises what it opens; for a kind of file, `open_files(paths, wanted)` and a line in
`paths.READERS`. Modules are imported when they are needed, and what they read with too.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np

from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.columns import Wanted
from ckm._util.device import is_on_gpu
from ckm.errors import DataError, ParameterError

__all__ = ["BEGINNING", "Chunk", "Place", "Source", "Wanted", "kind_of", "open_source"]

# Which module opens objects of these classes, told by where they are defined, so that nothing is
# imported to find out.
_OPENERS = {
    ("polars", "LazyFrame"): "lazy",
    ("duckdb", "DuckDBPyRelation"): "duckdb",
    ("_duckdb", "DuckDBPyRelation"): "duckdb",
    ("h5py", "Dataset"): "hdf5",
    ("zarr", "Array"): "zarr",
    ("pyarrow", "RecordBatch"): "arrow",
    ("pyarrow", "RecordBatchReader"): "arrow",
    ("pyarrow", "Dataset"): "arrow",
    ("pyarrow", "Scanner"): "arrow",
    ("pyarrow", "ParquetFile"): "arrow",
    ("pandas", "TextFileReader"): "batches",  # what it reads in pieces is a frame each
    ("pandas", "JsonReader"): "batches",
    ("dask", "Array"): "dask",
    ("dask", "DataFrame"): "dask",
    ("dask", "Bag"): "dask",
    ("ray", "Dataset"): "ray",
    ("pyspark", "DataFrame"): "spark",
}
# Engines run the work too, so their modules live with the runners.
ENGINES = {
    "dask": "ckm._sources.engines.dask",
    "ray": "ckm._sources.engines.ray",
    "spark": "ckm._sources.engines.spark",
}
# What of ours is taken for rows by mistake, and what to do with it.
_NOT_ROWS = {
    "Sketch": "ckm.decode finds its centroids, and CompressiveKMeans.from_sketch makes a model of it",
    "Sketcher": "its result() is a sketch, in which ckm.decode finds centroids",
    "Solution": "its centroids are rows",
    "Frequencies": "give them as like=",
}
IN_MEMORY = ("arrays", "frames", "sparse", "tensors")
ANYTHING = Wanted()


def open_source(data: Any, wanted: Wanted = ANYTHING) -> Source:
    """The source behind whatever a person passes: an array, a data frame, file names, a query, a
    stream, an iterable of batches.
    """
    if isinstance(data, Source):
        if wanted.columns is not None or wanted.weight is not None:
            raise ParameterError(
                "The columns of a source are chosen when it is opened; leave out columns= and weight_column=."
            )
        return data
    kind = kind_of(data)
    source: Source = import_module(ENGINES.get(kind, f"ckm._sources.{kind}")).open_data(
        data, wanted
    )
    return source


def kind_of(data: Any) -> str:
    """The name of the module here that opens `data`."""
    for kind in type(data).__mro__:
        opener = _OPENERS.get((kind.__module__.split(".")[0], kind.__name__))
        if opener is not None:
            return opener
    if type(data).__module__.startswith("ckm.") and type(data).__name__ in _NOT_ROWS:
        raise DataError(
            f"Got a {type(data).__name__} where rows are expected: {_NOT_ROWS[type(data).__name__]}."
        )
    if isinstance(data, (str, PathLike)) or _all_are(data, (str, PathLike)):
        return "paths"
    if isinstance(data, np.ndarray):
        return "arrays"
    if is_on_gpu(data):
        return "tensors"
    if hasattr(data, "tocsr") and hasattr(data, "toarray"):
        return "sparse"
    if isinstance(data, (dict, set, bytes)):
        raise DataError(
            f"Got a {type(data).__name__} where rows are expected; pass an array (rows, columns), a data frame, or a file name."
        )
    if isinstance(data, (list, tuple)):
        return "batches" if data and _is_table(data[0]) else "arrays"
    return _kind_of_object(data)


def _kind_of_object(data: Any) -> str:
    """The module for an object that is known by what it can do."""
    from ckm._sources.frames import as_frame

    if as_frame(data) is not None:
        return "frames"
    if hasattr(data, "__array__") and len(getattr(data, "shape", ())) != 2:
        return "arrays"  # a series, perhaps: it says what is wrong with its shape
    if hasattr(data, "__arrow_c_stream__"):
        return "arrow"
    if hasattr(data, "fetchmany") and hasattr(data, "description"):
        return "queries"
    if hasattr(data, "read"):
        return "stdin"
    if hasattr(data, "__array__"):
        return "arrays"
    return "batches" if callable(data) or isinstance(data, Iterable) else "arrays"


def _all_are(data: Any, kinds: tuple[type, ...]) -> bool:
    return (
        isinstance(data, Sequence) and bool(data) and all(isinstance(item, kinds) for item in data)
    )


def _is_table(item: Any) -> bool:
    """Whether an item of a list is a batch of rows rather than one row."""
    return len(getattr(item, "shape", ())) == 2
