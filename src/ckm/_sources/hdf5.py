"""HDF5: `data.h5::group/rows`, `data.h5` if one dataset is a table of numbers, or an open
`h5py.Dataset`. Needs h5py.
"""

from collections.abc import Sequence
from typing import Any

from ckm._sources.column_request import ColumnRequest
from ckm._sources.paths import import_optional, split_inner
from ckm._sources.settings import ReadSettings
from ckm._sources.stored import Part, StoredSource, is_table_of_numbers, pick_inner
from ckm._util.address import INNER
from ckm._util.stores import FilePath, RemoteFile, open_seekable
from ckm.errors import InputFileError

INSTALL = "pip install 'compressive-kmeans[hdf5]'"


def open_files(
    paths: Sequence[FilePath], request: ColumnRequest, settings: ReadSettings
) -> StoredSource:
    """Open one dataset in each file, named after `::` if there are several."""
    request.refuse_names("An HDF5 dataset")
    h5py = import_optional("h5py", "HDF5 files", INSTALL)
    return StoredSource([_open_part(h5py, path) for path in paths], settings)


def open_data(data: Any, request: ColumnRequest, settings: ReadSettings) -> StoredSource:
    """Open an open dataset."""
    request.refuse_names("An HDF5 dataset")
    return StoredSource([_part(data)], settings)


def _part(dataset: Any) -> Part:
    name = f"{dataset.file.filename}::{dataset.name.lstrip('/')}"
    together = dataset.chunks[0] if dataset.chunks else 1
    return Part(dataset, name, int(dataset.id.get_storage_size()), together)


def _open_part(h5py: Any, path: FilePath) -> Part:
    part = _part(_open_dataset(h5py, path))
    if isinstance(path, RemoteFile):
        # HDF5 knows no name of an object.
        inner = part.name.rpartition(INNER)[2]
        return part._replace(name=f"{split_inner(path)[0]}{INNER}{inner}", file=path)
    return part


def _open_dataset(h5py: Any, path: FilePath) -> Any:
    file_path, inner = split_inner(path)
    try:
        if isinstance(file_path, RemoteFile):
            file = h5py.File(open_seekable(file_path), "r")
        else:
            file = h5py.File(file_path, "r")
    except InputFileError:
        raise
    except OSError as error:
        raise InputFileError(
            f"Cannot read {file_path}: it is damaged or not an HDF5 file ({error}); write it again."
        ) from error
    found: list[str] = []

    def note(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found.append(name)

    file.visititems(note)
    tables = [name for name in found if is_table_of_numbers(file[name])]
    return file[pick_inner(file_path, inner, found, tables, "dataset")]
