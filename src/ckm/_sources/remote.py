"""Addresses, patterns and folders of objects: which objects they mean."""

import fnmatch
import glob
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from ckm._util.address import Address
from ckm._util.stores import (
    Entry,
    RemoteFile,
    find_file,
    find_folder,
    list_folder,
    map_files,
    missing,
    require_file,
    walk_folder,
)
from ckm.errors import InputFileError

_ANY_FOLDERS = "**"
_ZARR = ".zarr"
_HIDDEN = (".", "_")

# Says of the name of a file whether there is a reader for it.
Predicate = Callable[[PurePosixPath], bool]


def resolve_address(address: Address, is_readable: Predicate, readable: str) -> list[RemoteFile]:
    """The objects that an address, a pattern or a folder means, as they are now.

    `readable` are the endings of files that can be read, for the message about a folder without
    one.
    """
    if not address.is_web and address.key.endswith("/"):
        address = address.at(address.key.rstrip("/"))
    found = _existing(address)
    addresses = [file for item in found for file in _files_in(item, is_readable)]
    if not addresses:
        raise InputFileError(
            f"{address} is a folder without a file that can be read, which end in {readable}."
        )
    files = map_files(_find, addresses, remote=True)
    return [replace(file, address=replace(file.address, inner=address.inner)) for file in files]


def _find(item: Address | RemoteFile) -> RemoteFile:
    """The object at an address, or the folder of a Zarr store."""
    if isinstance(item, RemoteFile):
        return item
    return find_folder(item) if _is_zarr(item.name) else require_file(item)


def _existing(address: Address) -> list[Address | RemoteFile]:
    """The object or folder at an address; otherwise those that match a pattern."""
    plain = replace(address, inner=None)
    if address.is_web and _is_zarr(address.name):
        raise InputFileError(
            f"Cannot read {address}: a Zarr store is a folder, and web servers list no folders; "
            "fetch it first, or read it from an object store (s3://, gs://, az://)."
        )
    is_pattern = glob.has_magic(address.key)
    # Most patterns are no names of objects, so that asking for one costs more than it finds.
    single = None if is_pattern or _is_zarr(address.name) else find_file(plain)
    if single is not None:
        return [single]
    if not is_pattern and list_folder(plain):
        return [plain]
    found = sorted(set(_match(plain)), key=str) if is_pattern else []
    if not found:
        exact = find_file(plain) if is_pattern else None
        if exact is not None:
            return [exact]
        raise missing(address, "No file matches" if is_pattern else "There is no file")
    return list[Address | RemoteFile](found)


def _match(address: Address) -> Iterator[Address]:
    """The objects and folders that match a pattern, as `glob` does it for files."""
    segments = [segment for segment in address.key.split("/") if segment]
    fixed = next(i for i, segment in enumerate(segments) if glob.has_magic(segment))
    places = [Entry("/".join(segments[:fixed]), is_folder=True)]
    for segment in segments[fixed:]:
        step = partial(_step, address, segment)
        places = [entry for found in map_files(step, places, remote=True) for entry in found]
    for place in places:
        yield address.at(place.key.rstrip("/"))


def _step(address: Address, segment: str, place: Entry) -> list[Entry]:
    """What one segment of a pattern matches in a folder."""
    if not place.is_folder:
        return []
    folder = address.at(_as_folder(address, place.key))
    if segment == _ANY_FOLDERS:
        return [place, *_folders_in(folder)]
    entries = list_folder(folder)
    return [entry for entry in entries if _matches(_name(entry), segment)]


def _folders_in(address: Address) -> list[Entry]:
    """All folders in a folder and in its folders, without hidden ones."""
    above = [part for part in address.key.split("/") if part]
    keys = set[str]()
    for entry in walk_folder(address):
        parts = [part for part in entry.key.split("/") if part]
        for depth in range(len(above) + 1, len(parts)):
            if parts[depth - 1].startswith("."):
                break
            keys.add("/".join(parts[:depth]))
    return [Entry(key, is_folder=True) for key in sorted(keys)]


def _matches(name: str, segment: str) -> bool:
    is_hidden = name.startswith(".") and not segment.startswith(".")
    return not is_hidden and fnmatch.fnmatchcase(name, segment)


def _files_in(item: Address | RemoteFile, is_readable: Predicate) -> list[Address | RemoteFile]:
    """An object itself; or all objects in a folder and its folders that can be read.

    Hidden ones, and those that begin with `_`, are left out.
    """
    if isinstance(item, RemoteFile) or _is_zarr(item.name):
        return [item]
    if find_file(item) is not None:
        return [item]
    keys = set[str]()
    for entry in walk_folder(item):
        inside = entry.key.removeprefix(item.key).strip("/").split("/")
        stores = [i for i, part in enumerate(inside) if _is_zarr(part)]
        kept = inside[: stores[0] + 1] if stores else inside
        is_hidden = any(part.startswith(_HIDDEN) for part in kept)
        if not is_hidden and (stores or is_readable(PurePosixPath(inside[-1]))):
            keys.add("/".join([item.key.rstrip("/"), *kept]).lstrip("/"))
    return [item.at(key) for key in sorted(keys)]


def _as_folder(address: Address, key: str) -> str:
    """The key of a folder: those of web servers end in a slash."""
    return f"{key.rstrip('/')}/" if address.is_web and key else key


def _name(entry: Entry) -> str:
    return entry.key.rstrip("/").rpartition("/")[2]


def _is_zarr(name: str) -> bool:
    return name.lower().endswith(_ZARR)
