"""Objects in stores and on web servers: found, read, and written.

`store_of` chooses who reaches an address: Arrow's own file systems where they do (`arrow`), a web
client for `https://` (`web`), fsspec for everything else (`fsspec`). None of them is imported
before an address is used. Everything above works with `Path | RemoteFile` for what is read and with
`Path | Address` for what is written.
"""

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ckm._util.address import Address
from ckm.errors import CkmError, InputFileError, MissingFileError, OutputError

# How often a request is made before it fails, in all.
ATTEMPTS = 5
_TRIED = f"tried {ATTEMPTS} times"
# Seconds without an answer after which a request is made again.
CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
# Requests that are under way at a time while many objects are looked up.
_CONCURRENT = 16
# The module that reaches the addresses of each scheme, if it is not `fsspec`.
_MODULES = dict.fromkeys(("s3", "gs", "gcs", "az", "abfs", "abfss"), "arrow")
_MODULES |= dict.fromkeys(("http", "https"), "web")
_STAMP_BYTES = 8

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Entry(NamedTuple):
    """An object or folder in a listing: its key, its bytes, and when it was written."""

    key: str
    is_folder: bool = False
    size: int = 0
    stamp: str = ""


class State(NamedTuple):
    """What identifies the contents of an object: its bytes, and its ETag, version or time."""

    size: int
    tag: str


