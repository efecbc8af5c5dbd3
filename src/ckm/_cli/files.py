"""Files of the command line: inputs, checks of outputs before any work is done, centroids (CSV or
JSON) and labels (CSV, `.npy` or Parquet).
"""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np

from ckm._cli.errors import in_options
from ckm._decoding.solution import Solution
from ckm._display.tables import centroids_csv, coordinate_names
from ckm._kmeans.assign import Centroids
from ckm._sources.paths import resolve
from ckm._util.arrays import LabelArray
from ckm._util.files import atomic_file, check_writable, write_atomically
from ckm.errors import InputFileError, OutputError, ParameterError

# The endings of names that each kind of output may have.
CENTROIDS = (".csv", ".json")
LABELS = (".csv", ".npy", ".parquet")
SKETCHES = (".ckm",)

# Labels per row group of a Parquet file; smaller groups would cost more than they hold.
_ROW_GROUP_LABELS = 2**20


class Output(NamedTuple):
    """A file for a command to write, and the endings its name may have."""

    path: Path | None
    suffixes: tuple[str, ...]


def find_inputs(patterns: Sequence[str | Path]) -> list[Path]:
    """Return the files that names and patterns stand for.

    A file named twice is refused, because its rows would count twice.
    """
    paths = resolve(patterns)
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise ParameterError(
                f"{path} is given twice, so its rows would count twice; name each file once."
            )
        seen.add(path.resolve())
    return paths


def check_outputs(outputs: Iterable[Output], inputs: Sequence[Path]) -> None:
    """Refuse, before any work, an output that cannot be written or that would replace an input."""
    requested = [(path, suffixes) for path, suffixes in outputs if path is not None]
    for i, (path, suffixes) in enumerate(requested):
        if path.suffix.lower() not in suffixes:
            raise OutputError(f"Cannot write {path}: the name must end in {' or '.join(suffixes)}.")
        if any(_is_same_file(path, other) for other in inputs):
            raise OutputError(f"Cannot write {path}: it is one of the inputs; choose another name.")
        if any(_is_same_file(path, other) for other, _ in requested[:i]):
            raise OutputError(f"Cannot write {path} twice; give each output its own name.")
        check_writable(path)


