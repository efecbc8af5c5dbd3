"""Checkpoints: the state of a long pass over files, written regularly so that it can be resumed.

A checkpoint is the sketch of the rows so far, in the same container as a sketch file
(`ckm._core.container`), with one more section in its metadata: the options of the pass, the files
it reads, and where reading continues. Each checkpoint atomically replaces the previous one.
"""

import hashlib
import json
import math
import os
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ckm._core.container import (
    ContainerKind,
    Metadata,
    Tensors,
    pack_container,
    read_container,
    require_header_space,
    restore,
)
from ckm._core.defaults import CHECKPOINT_INTERVAL
from ckm._core.reading import sketch_from_parts
from ckm._core.sketch import Sketch
from ckm._core.storage import sketch_to_parts
from ckm._messages import Argument
from ckm._sketching.accumulate import State
from ckm._sketching.resumable import (
    PARTITIONS_PER_STEP,
    Checkpoint,
    FileRecord,
    check_checkpoint,
)
from ckm._sources import Place, Source
from ckm._sources.engines.base import PartitionedSource
from ckm._sources.paths import resolve
from ckm._util.address import INNER, Address, as_path, is_address
from ckm._util.checks import check_whole_number
from ckm._util.files import check_writable, write_atomically
from ckm._util.locks import WriteLock
from ckm._util.stores import RemoteFile, path_exists, remove_file
from ckm.errors import CheckpointError, CkmError, ParameterError

CHECKPOINT = ContainerKind(
    key="ckm-checkpoint",
    noun="checkpoint",
    version=2,
    error=CheckpointError,
    remedy="remove this checkpoint and start again.",
    # Version 1 was a line of JSON, which started with this, followed by a sketch file.
    former_start=b'{"asked":',
)
# Tasks of a step for each that runs at a time. Workers that are done wait for the last of a step,
# an eighth of its time on average if tasks take equally long.
_TASKS_PER_STEP = 4
# Bytes of a digest that are kept, as many as a time in nanoseconds has.
_STAMP_BYTES = 8


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """The bytes of a checkpoint file."""
    metadata, tensors = sketch_to_parts(checkpoint.sketch)
    section = {
        "options": checkpoint.options,
        "files": [list(file) for file in checkpoint.files],
        "place": list(checkpoint.place),
        "blocks": checkpoint.blocks,
        "rows": checkpoint.rows,
        "dropped": checkpoint.dropped,
    }
    return pack_container(CHECKPOINT, {"sketch": metadata, "checkpoint": section}, tensors)


def from_bytes(data: bytes, name: str = "these bytes") -> Checkpoint:
    """The checkpoint in `data`, refused unless `to_bytes` would write the same bytes."""
    return restore(CHECKPOINT, data, name, _from_parts, lambda found, _: to_bytes(found))


def _from_parts(metadata: Metadata, tensors: Tensors) -> Checkpoint:
    """The checkpoint with these metadata and tensors; ValueError and others if there is none."""
    section = metadata["checkpoint"]
    found = Checkpoint(
        sketch_from_parts(metadata["sketch"], tensors),
        dict(section["options"]),
        tuple(FileRecord(*file) for file in section["files"]),
        Place(*(check_whole_number(number, "place", 0) for number in section["place"])),
        check_whole_number(section["blocks"], "blocks", 0),
        check_whole_number(section["rows"], "rows", 0),
        check_whole_number(section["dropped"], "dropped", 0),
    )
    check_checkpoint(found)
    return found


