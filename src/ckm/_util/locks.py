"""Locks of files that take long to make, so that two processes do not overwrite each other."""

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from ckm._util.address import Address, as_path
from ckm.errors import OutputError

_log = logging.getLogger(__name__)

# Windows has no such module.
_fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None

# Enough for the number of a process.
_OWNER_BYTES = 32


def lock_name(path: str | os.PathLike[str]) -> str:
    """The name of the file whose lock protects `path`."""
    return f"{os.path.realpath(path)}.lock"


class WriteLock:
    """The exclusive right to write a file, until `release` or the end of the process.

    It is a lock of the operating system on a file beside it, whose name ends in `.lock`: the
    operating system releases it if the process is killed, and the file that is then left behind
    does no harm. File systems without such locks, Windows, and object stores are not protected.

    Parameters
    ----------
    path : str or path
        The file to write. It need not exist.

    Raises
    ------
    OutputError
        If the lock is held by another process, or elsewhere in this one; or if the file beside it
        holds anything else than the number of a process.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._descriptor: int | None = None
        place = as_path(path)
        if _fcntl is None or isinstance(place, Address):
            return
        self._name = lock_name(place)
        while self._descriptor is None:
            try:
                self._descriptor = self._try_to_lock()
            except BlockingIOError as error:
                raise OutputError(
                    f"Cannot write {place}: {self._owner()} is writing it; wait until it "
                    "ends, or choose another name."
                ) from error
            except OutputError:
                raise
            except OSError as error:
                raise OutputError(
                    f"Cannot lock {place} with {self._name}: {error.strerror or error}; "
                    "choose another output."
                ) from error

    def _try_to_lock(self) -> int | None:
        """The descriptor of the locked file; None if the file was removed in the meantime."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._name, flags, 0o666)
        try:
            self._require_own_file(descriptor)
            try:
                _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError as error:
                _log.info("no locks here: %s (%s)", self._name, error)
            # Whoever held the lock before removes the file: the lock of a removed file is void.
            is_present = _is_present(self._name, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if not is_present:
            os.close(descriptor)
            return None
        with suppress(OSError):  # A full disk, perhaps. The number is for messages only.
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        return descriptor

    def _require_own_file(self, descriptor: int) -> None:
        """Refuse a file that is not a lock, which would be overwritten and removed."""
        found = os.pread(descriptor, _OWNER_BYTES + 1, 0)
        if found and not (len(found) <= _OWNER_BYTES and found.isdigit()):
            raise OutputError(
                f"Cannot lock {self._name.removesuffix('.lock')}: {self._name} is another file, "
                "not a lock; rename it, or choose another output."
            )

    def _owner(self) -> str:
        """The process that holds the lock, in words."""
        try:
            with open(self._name, "rb") as file:
                number = int(file.read(_OWNER_BYTES))
        except (OSError, ValueError):
            return "another process"
        return "this process" if number == os.getpid() else f"another process ({number})"

    def release(self) -> None:
        """Give up the lock; does nothing the second time."""
        if self._descriptor is None:
            return
        # Removed before it is unlocked, so that nobody else's file is removed.
        with suppress(OSError):
            os.unlink(self._name)
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


# The locks that the command that is running keeps.
_kept: ContextVar[ExitStack | None] = ContextVar("kept", default=None)


@contextmanager
def keep_locks() -> Iterator[None]:
    """Around a command: locks of `lock_for_command` are released when it ends."""
    with ExitStack() as stack:
        token = _kept.set(stack)
        try:
            yield
        finally:
            _kept.reset(token)


def lock_for_command(path: str | os.PathLike[str]) -> None:
    """Lock a file until the command ends; only try whether it can be locked outside of one."""
    lock = WriteLock(path)
    stack = _kept.get()
    if stack is None:
        lock.release()
    else:
        stack.enter_context(lock)


def _is_present(name: str, descriptor: int) -> bool:
    """Whether the open file is still the one with this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(name))
    except FileNotFoundError:
        return False
