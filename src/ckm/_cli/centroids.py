"""Files of centroids: CSV, JSON or Parquet."""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ckm._cli.errors import in_options
from ckm._core.categories import Categories, Category, coded_columns
from ckm._core.preparation import Preparation, categories_of
from ckm._decoding.solution import Solution
from ckm._display.tables import centroids_csv, centroids_header, coordinate_names
from ckm._kmeans.assign import Centroids
from ckm._util.address import Address
from ckm._util.arrays import FloatArray
from ckm._util.checks import EUCLIDEAN, check_metric, check_whole_number
from ckm._util.files import write_atomically
from ckm._util.stores import read_bytes
from ckm.errors import InputFileError, OutputError

# What a Parquet file of centroids has in its metadata: the rest of the record, as JSON.
_METADATA = b"ckm"


class Measure(NamedTuple):
    """How distances to centroids are measured."""

    is_standardized: bool
    metric: str
    is_prepared: bool = False


def require_space_for_names(
    columns: tuple[str, ...] | None,
    measure: Measure,
    path: Path | Address | None,
    as_json: bool,
) -> None:
    """Refuse what a table of centroids has no place for: logarithms of columns and how categories
    are coded, without which distances would be others; and names that mean something else there,
    such as [0], [1], ... for no names, or have characters that standard output lacks.
    """
    is_piped = path is None and not as_json and not sys.stdout.isatty()
    is_table = path is not None and path.suffix.lower() in (".csv", ".parquet")
    if measure.is_prepared and (is_piped or is_table):
        place = "Centroids in a pipe are CSV, which" if is_piped else f"Cannot write {path}: it"
        raise OutputError(
            f"{place} has no place for logarithms of columns or for categories; name a .json file "
            "(-o), or give --json."
        )
    if columns is None:
        return
    is_csv = path.suffix.lower() == ".csv" if path is not None else not as_json
    if path is None and is_csv and not sys.stdout.isatty():
        # Standard output raises the same error, but after the pass over the data.
        "".join(columns).encode(sys.stdout.encoding or "utf-8", sys.stdout.errors or "strict")
    if not is_csv:
        return
    header = centroids_header(columns, measure.is_standardized, measure.metric)
    if _Header.of(header).columns != columns:
        raise OutputError(
            f"Columns named {', '.join(columns[:3])} cannot be written as CSV, where such names "
            "stand for something else; name a .json file (-o), or give --json."
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
        "categories": [category.record() for category in categories_of(solution.preparation)],
        **facts,
    }


def write_centroids(path: Path | Address, solution: Solution, record: dict[str, Any]) -> None:
    """Write centroids as JSON, Parquet or CSV, by the ending of the name."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        content = _parquet(solution, record)
    elif ending == ".json":
        content = (json.dumps(record, indent=1) + "\n").encode()
    else:
        content = centroids_csv(solution).encode()
    write_atomically(path, content)


def _parquet(solution: Solution, record: dict[str, Any]) -> bytes:
    """A row for each cluster; all that is not in the rows is in the metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = coordinate_names(solution.columns, solution.centroids.shape[1])
    arrays = [np.arange(len(solution.weights)), solution.weights, *solution.centroids.T]
    table = pa.Table.from_arrays([pa.array(x) for x in arrays], ["cluster", "weight", *names])
    rest = {key: value for key, value in record.items() if key not in ("centroids", "weights")}
    file = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({_METADATA: json.dumps(rest)}), file)
    content: bytes = file.getvalue().to_pybytes()
    return content


class FileOfCentroids(NamedTuple):
    """Centroids, and what stands for missing values of rows, which a CSV does not say."""

    centroids: Centroids
    fill_values: FloatArray | None


def read_centroids(path: Path | Address) -> Centroids:
    """Read centroids written by `ckm fit` or `ckm decode`."""
    return read_file_of_centroids(path).centroids


