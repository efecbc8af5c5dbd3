"""Where the command line meets its shell: errors as one line, exit statuses, warnings, interrupts
and closed pipes.
"""

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import typer
import typer.core

from ckm.errors import (
    CkmError,
    ColumnsWarning,
    HeadWarning,
    MissingRowsWarning,
    PhaseWarning,
    ScaleWarning,
    SmallSketchWarning,
)

_SHOWN = (
    ColumnsWarning,
    HeadWarning,
    MissingRowsWarning,
    PhaseWarning,
    ScaleWarning,
    SmallSketchWarning,
)
_OPTIONS = {
    "n_clusters": "clusters",
    "sketch_size": "sketch-size",
    "random_state": "seed",
    "n_jobs": "jobs",
    "n_init": "n-init",
    "weight_column": "weight-column",
}
# What only some functions take in Python, every command that could need it has as an option, but
# for --like.
_TAKEN = re.compile(r"; ckm\.sketch(?: and Solution\.predict take| takes) (?=nan='drop')")
_CALL = re.compile(r"ckm\.sketch\(\.\.\., ([^)]*)\)")
_QUOTED = re.compile(r"\b(\w+=)'([\w-]+)'")
_NAMES = re.compile(r"columns=\['([^\]]*)'\]")
# Names with an underscore can only be arguments; the others are also plain words, and are arguments
# where `=` follows.
_ARGUMENT = re.compile(
    rf"(?<![\w.])({'|'.join(_OPTIONS)}|(?:checkpoint|columns|decoder|distribution|init|like|nan|pool|scale)(?==(?!\[)))(=?)(?=(['\w]?))"
)


_ASIDE = re.compile(r" \(n_samples=\d+\)")
_FLAG = re.compile(r"\b(resume|standardize)=True")


class ReportingGroup(typer.core.TyperGroup):
    """Commands that end as a shell expects, whatever happens inside them."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        with reported():
            return super().invoke(ctx)


@contextmanager
def reported() -> Iterator[None]:
    """Turn expected failures into one line on standard error and an exit status: 1, 130 (Ctrl-C) or
    141 (closed pipe).
    """
    with warnings.catch_warnings():
        for category in _SHOWN:
            warnings.simplefilter("always", category)
        warnings.showwarning = _show_warning
        try:
            yield
            sys.stdout.flush()  # a closed pipe shows here, not in the interpreter's last moments
        except CkmError as error:
            say(f"Error: {in_shell_words(str(error))}")
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            say("Interrupted.")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None


def say(message: str, quiet: bool = False) -> None:
    """One line on standard error, where it does not mix with results."""
    if not quiet:
        print(" ".join(message.split()), file=sys.stderr, flush=True)


def in_shell_words(message: str) -> str:
    """A message of the library with its arguments under the names they have as options.

    >>> in_shell_words("use sketch_size=500 (5 K n), or give like=; n_clusters must be at least 1")
    'use --sketch-size 500 (5 K n), or give --like; --clusters must be at least 1'
    >>> in_shell_words("leave it out, for example with ckm.sketch(..., columns=['a', 'b'])")
    'leave it out, for example with --columns a,b'
    """
    message = _CALL.sub(
        lambda found: f"{'ckm sketch ' * found[1].startswith('like=')}{found[1]}", message
    )
    message = _TAKEN.sub(", or use ", message).replace("columns=[...]", "columns=A,B")
    message = _QUOTED.sub(r"\1\2", _ASIDE.sub("", message))
    message = _FLAG.sub(r"--\1", message)
    message = _NAMES.sub(lambda found: "--columns " + found[1].replace("', '", ","), message)
    return _ARGUMENT.sub(
        lambda found: f"--{_OPTIONS.get(found[1], found[1])}{' ' if found[2] and found[3] else ''}",
        message,
    )


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say(f"Warning: {in_shell_words(str(message))}")
