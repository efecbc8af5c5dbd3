"""Results as tables at a terminal, CSV in a pipe, and plain values for JSON."""

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ckm._core.sketch import Sketch
from ckm._decoding.coordinates import exact_units
from ckm._decoding.solution import Solution
from ckm._kmeans.assign import Labelling
from ckm._util.arrays import FloatArray
from ckm._util.text import visible

# How much of a table a terminal shows: coordinates of a centroid, and columns of a sketch.
_SHOWN_COORDINATES = 10
_SHOWN_COLUMNS = 40
# Characters per line in a pipe, where there is no terminal whose width could be used.
_PIPE_WIDTH = 160


def console(stderr: bool = False) -> Console:
    """Return a console that prints text literally (a column may be called "[red]") and, in a pipe,
    does not fold lines at 80 characters.
    """
    is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if is_terminal else _PIPE_WIDTH
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, width=width)


@contextmanager
def show_status(title: str, quiet: bool) -> Iterator[None]:
    """Show a title and a spinner at a terminal while a long step runs."""
    output = console(stderr=True)
    if quiet or not output.is_terminal:
        yield
        return
    with output.status(title):
        yield


def print_json(record: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(record, allow_nan=False))


def show_solution(solution: Solution) -> None:
    """Print centroids: a rounded table at a terminal, CSV in full precision in a pipe."""
    if not sys.stdout.isatty():
        sys.stdout.write(centroids_csv(solution))
        return
    names = coordinate_names(solution.columns, solution.centroids.shape[1])
    table = _table(["cluster", "weight", *map(_shown, names[:_SHOWN_COORDINATES])])
    for k, (weight, centroid) in enumerate(zip(solution.weights, solution.centroids, strict=True)):
        table.add_row(str(k), f"{weight:.4f}", *(f"{x:.4g}" for x in centroid[:_SHOWN_COORDINATES]))
    if len(names) > _SHOWN_COORDINATES:
        table.caption = (
            f"{_SHOWN_COORDINATES} of {len(names)} coordinates; -o centroids.csv writes them all"
        )
    console().print(table)


def coordinate_names(columns: tuple[str, ...] | None, n: int) -> tuple[str, ...]:
    """Return the names of the columns, or their positions [0], [1], ... for data without names.

    >>> coordinate_names(("east", "north"), 2), coordinate_names(None, 2)
    (('east', 'north'), ('[0]', '[1]'))
    """
    return columns or tuple(f"[{i}]" for i in range(n))