class CheckpointWriter:
    """Writes checkpoints of a pass: at regular intervals, and when the pass ends or fails.

    It is a context manager, in which the pass runs. No other process can use the same file from the
    start until the block ends.

    Parameters
    ----------
    path : str or path
        The name of the checkpoint file.
    options : dict
        The options of the pass. They must be those of the checkpoint that is resumed.
    source : Source
        The rows, which must be in files.
    resume : bool
        Whether to continue from a checkpoint at `path`.
    any_seed : bool
        Whether the seed of a checkpoint that is resumed replaces that of `options`.
    interval : float
        The seconds between two checkpoints.

    Attributes
    ----------
    resumed_from : Checkpoint or None
        The checkpoint that the pass continues from.
    options : dict
        The options of the pass; those of the checkpoint where it is resumed.
    step : int or None
        For rows of an engine, the number of partitions between two states that are recorded.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: dict[str, Any],
        source: Source,
        *,
        resume: bool = False,
        any_seed: bool = False,
        interval: float = CHECKPOINT_INTERVAL,
    ) -> None:
        self._path = as_path(path)
        self._interval = _check_interval(interval)
        self._files = _record_files(source)
        # Compare options in the form in which a checkpoint holds them.
        options = json.loads(json.dumps(options, default=lambda value: value.item()))
        require_header_space(CHECKPOINT, json.dumps([options, self._files]))
        required = dict(options)
        if any_seed:
            del required["random_state"]
        if isinstance(source, PartitionedSource):
            options[PARTITIONS_PER_STEP] = _TASKS_PER_STEP * source.tasks_at_a_time()
        check_writable(path)
        self._lock = WriteLock(self._path)
        try:
            self.resumed_from = _read_checkpoint(self._path, resume, required, self._files)
            if self.resumed_from is not None:
                _require_possible_rows(self._path, self.resumed_from.rows, source.n_rows)
        except BaseException:
            self._lock.release()
            raise
        self.options = options if self.resumed_from is None else self.resumed_from.options
        self.step: int | None = self.options.get(PARTITIONS_PER_STEP)
        self._unwritten: Checkpoint | None = None
        self._last_write = time.monotonic()

    def update(self, sketch: Sketch, state: State) -> None:
        """Record a state from which the pass can be resumed; write it if the interval is over."""
        self._unwritten = Checkpoint(
            sketch, self.options, self._files, state.place, state.blocks, state.rows, state.dropped
        )
        if time.monotonic() - self._last_write >= self._interval:
            self.write()

    def write(self) -> None:
        """Write the latest state, unless it is written already."""
        if self._unwritten is not None:
            write_atomically(self._path, to_bytes(self._unwritten))
            self._last_write = time.monotonic()
            self._unwritten = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The error that is being raised says more than a second one, from a full disk perhaps.
        with self._lock, nullcontext() if error is None else suppress(CkmError):
            self.write()


def remove_checkpoint(path: str | os.PathLike[str]) -> None:
    """Remove a checkpoint that is no longer needed."""
    remove_file(as_path(path))


def _record_files(source: Source) -> tuple[FileRecord, ...]:
    """The files that a source reads, as they are now; raises where it reads anything else."""
    if not source.parts or not source.is_rereadable:
        raise ParameterError(
            "A checkpoint needs rows in files, which can be read again from any position; "
            "write the rows to files first."
        )
    try:
        files = source.files or source.parts
        return tuple(map(_record_file, source.parts, files))
    except FileNotFoundError as error:
        raise ParameterError(
            f"A checkpoint needs rows in files, and there is no file {error.filename}; "
            "write the rows to files first."
        ) from error


def _record_file(name: str, file: str | Path | RemoteFile) -> FileRecord:
    """A part of a source as it is now: a file, or a folder; an object as it was opened."""
    if isinstance(file, str) and is_address(file):
        # Workers of an engine open it by its whole address, which must not be kept.
        file = resolve([file])[0]
        name = str(file)
    if isinstance(file, RemoteFile):
        return _record_object(name, file)
    path = name.partition(INNER)[0]
    if os.path.isdir(path):
        return FileRecord(name, *_summarise_folder(path))
    info = os.stat(path)
    return FileRecord(name, info.st_size, info.st_mtime_ns)


def _record_object(name: str, file: RemoteFile) -> FileRecord:
    """An object as it was opened; refused if nobody would notice that it changes."""
    if not file.tag:
        raise ParameterError(
            f"A checkpoint needs files whose changes are noticed, and the server of {name} tells "
            "neither an ETag nor a time of change; copy it to a file first."
        )
    return FileRecord(name, file.size, file.stamp)


def _summarise_folder(folder: str) -> tuple[int, int]:
    """The bytes of all files in a folder, and a digest that changes when one of them does."""
    total = 0
    lines = []
    for inside, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(inside, name)
            info = os.stat(path)
            total += info.st_size
            line = [os.path.relpath(path, folder), info.st_size, info.st_mtime_ns]
            lines.append(json.dumps(line))
    digest = hashlib.sha256("\n".join(sorted(lines)).encode()).digest()
    return total, int.from_bytes(digest[:_STAMP_BYTES], "big")


def _read_checkpoint(
    path: Path | Address,
    resume: bool,
    options: dict[str, Any],
    files: tuple[FileRecord, ...],
) -> Checkpoint | None:
    """The checkpoint at `path`, if there is one; raises unless it was written with these options
    for these files.
    """
    if not path_exists(path):
        return None
    if not resume:
        raise ParameterError(
            f"There is a checkpoint {path} already; continue from it with ",
            Argument("resume", True),
            ", or remove it to start again.",
        )
    found = from_bytes(read_container(CHECKPOINT, path), str(path))
    _require_same_options(path, found.options, options)
    _require_same_files(path, found.files, files)
    return found


def _require_same_options(
    path: Path | Address, before: dict[str, Any], now: dict[str, Any]
) -> None:
    for name in sorted(now):
        if before.get(name) != now[name]:
            raise ParameterError(
                f"The checkpoint {path} was written with ",
                Argument(name, before.get(name)),
                ", and now ",
                Argument(name, now[name]),
                " is given; give the same options, or remove the checkpoint to start again.",
            )


def _require_same_files(
    path: Path | Address, before: tuple[FileRecord, ...], now: tuple[FileRecord, ...]
) -> None:
    present = {file.name: file for file in now}
    for file in before:
        if file.name not in present:
            raise CheckpointError(
                f"{file.name}, which the checkpoint {path} was made from, is missing; "
                "restore it, or remove the checkpoint to start again."
            )
        if present[file.name] != file:
            raise CheckpointError(
                f"{file.name} has changed since the checkpoint {path} was started; "
                "restore the old file, or remove the checkpoint to start again."
            )
    if before != now:
        known = {file.name for file in before}
        new = next((file.name for file in now if file.name not in known), now[0].name)
        raise CheckpointError(
            f"{new} is new, or in another order, since the checkpoint {path} was started; "
            "sketch it separately and merge."
        )


def _require_possible_rows(path: Path | Address, before: int, present: int | None) -> None:
    """Refuse a checkpoint of more rows than the files have, where their number is known."""
    if present is not None and before > present:
        raise CheckpointError(
            f"The checkpoint {path} is of {before:,} rows, and its files have {present:,}; "
            "remove this checkpoint and start again."
        )


def _check_interval(interval: Any) -> float:
    is_number = isinstance(interval, (int, float)) and not isinstance(interval, bool)
    if not is_number or math.isnan(interval) or interval < 0:
        raise ParameterError(
            Argument("checkpoint_interval"),
            f" must be a number of seconds that is not negative; got {interval!r}.",
        )
    return float(interval)