@dataclass(frozen=True)
class RemoteFile:
    """An object as it was when it was found: it is read as this one, or not at all.

    Parameters
    ----------
    address : Address
        Where it is.
    size : int
        Its bytes; those of all objects in a folder.
    tag : str
        Its ETag, version, or time of change; a digest for a folder; empty if nothing is known.
    is_folder : bool
        Whether it is a folder that is read as one file, as a Zarr store is.
    """

    address: Address
    size: int
    tag: str
    is_folder: bool = False

    def __str__(self) -> str:
        return str(self.address)

    def __fspath__(self) -> str:
        return self.address.complete

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.address.name

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of its key between slashes."""
        return self.address.parts

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return self.address.suffix

    @property
    def suffixes(self) -> list[str]:
        """The endings of its name."""
        return self.address.suffixes

    @property
    def stamp(self) -> int:
        """A number that changes when the contents do."""
        digest = hashlib.sha256(self.tag.encode()).digest()
        return int.from_bytes(digest[:_STAMP_BYTES], "big")

    def split_inner(self) -> tuple["RemoteFile", str | None]:
        """Split it from the name of an array inside it."""
        outer = replace(self, address=replace(self.address, inner=None))
        return outer, self.address.inner


FilePath = Path | RemoteFile


class Store(ABC):
    """Who reaches the objects of one bucket or server.

    Errors are OSErrors whose text holds no credentials; `FileNotFoundError` for what is missing.
    """

    @abstractmethod
    def state(self, address: Address) -> State | None:
        """The state of an object; None if it is a folder or does not exist."""

    @abstractmethod
    def children(self, address: Address) -> list[Entry]:
        """What is directly in a folder; nothing if there is no such folder."""

    @abstractmethod
    def walk(self, address: Address) -> list[Entry]:
        """All objects in a folder and in its folders."""

    @abstractmethod
    def open(self, file: RemoteFile) -> Any:
        """Open an object as a `pyarrow.NativeFile` that can be read from any position.

        Raises `InputFileError` if it is no longer the one that was found.
        """

    @abstractmethod
    def upload(self, source: Path, address: Address) -> None:
        """Write the bytes of a file here to an object: all of them appear at once, or nothing."""

    @abstractmethod
    def remove(self, address: Address) -> None:
        """Remove an object, if there is one."""

    @abstractmethod
    def as_fsspec(self, address: Address) -> tuple[Any, str]:
        """The file system of fsspec for a folder, and the path of the folder in it."""

    @abstractmethod
    def obstacle(self, address: Address) -> str | None:
        """Why an object cannot be written, with the remedy; None if nothing is known."""


def store_of(address: Address) -> Store:
    """Who reaches an address."""
    module = _MODULES.get(address.scheme, "fsspec")
    store: Store = import_module(f"ckm._util.stores.{module}").store_for(address)
    return store


def find_file(address: Address) -> RemoteFile | None:
    """The object at an address, as it is now; None if there is none."""
    with _reading(address):
        state = store_of(address).state(address)
    return None if state is None else RemoteFile(address, state.size, state.tag)


def require_file(address: Address) -> RemoteFile:
    """The object at an address; raises `MissingFileError` if there is none."""
    found = find_file(address)
    if found is None:
        raise missing(address)
    return found


def missing(address: Address, what: str = "There is no file") -> MissingFileError:
    """The error for an address, or a pattern, without an object."""
    return MissingFileError(
        f"{what} {address}; check the address, and that you may read it with your credentials."
    )


def find_folder(address: Address) -> RemoteFile:
    """A folder that is read as one file: its state is that of all objects in it."""
    entries = walk_folder(address)
    lines = [json.dumps([entry.key, entry.size, entry.stamp]) for entry in entries]
    digest = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
    return RemoteFile(address, sum(entry.size for entry in entries), digest, is_folder=True)


def list_folder(address: Address) -> list[Entry]:
    """What is directly in a folder."""
    with _reading(address):
        return store_of(address).children(address)


def walk_folder(address: Address) -> list[Entry]:
    """All objects in a folder and in its folders."""
    with _reading(address):
        return store_of(address).walk(address)


def open_remote(file: RemoteFile) -> Any:
    """Open an object as a `pyarrow.NativeFile`."""
    with _reading(file.address):
        return store_of(file.address).open(file)


def require_unchanged(file: FilePath) -> None:
    """Raise `InputFileError` if an object was replaced since it was found: after it was read."""
    if isinstance(file, Path):
        return
    outer, _ = file.split_inner()
    now = find_folder(outer.address) if file.is_folder else find_file(outer.address)
    if now != outer:
        raise changed(file)


def changed(file: RemoteFile) -> InputFileError:
    """The error for an object that is another one than the one that was found."""
    return InputFileError(
        f"{file} has changed while it was read; start again once it is no longer written."
    )


def file_size(file: FilePath) -> int:
    """The bytes of a file."""
    return file.stat().st_size if isinstance(file, Path) else file.size


def open_file(file: FilePath, mapped: bool = False) -> Any:
    """Open a file as a `pyarrow.NativeFile`; `mapped` maps one of this machine to memory."""
    if isinstance(file, RemoteFile):
        return open_remote(file)
    import pyarrow as pa

    return (pa.memory_map if mapped else pa.OSFile)(str(file))


def open_seekable(file: RemoteFile) -> Any:
    """Open an object as a binary file of Python, which keeps some blocks of what it reads."""
    from ckm._util.stores.ranges import RangeFile, read_patiently

    opened = open_remote(file)

    def read_at(offset: int, count: int) -> Any:
        with _reading(file.address):
            return read_patiently(opened, offset, count)

    return RangeFile(read_at, file.size)


def open_fsspec(file: RemoteFile) -> tuple[Any, str]:
    """The file system of fsspec for a folder of objects, and the path of the folder in it."""
    with _reading(file.address):
        return store_of(file.address).as_fsspec(file.address)


def read_bytes(path: Path | Address) -> bytes:
    """The content of a small file."""
    if isinstance(path, Path):
        return path.read_bytes()
    with open_remote(require_file(path)) as file:
        content: bytes = file.read()
    return content


def path_exists(path: Path | Address) -> bool:
    """Whether there is a file."""
    return os.path.exists(path) if isinstance(path, Path) else find_file(path) is not None


def remove_file(path: Path | Address) -> None:
    """Remove a file, if there is one."""
    if isinstance(path, Path):
        path.unlink(missing_ok=True)
    else:
        with _writing(path):
            store_of(path).remove(path)


def upload_file(source: Path, address: Address) -> None:
    """Write the bytes of a file here to an object."""
    with _writing(address):
        store_of(address).upload(source, address)


def check_uploadable(address: Address) -> None:
    """Raise `OutputError` now if an object cannot be written."""
    if not address.name or address.key.endswith("/"):
        raise OutputError(f"Cannot write {address}: it is a folder; name a file in it.")
    with _writing(address):
        reason = store_of(address).obstacle(address)
    if reason is not None:
        raise OutputError(f"Cannot write {address}: {reason}.")


def map_files(
    function: Callable[[_Item], _Result], items: Sequence[_Item], remote: bool
) -> list[_Result]:
    """Apply a function that looks something up to each item; several at a time if they are
    `remote`, where most of the time is spent waiting.
    """
    if not remote or len(items) < 2:
        return list(map(function, items))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(items), _CONCURRENT), "ckm-store") as pool:
        return list(pool.map(function, items))


def any_remote(paths: Iterable[object]) -> bool:
    """Whether one of some files is not on this machine."""
    return any(isinstance(path, RemoteFile | Address) for path in paths)


def describe_failure(error: BaseException, address: Address) -> str:
    """The first line of an error of another library, without credentials."""
    text = str(error) or type(error).__name__
    return address.hide_secrets(with_attempts(text.splitlines()[0].rstrip("."), error))


def with_attempts(reason: str, error: BaseException) -> str:
    """The reason for an error, with how often a request is made before it fails."""
    is_final = isinstance(error, FileNotFoundError | PermissionError)
    if not isinstance(error, OSError) or is_final or _TRIED in reason:
        return reason
    return f"{reason} (requests are {_TRIED})"


@contextmanager
def _reading(address: Address) -> Iterator[None]:
    """Around requests: their errors become `InputFileError`, without credentials."""
    with _translating(address, InputFileError, "Cannot read", "and try again"):
        yield


@contextmanager
def _writing(address: Address) -> Iterator[None]:
    """Around requests: their errors become `OutputError`, without credentials."""
    with _translating(address, OutputError, "Cannot write", "or choose another output"):
        yield


@contextmanager
def _translating(address: Address, kind: type[CkmError], verb: str, remedy: str) -> Iterator[None]:
    try:
        yield
    except CkmError:
        raise
    except FileNotFoundError:
        raise missing(address) from None
    except (OSError, ValueError, NotImplementedError) as error:
        # Not chained, since the first error may quote credentials.
        raise kind(
            f"{verb} {address}: {describe_failure(error, address)}; check the address, your "
            f"credentials and the network, {remedy}."
        ) from None
