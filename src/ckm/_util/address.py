"""Addresses of objects in stores and on servers: `s3://bucket/key`, `https://host/path`.

An address may hold credentials: a user and a password before the host, a signature in its query.
They are sent to the server and nowhere else: what is printed, logged or written to a file is
`str(address)`, which leaves them out.

An `Address` is accepted wherever the name of a file is, as `pathlib.Path` is.
"""

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import url2pathname

from ckm.errors import ParameterError

INNER = "::"  # between the name of a file and that of an array inside it
WEB = frozenset({"http", "https"})
# Stores of objects, in whose keys every character counts: `?` is part of a pattern there.
_STORES = frozenset({"s3", "gs", "gcs", "az", "abfs", "abfss"})
AZURE = frozenset({"az", "abfs", "abfss"})
# At least two letters, since one is a drive of Windows.
_START = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
# The options that Arrow reads from the address of a store.
_OPTION = r"(?:region|scheme|endpoint_override)=[^&/]*"
_OPTIONS = re.compile(rf"\?({_OPTION}(?:&{_OPTION})*)$")
# What servers are sent in the environment, and nobody is shown.
_SECRET_VARIABLES = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_CLIENT_SECRET",
)
_HIDDEN = "..."
# Letters of a secret, at least: shorter ones are in every other word.
_MIN_SECRET = 4
# The user, and the query, of an address in a text.
_USER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://)[^/\s'\"]*@")
_QUERY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^\s?'\"]+)\?[^\s'\")]+")


@dataclass(frozen=True)
class Address:
    """The address of an object, of a folder of objects, or of a pattern of names.

    Parameters
    ----------
    scheme : str
        `s3`, `https`, ..., in lower case.
    host : str
        The bucket, the container, or the server with its port.
    key : str
        The name in it, without a slash at its start.
    user : str
        What comes before the host: perhaps a password too.
    query : str
        What comes after a question mark: perhaps a signature.
    inner : str or None
        The name of an array inside the file.

    Examples
    --------
    >>> print(parse_address("https://ann:secret@host/rows.csv?token=secret"))
    https://host/rows.csv?...
    """

    scheme: str
    host: str
    key: str
    user: str = field(default="", repr=False)
    query: str = field(default="", repr=False)
    inner: str | None = None

    def __str__(self) -> str:
        query = f"?{_HIDDEN}" if self.query else ""
        inner = "" if self.inner is None else f"{INNER}{self.inner}"
        return f"{self.scheme}://{self.host}/{self.key}{query}{inner}"

    def __fspath__(self) -> str:
        return self.complete

    @property
    def complete(self) -> str:
        """The address with its credentials: for the server, and for nobody else."""
        user = f"{self.user}@" if self.user else ""
        query = f"?{self.query}" if self.query else ""
        inner = "" if self.inner is None else f"{INNER}{self.inner}"
        return f"{self.scheme}://{user}{self.host}/{self.key}{query}{inner}"

    @property
    def identity(self) -> str:
        """What two addresses of one object have in common."""
        query = f"?{self.query}" if self.scheme in WEB else ""
        return f"{self.scheme}://{self.host}/{self.key.rstrip('/')}{query}"

    @property
    def is_web(self) -> bool:
        """Whether it is that of a web server, which objects are only read from."""
        return self.scheme in WEB

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rstrip("/").rpartition("/")[2]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the key between slashes."""
        return PurePosixPath(self.key).parts

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return PurePosixPath(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        """The endings of the name."""
        return PurePosixPath(self.name).suffixes

    def at(self, key: str) -> Self:
        """The address of another object of the same store."""
        return replace(self, key=key)

    def hide_secrets(self, text: str) -> str:
        """Return `text`, which another library wrote, without the credentials it may quote."""
        secrets = {self.query, self.user, self.user.partition(":")[2]}
        secrets |= {value for _, value in parse_qsl(self.query)}
        secrets |= {unquote(secret) for secret in secrets}
        return _without(hide_secrets(text), secrets)


def hide_secrets(text: str) -> str:
    """Return `text`, which another library wrote, without credentials of the environment, and
    without users and queries of addresses in it.

    >>> hide_secrets("cannot get https://ann:secret@host/rows.csv?token=secret today")
    'cannot get https://host/rows.csv?... today'
    """
    text = _without(text, {os.environ.get(name, "") for name in _SECRET_VARIABLES})
    text = _USER.sub(r"\1", text)
    return _QUERY.sub(rf"\1?{_HIDDEN}", text)


def _without(text: str, secrets: set[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, _HIDDEN)
    return text


def is_address(name: object) -> bool:
    """Whether a name is an address, not that of a file here."""
    return isinstance(name, Address) or (isinstance(name, str) and _START.match(name) is not None)


def parse_address(text: str) -> Address:
    """Take an address apart.

    Raises `ParameterError` for one without a bucket or server.
    """
    found = _START.match(text)
    if found is None:
        raise ParameterError(f"{text} is not an address, such as s3://bucket/name.")
    scheme = found[1].lower()
    rest = text[found.end() :]
    query = ""
    if scheme not in _STORES:
        rest = rest.partition("#")[0]
        rest, _, query = rest.partition("?")
        if INNER in query:
            query, _, inner = query.partition(INNER)
            rest += f"{INNER}{inner}"
    elif options := _OPTIONS.search(rest):
        query = options[1]
        rest = rest[: options.start()]
    place, _, key = rest.partition("/")
    user, host = _split_user(scheme, place)
    if not host and scheme in _STORES | WEB:
        raise ParameterError(
            f"{scheme}://{host}/{key} names no {'server' if scheme in WEB else 'bucket'}; write "
            f"{scheme}://{'HOST' if scheme in WEB else 'BUCKET'}/NAME (perhaps a variable is not "
            f"set)."
        )
    key, mark, inner = key.lstrip("/").partition(INNER)
    host = host.lower() if scheme in WEB else host
    return Address(scheme, host, key, user, query, inner if mark else None)


def _split_user(scheme: str, place: str) -> tuple[str, str]:
    """Split what comes before the host, which for Azure is the container, not a user."""
    if scheme in AZURE:
        return "", place
    user, _, host = place.rpartition("@")
    return user, host


def local_path(text: str) -> Path:
    """The file that an address `file://` means."""
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise ParameterError(
            f"{text} names the machine {parts.netloc!r}; write file:///FOLDER/NAME, with three "
            "slashes."
        )
    return Path(url2pathname(parts.path))


def as_path(name: str | os.PathLike[str]) -> Path | Address:
    """The file here, or the address, that a name means.

    >>> as_path("rows.csv"), str(as_path("S3://bucket/rows.csv"))
    (PosixPath('rows.csv'), 's3://bucket/rows.csv')
    """
    if isinstance(name, Address):
        return name
    text = os.fspath(name)
    if not is_address(text):
        return Path(text)
    if text.lower().startswith("file://"):
        return local_path(text)
    return parse_address(text)
