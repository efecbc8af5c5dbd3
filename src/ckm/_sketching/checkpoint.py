"""Checkpoints: what a long pass over files has added up so far, written down now and then, so that
it can go on after a crash.

A checkpoint is one line of canonical JSON (what was asked for, which files there were, where
reading goes on, and a SHA-256 over all of it) and the sketch of the rows so far, as `storage.py`
writes it. Each replaces the one before under the same name, whole or not at all.
"""

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self

from ckm._core.sketch import Sketch
from ckm._core.storage import deserialise, serialise
from ckm._sketching.accumulate import State
from ckm._sources import Place, Source
from ckm._sources.paths import INNER
from ckm._util.arrays import Frozen
from ckm._util.files import check_writable, write_atomically
from ckm.errors import CheckpointError, CkmError, ParameterError

VERSION = 1
EVERY = 10.0  # seconds from one to the next
_KEY = "ckm-checkpoint"
_MAX_LINE = 64 * 2**20


class File(NamedTuple):
    """A file as it was when the pass began."""

    name: str
    size: int
    modified: int  # nanoseconds


def files_of(source: Source) -> tuple[File, ...]:
    """The files that a source reads, as they are now; refused where it reads something else, which
    could not be read again.
    """
    if not source.parts or not source.is_rereadable:
        raise ParameterError(
            "A checkpoint needs rows in files, which can be read again from where it ends; write them to files first."
        )
    found = []
    for name in source.parts:
        info = Path(name.partition(INNER)[0]).stat()
        found.append(File(name, info.st_size, info.st_mtime_ns))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Checkpoint(Frozen):
    """How far a pass has come.

    Parameters
    ----------
    sketch : Sketch
        Of the rows so far.
    asked : dict
        The options of the pass, as JSON has them.
    files : tuple of File
        What it reads.
    place : Place
        Where reading goes on.
    blocks, rows, dropped : int
        How many blocks and rows have been read, and how many of the rows were dropped.
    """

    sketch: Sketch
    asked: dict[str, Any]
    files: tuple[File, ...]
    place: Place
    blocks: int
    rows: int
    dropped: int

    @property
    def state(self) -> State:
        """What the runner goes on from."""
        return State(
            self.sketch.tally, self.sketch.pool, self.blocks, self.rows, self.dropped, self.place
        )


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """The bytes of a checkpoint file."""
    payload = serialise(checkpoint.sketch)
    head = {
        _KEY: VERSION,
        "asked": checkpoint.asked,
        "files": [list(file) for file in checkpoint.files],
        "place": list(checkpoint.place),
        "blocks": checkpoint.blocks,
        "rows": checkpoint.rows,
        "dropped": checkpoint.dropped,
    }
    head["sha256"] = _digest(head, payload)
    return _line(head) + payload


