"""Centroids as files, CSV or JSON, and the checks that outputs must pass before any work is done."""

import csv
import io
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ckm._decoding.api import Solution
from ckm._display.tables import centroids_csv, coordinate_names
from ckm._sources.paths import resolve
from ckm._util.arrays import Array
from ckm._util.files import check_writable, write_atomically
from ckm.errors import InputFileError, OutputError, ParameterError

CENTROIDS = (".csv", ".json")
LABELS = (".csv", ".npy", ".parquet")
SKETCHES = (".ckm",)


class Output(NamedTuple):
    """A file that a command was asked to write, and the endings it may have."""

    path: Path | None
    suffixes: tuple[str, ...]


def find_inputs(patterns: Sequence[str | Path]) -> list[Path]:
    """The files behind names and patterns; a file named twice is refused, because its rows would
    count twice.
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
    """Refuse, before any work, an output that cannot be written or that would replace what is read."""
    asked = [(path, suffixes) for path, suffixes in outputs if path is not None]
    for i, (path, suffixes) in enumerate(asked):
        if path.suffix.lower() not in suffixes:
            raise OutputError(f"Cannot write {path}: the name must end in {' or '.join(suffixes)}.")
        if any(_same_file(path, other) for other in inputs):
            raise OutputError(f"Cannot write {path}: it is one of the inputs; choose another name.")
        if any(_same_file(path, other) for other, _ in asked[:i]):
            raise OutputError(f"Cannot write {path} twice; give each output its own name.")
        check_writable(path)


def _same_file(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve() or (a.exists() and b.exists() and a.samefile(b))


class Centroids(NamedTuple):
    """Centroids (K, n) as read from a file, the names of their coordinates, and the units that
    distances to them count in.
    """

    values: Array
    columns: tuple[str, ...] | None
    units: Array | None = None


def solution_record(solution: Solution, **more: Any) -> dict[str, Any]:
    """A solution as plain values: what a JSON file of centroids holds."""
    return {
        "n_clusters": len(solution.weights),
        "columns": None if solution.columns is None else list(solution.columns),
        "centroids": solution.centroids.tolist(),
        "weights": solution.weights.tolist(),
        "cost": solution.cost,
        "noise_floor": solution.noise_floor,
        "status": solution.status.value,
        "findings": [
            {"status": finding.status.value, "message": finding.sentence}
            for finding in solution.findings
        ],
        "decoder": solution.decoder,
        "units": None if solution.units is None else solution.units.tolist(),
        **more,
    }


def require_place_for_units(path: Path | None, standardised: bool, as_json: bool) -> None:
    """Refuse to write standardised centroids where their units would be lost, and with them what is
    near.
    """
    piped = path is None and not as_json and not sys.stdout.isatty()
    if standardised and (piped or (path is not None and path.suffix.lower() == ".csv")):
        place = (
            f"Cannot write {path}: CSV"
            if path is not None
            else "Centroids in a pipe are CSV, which"
        )
        instead = "name a .json file (-o), or give --json" if piped else "name a .json file"
        raise OutputError(f"{place} has no place for the units of standardised columns; {instead}.")


def write_centroids(path: Path, solution: Solution, record: dict[str, Any]) -> None:
    """Write centroids in the format that the name asks for."""
    as_json = path.suffix.lower() == ".json"
    write_atomically(
        path,
        ((json.dumps(record, indent=1) + "\n") if as_json else centroids_csv(solution)).encode(),
    )


def read_centroids(path: Path) -> Centroids:
    """Read centroids written by `ckm fit` or `ckm decode`."""
    readers = {".csv": _from_csv, ".json": _from_json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputFileError(
            f"Cannot read centroids from {path}: the name must end in {' or '.join(readers)}."
        )
    try:
        values, columns, units = reader(path.read_text(encoding="utf-8"))
        centroids = Centroids(
            np.array(values, np.float64),
            columns,
            None if units is None else np.array(units, np.float64),
        )
        if (
            centroids.values.ndim != 2
            or 0 in centroids.values.shape
            or not np.isfinite(centroids.values).all()
        ):
            raise ValueError("its coordinates are not a table of finite numbers")
        if columns is not None and len(columns) != centroids.values.shape[1]:
            raise ValueError(
                f"it names {len(columns)} columns for {centroids.values.shape[1]} coordinates"
            )
        if (u := centroids.units) is not None and not (
            u.shape == centroids.values.shape[1:] and np.isfinite(u).all() and (u > 0).all()
        ):
            raise ValueError("its units are not a positive number for each column")
    except OSError as error:
        raise InputFileError(
            f"Cannot read centroids from {path}: {error.strerror or error}; check the name."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise InputFileError(
            f"{path} is not a file of centroids ({reason}); make one with: ckm fit ... -o centroids.csv"
        ) from None
    return centroids


_Read = tuple[list[list[float]], tuple[str, ...] | None, list[float] | None]


def _from_csv(text: str) -> _Read:
    header, *rows = list(csv.reader(io.StringIO(text))) or [[]]
    if header[:2] != ["cluster", "weight"]:
        raise ValueError(f"its first line is {','.join(header)[:40]!r}, not cluster,weight,...")
    columns = tuple(header[2:])
    for line, row in enumerate(rows, 2):
        if row and len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} fields where the first has {len(header)}")
    # A CSV cannot say that its data had no names; the ones made up for it tell.
    names = None if columns == coordinate_names(None, len(columns)) else columns
    return [[float(x) for x in row[2:]] for row in rows if row], names, None


def _from_json(text: str) -> _Read:
    record = json.loads(text)
    columns = record["columns"]
    return (
        record["centroids"],
        None if columns is None else tuple(map(str, columns)),
        record.get("units"),
    )
