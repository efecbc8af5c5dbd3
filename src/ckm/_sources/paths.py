"""Names of files, patterns and folders: which files they mean, and which module reads them."""

import glob
import os
import re
from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, overload

from ckm._sources.base import Source
from ckm._sources.column_request import ColumnRequest
from ckm._sources.settings import ReadSettings
from ckm._util.address import INNER, Address, as_path
from ckm._util.files import check_name
from ckm._util.stores import FilePath, RemoteFile, any_remote
from ckm.errors import InputFileError, MissingFileError, MissingPackageError, ParameterError

Name = str | PathLike[str]
STANDARD_INPUT = Path("-")

# An address that was a `Path` for a while.
_SHORTENED_ADDRESS = re.compile(r"(s3|gs|az|https?):/[^/]")

# The module that reads files with each ending. To add a kind of file: a module with
# `open_files(paths, request, settings)`, and a line here.
READERS = {
    ".npy": "npy",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.zst": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".tsv.zst": "csv",
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".arrows": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".zarr": "zarr",
    ".npz": "npz",
    ".fvecs": "vecs",
    ".ivecs": "vecs",
    ".bvecs": "vecs",
}


def open_data(
    data: Name | Sequence[Name], request: ColumnRequest, settings: ReadSettings
) -> Source:
    """Open all files that names, patterns and folders mean, which must be of one kind."""
    paths = resolve([data] if isinstance(data, (str, PathLike)) else data)
    if STANDARD_INPUT in paths or any(is_pipe(path) for path in paths):
        if len(paths) > 1:
            raise ParameterError(
                "Standard input (-) or a pipe is read on its own; leave out the other names."
            )
        source: Source = import_reader("stdin").open_path(paths[0], request, settings)
        return source
    readers = sorted({reader_of(path) for path in paths})
    if len(readers) > 1:
        suffixes = sorted({ending_of(path) for path in paths})
        raise ParameterError(
            f"These files are of several kinds ({', '.join(suffixes)}); give one kind at a time."
        )
    try:
        source = import_reader(readers[0]).open_files(paths, request, settings)
    except UnicodeEncodeError as error:
        # Names of files are bytes, which Arrow takes as UTF-8 only.
        raise InputFileError(
            f"The name {error.object!r} is not UTF-8, as the reader of such files needs; rename it."
        ) from None
    if any_remote(paths) and len(source.parts) == len(paths):
        source.files = tuple(paths)
    return source


def import_reader(name: str) -> Any:
    """Import the module of this package that reads a kind of data."""
    return import_module(f"ckm._sources.{name}")


def resolve(patterns: Sequence[Name]) -> list[FilePath]:
    """The files that names, addresses, glob patterns and folders mean; `-` is standard input.

    Raises `MissingFileError` for a name or pattern without a file, and `InputFileError` for an
    empty file.
    """
    paths = [path for pattern in patterns for path in _resolve_one(pattern)]
    for path in paths:
        if _is_empty(path):
            raise InputFileError(f"{path} is empty (0 bytes); leave it out, or write it again.")
    return paths


def _is_empty(path: FilePath) -> bool:
    """Whether it is a file without bytes."""
    if isinstance(path, RemoteFile):
        return path.size == 0
    file = split_inner(path)[0]
    return path != STANDARD_INPUT and os.path.isfile(file) and os.path.getsize(file) == 0


def _resolve_one(pattern: Name) -> Sequence[FilePath]:
    """The files that one name, pattern or folder means."""
    if isinstance(pattern, RemoteFile):
        return [pattern]
    check_name(pattern)
    if str(pattern) == str(STANDARD_INPUT):
        return [STANDARD_INPUT]
    path = as_path(pattern)
    if isinstance(path, Address):
        from ckm._sources.remote import resolve_address

        return resolve_address(path, lambda name: ending_of(name) in READERS, ", ".join(READERS))
    check_name(str(path).partition(INNER)[0])
    outer, inner = split_inner(path)
    text = str(outer)
    found = _existing(text)
    files = [file for name in found for file in _files_in(Path(name))]
    if not files:
        raise InputFileError(
            f"{text} is a directory without a file that can be read, which end in "
            f"{', '.join(READERS)}."
        )
    return files if inner is None else [Path(f"{file}{INNER}{inner}") for file in files]