def centroids_csv(solution: Solution) -> str:
    """Return one line per cluster: its number, weight and coordinates, in full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = coordinate_names(solution.columns, solution.centroids.shape[1])
    writer.writerow(["cluster", "weight", *names])
    clusters = zip(solution.weights.tolist(), solution.centroids.tolist(), strict=True)
    for k, (weight, centroid) in enumerate(clusters):
        writer.writerow([k, weight, *centroid])
    return text.getvalue()


def labelling_record(labelling: Labelling) -> dict[str, Any]:
    """Return the rows and the SSE of each cluster as plain values."""
    return {
        "rows": int(labelling.counts.sum()),
        "sse": float(labelling.sse.sum()),
        "counts": labelling.counts.tolist(),
        "cluster_sse": labelling.sse.tolist(),
        "missing": labelling.missing,
    }


def show_labelling(labelling: Labelling) -> None:
    """Print rows and SSE of each cluster: a table at a terminal, CSV in a pipe."""
    clusters = list(zip(labelling.counts.tolist(), labelling.sse.tolist(), strict=True))
    if not sys.stdout.isatty():
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["cluster", "rows", "sse"])
        writer.writerows([k, rows, sse] for k, (rows, sse) in enumerate(clusters))
        return
    total = max(int(labelling.counts.sum()), 1)
    table = _table(["cluster", "rows", "share", "SSE"])
    for k, (rows, sse) in enumerate(clusters):
        table.add_row(str(k), f"{rows:,}", f"{rows / total:.2%}", f"{sse:.6g}")
    console().print(table)


def sketch_record(sketch: Sketch) -> dict[str, Any]:
    """Return everything about a sketch but its sums, as plain values."""
    f = sketch.frequencies
    columns = _column_values(sketch)
    return {
        "rows": sketch.count,
        "weight": sketch.weight,
        "dimension": f.n_features,
        "projected_to": None if f.projection is None else f.n,
        "sketch_size": f.m,
        "bytes": sketch.nbytes,
        "metric": f.metric,
        "distribution": f.distribution,
        "scale": f.scale,
        "seed": f.seed,
        "fingerprint": sketch.design.fingerprint,
        "exact": sketch.exact,
        "bounds": "tight" if sketch.tally.tight else "outer",
        "cells": 0 if sketch.cells is None else len(sketch.cells.anchors),
        "pool": 0 if sketch.pool is None else len(sketch.pool),
        "columns": None if sketch.columns is None else list(sketch.columns),
        "log": [] if f.preparation is None else list(f.preparation.logged),
        "standardized": _kind_of_units(sketch),
        **{name: None if values is None else values.tolist() for name, values in columns.items()},
    }


def show_sketch(sketch: Sketch) -> None:
    """Print a sketch as two tables: the sketch as a whole, and its columns."""
    f = sketch.frequencies
    values = _column_values(sketch)
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, text in _facts(sketch_record(sketch)):
        facts.add_row(name, text)
    has_logs = f.preparation is not None and bool(f.preparation.logged)
    has_units = f.column_units is not None
    more = [name for name, given in (("unit", has_units), ("of", has_logs)) if given]
    table = _table(["column", *values, *more])
    table.columns[0].justify = "left"
    n = sketch.frequencies.n_features
    for i, name in enumerate(coordinate_names(sketch.columns, n)[:_SHOWN_COLUMNS]):
        cells = ("-" if column is None else f"{column[i]:.6g}" for column in values.values())
        table.add_row(_shown(name), *cells, *_preparation_cells(sketch, i))
    if n > _SHOWN_COLUMNS:
        table.caption = f"{_SHOWN_COLUMNS} of {n} columns; --json shows them all"
    output = console()
    output.print(facts)
    output.print(table)


def _facts(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and values in words; the names are short enough for the fingerprint to fit in
    80 characters.
    """
    pool = record["pool"]
    cells = record["cells"]
    is_tight = record["bounds"] == "tight"
    return [
        ("rows", f"{record['rows']:,}"),
        ("weight", f"{record['weight']:,.12g}"),
        ("dimension", str(record["dimension"])),
        *_projection_fact(record["projected_to"]),
        *_units_fact(record["standardized"]),
        ("frequencies", f"{record['sketch_size']:,}"),
        ("bytes", f"{record['bytes']:,} ({'with' if cells else 'without'} cells)"),
        ("metric", record["metric"]),
        ("distribution", record["distribution"]),
        ("scale", f"{record['scale']:.6g} (variance)"),
        ("seed", "-" if record["seed"] is None else str(record["seed"])),
        ("fingerprint", record["fingerprint"]),
        ("exact sums", "yes" if record["exact"] else "no"),
        ("bounds", "smallest and largest values" if is_tight else "outer (rows were subtracted)"),
        ("cells", f"{cells:,} (one of a single row is that row)" if cells else "none"),
        ("pool", f"{pool:,} sampled rows" if pool else "none (but bounds are values of rows)"),
        ("columns", "named" if record["columns"] else "not named"),
    ]


def _projection_fact(axes: int | None) -> list[tuple[str, str]]:
    return [] if axes is None else [("projected to", f"{axes} numbers a row")]


def _kind_of_units(sketch: Sketch) -> str | None:
    """Return what columns are divided by; None if they are as they are."""
    f = sketch.frequencies
    if f.column_units is None:
        return None
    is_robust = f.preparation is not None and f.preparation.is_robust
    return "interquartile range of a sample" if is_robust else "standard deviation"


def _units_fact(units: str | None) -> list[tuple[str, str]]:
    return [] if units is None else [("standardized", f"by the {units} of each column")]


def _preparation_cells(sketch: Sketch, i: int) -> list[str]:
    """Return the unit of column `i`, and what all else is said of: the column or its logarithm."""
    cells = []
    units = exact_units(sketch)
    if units is not None:
        cells.append(f"{units[i]:.6g}")
    preparation = sketch.frequencies.preparation
    if preparation is not None and preparation.logged:
        cells.append("logarithm" if i in preparation.logged else "")
    return cells


def _column_values(sketch: Sketch) -> dict[str, FloatArray | None]:
    """Return bounds, mean and standard deviation of each column; None without rows."""
    if not sketch.count:
        return dict.fromkeys(("lower", "upper", "mean", "std"))
    variance = sketch.central_moment.diagonal
    lower: FloatArray | None = sketch.lower
    upper: FloatArray | None = sketch.upper
    if sketch.frequencies.projection is not None:
        variance = sketch.covariance
        # Bounds are known of the projections only.
        lower = upper = None
    return {
        "lower": lower,
        "upper": upper,
        "mean": sketch.mean,
        "std": np.sqrt(np.maximum(variance, 0)),
    }


def readable_bytes(count: int) -> str:
    """Return a number of bytes in decimal units.

    >>> readable_bytes(8000), readable_bytes(40_000_000)
    ('8.0 kB', '40.0 MB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _shown(name: str) -> str:
    """Return the name of a column as standard output can show it, without control characters."""
    return visible(name, sys.stdout.encoding or "utf-8")


def _table(headings: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table