def _is_same_file(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve() or (a.exists() and b.exists() and a.samefile(b))


def require_space_for_units(path: Path | None, is_standardized: bool, as_json: bool) -> None:
    """Refuse to write centroids of standardised columns as CSV, which cannot hold their units."""
    is_piped = path is None and not as_json and not sys.stdout.isatty()
    is_csv = path is not None and path.suffix.lower() == ".csv"
    if not is_standardized or not (is_piped or is_csv):
        return
    place = "Centroids in a pipe are CSV, which" if is_piped else f"Cannot write {path}: CSV"
    remedy = "name a .json file (-o), or give --json" if is_piped else "name a .json file"
    raise OutputError(f"{place} has no place for the units of standardised columns; {remedy}.")


def solution_record(solution: Solution, **facts: Any) -> dict[str, Any]:
    """Return a solution as plain values: what a JSON file of centroids holds."""
    return {
        "n_clusters": len(solution.weights),
        "columns": None if solution.columns is None else list(solution.columns),
        "centroids": solution.centroids.tolist(),
        "weights": solution.weights.tolist(),
        "cost": solution.cost,
        "noise_floor": solution.noise_floor,
        "status": solution.status.value,
        "findings": [
            {"status": finding.status.value, "message": in_options(finding.sentence)}
            for finding in solution.findings
        ],
        "decoder": solution.decoder,
        "units": None if solution.units is None else solution.units.tolist(),
        **facts,
    }


def write_centroids(path: Path, solution: Solution, record: dict[str, Any]) -> None:
    """Write centroids as JSON or as CSV, by the ending of the name."""
    if path.suffix.lower() == ".json":
        text = json.dumps(record, indent=1) + "\n"
    else:
        text = centroids_csv(solution)
    write_atomically(path, text.encode())


def read_centroids(path: Path) -> Centroids:
    """Read centroids written by `ckm fit` or `ckm decode`."""
    readers = {".csv": _parse_csv, ".json": _parse_json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputFileError(
            f"Cannot read centroids from {path}: the name must end in {' or '.join(readers)}."
        )
    try:
        return _checked(reader(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputFileError(
            f"Cannot read centroids from {path}: {error.strerror or error}; check the name."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise InputFileError(
            f"{path} is not a file of centroids ({reason}); make one with: "
            "ckm fit ... -o centroids.csv"
        ) from None


class _Parsed(NamedTuple):
    """A file of centroids, before its values are checked."""

    centroids: list[list[float]]
    columns: tuple[str, ...] | None
    units: list[float] | None


def _parse_csv(text: str) -> _Parsed:
    header, *rows = list(csv.reader(io.StringIO(text))) or [[]]
    if header[:2] != ["cluster", "weight"]:
        raise ValueError(f"its first line is {','.join(header)[:40]!r}, not cluster,weight,...")
    for line, row in enumerate(rows, 2):
        if row and len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} fields where the first has {len(header)}")
    names = tuple(header[2:])
    # A CSV cannot say that the data had no column names, but the names x0, x1, ... are ours.
    is_unnamed = names == coordinate_names(None, len(names))
    centroids = [[float(x) for x in row[2:]] for row in rows if row]
    return _Parsed(centroids, None if is_unnamed else names, None)


def _parse_json(text: str) -> _Parsed:
    record = json.loads(text)
    columns = record["columns"]
    names = None if columns is None else tuple(map(str, columns))
    return _Parsed(record["centroids"], names, record.get("units"))


def _checked(parsed: _Parsed) -> Centroids:
    values = np.array(parsed.centroids, np.float64)
    if values.ndim != 2 or 0 in values.shape or not np.isfinite(values).all():
        raise ValueError("its coordinates are not a table of finite numbers")
    n = values.shape[1]
    if parsed.columns is not None and len(parsed.columns) != n:
        raise ValueError(f"it names {len(parsed.columns)} columns for {n} coordinates")
    if parsed.units is None:
        return Centroids(values, columns=parsed.columns)
    units = np.array(parsed.units, np.float64)
    if units.shape != (n,) or not np.isfinite(units).all() or not (units > 0).all():
        raise ValueError("its units are not a positive number for each column")
    return Centroids(values, units, parsed.columns)


class _LabelWriter(Protocol):
    """Takes labels block by block; `finish` completes the file."""

    def write(self, labels: LabelArray) -> None:
        """Append labels."""

    def finish(self) -> None:
        """Write what has not been written yet."""


class _CsvLabels:
    """One label per line under the heading `cluster`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.write(b"cluster\n")

    def write(self, labels: LabelArray) -> None:
        self._file.write("".join(f"{label}\n" for label in labels.tolist()).encode())

    def finish(self) -> None:
        pass


class _NpyLabels:
    """An array of int32. Its header needs the number of rows, which is known last: NumPy pads the
    header so that a longer number fits in the same space.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._n_rows = 0
        self._start = self._write_header()

    def write(self, labels: LabelArray) -> None:
        self._file.write(labels.astype("<i4").tobytes())
        self._n_rows += len(labels)

    def finish(self) -> None:
        self._file.seek(0)
        if self._write_header() != self._start:
            raise OutputError("The .npy header outgrew its space; write .csv or .parquet instead.")

    def _write_header(self) -> int:
        np.lib.format.write_array_header_1_0(
            self._file, {"descr": "<i4", "fortran_order": False, "shape": (self._n_rows,)}
        )
        return self._file.tell()


class _ParquetLabels:
    """One int32 column `cluster`."""

    def __init__(self, file: BinaryIO) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._schema = pa.schema([("cluster", pa.int32())])
        self._writer = pq.ParquetWriter(file, self._schema)
        self._clear()

    def write(self, labels: LabelArray) -> None:
        self._pending.append(labels)
        self._n_pending += len(labels)
        if self._n_pending >= _ROW_GROUP_LABELS:
            self._flush()

    def finish(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._pending:
            columns = {"cluster": np.concatenate(self._pending)}
            self._writer.write_table(pa.table(columns, schema=self._schema))
        self._clear()

    def _clear(self) -> None:
        self._pending: list[LabelArray] = []
        self._n_pending = 0


_LABEL_WRITERS: dict[str, Callable[[BinaryIO], _LabelWriter]] = {
    ".csv": _CsvLabels,
    ".npy": _NpyLabels,
    ".parquet": _ParquetLabels,
}


@contextmanager
def open_labels(path: Path | None) -> Iterator[Callable[[LabelArray], None] | None]:
    """Open a file of labels and yield the function that appends to it; None without a file.

    The file appears under its name when the block ends without an error, and not at all otherwise.
    """
    if path is None:
        yield None
        return
    with atomic_file(path) as file:
        writer = _LABEL_WRITERS[path.suffix.lower()](file)
        yield writer.write
        writer.finish()