def read_file_of_centroids(path: Path | Address) -> FileOfCentroids:
    """Read all that labels rows from a file written by `ckm fit` or `ckm decode`."""
    readers = {".csv": _parse_csv, ".json": _parse_json, ".parquet": _parse_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputFileError(
            f"Cannot read centroids from {path}: the name must end in {' or '.join(readers)}."
        )
    try:
        parsed = reader(read_bytes(path))
        centroids = _checked(parsed)
        return FileOfCentroids(centroids, _checked_fill(parsed, centroids.values.shape[1]))
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
    categories: Categories = ()
    fill_values: list[float] | None = None


class _Header(NamedTuple):
    """What the first line of a CSV of centroids says about the fields below it."""

    columns: tuple[str, ...] | None
    n: int
    has_units: bool
    has_metric: bool

    @classmethod
    def of(cls, header: list[str]) -> "_Header":
        """The meaning of a line: cluster, weight, columns, their units, and the metric."""
        if header[:2] != ["cluster", "weight"]:
            raise ValueError(f"its first line is {','.join(header)[:40]!r}, not cluster,weight,...")
        names = tuple(header[2:])
        has_metric = names[-1:] == ("metric",)
        names = names[:-1] if has_metric else names
        n = len(names) // 2
        has_units = bool(n) and names[n:] == tuple(f"unit of {name}" for name in names[:n])
        names = names[:n] if has_units else names
        is_unnamed = names == coordinate_names(None, len(names))
        return cls(None if is_unnamed else names, len(names), has_units, has_metric)


def _parse_csv(content: bytes) -> _Parsed:
    first, *rows = list(csv.reader(io.StringIO(content.decode(), newline=""))) or [[]]
    header = _Header.of(first)
    for line, row in enumerate(rows, 2):
        if row and len(row) != len(first):
            raise ValueError(f"line {line} has {len(row)} fields where the first has {len(first)}")
    clusters = _in_order([row for row in rows if row])
    n = header.n
    centroids = [[float(x) for x in row[:n]] for row in clusters]
    units = [float(x) for x in clusters[0][n : 2 * n]] if header.has_units and clusters else None
    metric = clusters[0][-1] if header.has_metric and clusters else EUCLIDEAN
    return _Parsed(centroids, header.columns, units, metric)


def _in_order(rows: list[list[str]]) -> list[list[str]]:
    """Return the fields of cluster 0, 1, ..., whatever the order of the lines."""
    clusters = {row[0].strip(): row[2:] for row in rows}
    if set(clusters) != {str(k) for k in range(len(rows))}:
        raise ValueError(
            f"its clusters are not numbered from 0 to {len(rows) - 1}, each of them once"
        )
    return [clusters[str(k)] for k in range(len(rows))]


def _parse_json(content: bytes) -> _Parsed:
    return _parse_record(json.loads(content.decode()))


def _parse_parquet(content: bytes) -> _Parsed:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(content))
    metadata = table.schema.metadata or {}
    if _METADATA not in metadata:
        raise ValueError("it was not written by ckm")
    columns = [column.to_numpy() for column in table.columns]
    order = np.argsort(columns[0])
    centroids = np.column_stack(columns[2:])[order].tolist()
    return _parse_record(json.loads(metadata[_METADATA]) | {"centroids": centroids})


def _parse_record(record: dict[str, Any]) -> _Parsed:
    columns = record["columns"]
    names = None if columns is None else tuple(map(str, columns))
    # Files of earlier versions have no metric.
    metric = record.get("metric", EUCLIDEAN)
    logged = tuple(check_whole_number(j, "log", 0) for j in record.get("log", ()))
    categories = tuple(map(Category.of_record, record.get("categories", ())))
    fill_values = record.get("fill_values")
    units = record.get("units")
    return _Parsed(record["centroids"], names, units, metric, logged, categories, fill_values)


def _checked_fill(parsed: _Parsed, n: int) -> FloatArray | None:
    if parsed.fill_values is None:
        return None
    values = np.array(parsed.fill_values, np.float64)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ValueError("its fill_values are not a number for each column")
    return values


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
    coded = coded_columns(parsed.categories)
    if coded and (parsed.columns or ())[-len(coded) :] != coded:
        raise ValueError("its last columns are not those of its categories")
    preparation = Preparation(parsed.logged, categories=parsed.categories) or None
    if parsed.units is None:
        return Centroids(values, None, parsed.columns, metric, preparation)
    units = np.array(parsed.units, np.float64)
    if units.shape != (n,) or not np.isfinite(units).all() or not (units > 0).all():
        raise ValueError("its units are not a positive number for each column")
    return Centroids(values, units, parsed.columns, metric, preparation)
