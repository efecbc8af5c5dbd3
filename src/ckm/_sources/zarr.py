"""Zarr: `data.zarr` where it is one array or has one table of numbers, `data.zarr::group/rows`, or
an open `zarr.Array`. Needs zarr.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ckm._sources.columns import ColumnRequest
from ckm._sources.hdf5 import pick
from ckm._sources.paths import import_optional, split_inner
from ckm._sources.stored import Part, StoredSource
from ckm.errors import InputFileError

INSTALL = "pip install 'compressive-kmeans[zarr]'"


def open_files(paths: Sequence[Path], request: ColumnRequest) -> StoredSource:
    """The rows of one array in each store, named after `::` where there are several."""
    request.refuse_names("A Zarr array")
    zarr = import_optional("zarr", "Zarr stores", INSTALL)
    return StoredSource([_part(_array(zarr, path), str(path)) for path in paths])


def open_data(data: Any, request: ColumnRequest) -> StoredSource:
    """The rows of an open array."""
    request.refuse_names("A Zarr array")
    return StoredSource([_part(data, f"the Zarr array {data.name or ''}".strip())])


def _part(array: Any, name: str) -> Part:
    shards = getattr(array, "shards", None)  # what is written together, where there are such
    return Part(array, name, int(array.nbytes), (shards or array.chunks)[0] if array.ndim else 1)


def _array(zarr: Any, path: Path) -> Any:
    store, inner = split_inner(path)
    try:
        root = zarr.open(str(store), mode="r")
    except Exception as error:  # each store and version of zarr has errors of its own
        raise InputFileError(
            f"Cannot read {store}: it is damaged or not a Zarr store ({error}); write it again."
        ) from error
    if not hasattr(root, "arrays"):
        return root
    arrays = dict(_all_arrays(root))
    tables = [
        name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "biuf"
    ]
    return arrays[pick(store, inner, list(arrays), tables, "array")]


def _all_arrays(group: Any, above: str = "") -> list[tuple[str, Any]]:
    found = [(above + name, array) for name, array in group.arrays()]
    for name, inside in group.groups():
        found += _all_arrays(inside, f"{above}{name}/")
    return sorted(found)
