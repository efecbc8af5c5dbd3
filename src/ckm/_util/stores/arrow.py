"""S3, Google Cloud Storage and Azure Blob Storage, by Arrow's own file systems.

Credentials are found as the tools of each store find them: in the environment, in configuration
files, from the machine. Requests that fail are repeated by Arrow, a limited number of times.
"""

import ctypes
import os
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl

import pyarrow as pa
import pyarrow.fs as pa_fs

from ckm._util.address import AZURE, Address
from ckm._util.stores import (
    ATTEMPTS,
    CONNECT_SECONDS,
    READ_SECONDS,
    Entry,
    RemoteFile,
    State,
    Store,
    changed,
)
from ckm._util.stores.fsspec import import_fsspec
from ckm._util.stores.ranges import read_patiently

# The user of an address that asks for no credentials, as in gs://anonymous@bucket/name.
_ANONYMOUS = "anonymous"
# Seconds for which Google's client repeats a request.
_GCS_RETRY_SECONDS = 60.0
# Bytes of an object, at most, that is requested as a whole.
_SMALL_BYTES = 2**16
# The variables that decide which file system an address gets.
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_", "STORAGE_EMULATOR_HOST")
# What identifies the contents of an object, the best first, as stores name it.
_TAGS = ("etag", "generation", "versionid", "last-modified")


class ArrowStore(Store):
    """The objects that one of Arrow's file systems reaches."""

    def __init__(self, filesystem: Any, container: str) -> None:
        self._fs = filesystem
        self._container = container

    def state(self, address: Address) -> State | None:
        path = self._path(address)
        try:
            with self._fs.open_input_file(path) as file:
                return _state_of(file)
        except FileNotFoundError:
            return None
        except OSError:
            # Some stores call it an error to open a folder.
            if self._fs.get_file_info(path).type == pa_fs.FileType.Directory:
                return None
            raise

    def children(self, address: Address) -> list[Entry]:
        return self._list(address, recursive=False)

    def walk(self, address: Address) -> list[Entry]:
        return [entry for entry in self._list(address, recursive=True) if not entry.is_folder]

    def _list(self, address: Address, recursive: bool) -> list[Entry]:
        folder = self._path(address).rstrip("/")
        selector = pa_fs.FileSelector(folder, allow_not_found=True, recursive=recursive)
        entries = []
        for info in self._fs.get_file_info(selector):
            key = info.path.removeprefix(f"{self._container}/")
            is_folder = info.type == pa_fs.FileType.Directory
            stamp = "" if is_folder else str(info.mtime_ns)
            entries.append(Entry(key, is_folder, info.size or 0, stamp))
        return entries

    def open(self, file: RemoteFile) -> Any:
        opened = self._fs.open_input_file(self._path(file.address))
        if _state_of(opened) != State(file.size, file.tag):
            opened.close()
            raise changed(file)
        if file.size <= _SMALL_BYTES:
            return pa.BufferReader(read_patiently(opened, 0, file.size))
        return opened

    def upload(self, source: Path, address: Address) -> None:
        # In a thread, which no signal interrupts: a stream of Arrow that is left in the middle
        # completes the object with what was written so far.
        failures = list[BaseException]()
        thread = Thread(target=self._put, args=(source, address, failures), daemon=True)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]

    def _put(self, source: Path, address: Address, failures: list[BaseException]) -> None:
        try:
            with pa.memory_map(str(source)) as file:
                content = file.read_buffer()
                # Without compression, which Arrow would choose by the name.
                stream = self._fs.open_output_stream(self._path(address), compression=None)
                try:
                    stream.write(content)
                    stream.close()
                except BaseException:
                    _keep_forever(stream)
                    raise
        except BaseException as error:
            failures.append(error)

    def remove(self, address: Address) -> None:
        with suppress(FileNotFoundError):
            self._fs.delete_file(self._path(address))

    def as_fsspec(self, address: Address) -> tuple[Any, str]:
        import_fsspec(address.scheme)
        from fsspec.implementations.arrow import ArrowFSWrapper

        class Wrapper(ArrowFSWrapper):  # type: ignore[misc]
            # That of fsspec is for HDFS, and fails for others.
            fsid = "arrow"

        return Wrapper(self._fs, skip_instance_cache=True), self._path(address)

    def obstacle(self, address: Address) -> str | None:
        try:
            found = self._fs.get_file_info(self._container)
        except PermissionError:
            return None
        except OSError as error:
            # Who may write objects need not be allowed to look at the bucket.
            if "ACCESS_DENIED" in str(error):
                return None
            raise
        if found.type == pa_fs.FileType.NotFound:
            return f"there is no bucket {self._container!r}; make it first, or check its name"
        return None

    def _path(self, address: Address) -> str:
        return f"{self._container}/{address.key}" if address.key else self._container


