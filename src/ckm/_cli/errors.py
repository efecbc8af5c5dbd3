"""Errors and warnings on the command line: one line each, options instead of Python arguments, and
the exit statuses that a shell expects.
"""

import csv
import io
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

import typer
import typer.core

from ckm import errors as library
from ckm._cli.streams import discard, open_closed_streams, report_lost_output, say
from ckm._messages import NO_VALUE, Argument, Message
from ckm._util.locks import keep_locks
from ckm._util.text import visible
from ckm.errors import CkmError

_SHOWN_WARNINGS = (
    library.AdviceWarning,
    library.ClustersWarning,
    library.ColumnsWarning,
    library.HeadWarning,
    library.MissingRowsWarning,
    library.PhaseWarning,
    library.ScaleWarning,
    library.SmallSketchWarning,
)

# Errors that may not know which file they are about, and how many files are named.
_NAMED_KINDS = (library.DataError, library.ParameterError, library.MismatchError)
_NAMED_FILES = 3

# Arguments of the library and the options that stand for them.
OPTIONS = {
    "block": "--block",
    "checkpoint": "--checkpoint",
    "checkpoint_interval": "--checkpoint-interval",
    "cells": "--cells",
    "columns": "--columns",
    "bounds": "--bounds",
    "covariance_type": "--covariance-type",
    "decoder": "--decoder",
    "dependence": "--dependence",
    "delta": "--delta",
    "device": "--device",
    "distribution": "--distribution",
    "epsilon": "--epsilon",
    "exclude": "--exclude",
    "init": "--init",
    "ledger": "--ledger",
    "like": "--like",
    "log": "--log",
    "categories": "--categories",
    "match": "--match",
    "max_components": "--max-components",
    "max_rows_per_user": "--max-rows-per-user",
    "max_weight": "--max-weight",
    "metric": "--metric",
    "n_clusters": "--n-clusters",
    "max_clusters": "--max-clusters",
    "n_components": "--n-components",
    "n_init": "--n-init",
    "n_jobs": "--n-jobs",
    "nan": "--nan",
    "on_change": "--on-change",
    "pilot": "--pilot",
    "polish": "--polish",
    "pool": "--pool",
    "population": "--population",
    "projection": "--projection",
    "random_state": "--random-state",
    "reference": "--reference",
    "reg_covar": "--reg-covar",
    "resume": "--resume",
    "run_length": "--run-length",
    "scale": "--scale",
    "sketch_size": "--sketch-size",
    "standardize": "--standardize",
    "unit": "--unit",
    "user_column": "--user-column",
    "weight_column": "--weight-column",
}
# Options that only `ckm sketch` has.
_OPTIONS_OF_SKETCH = frozenset({"--checkpoint", "--like", "--resume"})
# Commands in the order in which one is named that has an option which the running one lacks.
_COMMANDS_TO_NAME = ("sketch", "fit")
# Commands whose exit status 1 is a result, as that of `diff` and `grep` is: their errors have 2.
_COMMANDS_THAT_FIND = frozenset({"compare", "monitor"})
# The context of the group of commands while one runs.
_running: ContextVar[Any] = ContextVar("running", default=None)
# Arguments without an option of their own, in words.
_WORDS = {
    "rows": "the rows to start from",
    "sample_weight": "the weights (--weight-column)",
}