def _existing(text: str) -> list[str]:
    """The name itself if there is such a file or folder, otherwise those that match a pattern."""
    try:
        os.stat(text)
        return [text]
    except OSError as error:
        reason = error
    is_pattern = glob.has_magic(text)
    found = sorted(glob.glob(text, recursive=True)) if is_pattern else []
    if not found and not is_pattern and not isinstance(reason, FileNotFoundError):
        raise InputFileError(f"Cannot read {text}: {reason.strerror}; check the name.") from None
    if not found:
        what = "No file matches" if is_pattern else "There is no file"
        advice = f"check the name, relative to {Path.cwd().name or '/'}/"
        if _SHORTENED_ADDRESS.match(text):
            advice = "give an address as text: pathlib.Path takes one of its two slashes away"
        raise MissingFileError(f"{what} {text}; {advice}.")
    return found


@overload
def split_inner(path: Path) -> tuple[Path, str | None]: ...
@overload
def split_inner(path: RemoteFile) -> tuple[RemoteFile, str | None]: ...
def split_inner(path: FilePath) -> tuple[FilePath, str | None]:
    """Split the name of a file from that of an array inside it.

    >>> split_inner(Path("data.h5::group/rows"))
    (PosixPath('data.h5'), 'group/rows')
    """
    if isinstance(path, RemoteFile):
        return path.split_inner()
    outer, mark, inner = str(path).partition(INNER)
    return Path(outer), inner if mark else None


def ending_of(path: FilePath | PurePosixPath) -> str:
    """The ending that identifies the format of a file, with that of its compression.

    >>> ending_of(Path("rows.2024.csv.gz"))
    '.csv.gz'
    """
    outer = split_inner(path)[0] if isinstance(path, Path) else path
    suffixes = [suffix.lower() for suffix in outer.suffixes]
    last_two = "".join(suffixes[-2:])
    return last_two if last_two in READERS else "".join(suffixes[-1:])


def reader_of(path: FilePath) -> str:
    """The name of the module that reads a file."""
    ending = ending_of(path)
    if ending == ".ckm":
        raise InputFileError(
            f"{path} holds a sketch where rows are expected; decode it, or merge it with others."
        )
    if ending not in READERS:
        raise InputFileError(f"Cannot read {path}: files must end in {', '.join(READERS)}.")
    return READERS[ending]


def is_pipe(path: FilePath) -> bool:
    """Whether it is a named pipe or the like, which can be read once and has no size."""
    return isinstance(path, Path) and (path.is_fifo() or path.is_char_device())


def _files_in(path: Path) -> list[Path]:
    """A file itself; or all files in a folder and its folders that can be read.

    Hidden files and folders, and those that begin with `_`, are left out.
    """
    if not os.path.isdir(path) or _is_zarr(path):
        return [path]
    if os.path.realpath(path) == os.path.realpath(path.anchor or os.sep):
        raise ParameterError(
            f"{path} is the root of all folders; name the folder of the data (perhaps a variable "
            "is not set)."
        )
    if any(_is_zarr(parent) for parent in path.parents):
        return []
    files = list[Path]()
    for folder, folders, names in os.walk(path, onerror=_refuse_folder):
        visible = [name for name in folders if not name.startswith((".", "_"))]
        stores = [name for name in visible if _is_zarr(Path(name))]
        folders[:] = [name for name in visible if name not in stores]
        files += [Path(folder, name) for name in stores]
        for name in names:
            inside = Path(folder, name)
            is_readable = _is_zarr(inside) or ending_of(inside) in READERS
            if is_readable and not name.startswith((".", "_")) and os.path.isfile(inside):
                files.append(inside)
    return sorted(files)


def _refuse_folder(error: OSError) -> None:
    """Raise an error for a folder that cannot be read: its rows would be missing silently."""
    raise InputFileError(
        f"Cannot read the folder {error.filename}: {error.strerror}; name the files in it that you "
        "want, or change its permissions."
    ) from None


def _is_zarr(path: Path) -> bool:
    return path.suffix.lower() == ".zarr"


def import_optional(package: str, what: str, install: str) -> Any:
    """Import a package that only some sources need.

    Raises `MissingPackageError`, which says how to install it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"Reading {what} needs {package}, which is not installed: {install}."
        ) from error
