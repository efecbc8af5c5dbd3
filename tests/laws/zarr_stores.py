"""Zarr stores, written with what versions 2 and 3 of zarr have in common."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

zarr = pytest.importorskip("zarr")


def write_array(store: Path | dict, X: np.ndarray, chunks: Any, name: str | None = None) -> Any:
    """Write one array, called `name` within its store if it is not all of it."""
    where = store if isinstance(store, dict) else str(store)
    options = {"shape": X.shape, "chunks": chunks, "dtype": X.dtype}
    array = zarr.open_array(where, mode="w", path=name, **options)
    array[:] = X
    return array


def write_arrays(store: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write several tables into a store, in groups if their names have slashes."""
    root = zarr.open_group(str(store), mode="w")
    for name, X in arrays.items():
        group = name.rpartition("/")[0]
        if group:
            root.require_group(group)
        write_array(store, X, (100, X.shape[1]), name)
