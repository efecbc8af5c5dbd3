"""Atomic writes: a file appears complete under its name, or not at all."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ckm.errors import CkmError, OutputError


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file, readable and writable, that replaces `path` when the block ends.

    The bytes go to a temporary file in the same directory, which is synced to disk and renamed
    when the block ends without an exception, and removed otherwise. A symbolic link at `path`
    stays a link: its target is replaced. Errors of the operating system become `OutputError`.
    """
    check_writable(path)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".ckm-{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        # O_EXCL: never write through a file or link that somebody else put there.
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except CkmError:  # some are OSErrors as well, and say more
        raise
    except OSError as error:
        raise OutputError(
            f"Cannot write {target}: {error.strerror or error}; choose another output."
        ) from error


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` by `atomic_file`."""
    with atomic_file(path) as file:
        file.write(data)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise `OutputError` now if `path` cannot be written, before a long pass over the data."""
    target = Path(path)
    try:
        reason = _obstacle(target)
        if reason is None:
            with tempfile.TemporaryFile(dir=target.parent):
                return
    except OSError as error:
        reason = f"{error.strerror or error}; choose another output"
    raise OutputError(f"Cannot write {target}: {reason}.")


def _obstacle(target: Path) -> str | None:
    """Why `target` cannot be written, with the remedy; None if nothing is known to prevent it."""
    if target.is_dir():
        return "it is a directory; name a file in it"
    if not target.parent.is_dir():
        return f"the folder {target.parent} does not exist; make it first"
    if target.exists() and not target.is_file():
        return "it is not a regular file; choose another output"
    if target.exists() and not os.access(target, os.W_OK):
        return "the file is read-only; choose another output"
    return None
