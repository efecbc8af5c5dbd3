"""Files on web servers (`https://`, `http://`), of which ranges of bytes are requested.

The client is that of fsspec (aiohttp), which takes proxies and `~/.netrc` from where they usually
are. Needs `compressive-kmeans[remote]`.
"""

import os
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from ckm._util.address import Address
from ckm._util.stores import (
    CONNECT_SECONDS,
    READ_SECONDS,
    Entry,
    RemoteFile,
    State,
    Store,
    changed,
)
from ckm._util.stores.fsspec import import_fsspec
from ckm._util.stores.ranges import as_arrow_file, with_retries
from ckm.errors import CkmError, InputFileError

# Answers after which a request is made again: too many requests, and troubles of the server.
_TOO_MANY = 429
_TROUBLE = 500
_PARTIAL = 206
_MISSING = (404, 410)
_FORBIDDEN = (401, 403, 407)
_BEYOND = 416
# Bytes before the first of a file, as the answer to a request beyond its end names them.
_EMPTY = "bytes */0"


class _Refused(OSError):
    """An answer that will be the same next time."""


class _Answer(NamedTuple):
    """What a server sent: some bytes, those of the whole file, and what identifies it."""

    body: bytes
    state: State


class WebStore(Store):
    """The files of one server."""

    def __init__(self, filesystem: Any) -> None:
        self._fs = filesystem

    def state(self, address: Address) -> State | None:
        if not address.key or address.key.endswith("/"):
            return None
        # A signature is often that of GET alone, so that HEAD would be refused.
        return self._request(address, 0, 1).state

    def children(self, address: Address) -> list[Entry]:
        folder = address.complete.partition("?")[0].rstrip("/") + "/"
        key = address.key.rstrip("/")
        try:
            listed = with_retries(partial(self._list, folder), _is_final)
        except FileNotFoundError:
            return []
        entries = []
        for name in listed:
            inside = name.removeprefix(folder)
            is_direct = name.startswith(folder) and "/" not in inside.rstrip("/")
            if is_direct and inside and not inside.startswith(("?", "#", ".")):
                path = f"{key}/{inside}".strip("/")
                entries.append(Entry(path, inside.endswith("/")))
        return sorted(entries)

    def walk(self, address: Address) -> list[Entry]:
        found = []
        for entry in self.children(address):
            if entry.is_folder:
                found += self.walk(address.at(entry.key))
            else:
                found.append(entry)
        return found

    def open(self, file: RemoteFile) -> Any:
        def read_at(offset: int, count: int) -> bytes:
            answer = self._request(file.address, offset, count)
            if answer.state != State(file.size, file.tag):
                raise changed(file)
            return answer.body

        return as_arrow_file(read_at, file.size)

    def upload(self, source: Path, address: Address) -> None:
        raise _Refused("web servers are only read")

    def remove(self, address: Address) -> None:
        raise _Refused("web servers are only read")

    def as_fsspec(self, address: Address) -> tuple[Any, str]:
        raise _Refused("web servers do not list folders")

    def obstacle(self, address: Address) -> str | None:
        return (
            "web servers are only read; name a file, or an object of a store (s3://, gs://, az://)"
        )

    def _request(self, address: Address, offset: int, count: int) -> _Answer:
        """Some bytes of a file; requested again where that may help."""
        from fsspec.asyn import sync

        get = partial(sync, self._fs.loop, self._get, address, offset, count)
        answer: _Answer = with_retries(get, _is_final)
        return answer

    async def _get(self, address: Address, offset: int, count: int) -> _Answer:
        import aiohttp
        import yarl

        text = address.complete
        # What is encoded already is sent as it is: a signature may depend on it.
        url = yarl.URL(text, encoded="%" in text)
        headers = {"Range": f"bytes={offset}-{offset + count - 1}", "Accept-Encoding": "identity"}
        session = await self._fs.set_session()
        try:
            async with session.get(url, headers=headers) as answer:
                _check_status(address, answer)
                body = b"" if answer.status == _BEYOND else await answer.read()
                state = _state_of(answer.headers)
        except (aiohttp.ClientError, TimeoutError) as error:
            what = str(error) or "no answer in time"
            raise OSError(f"{type(error).__name__}, {what}") from None
        expected = max(0, min(count, state.size - offset))
        if len(body) != expected:
            raise OSError(f"the server sent {len(body)} of {expected} bytes")
        return _Answer(body, state)

    def _list(self, folder: str) -> list[str]:
        """The links of the page of a folder."""
        import aiohttp

        try:
            names: list[str] = self._fs.ls(folder, detail=False)
            return names
        except aiohttp.ClientResponseError as error:
            kind = OSError if error.status >= _TROUBLE else _Refused
            raise kind(f"the server answered {error.status} {error.message}") from None
        except aiohttp.ClientError as error:
            raise OSError(f"{type(error).__name__}, {error}") from None


def _check_status(address: Address, answer: Any) -> None:
    """Raise an error unless the answer holds the bytes that were asked for."""
    status = answer.status
    text = f"the server answered {status} {answer.reason}".strip()
    is_empty = status == _BEYOND and answer.headers.get("Content-Range") == _EMPTY
    if status == _PARTIAL or is_empty:
        return
    if status in _MISSING:
        raise FileNotFoundError(text)
    if status in _FORBIDDEN:
        raise PermissionError(text)
    if status >= _TROUBLE or status == _TOO_MANY:
        raise OSError(text)
    if status < 300:
        raise InputFileError(
            f"Cannot read {address}: its server sends whole files only, not some bytes of them; "
            "fetch it first, or pipe it into - (CSV or an Arrow stream)."
        )
    raise _Refused(text)


def _state_of(headers: Any) -> State:
    """The size of a file, and its ETag or its time of change."""
    total = headers.get("Content-Range", "").rpartition("/")[2]
    if not total.isdigit():
        raise _Refused("the server does not say how large the file is")
    return State(int(total), headers.get("ETag") or headers.get("Last-Modified") or "")


def _is_final(error: Exception) -> bool:
    return isinstance(error, (FileNotFoundError, PermissionError, CkmError, _Refused))


def store_for(address: Address) -> WebStore:
    """The store of an address; all servers share one client in each process."""
    return _store(os.getpid())


@lru_cache(maxsize=1)
def _store(process: int) -> WebStore:
    fsspec = import_fsspec("https", "aiohttp")
    import aiohttp

    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS
    )
    filesystem = fsspec.filesystem(
        "https",
        client_kwargs={"timeout": timeout, "trust_env": True},
        skip_instance_cache=True,
    )
    return WebStore(filesystem)
