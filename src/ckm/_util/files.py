"""Names of files, and atomic writes: a file appears complete under its name, or not at all."""

import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ckm._util.address import Address, as_path
from ckm._util.stores import check_uploadable, upload_file
from ckm.errors import CkmError, OutputError, ParameterError

# Permissions of a file that is not there yet, from which the system takes those of the umask.
_NEW_FILE_MODE = 0o666


Name = str | os.PathLike[str]


@contextmanager
def atomic_file(path: Name) -> Iterator[BinaryIO]:
    """Open a binary file, readable and writable, that replaces `path` when the block ends.

    For an address, the bytes go to a temporary file, which becomes the object when the block ends
    without an exception.

    Otherwise they go to a temporary file in the same directory, which is synced to disk and renamed
    when the block ends without an exception, and removed otherwise. A file that is replaced passes
    its permissions on. A symbolic link at `path` stays a link: its target is replaced. Errors of
    the operating system become `OutputError`.
    """
    check_writable(path)
    place = as_path(path)
    if isinstance(place, Address):
        with _uploaded(place) as file:
            yield file
        return
    target = Path(os.path.realpath(place))
    try:
        mode = _permissions(target)
        temporary, descriptor = _open_temporary(target, _NEW_FILE_MODE if mode is None else mode)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                # The umask may have removed permissions that the old file has.
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(descriptor, mode)
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            # It is gone if Ctrl-C came right after it was renamed.
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except CkmError:  # some are OSErrors as well, and say more
        raise
    except OSError as error:
        raise OutputError(
            f"Cannot write {target}: {error.strerror or error}; choose another output."
        ) from error


@contextmanager
def _uploaded(address: Address) -> Iterator[BinaryIO]:
    """Open a temporary file that is written to an address when the block ends."""
    with tempfile.TemporaryDirectory(prefix="ckm-") as folder:
        temporary = Path(folder, "object")
        with temporary.open("w+b") as file:
            yield file
        upload_file(temporary, address)


def write_atomically(path: Name, data: bytes) -> None:
    """Write `data` to `path` by `atomic_file`."""
    with atomic_file(path) as file:
        file.write(data)


def check_name(path: Name) -> None:
    """Raise `ParameterError` for an empty name: `Path` would take it for the current folder."""
    name = os.fspath(path)
    if not name:
        raise ParameterError(
            "The name of a file is empty; name the file (perhaps a variable is not set)."
        )
    if "\0" in name:
        raise ParameterError(
            f"{str(as_path(path))!r} is not the name of a file: it has a null character."
        )


def check_writable(path: Name) -> None:
    """Raise `OutputError` now if `path` cannot be written, before a long pass over the data."""
    check_name(path)
    target = as_path(path)
    if isinstance(target, Address):
        check_uploadable(target)
        return
    try:
        reason = _obstacle(target)
        if reason is None:
            with tempfile.TemporaryFile(dir=Path(os.path.realpath(target)).parent):
                return
    except OSError as error:
        reason = f"{error.strerror or error}; choose another output"
    raise OutputError(f"Cannot write {target}: {reason}.")


def _permissions(target: Path) -> int | None:
    """The permissions of an existing file; None if there is none."""
    try:
        return stat.S_IMODE(target.stat().st_mode) & 0o777
    except FileNotFoundError:
        return None


def _open_temporary(target: Path, mode: int) -> tuple[Path, int]:
    """A new file beside `target`, and its descriptor.

    Nobody can guess its name, and O_EXCL refuses a file or link that is already there.
    """
    temporary = target.with_name(f".ckm-{secrets.token_hex(16)}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    return temporary, os.open(temporary, flags | getattr(os, "O_BINARY", 0), mode)


def _obstacle(target: Path) -> str | None:
    """Why `target` cannot be written, with the remedy; None if nothing is known to prevent it."""
    real = Path(os.path.realpath(target))
    folder = real.parent if target.is_symlink() else target.parent
    if target.is_dir():
        return "it is a directory; name a file in it"
    if real.is_symlink():
        return "it is a symbolic link to itself; choose another output"
    if not folder.is_dir():
        return f"the folder {folder} does not exist; make it first"
    if target.exists() and not target.is_file():
        return "it is not a regular file; choose another output"
    if target.exists() and not os.access(target, os.W_OK):
        return "the file is read-only; choose another output"
    return None