class ReportingGroup(typer.core.TyperGroup):
    """Commands that report expected failures in one line and end with the right exit status."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        open_closed_streams()
        with report_lost_output():
            return super().main(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        token = _running.set(ctx)
        try:
            with report_failures(), keep_locks():
                return super().invoke(ctx)
        finally:
            _running.reset(token)


@contextmanager
def report_failures() -> Iterator[None]:
    """Turn expected failures into one line on standard error and an exit status: 1 (2 for `ckm
    compare` and `ckm monitor`), 130 (Ctrl-C) or 141 (closed pipe).
    """
    with warnings.catch_warnings():
        for category in _SHOWN_WARNINGS:
            warnings.simplefilter("always", category)
        warnings.showwarning = _show_warning
        try:
            yield
            # A closed pipe is noticed here, not while the interpreter shuts down.
            sys.stdout.flush()
        except CkmError as error:
            say(f"Error: {in_options(error.message)}")
            raise typer.Exit(_error_status()) from None
        except KeyboardInterrupt:
            say("Interrupted.")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            discard(sys.stdout)
            raise typer.Exit(141) from None
        except MemoryError as error:
            reason = f" ({error})" if str(error) else ""
            say(
                f"Error: There is not enough memory{reason}; ask for fewer clusters or a smaller "
                "sketch (--sketch-size), or use a machine with more."
            )
            raise typer.Exit(_error_status()) from None


def _error_status() -> int:
    """The exit status of an error of the running command."""
    context = _running.get()
    running = None if context is None else context.invoked_subcommand
    return 2 if running in _COMMANDS_THAT_FIND else 1


@contextmanager
def naming(*files: object) -> Iterator[None]:
    """Begin the messages of errors that name none of these files with their names."""
    try:
        yield
    except _NAMED_KINDS as error:
        names = [str(file) for file in files]
        if not names or any(name in str(error) for name in names):
            raise
        more = f" and {len(names) - _NAMED_FILES} more" if len(names) > _NAMED_FILES else ""
        where = ", ".join(names[:_NAMED_FILES]) + more
        # By the kind of error, not its class, which may take other arguments.
        kind = next(kind for kind in _NAMED_KINDS if isinstance(error, kind))
        raise kind(f"{where}: ", error.message) from None


@contextmanager
def usage_errors(option: str) -> Iterator[None]:
    """Report a library error as wrong usage of `option`, with exit status 2."""
    try:
        yield
    except CkmError as error:
        message = visible(in_options(error.message))
        raise typer.BadParameter(message, param_hint=option) from None


def in_options(text: str) -> str:
    """Return a message of the library with its arguments named as options.

    >>> in_options(Message("Use ", Argument("sketch_size", 500), " or ", Argument("like", ...)))
    'Use --sketch-size 500 or --like'
    >>> in_options("A text without arguments.")
    'A text without arguments.'
    """
    return text.worded(as_option) if isinstance(text, Message) else str(text)


def as_option(argument: Argument) -> str:
    """Return the option, with its value, that stands for an argument of the library.

    >>> as_option(Argument("n_clusters")), as_option(Argument("resume", True))
    ('--n-clusters', '--resume')
    >>> as_option(Argument("standardize", False)), as_option(Argument("sketch_size", None))
    ('no --standardize', 'no --sketch-size')
    >>> as_option(Argument("columns", ["a", "b"])), as_option(Argument("columns", ...))
    ('--columns a,b', '--columns A,B')
    >>> print(as_option(Argument("columns", ["a", "b,c"])))
    --columns 'a,"b,c"'
    >>> as_option(Argument("like", ..., function="ckm.sketch"))
    'ckm sketch --like'
    >>> as_option(Argument("sample_weight")), as_option(Argument("chunk_rows", 5))
    ('the weights (--weight-column)', 'chunk rows 5')
    """
    name = argument.name
    option = OPTIONS.get(name) or _WORDS.get(name) or name.replace("_", " ")
    if name == "standardize" and argument.value == "robust":
        return "--robust"
    if name in OPTIONS:
        option = _command_with(option, argument.function) + option
    if argument.value is None or argument.value is False:
        return f"no {option}"
    value = _value_in_words(name, argument.value)
    return f"{option} {value}" if value else option


def _command_with(option: str, function: str | None) -> str:
    """The command to name before an option that the running command lacks, with a space; empty if
    it has the option.
    """
    context = _running.get()
    running = None if context is None else context.invoked_subcommand
    # What it says is about the options of `ckm fit` and `ckm sketch`.
    if running == "describe":
        return ""
    if running is None:
        is_of_sketch = function == "ckm.sketch" and option in _OPTIONS_OF_SKETCH
        return "ckm sketch " if is_of_sketch else ""
    commands = context.command.commands
    for command in (running, *_COMMANDS_TO_NAME):
        if any(option in parameter.opts for parameter in commands[command].params):
            return "" if command == running else f"ckm {command} "
    return ""


def _value_in_words(name: str, value: Any) -> str:
    """Return the value as it is typed after an option; nothing for a flag or an unnamed value."""
    if value is ... and name in ("columns", "exclude", "log", "categories"):
        return "A,B"
    if value is ... or value is NO_VALUE or value is True or name in _WORDS:
        return ""
    if isinstance(value, list | tuple):
        # Quotes protect a comma inside a column's name, as the options expect, and more quotes
        # protect those from the shell.
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow(value)
        return shlex.quote(text.getvalue())
    return str(value)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    text = message.args[0] if isinstance(message, Warning) and message.args else str(message)
    say(f"Warning: {in_options(text)}")
