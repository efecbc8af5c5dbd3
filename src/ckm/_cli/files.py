"""Files that a command reads and writes, checked before any work is done."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import typer

from ckm._sources.paths import STANDARD_INPUT, resolve, split_inner
from ckm._util.address import Address
from ckm._util.files import check_writable
from ckm._util.locks import lock_for_command, lock_name
from ckm._util.stores import FilePath, RemoteFile
from ckm.errors import OutputError, ParameterError

# The endings of names that each kind of output may have.
CENTROIDS = (".csv", ".json", ".parquet")
LABELS = (".csv", ".npy", ".parquet")
SKETCHES = (".ckm",)


class Input(NamedTuple):
    """A file for a command to read, and what it is, for messages."""

    path: FilePath | Address | None
    role: str = "one of the inputs"


class Output(NamedTuple):
    """A file for a command to write: what it is, and the endings its name may have (None: any)."""

    path: Path | Address | None
    suffixes: tuple[str, ...] | None
    option: str = "-o"

    @property
    def role(self) -> str:
        """What the file is, for messages."""
        return f"also the file of {self.option}"


def find_inputs(patterns: Sequence[str | Path]) -> list[FilePath]:
    """Return the files that names and patterns stand for.

    A file named twice is refused, because its rows would count twice.
    """
    paths = resolve(patterns)
    seen: set[object] = set()
    for path in paths:
        file, inner = split_inner(path)
        identities = {(identity, inner) for identity in _identities(file)}
        if identities & seen:
            raise ParameterError(
                f"{path} is given twice, so its rows would count twice; name each file once."
            )
        seen |= identities
    return paths


def check_files(inputs: Sequence[Input], outputs: Sequence[Output]) -> None:
    """Refuse, before any work, outputs that cannot be written, and two names of one file.

    Outputs are locked until the command ends, so that no other process writes them meanwhile.
    """
    for path, suffixes, option in outputs:
        if path is not None and suffixes is not None and path.suffix.lower() not in suffixes:
            raise typer.BadParameter(
                f"Cannot write {path}: the name must end in {' or '.join(suffixes)}.",
                param_hint=option,
            )
    seen: dict[object, tuple[object, str]] = {}
    files: list[Input | Output] = [*inputs, *outputs]
    for item in files:
        if item.path is None:
            continue
        name: FilePath | Address = item.path
        if isinstance(item, Input) and not isinstance(name, Address):
            name = split_inner(name)[0]
        identities = _identities(name)
        for identity in identities:
            if isinstance(item, Output) and identity in seen:
                raise _same_file(name, *seen[identity])
        seen |= dict.fromkeys(identities, (name, item.role))
    _refuse_names_of_locks(seen, outputs)
    for path, suffixes, _ in outputs:
        if path is not None:
            check_writable(path)
            # Who writes a checkpoint locks it.
            if suffixes is not None:
                lock_for_command(path)


def _refuse_names_of_locks(
    files: dict[object, tuple[object, str]], outputs: Sequence[Output]
) -> None:
    """Refuse a file that is the lock of an output, which is removed when the command ends."""
    for output in outputs:
        if output.path is None or isinstance(output.path, Address):
            continue
        for identity in _identities(Path(lock_name(output.path))):
            if identity in files:
                other, role = files[identity]
                raise OutputError(
                    f"Cannot write {output.path}: its lock would be {other}, which is {role}; "
                    "choose another name."
                )


def _same_file(path: object, other: object, role: str) -> OutputError:
    """Return the error for an output that is another file of the command."""
    what = role if str(path) == str(other) else f"the same file as {other}, which is {role}"
    return OutputError(f"Cannot write {path}: it is {what}; choose another name.")


def _identities(path: FilePath | Address) -> set[object]:
    """Return what two names of one file have in common: the name without links, and the number of
    the file, which hard links share; the address of an object.
    """
    if isinstance(path, RemoteFile):
        path = path.address
    if isinstance(path, Address):
        return {path.identity}
    is_stdin = path == STANDARD_INPUT
    found: set[object] = set() if is_stdin else {os.path.realpath(path)}
    try:
        info = os.fstat(sys.stdin.fileno()) if is_stdin else os.stat(path)
    except (OSError, ValueError, AttributeError):
        # There is no such file yet, or standard input is closed or an object of Python.
        return found
    return found | {(info.st_dev, info.st_ino)}