def from_bytes(data: bytes, name: str = "these bytes") -> Checkpoint:
    """The checkpoint in `data`, refused unless it is byte for byte what `to_bytes` would write."""
    line, newline, payload = data.partition(b"\n")
    if not data.startswith(b'{"asked":') or not newline or len(line) > _MAX_LINE:
        _refuse(name, "is not a checkpoint, or is truncated")
    try:
        head = json.loads(line)
        version = head[_KEY]
        if isinstance(version, int) and version > VERSION:
            raise CheckpointError(
                f"{name} was written by a later version of ckm; upgrade with: pip install -U compressive-kmeans"
            )
        if head.pop("sha256") != _digest(head, payload):
            _refuse(name, "does not match its checksum: it was altered or damaged")
        files = tuple(
            File(str(file), int(size), int(modified)) for file, size, modified in head["files"]
        )
        place = Place(*map(int, head["place"]))
        counts = (int(head[name]) for name in ("blocks", "rows", "dropped"))
        found = Checkpoint(deserialise(payload, name), dict(head["asked"]), files, place, *counts)
    except CheckpointError:
        raise
    except (
        CkmError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        _refuse(name, f"is damaged ({error})")
    if to_bytes(found) != data:
        _refuse(name, "is not written the way this library writes checkpoints: it was altered")
    return found


def _begun(
    path: str | Path, resume: bool, asked: dict[str, Any], files: tuple[File, ...]
) -> Checkpoint | None:
    """The checkpoint at `path` to go on from, known to belong to a pass with these options over
    these files; None where there is none.
    """
    check_writable(path)
    if not os.path.exists(path):
        return None
    if not resume:
        raise ParameterError(
            f"There is a checkpoint {path} already; go on from it with resume=True, or remove it to begin anew."
        )
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise CheckpointError(
            f"Cannot read the checkpoint {path}: {error.strerror or error}."
        ) from error
    found = from_bytes(data, str(path))
    _require_same_options(path, found.asked, asked)
    _require_same_files(path, found.files, files)
    return found


def _require_same_options(path: str | Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    for name in sorted(now):
        if before.get(name) != now[name]:
            raise ParameterError(
                f"The checkpoint {path} was begun with {name}={before.get(name)!r}, and now {name}={now[name]!r} is asked for; give the "
                f"same options, or begin anew without resume."
            )


def _require_same_files(path: str | Path, before: tuple[File, ...], now: tuple[File, ...]) -> None:
    present = {file.name: file for file in now}
    for file in before:
        if file.name not in present:
            raise CheckpointError(
                f"{file.name}, which was there when the checkpoint {path} was begun, is gone; bring it back, or begin anew."
            )
        if present[file.name] != file:
            raise CheckpointError(
                f"{file.name} has changed since the checkpoint {path} was begun; bring the old one back, or begin anew."
            )
    if before != now:
        known = {file.name for file in before}
        new = next((file.name for file in now if file.name not in known), now[0].name)
        raise CheckpointError(
            f"{new} was not there, or not in this order, when the checkpoint {path} was begun; sketch it apart and merge."
        )


class Keeper:
    """Writes checkpoints of a pass: one every few seconds while it goes on, and one when it ends,
    however that is.

    `begun` is the checkpoint it goes on from, if there is one. With `any_seed` the seed is then the
    one in it.
    """

    def __init__(
        self,
        path: str | Path,
        resume: bool,
        asked: dict[str, Any],
        source: Source,
        *,
        any_seed: bool,
    ) -> None:
        # as it will be read again
        asked = json.loads(json.dumps(asked, default=lambda value: value.item()))
        self._path, self._files = path, files_of(source)
        self.begun = _begun(
            path,
            resume,
            {k: v for k, v in asked.items() if k != "random_state" or not any_seed},
            self._files,
        )
        self.asked = asked if self.begun is None else self.begun.asked
        self._latest: Checkpoint | None = None
        self._last = time.monotonic()

    def note(self, sketch: Sketch, state: State) -> None:
        """Remember a state that the pass could go on from, and write it if the last one is old."""
        self._latest = Checkpoint(
            sketch, self.asked, self._files, state.place, state.blocks, state.rows, state.dropped
        )
        if time.monotonic() - self._last >= EVERY:
            self.write()

    def write(self) -> None:
        """Write the latest state, if it is not written yet."""
        latest = self._latest
        if latest is not None:
            write_atomically(self._path, to_bytes(latest))
            self._last = time.monotonic()
            self._latest = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.write()
            return
        with suppress(CkmError):  # the disk may be what failed; what is raised already says more
            self.write()


def _line(head: dict[str, Any]) -> bytes:
    return json.dumps(head, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _digest(head: dict[str, Any], payload: bytes) -> str:
    return hashlib.sha256(_line(head) + payload).hexdigest()


def _refuse(name: str, reason: str) -> NoReturn:
    raise CheckpointError(f"The checkpoint {name} {reason}; remove it and begin anew.")


def remove(path: str | Path) -> None:
    """Remove a checkpoint that is not needed any more."""
    if os.path.exists(path):
        os.unlink(path)
