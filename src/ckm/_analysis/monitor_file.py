"""The state of a monitor as a file, in the container of `ckm._core.container`.

Frequencies and the base are those of a sketch file. Blocks, batches and the unfinished block are
sums of the same shapes, one above the other.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from ckm._analysis.change_law import ChangeLaw
from ckm._analysis.dyadic import BUCKETS_PER_LEVEL, Bucket
from ckm._analysis.watching import (
    BATCHES,
    CONTINUE,
    MAX_HISTORY,
    MIN_BATCHES,
    RESTART,
    ROWS,
    Watch,
    WatchOptions,
)
from ckm._core.column_sums import ColumnSums
from ckm._core.container import (
    ContainerKind,
    Metadata,
    Tensors,
    pack_container,
    read_container,
    restore,
)
from ckm._core.reading import sketch_from_parts
from ckm._core.sketch import Sketch
from ckm._core.storage import sketch_to_parts
from ckm._core.tally import Tally
from ckm._core.validity import check_tally
from ckm._sketching.options import SketchOptions
from ckm._util.address import as_path
from ckm._util.arrays import RowsArray
from ckm._util.checks import check_nan_policy, check_whole_number, first_nonfinite
from ckm._util.files import check_name, write_atomically
from ckm._util.random import seed_of
from ckm.errors import CheckpointError

MONITOR = ContainerKind(
    key="ckm-monitor",
    noun="state of a monitor",
    version=1,
    error=CheckpointError,
    remedy="start again with a new ckm.Monitor, or remove the file of --state.",
)
_PART_FIELDS = ("sums", "lower", "upper", "first", "second")


class NamedBatch(NamedTuple):
    """A batch with a name: how many rows of the stream come before it, and how many it has."""

    name: str
    start: int
    n_rows: int


@dataclass(frozen=True)
class SavedMonitor:
    """All that a monitor is made of.

    Parameters
    ----------
    watch : Watch
        Where the stream stands.
    columns : list of str, optional
        The columns that were asked for.
    nan : str
        How missing values are handled.
    batches : tuple of NamedBatch
        The batches so far that have names.
    """

    watch: Watch
    columns: list[str] | None
    nan: str
    batches: tuple[NamedBatch, ...]


def save(saved: SavedMonitor, path: str | PathLike[str]) -> None:
    """Write a state: complete under its final name, or not at all."""
    write_atomically(path, to_bytes(saved))


def recorded_options(options: WatchOptions) -> dict[str, Any]:
    """The options of a monitor as plain values. It takes no logarithms and no categories."""
    record = asdict(options)
    del record["sketch"]["log"]
    del record["sketch"]["categories"]
    return record


def load(path: str | PathLike[str]) -> SavedMonitor:
    """Read a state."""
    check_name(path)
    place = as_path(path)
    return from_bytes(read_container(MONITOR, place), str(place))


def to_bytes(saved: SavedMonitor) -> bytes:
    """The bytes of the file."""
    watch = saved.watch
    open_parts = [] if watch.unfinished is None else [watch.unfinished]
    parts = [*watch.units, *(bucket.tally for bucket in watch.buckets), *open_parts]
    metadata: Metadata = {
        "options": recorded_options(watch.options),
        "names": None if watch.columns is None else list(watch.columns),
        "columns": saved.columns,
        "nan": saved.nan,
        "batches": [list(batch) for batch in saved.batches],
        "closed": watch.closed,
        "law": None if watch.law is None else asdict(watch.law),
        "level": watch.level,
        "in_alarm": watch.in_alarm,
        "has_base": watch.base is not None,
        "units": len(watch.units),
        "levels": [bucket.level for bucket in watch.buckets],
        "unfinished": watch.unfinished is not None,
        "counts": [part.count for part in parts],
        "found": [list(pair) for pair in watch.found],
        "sketch": None,
    }
    tensors: Tensors = {}
    if watch.frequencies is not None:
        sketch = Sketch.empty(watch.frequencies)
        if watch.base is not None:
            sketch = Sketch(watch.frequencies, watch.base)
        metadata["sketch"], tensors = sketch_to_parts(sketch)
    if watch.directions is not None:
        tensors["directions"] = watch.directions.astype(np.float32)
    if watch.head:
        tensors["head"] = np.concatenate(watch.head)
    if watch.history:
        tensors["history"] = np.array(watch.history)
    return pack_container(MONITOR, metadata, tensors | _part_tensors(parts))


def from_bytes(data: bytes, name: str = "these bytes") -> SavedMonitor:
    """The state in `data`, refused unless `to_bytes` would write the same bytes."""
    return restore(MONITOR, data, name, _from_parts, lambda saved, _: to_bytes(saved))


def _part_tensors(parts: Sequence[Tally]) -> Tensors:
    """The sums of some parts, one above the other."""
    if not parts:
        return {}
    tensors = {
        f"parts.{name}": np.stack([getattr(part, name) for part in parts]) for name in _PART_FIELDS
    }
    columns = [part.columns for part in parts if part.columns is not None]
    if columns:
        tensors["parts.columns.first"] = np.stack([sums.first for sums in columns])
        tensors["parts.columns.second"] = np.stack([sums.second for sums in columns])
    return tensors


def _from_parts(metadata: Metadata, tensors: Tensors) -> SavedMonitor:
    """The state with these metadata and tensors; ValueError and others if there is none."""
    watch = Watch(_options(metadata["options"]))
    names = metadata["names"]
    watch.columns = None if names is None else tuple(map(str, names))
    watch.closed = check_whole_number(metadata["closed"], "closed", 0)
    watch.level = float(metadata["level"])
    watch.in_alarm = bool(metadata["in_alarm"])
    watch.found = tuple(
        (check_whole_number(row, "found", 0), check_whole_number(noticed, "found", 0))
        for row, noticed in metadata["found"]
    )
    if not 0 <= watch.level < 1:
        raise ValueError("the level must be a probability")
    # Forged numbers may overflow while they are checked.
    with np.errstate(all="ignore"):
        _restore_head(watch, tensors)
        _restore_history(watch, tensors)
        if metadata["sketch"] is not None:
            own = {name: array for name, array in tensors.items() if name not in _OWN}
            _restore_sums(watch, metadata, own, tensors)
    _check_state(watch)
    columns = metadata["columns"]
    batches = tuple(
        NamedBatch(str(name), check_whole_number(start, "start", 0), int(count))
        for name, start, count in metadata["batches"]
    )
    wanted = None if columns is None else [str(column) for column in columns]
    return SavedMonitor(watch, wanted, check_nan_policy(metadata["nan"]), batches)


# Tensors that do not belong to the sketch.
_OWN = frozenset(
    [
        "directions",
        "head",
        "history",
        "parts.columns.first",
        "parts.columns.second",
        *(f"parts.{name}" for name in _PART_FIELDS),
    ]
)


def _options(recorded: dict[str, Any]) -> WatchOptions:
    sketch = SketchOptions(**recorded["sketch"])
    options = WatchOptions(**(recorded | {"sketch": sketch}))
    check_whole_number(options.reference, "reference", 1)
    check_whole_number(options.block, "block", 1)
    seed_of(options.seed)
    if not (isinstance(options.run_length, float) and 0 < options.run_length < math.inf):
        raise ValueError("the run length must be positive")
    if options.dependence not in (ROWS, BATCHES) or options.on_change not in (RESTART, CONTINUE):
        raise ValueError("an option has a value that does not exist")
    return options


def _restore_head(watch: Watch, tensors: Tensors) -> None:
    if "head" not in tensors:
        return
    rows: RowsArray = tensors["head"]
    if rows.ndim != 2 or rows.dtype.str not in ("<f4", "<f8") or 0 in rows.shape:
        raise ValueError("the head is not a table of numbers")
    if first_nonfinite(rows) is not None:
        raise ValueError("the rows of the head must be finite")
    watch.head = (rows,)


def _restore_history(watch: Watch, tensors: Tensors) -> None:
    if "history" not in tensors:
        return
    history = tensors["history"]
    if history.dtype.str != "<f8" or history.ndim != 2 or history.shape[1] != 2:
        raise ValueError("the history is not a table of pairs")
    if not np.isfinite(history).all() or not 0 < len(history) < MAX_HISTORY:
        raise ValueError("the history is not one of finite numbers, and so many")
    watch.history = tuple((int(rows), float(ratio)) for rows, ratio in history)


def _restore_sums(watch: Watch, metadata: Metadata, own: Tensors, tensors: Tensors) -> None:
    """Restore frequencies, base, law and grid."""
    sketch = sketch_from_parts(metadata["sketch"], own)
    watch.frequencies = sketch.frequencies
    if bool(metadata["has_base"]) != (sketch.count > 0):
        raise ValueError("a base has rows")
    watch.base = sketch.tally if metadata["has_base"] else None
    counts = [check_whole_number(count, "counts", 1) for count in metadata["counts"]]
    parts = [_part(tensors, i, count) for i, count in enumerate(counts)]
    for part in parts:
        check_tally(part, sketch.frequencies)
    n_units = check_whole_number(metadata["units"], "units", 0)
    levels = [check_whole_number(level, "levels", 0) for level in metadata["levels"]]
    if len(parts) != n_units + len(levels) + bool(metadata["unfinished"]):
        raise ValueError("there must be sums for every part")
    watch.units = tuple(parts[:n_units])
    if metadata["unfinished"]:
        watch.unfinished = parts.pop()
    if "directions" not in tensors:
        return
    directions = tensors["directions"]
    if (
        directions.dtype.str != "<f4"
        or directions.ndim != 2
        or directions.shape[1] != 2 * sketch.frequencies.m
        or not np.isfinite(directions).all()
    ):
        raise ValueError("the directions do not fit the frequencies")
    watch.directions = directions.astype(np.float64)
    if metadata["law"] is None:
        return
    watch.law = _law(metadata["law"])
    if watch.base is not None:
        watch.past = Bucket.of(watch.base, watch.directions)
    watch.buckets = tuple(
        Bucket.of(part, watch.directions, level)
        for part, level in zip(parts[n_units:], levels, strict=True)
    )


def _part(tensors: Tensors, i: int, count: int) -> Tally:
    sums = tensors["parts.sums"]
    if sums.dtype.str != "<i8":
        raise ValueError("sums of rows of weight one are integers")
    columns = None
    if "parts.columns.first" in tensors:
        columns = ColumnSums(tensors["parts.columns.first"][i], tensors["parts.columns.second"][i])
    lower, upper, first, second = (tensors[f"parts.{name}"][i] for name in _PART_FIELDS[1:])
    return Tally(sums[i], float(count), count, lower, upper, first, second, True, columns)


def _law(recorded: dict[str, Any]) -> ChangeLaw:
    law = ChangeLaw(**recorded)
    check_whole_number(law.degrees, "degrees", 1)
    numbers = (law.first, law.second, law.third, law.fourth)
    if not all(isinstance(number, float) and math.isfinite(number) for number in numbers):
        raise ValueError("the law must have finite numbers")
    if min(numbers[:3]) < 0:
        raise ValueError("the traces of a covariance are not negative")
    return law


def _check_state(watch: Watch) -> None:
    """Refuse what no stream leads to."""
    if watch.law is not None and (watch.past is None or watch.head or watch.units):
        raise ValueError("a stream that is watched has a base, and nothing waits")
    if watch.law is None and (watch.buckets or watch.in_alarm or watch.level):
        raise ValueError("a stream that is not watched has no grid")
    if watch.directions is not None and watch.head:
        raise ValueError("rows of the head wait for directions only")
    if len(watch.units) > MIN_BATCHES:
        raise ValueError("so many batches do not wait")
    if sum(map(len, watch.head)) >= watch.options.reference:
        raise ValueError("the head is complete")
    levels = [bucket.level for bucket in watch.buckets]
    if levels != sorted(levels, reverse=True) or any(
        levels.count(level) > BUCKETS_PER_LEVEL for level in levels
    ):
        raise ValueError("the grid is not in order")
    if watch.directions is None and (watch.units or watch.unfinished is not None):
        raise ValueError("blocks come after the reference")
