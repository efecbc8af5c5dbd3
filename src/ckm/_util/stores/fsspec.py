"""Everything else that fsspec knows: `sftp://`, `hdfs://`, `memory://`, ... Needs fsspec, and the
package of the store.
"""

import secrets
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ckm._util.address import Address
from ckm._util.stores import Entry, RemoteFile, State, Store, changed
from ckm._util.stores.ranges import as_arrow_file, with_retries
from ckm.errors import MissingPackageError, ParameterError

INSTALL = "pip install 'compressive-kmeans[remote]'"
# What identifies the contents of an object, the best first, as file systems name it.
_TAGS = (
    "etag",
    "version",
    "generation",
    "mtime",
    "lastmodified",
    "last_modified",
    "modified",
    "updated",
    "created",
)


class FsspecStore(Store):
    """The objects that a file system of fsspec reaches."""

    def __init__(self, filesystem: Any) -> None:
        self._fs = filesystem

    def state(self, address: Address) -> State | None:
        info = self._info(address)
        return None if info is None or info["type"] != "file" else _state_of(info)

    def children(self, address: Address) -> list[Entry]:
        try:
            listed = self._fs.ls(self._path(address), detail=True)
        except FileNotFoundError:
            return []
        return [self._entry(address, info) for info in listed]

    def walk(self, address: Address) -> list[Entry]:
        found = self._fs.find(self._path(address), detail=True)
        return [self._entry(address, info) for info in found.values()]

    def open(self, file: RemoteFile) -> Any:
        path = self._path(file.address)
        if self.state(file.address) != State(file.size, file.tag):
            raise changed(file)

        def request(offset: int, count: int) -> bytes:
            data: bytes = self._fs.cat_file(path, start=offset, end=offset + count)
            if len(data) != count:
                raise OSError(f"the store sent {len(data)} of {count} bytes")
            return data

        def read_at(offset: int, count: int) -> bytes:
            return with_retries(partial(request, offset, count), _is_final)

        return as_arrow_file(read_at, file.size)

    def upload(self, source: Path, address: Address) -> None:
        # Under another name first, since some stores show a file while it is written.
        path = self._path(address)
        folder, _, _ = path.rpartition("/")
        temporary = f"{folder}/.ckm-{secrets.token_hex(16)}.part"
        try:
            self._fs.put_file(str(source), temporary)
            self._fs.mv(temporary, path)
        except BaseException:
            with suppress(Exception):
                self._fs.rm_file(temporary)
            raise

    def remove(self, address: Address) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._path(address))

    def as_fsspec(self, address: Address) -> tuple[Any, str]:
        return self._fs, self._path(address)

    def obstacle(self, address: Address) -> str | None:
        info = self._info(address)
        if info is not None and info["type"] == "directory":
            return "it is a directory; name a file in it"
        return None

    def _info(self, address: Address) -> dict[str, Any] | None:
        # Without what was listed before, which may be another object by now.
        self._fs.invalidate_cache()
        try:
            info: dict[str, Any] = self._fs.info(self._path(address))
            return info
        except FileNotFoundError:
            return None

    def _entry(self, address: Address, info: dict[str, Any]) -> Entry:
        inside = info["name"].removeprefix(self._path(address)).strip("/")
        key = f"{address.key.rstrip('/')}/{inside}".lstrip("/")
        is_folder = info["type"] == "directory"
        state = _state_of(info)
        return Entry(key, is_folder, state.size, state.tag)

    def _path(self, address: Address) -> str:
        core = import_fsspec(address.scheme).core
        return str(core.strip_protocol(address.complete))


def store_for(address: Address) -> FsspecStore:
    """The store of an address."""
    fsspec = import_fsspec(address.scheme)
    try:
        filesystem, _ = fsspec.core.url_to_fs(address.complete)
    except ImportError as error:
        raise MissingPackageError(
            f"Reading {address.scheme}:// needs a package that is not installed: {error}"
        ) from None
    except ValueError:
        raise ParameterError(
            f"Nothing here reads {address.scheme}://, as in {address}; use s3://, gs://, az://, "
            f"https://, or another that fsspec knows."
        ) from None
    return FsspecStore(filesystem)


def import_fsspec(scheme: str, *more: str) -> Any:
    """Import fsspec, and packages it needs; raises `MissingPackageError` without them."""
    for package in ("fsspec", "fsspec.core", *more):
        try:
            import_module(package)
        except ImportError:
            raise MissingPackageError(
                f"Reading {scheme}:// needs {package}, which is not installed: {INSTALL}."
            ) from None
    return import_module("fsspec")


def _state_of(info: dict[str, Any]) -> State:
    """The size of an object, and what identifies its contents."""
    found = {name.lower(): value for name, value in info.items()}
    tag = next((str(found[name]) for name in _TAGS if found.get(name)), "")
    return State(int(info.get("size") or 0), tag)


def _is_final(error: Exception) -> bool:
    return isinstance(error, (FileNotFoundError, PermissionError))
