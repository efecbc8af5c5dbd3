"""Files that appear whole under their name, or not at all."""

import os
import secrets
import tempfile
from pathlib import Path

from ckm.errors import OutputError


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write `data` under a temporary name beside `path`, sync it, and rename it into place; a link
    stays a link.
    """
    check_writable(path)
    target = Path(os.path.realpath(path))
    try:
        temporary = target.with_name(f".ckm-{os.getpid()}-{secrets.token_hex(8)}.part")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise OutputError(
            f"Cannot write {target}: {error.strerror or error}; choose another output."
        ) from error


def check_writable(path: str | Path) -> None:
    """Raise now what writing `path` would raise later: call it before a long pass over the data."""
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
    if target.is_dir():
        return "it is a directory; name a file in it"
    if not target.parent.is_dir():
        return f"the folder {target.parent} does not exist; make it first"
    if target.exists() and not target.is_file():
        return "it is not a regular file; choose another output"
    if target.exists() and not os.access(target, os.W_OK):
        return "the file is read-only; choose another output"
    return None
