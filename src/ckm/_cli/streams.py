"""Standard streams: what is printed to people, and streams that are closed or full."""

import errno
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, TextIO

from ckm._util.text import visible

# A full disk or quota, a closed descriptor, a file that may not grow, a failing device.
_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EBADF, errno.EFBIG, errno.EIO)


def say(message: str, quiet: bool = False) -> None:
    """Print one line on standard error, apart from the results on standard output.

    A full disk behind standard error does not end the command: there is no place to report it.
    """
    if quiet:
        return
    try:
        print(visible(" ".join(message.split())), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def log_to_stderr(verbose: bool) -> bool:
    """Show the library's log on standard error."""
    if verbose:
        handler = logging.StreamHandler()
        handler.setFormatter(EscapingFormatter("%(message)s"))
        logging.basicConfig(handlers=[handler], force=True)
        logging.getLogger("ckm").setLevel(logging.INFO)
    return verbose


class EscapingFormatter(logging.Formatter):
    """Shows control characters, which the name of a file may contain, escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of the log."""
        return visible(super().format(record))


@contextmanager
def report_lost_output() -> Iterator[None]:
    """Report in one line, with exit status 1, that standard output could not take the results, or
    that the operating system refused something else.
    """
    try:
        try:
            yield
        finally:
            # A full disk is noticed here, not while the interpreter shuts down.
            sys.stdout.flush()
    except UnicodeEncodeError as error:
        lacking = error.object[error.start : error.end]
        _fail(
            f"Standard output is in {error.encoding}, which cannot write {lacking!a}; set "
            "PYTHONIOENCODING=utf-8, or write to a file (-o)."
        )
    except OSError as error:
        reason = error.strerror or str(error)
        # Errors of files have names, or are errors of the library.
        if error.filename is None and error.errno in _WRITE_ERRORS:
            discard(sys.stdout)
            _fail(f"Cannot write to standard output: {reason}; write to a file (-o).")
        _fail(f"{reason}." if error.filename is None else f"{error.filename}: {reason}.")


def _fail(sentence: str) -> NoReturn:
    say(f"Error: {sentence}")
    sys.exit(1)


def discard(stream: TextIO) -> None:
    """Let everything that is written to `stream` from now on, and what it still holds, vanish."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def open_closed_streams() -> None:
    """Give closed standard streams (`>&-`) a descriptor, so that no other file gets theirs.

    Reading standard input and writing standard output remain errors; what is written to standard
    error is lost.
    """
    # A new descriptor has the smallest number that is free: that of the closed stream.
    if sys.stdin is None:
        os.open(os.devnull, os.O_WRONLY)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
