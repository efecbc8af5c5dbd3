"""Files of centroids: CSV or JSON."""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ckm._cli.errors import in_options
from ckm._core.preparation import Preparation
from ckm._decoding.solution import Solution
from ckm._display.tables import centroids_csv, coordinate_names
from ckm._kmeans.assign import Centroids
from ckm._util.address import Address
from ckm._util.checks import EUCLIDEAN, check_metric, check_whole_number
from ckm._util.files import write_atomically
from ckm._util.stores import read_text
from ckm.errors import InputFileError, OutputError


class Measure(NamedTuple):
    """How distances to centroids are measured."""

    is_standardized: bool
    metric: str
    is_logged: bool = False


def require_space_for_measure(path: Path | Address | None, measure: Measure, as_json: bool) -> None:
    """Refuse to write centroids as CSV, which can hold neither units of columns nor a metric, where
    distances would be others without them.
    """
    is_piped = path is None and not as_json and not sys.stdout.isatty()
    is_csv = path is not None and path.suffix.lower() == ".csv"
    what = "the units of standardised columns" if measure.is_standardized else ""
    if measure.is_logged:
        what = "logarithms of columns"
    if measure.metric != EUCLIDEAN:
        what = f"the metric {measure.metric}"
    if not what or not (is_piped or is_csv):
        return
    place = "Centroids in a pipe are CSV, which" if is_piped else f"Cannot write {path}: CSV"
    remedy = "name a .json file (-o), or give --json" if is_piped else "name a .json file"
    raise OutputError(f"{place} has no place for {what}; {remedy}.")


def require_space_for_names(
    columns: tuple[str, ...] | None, path: Path | Address | None, as_json: bool
) -> None:
    """Refuse names that the CSV cannot have: [0], [1], ..., which mean no names, and characters
    that standard output lacks.
    """
    if columns is None:
        return
    is_csv = path.suffix.lower() == ".csv" if path is not None else not as_json
    if path is None and is_csv and not sys.stdout.isatty():
        # Standard output raises the same error, but after the pass over the data.
        "".join(columns).encode(sys.stdout.encoding or "utf-8", sys.stdout.errors or "strict")
    if is_csv and columns == coordinate_names(None, len(columns)):
        raise OutputError(
            f"Columns named {', '.join(columns[:3])} cannot be written as CSV, where these stand "
            "for columns without names; name a .json file (-o), or give --json."
        )


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
        "metric": solution.metric,
        "log": [] if solution.preparation is None else list(solution.preparation.logged),
        **facts,
    }


def write_centroids(path: Path | Address, solution: Solution, record: dict[str, Any]) -> None:
    """Write centroids as JSON or as CSV, by the ending of the name."""
    if path.suffix.lower() == ".json":
        text = json.dumps(record, indent=1) + "\n"
    else:
        text = centroids_csv(solution)
    write_atomically(path, text.encode())


def read_centroids(path: Path | Address) -> Centroids:
    """Read centroids written by `ckm fit` or `ckm decode`."""
    readers = {".csv": _parse_csv, ".json": _parse_json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputFileError(
            f"Cannot read centroids from {path}: the name must end in {' or '.join(readers)}."
        )
    try:
        return _checked(reader(read_text(path)))
    except InputFileError:
        raise
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
    metric: str
    logged: tuple[int, ...] = ()


def _parse_csv(text: str) -> _Parsed:
    header, *rows = list(csv.reader(io.StringIO(text))) or [[]]
    if header[:2] != ["cluster", "weight"]:
        raise ValueError(f"its first line is {','.join(header)[:40]!r}, not cluster,weight,...")
    for line, row in enumerate(rows, 2):
        if row and len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} fields where the first has {len(header)}")
    names = tuple(header[2:])
    is_unnamed = names == coordinate_names(None, len(names))
    centroids = _in_order([row for row in rows if row])
    return _Parsed(centroids, None if is_unnamed else names, None, EUCLIDEAN)


def _in_order(rows: list[list[str]]) -> list[list[float]]:
    """Return the coordinates of cluster 0, 1, ..., whatever the order of the lines."""
    centroids = {row[0].strip(): [float(x) for x in row[2:]] for row in rows}
    if set(centroids) != {str(k) for k in range(len(rows))}:
        raise ValueError(
            f"its clusters are not numbered from 0 to {len(rows) - 1}, each of them once"
        )
    return [centroids[str(k)] for k in range(len(rows))]


def _parse_json(text: str) -> _Parsed:
    record = json.loads(text)
    columns = record["columns"]
    names = None if columns is None else tuple(map(str, columns))
    # Files of earlier versions have no metric.
    metric = record.get("metric", EUCLIDEAN)
    logged = tuple(check_whole_number(j, "log", 0) for j in record.get("log", ()))
    return _Parsed(record["centroids"], names, record.get("units"), metric, logged)


def _checked(parsed: _Parsed) -> Centroids:
    values = np.array(parsed.centroids, np.float64)
    if values.ndim != 2 or 0 in values.shape or not np.isfinite(values).all():
        raise ValueError("its coordinates are not a table of finite numbers")
    n = values.shape[1]
    if parsed.columns is not None and len(parsed.columns) != n:
        raise ValueError(f"it names {len(parsed.columns)} columns for {n} coordinates")
    if parsed.columns is not None and len(set(parsed.columns)) < n:
        raise ValueError("it has two columns of the same name")
    metric = check_metric(parsed.metric)
    if any(j >= n for j in parsed.logged):
        raise ValueError(f"it has logarithms of column {parsed.logged[-1]}, which there is not")
    preparation = Preparation(parsed.logged) if parsed.logged else None
    if parsed.units is None:
        return Centroids(values, None, parsed.columns, metric, preparation)
    units = np.array(parsed.units, np.float64)
    if units.shape != (n,) or not np.isfinite(units).all() or not (units > 0).all():
        raise ValueError("its units are not a positive number for each column")
    return Centroids(values, units, parsed.columns, metric, preparation)
