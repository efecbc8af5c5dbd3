"""HDF5: `data.h5::group/rows`, `data.h5` where one dataset is a table of numbers, or an open
`h5py.Dataset`. Needs h5py.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ckm._sources.columns import ColumnRequest
from ckm._sources.paths import import_optional, split_inner
from ckm._sources.stored import Part, StoredSource
from ckm.errors import InputFileError

INSTALL = "pip install 'compressive-kmeans[hdf5]'"


def open_files(paths: Sequence[Path], request: ColumnRequest) -> StoredSource:
    """The rows of one dataset in each file, named after `::` where there are several."""
    request.refuse_names("An HDF5 dataset")
    h5py = import_optional("h5py", "HDF5 files", INSTALL)
    return StoredSource([_part(_dataset(h5py, path)) for path in paths])


def open_data(data: Any, request: ColumnRequest) -> StoredSource:
    """The rows of an open dataset."""
    request.refuse_names("An HDF5 dataset")
    return StoredSource([_part(data)])


def _part(dataset: Any) -> Part:
    name = f"{dataset.file.filename}::{dataset.name.lstrip('/')}"
    return Part(
        dataset,
        name,
        int(dataset.id.get_storage_size()),
        dataset.chunks[0] if dataset.chunks else 1,
    )


def _dataset(h5py: Any, path: Path) -> Any:
    file_path, inner = split_inner(path)
    try:
        file = h5py.File(file_path, "r")
    except OSError as error:
        raise InputFileError(
            f"Cannot read {file_path}: it is damaged or not an HDF5 file ({error}); write it again."
        ) from error
    found: list[str] = []
    file.visititems(
        lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None
    )
    tables = [name for name in found if file[name].ndim == 2 and file[name].dtype.kind in "biuf"]
    return file[pick(file_path, inner, found, tables, "dataset")]


def pick(
    path: Path, inner: str | None, found: Sequence[str], tables: Sequence[str], what: str
) -> str:
    """The name inside a file: the one asked for, else the only table of numbers."""
    if inner is not None:
        if inner.strip("/") not in found:
            raise InputFileError(
                f"{path} has no {what} {inner.strip('/')!r}; it has {', '.join(found) or 'none'}."
            )
        return inner.strip("/")
    if len(tables) != 1:
        there = (
            f"{what}s that are tables of numbers: {', '.join(tables)}"
            if tables
            else f"no {what} that is a table of numbers"
        )
        example = tables[0] if tables else "name"
        raise InputFileError(f"{path} has {there}; name one, as {path}::{example}.")
    return tables[0]
