"""Named columns as a data frame of the library that is installed: pandas, polars or Arrow."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from ckm._messages import Argument
from ckm.errors import MissingPackageError, ParameterError

BACKENDS = ("pandas", "polars", "pyarrow")


def check_backend(name: str | None) -> str:
    """The library to make frames with: this one, or the first that is installed."""
    if name is None:
        return next(backend for backend in BACKENDS if find_spec(backend) is not None)
    if name not in BACKENDS:
        choices = ", ".join(map(repr, BACKENDS))
        raise ParameterError(
            "There is no ", Argument("backend"), f" {name!r}; choose one of {choices}, or None."
        )
    if find_spec(name) is None:
        raise MissingPackageError(f"A frame of {name} needs {name}: pip install {name}")
    return name


def to_frame(values: Mapping[str, Any], backend: str) -> Any:
    """Columns by name as a frame of this library.

    >>> to_frame({"a": [1, 2]}, "pyarrow").column_names
    ['a']
    """
    import pyarrow as pa

    table = pa.table(dict(values))
    if backend == "pyarrow":
        return table
    from narwhals import from_arrow

    kind: Any = backend
    return from_arrow(table, backend=kind).to_native()
