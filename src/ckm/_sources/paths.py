"""Names of files, patterns and folders: which files they mean, and which module reads them."""

import glob
from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from ckm._sources.base import Source
from ckm._sources.columns import ColumnRequest
from ckm.errors import InputFileError, MissingFileError, MissingPackageError, ParameterError

Name = str | PathLike[str]
STANDARD_INPUT = Path("-")
INNER = "::"  # between the name of a file and that of an array inside it

# What reads files with these endings. To add a kind of file: a module with `open_files(paths,
# request)`, and a line here.
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
}


def open_data(data: Name | Sequence[Name], request: ColumnRequest) -> Source:
    """The rows of all files that names, patterns and folders mean, which must be of one kind."""
    paths = resolve([data] if isinstance(data, (str, PathLike)) else data)
    if STANDARD_INPUT in paths or any(is_pipe(path) for path in paths):
        if len(paths) > 1:
            raise ParameterError(
                "Standard input (-) or a pipe is read on its own; leave out the other names."
            )
        source: Source = _module("stdin").open_path(paths[0], request)
        return source
    readers = sorted({reader_of(path) for path in paths})
    if len(readers) > 1:
        suffixes = sorted({ending_of(path) for path in paths})
        raise ParameterError(
            f"These files are of several kinds ({', '.join(suffixes)}); give one kind at a time."
        )
    source = _module(readers[0]).open_files(paths, request)
    return source


def _module(name: str) -> Any:
    return import_module(f"ckm._sources.{name}")


def resolve(patterns: Sequence[Name]) -> list[Path]:
    """The files behind names, glob patterns and folders, each known to be there and not empty. `-`
    is standard input.
    """
    paths: list[Path] = []
    for pattern in patterns:
        if str(pattern) == str(STANDARD_INPUT):
            paths.append(STANDARD_INPUT)
            continue
        if "://" in str(pattern):
            raise InputFileError(
                f"{pattern} is an address, and files are read by their names here; fetch it first, pipe it into -, or pass what "
                f"pyarrow.dataset or polars opens."
            )
        outer, inner = split_inner(Path(pattern))
        text = str(outer)
        found = [text] if Path(text).exists() else sorted(glob.glob(text, recursive=True))
        if not found:
            what = "No file matches" if glob.has_magic(text) else "There is no file"
            raise MissingFileError(
                f"{what} {text}; check the name, relative to {Path.cwd().name or '/'}/."
            )
        files = [file for name in found for file in _files_in(Path(name))]
        if not files:
            raise InputFileError(
                f"{text} is a directory without a file that can be read, which end in {', '.join(READERS)}."
            )
        paths += files if inner is None else [Path(f"{file}{INNER}{inner}") for file in files]
    for path in paths:
        file = split_inner(path)[0]
        if path != STANDARD_INPUT and file.is_file() and file.stat().st_size == 0:
            raise InputFileError(f"{path} is empty (0 bytes); leave it out, or write it again.")
    return paths


def split_inner(path: Path) -> tuple[Path, str | None]:
    """The file, and the name inside it: `data.h5::group/rows`."""
    outer, mark, inner = str(path).partition(INNER)
    return Path(outer), inner if mark else None


def ending_of(path: Path) -> str:
    """The part of a name that tells what a file is, with that of its compression."""
    suffixes = [suffix.lower() for suffix in split_inner(path)[0].suffixes]
    return "".join(suffixes[-2:]) if "".join(suffixes[-2:]) in READERS else "".join(suffixes[-1:])


def reader_of(path: Path) -> str:
    """The module that reads this file."""
    ending = ending_of(path)
    if ending == ".ckm":
        raise InputFileError(
            f"{path} holds a sketch where rows are expected; decode it, or merge it with others."
        )
    if ending not in READERS:
        raise InputFileError(f"Cannot read {path}: files must end in {', '.join(READERS)}.")
    return READERS[ending]


def is_pipe(path: Path) -> bool:
    """Whether it is a named pipe or the like: something that can be read once, and has no size."""
    return path.is_fifo() or path.is_char_device()


def _files_in(path: Path) -> list[Path]:
    """A file; or all files in a folder and its folders that can be read, but for hidden ones and
    those that begin with `_`.
    """
    if not path.is_dir() or path.suffix.lower() == ".zarr":
        return [path]
    inside = (
        p
        for p in sorted(path.rglob("*"))
        if not any(part.startswith((".", "_")) for part in p.relative_to(path).parts)
    )
    found = [
        p
        for p in inside
        if (p.is_file() and ending_of(p) in READERS) or p.suffix.lower() == ".zarr"
    ]
    return [p for p in found if not any(parent.suffix.lower() == ".zarr" for parent in p.parents)]


def import_optional(package: str, what: str, install: str) -> Any:
    """A package that is only needed for some sources; or a sentence that says how to get it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"Reading {what} needs {package}, which is not installed: {install}."
        ) from error
