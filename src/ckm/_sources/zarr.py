"""Zarr: `data.zarr` if it is one array or has one table of numbers, `data.zarr::group/rows`, or an
open `zarr.Array`. Needs zarr.
"""

from collections.abc import Sequence
from typing import Any

from ckm._sources.column_request import ColumnRequest
from ckm._sources.paths import import_optional, split_inner
from ckm._sources.settings import ReadSettings
from ckm._sources.stored import Part, StoredSource, is_table_of_numbers, pick_inner
from ckm._util.stores import FilePath, RemoteFile, open_fsspec
from ckm.errors import CkmError, InputFileError

INSTALL = "pip install 'compressive-kmeans[zarr]'"


def open_files(
    paths: Sequence[FilePath], request: ColumnRequest, settings: ReadSettings
) -> StoredSource:
    """Open one array in each store, named after `::` if there are several."""
    request.refuse_names("A Zarr array")
    zarr = import_optional("zarr", "Zarr stores", INSTALL)
    parts = [_part(_open_array(zarr, path), str(path))._replace(file=path) for path in paths]
    return StoredSource(parts, settings)


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> StoredSource:
    """Open an open array."""
    request.refuse_names("A Zarr array")
    return StoredSource([_part(data, f"the Zarr array {data.name or ''}".strip())], settings)


def _part(array: Any, name: str) -> Part:
    _refuse_pickles(array, name)
    # A shard is several chunks that are written together.
    shards = getattr(array, "shards", None)
    # A chunk of an array without rows may have none either.
    together = max(1, (shards or array.chunks)[0]) if array.ndim else 1
    return Part(array, name, int(array.nbytes), together)


def _refuse_pickles(array: Any, name: str) -> None:
    """Refuse an array whose chunks are pickles, which would run code when they are read.

    Recent versions of zarr and numcodecs refuse them too.
    """
    compressors = array.compressors if hasattr(array, "compressors") else [array.compressor]
    for codec in [*(array.filters or ()), *(compressors or ())]:
        if "pickle" in str(getattr(codec, "codec_id", "")):
            raise InputFileError(
                f"{name} is stored as pickles, which can run code when they are read; write it "
                "again with another codec."
            )


def _open_array(zarr: Any, path: FilePath) -> Any:
    store, inner = split_inner(path)
    try:
        if isinstance(store, RemoteFile):
            root = zarr.open(_remote_store(zarr, store), mode="r")
        else:
            root = zarr.open(str(store), mode="r")
    except CkmError:
        raise
    # Each store and each version of zarr has errors of its own.
    except Exception as error:
        raise InputFileError(
            f"Cannot read {store}: it is damaged or not a Zarr store ({error}); write it again."
        ) from error
    is_array = not hasattr(root, "arrays")
    if is_array:
        return root
    arrays = dict(_all_arrays(root))
    tables = [name for name, array in arrays.items() if is_table_of_numbers(array)]
    return arrays[pick_inner(store, inner, list(arrays), tables, "array")]


def _remote_store(zarr: Any, file: RemoteFile) -> Any:
    """The store of Zarr for a folder of objects."""
    filesystem, path = open_fsspec(file)
    if hasattr(zarr.storage, "FSStore"):  # until Zarr 3
        return zarr.storage.FSStore(path, fs=filesystem, mode="r")
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

    if not filesystem.async_impl:
        filesystem = AsyncFileSystemWrapper(filesystem, asynchronous=True)
    return zarr.storage.FsspecStore(filesystem, read_only=True, path=path)


def _all_arrays(group: Any, above: str = "") -> list[tuple[str, Any]]:
    """All arrays of a group and of the groups in it, with their paths."""
    found = [(above + name, array) for name, array in group.arrays()]
    for name, inside in group.groups():
        found += _all_arrays(inside, f"{above}{name}/")
    return sorted(found)
