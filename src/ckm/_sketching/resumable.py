"""`Checkpoint`: how far a pass has come, as a value, and which of them a pass can have made.

The checksum of a file can be forged, so everything that a resumed pass relies on is checked here.
Each check raises ValueError (or a subclass) for what this library cannot have written.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ckm._core.laws import find_law
from ckm._core.sketch import Sketch
from ckm._sketching.accumulate import State
from ckm._sketching.choose import check_agreement
from ckm._sketching.options import ROBUST, SketchOptions, check_cells, resolve_size
from ckm._sources import Place
from ckm._sources.paths import READERS, ending_of
from ckm._sources.settings import BLOCK_ROWS
from ckm._util.checks import (
    check_metric,
    check_nan_of_sketch,
    check_variance,
    check_whole_number,
)
from ckm._util.device import check_device
from ckm._util.files import check_name
from ckm._util.random import seed_of

# Sizes of files, as the operating system counts them; times in nanoseconds may be before 1970, and
# the digest of a folder is 64 bits without a sign.
_MAX_SIZE = 2**63 - 1
_STAMPS = range(-(2**63), 2**64)
# The option that only a pass of an engine has. The workers of a cluster may change before it is
# resumed; its steps do not.
PARTITIONS_PER_STEP = "partitions_per_step"
_DIGEST = re.compile(r"[0-9a-f]{64}")


class FileRecord(NamedTuple):
    """A file, or a folder of files such as a Zarr store, as it was when the pass started.

    Parameters
    ----------
    name : str
        Its name.
    size : int
        Its bytes; those of all files in a folder.
    stamp : int
        When it was modified, in nanoseconds; for a folder, a digest of the names, sizes and times
        of all files in it; for an object of a store, a digest of its ETag or version.
    """

    name: str
    size: int
    stamp: int


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """How far a pass has come.

    Parameters
    ----------
    sketch : Sketch
        The sketch of the rows so far.
    options : dict
        The options of the pass, as JSON holds them.
    files : tuple of FileRecord
        The files it reads.
    place : Place
        Where reading continues.
    blocks, rows, dropped : int
        The number of blocks and rows read, and of rows dropped for missing values.
    """

    sketch: Sketch
    options: dict[str, Any]
    files: tuple[FileRecord, ...]
    place: Place
    blocks: int
    rows: int
    dropped: int

    @property
    def state(self) -> State:
        """The state to continue from."""
        return State(
            self.sketch.tally,
            self.sketch.pool,
            self.blocks,
            self.rows,
            self.dropped,
            self.place,
            self.sketch.cells,
        )

    @property
    def step(self) -> int | None:
        """The number of files of a step, if an engine reads them; each is a partition."""
        return self.options.get(PARTITIONS_PER_STEP)

    @property
    def asks_for_weights(self) -> bool:
        """Whether weights are named in the options; a source that was opened before may have some
        of its own.
        """
        return any(self.options[name] is not None for name in ("sample_weight", "weight_column"))

    @property
    def is_from_cpu(self) -> bool:
        """Whether the sums were computed on the CPU, where rows of files are."""
        return self.options["device"] in ("auto", "cpu")


def check_checkpoint(found: Checkpoint) -> None:
    """Refuse a checkpoint that no pass can have written."""
    for file in found.files:
        _check_file(file)
    _check_options(found.options)
    _check_frequencies(found.options, found.sketch)
    _check_columns(found.options, found.sketch.columns)
    _check_place(found)
    _check_counts(found)
    _check_sums(found)


def _check_file(file: FileRecord) -> None:
    """Refuse what is not the record of a file."""
    if not isinstance(file.name, str):
        raise ValueError(f"{file.name!r} is not the name of a file")
    check_name(file.name)
    if check_whole_number(file.size, "size", 0) > _MAX_SIZE:
        raise ValueError(f"{file.name} cannot have {file.size} bytes")
    if type(file.stamp) is not int or file.stamp not in _STAMPS:
        raise ValueError(f"{file.name} cannot have the time {file.stamp!r}")


def _check_options(options: dict[str, Any]) -> None:
    """Refuse options other than those of a pass, and values that a pass would refuse."""
    expected = _OPTION_CHECKS.keys() - ({PARTITIONS_PER_STEP, "exclude", "log"} - options.keys())
    if options.keys() != expected:
        names = sorted(options.keys() ^ expected)
        raise ValueError(f"the options {', '.join(names)} are missing or not known")
    for name, value in options.items():
        if not _OPTION_CHECKS[name](value):
            raise ValueError(f"{value!r} cannot be the option {name}")
    if options["sample_weight"] is not None and options["weight_column"] is not None:
        raise ValueError("weights cannot come from two places")


def _check_frequencies(options: dict[str, Any], sketch: Sketch) -> None:
    """Refuse frequencies that do not follow from the options."""
    f = sketch.frequencies
    names = ("n_clusters", "sketch_size", "scale", "distribution", "standardize", "metric")
    asked = SketchOptions(**{name: options[name] for name in names})
    check_agreement(sketch, asked)
    if not options["cells"] and sketch.cells is not None:
        raise ValueError("no cells were asked for")
    if options["like"] is not None:
        n_cells = 0 if sketch.cells is None else len(sketch.cells.anchors)
        resolve_size(asked.n_clusters, f.m, f.n, n_cells)
        if options["like"] != sketch.design.fingerprint:
            raise ValueError("the frequencies are not those of the sketch that was given")
        return
    # Without rows for a pilot, there are no anchors, although cells were asked for.
    sizes = {
        replace(asked, cells=cells).size_for(f.n, is_projected=f.projection is not None)
        for cells in ({options["cells"]} if asked.sketch_size else {0, options["cells"]})
    }
    if isinstance(options["projection"], int) and options["projection"] != f.n:
        raise ValueError("the rows are not projected as the options ask")
    if options["projection"] is None and f.projection is not None:
        raise ValueError("the rows are projected, and the options ask for none of it")
    drawn = (f.distribution, f.column_units is not None, f.metric, f.seed)
    seed = options["random_state"]
    is_drawn_so = drawn == (asked.distribution, bool(asked.standardize), asked.metric, seed)
    asked = replace(asked, log=tuple(options.get("log", ())))
    is_drawn_so &= f.preparation == asked.preparation(sketch.columns)
    if f.m not in sizes or not is_drawn_so:
        raise ValueError("the frequencies are not those that the options ask for")


def _check_columns(options: dict[str, Any], columns: tuple[str, ...] | None) -> None:
    """Refuse columns that are not those that the options ask for."""
    asked = options["columns"]
    if asked is not None and (columns != tuple(asked) or len(set(asked)) != len(asked)):
        raise ValueError(f"the columns are {columns}, and {asked} were asked for")
    if columns is not None and options["weight_column"] in columns:
        raise ValueError("the column of weights is among the columns")


def _check_place(found: Checkpoint) -> None:
    """Refuse a place that is not within the files, or where so many rows cannot end."""
    place = found.place
    if found.step is not None:
        is_step = place.part % found.step == 0 or place.part == len(found.files)
        if not is_step or place != Place(place.part) or not 1 <= place.part <= len(found.files):
            raise ValueError(f"no step of {found.step} files can end at {place}")
        return
    if place.part >= len(found.files):
        raise ValueError(f"there is no file number {place.part} among {len(found.files)}")
    is_later = place.part > 0
    if place.row < 1 or found.rows < place.row or (found.rows > place.row and not is_later):
        raise ValueError(f"{found.rows} rows cannot end at row {place.row} of a file")
    file = found.files[place.part]
    ending = ending_of(Path(file.name))
    if READERS.get(ending) != "csv":
        if place.byte:
            raise ValueError(f"rows of {file.name} are not found by bytes")
        return
    # Bytes of a compressed file are counted after decompression.
    largest = file.size if ending in (".csv", ".tsv") else _MAX_SIZE
    if not place.row <= place.byte <= largest:
        raise ValueError(f"row {place.row} of {file.name} cannot end at byte {place.byte}")


def _check_counts(found: Checkpoint) -> None:
    """Refuse numbers of blocks, rows and dropped rows that do not fit those of the sketch."""
    kept = found.rows - found.dropped
    if kept < 0 or (found.dropped and found.options["nan"] != "drop"):
        raise ValueError(f"{found.dropped} of {found.rows} rows cannot have been dropped")
    count = found.sketch.count
    may_be_fewer = found.asks_for_weights or not found.sketch.exact
    most = kept * (_weight_cap(found) if found.asks_for_weights else 1)
    if count > most or (count < kept and not may_be_fewer):
        raise ValueError(f"a sketch of {count} rows cannot be that of {kept}")
    is_too_few = found.is_from_cpu and kept > found.blocks * BLOCK_ROWS
    # The files of a step may all be empty.
    least = 1 if found.step is None or found.rows else 0
    if not least <= found.blocks <= found.rows or is_too_few:
        raise ValueError(f"{found.rows} rows cannot have been read in {found.blocks} blocks")


def _check_sums(found: Checkpoint) -> None:
    """Refuse sums and pools that a single pass does not give."""
    tally = found.sketch.tally
    pool = found.sketch.pool
    if not tally.tight:
        raise ValueError("nothing can have been subtracted")
    is_repeated = _weight_cap(found) > 1
    if tally.exact and found.asks_for_weights and tally.count and not is_repeated:
        raise ValueError("sums of weighted rows cannot be integers")
    capacity = 0 if pool is None else pool.capacity
    if capacity != found.options["pool"] or (pool is not None and pool.seen != tally.count):
        raise ValueError("the pool is not that of the rows so far")


def _weight_cap(found: Checkpoint) -> int:
    """The public cap on whole-number weights; one without a cap."""
    bounds = found.sketch.frequencies.bounds
    return 1 if bounds is None else bounds.row_copies


def _is_count(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= least


def _or_none(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_valid(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _is_seed(value: Any) -> bool:
    return type(value) is int and seed_of(value) == value


def _is_accepted_by(check: Callable[[Any], object]) -> Callable[[Any], bool]:
    """Whether a check of an argument of `ckm.sketch` accepts a value; it raises if it does not."""

    def is_valid(value: Any) -> bool:
        check(value)
        return True

    return is_valid


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _is_scale(value: Any) -> bool:
    return value == "auto" or (type(value) in (int, float) and check_variance(value) > 0)


def _is_axes(value: Any) -> bool:
    return type(value) is int and value > 0


# What each option of a checkpoint may be; see `record_options` in `ckm._sketching.api`.
_OPTION_CHECKS: dict[str, Callable[[Any], bool]] = {
    "n_clusters": _or_none(_is_count(1)),
    "sketch_size": _or_none(_is_count(1)),
    "scale": _is_scale,
    "distribution": _is_accepted_by(find_law),
    "standardize": lambda value: isinstance(value, bool) or value == ROBUST,
    "cells": _is_accepted_by(check_cells),
    "projection": _or_none(lambda value: value == "auto" or _is_axes(value) or _is_digest(value)),
    "metric": _is_accepted_by(check_metric),
    "sample_weight": _or_none(_is_digest),
    "like": _or_none(_is_digest),
    "columns": _or_none(_are_names),
    "weight_column": _or_none(_is_text),
    "nan": _is_accepted_by(check_nan_of_sketch),
    "exclude": _are_names,
    "log": _are_names,
    "pool": _is_count(0),
    "device": _is_accepted_by(check_device),
    "random_state": _is_seed,
    PARTITIONS_PER_STEP: _is_count(1),
}