def _keep_forever(stream: Any) -> None:
    """Prevent that a stream whose upload failed is ever released.

    Arrow would then complete the object with the parts that arrived, and has no way to abort. The
    store keeps the parts of the upload, which nobody sees, as long as its rules say.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))


def _has_azure() -> bool:
    """Whether this version of Arrow reaches Azure."""
    try:
        return hasattr(pa_fs, "AzureFileSystem")
    except ImportError:
        return False


def store_for(address: Address) -> Store:
    """The store of an address, with the credentials that are set now."""
    if address.scheme in AZURE and not _has_azure():
        from ckm._util.stores import fsspec

        return fsspec.store_for(address)
    variables = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_VARIABLES)))
    return _store(address.scheme, address.host, address.user, address.query, variables)


@lru_cache(maxsize=32)
def _store(
    scheme: str, host: str, user: str, query: str, variables: tuple[tuple[str, str], ...]
) -> ArrowStore:
    """The store with these settings; kept, since opening one takes a while."""
    if scheme == "s3":
        return ArrowStore(_s3(host, user, dict(parse_qsl(query))), host)
    if scheme in ("gs", "gcs"):
        limit = timedelta(seconds=_GCS_RETRY_SECONDS)
        return ArrowStore(_gcs(user == _ANONYMOUS, limit), host)
    container, _, server = host.partition("@")
    return ArrowStore(_azure(server), container)


def _s3(bucket: str, user: str, options: dict[str, str]) -> Any:
    """S3, or a server that speaks its language, named by AWS_ENDPOINT_URL."""
    environment = os.environ
    endpoint = options.get("endpoint_override") or (
        environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    )
    region = options.get("region") or (
        environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    )
    if region is None and endpoint is None:
        # A bucket answers in its own region only. Without an answer Arrow finds one itself.
        with suppress(OSError):
            region = pa_fs.resolve_s3_region(bucket)
    key, _, secret = user.partition(":")
    settings = {
        "access_key": key if secret else None,
        "secret_key": secret or None,
        "anonymous": user == _ANONYMOUS,
        "region": region,
        "scheme": options.get("scheme"),
        "endpoint_override": endpoint,
        "connect_timeout": CONNECT_SECONDS,
        "request_timeout": READ_SECONDS,
        # One part of an upload in memory at a time.
        "background_writes": False,
        "retry_strategy": pa_fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    }
    try:
        # Small objects are then written by one request.
        return pa_fs.S3FileSystem(**settings, allow_delayed_open=True)
    except TypeError:  # before pyarrow 19
        return pa_fs.S3FileSystem(**settings)


def _gcs(is_anonymous: bool, limit: timedelta) -> Any:
    """Google Cloud Storage, or the server that STORAGE_EMULATOR_HOST names."""
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    if emulator is None:
        return pa_fs.GcsFileSystem(anonymous=is_anonymous, retry_time_limit=limit)
    scheme, mark, host = emulator.rpartition("://")
    return pa_fs.GcsFileSystem(
        anonymous=True,
        scheme=scheme if mark else "http",
        endpoint_override=host.rstrip("/"),
        retry_time_limit=limit,
    )


def _azure(server: str) -> Any:
    """Azure Blob Storage, with the account of the address or of the environment."""
    environment = os.environ
    settings = dict(
        item.partition("=")[::2]
        for item in environment.get("AZURE_STORAGE_CONNECTION_STRING", "").split(";")
    )
    account = server.partition(".")[0] or (
        environment.get("AZURE_STORAGE_ACCOUNT_NAME")
        or environment.get("AZURE_STORAGE_ACCOUNT")
        or settings.get("AccountName")
    )
    if not account:
        raise ValueError(
            "the storage account is not known (set AZURE_STORAGE_ACCOUNT_NAME, or write "
            "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME)"
        )
    key = (
        environment.get("AZURE_STORAGE_ACCOUNT_KEY")
        or environment.get("AZURE_STORAGE_KEY")
        or settings.get("AccountKey")
    )
    token = environment.get("AZURE_STORAGE_SAS_TOKEN") or settings.get("SharedAccessSignature")
    more: dict[str, str] = {}
    if not key and token:
        more["sas_token"] = token
    scheme, mark, authority = settings.get("BlobEndpoint", "").rpartition("://")
    if mark:
        authority = authority.partition("/")[0]
        more |= {"blob_storage_authority": authority, "blob_storage_scheme": scheme}
        more |= {"dfs_storage_authority": authority, "dfs_storage_scheme": scheme}
    return pa_fs.AzureFileSystem(account, key or None, **more)


def _state_of(file: Any) -> State:
    """The state of an open object."""
    found = {}
    for name, value in (file.metadata() or {}).items():
        text = value.decode() if isinstance(value, bytes) else str(value)
        found[name.lower().replace("_", "-")] = text
    tag = next((found[name] for name in _TAGS if found.get(name)), "")
    return State(file.size(), tag)
