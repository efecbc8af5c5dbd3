"""Results as tables at a terminal, CSV in a pipe, and plain values for JSON."""

import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.text import Text

from ckm._core.categories import Category
from ckm._core.preparation import categories_of
from ckm._core.sketch import Sketch
from ckm._core.summarising import column_values, summarise_columns
from ckm._decoding.coordinates import exact_units
from ckm._decoding.solution import Solution
from ckm._display.reveals import reveals
from ckm._kmeans.assign import Labelling
from ckm._util.checks import EUCLIDEAN
from ckm._util.stages import follow_stages
from ckm._util.summary import Summary, terminal_width

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
def show_stages(title: str, quiet: bool, expected: float | None = None) -> Iterator[None]:
    """Show at a terminal which stage a long step is in, for how long, and about how long it may
    still take if so many seconds are expected.
    """
    output = console(stderr=True)
    if quiet or not output.is_terminal:
        yield
        return
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn

    class TimeLeft(ProgressColumn):
        """Counts down, whether or not the work reports anything."""

        def render(self, task: Task) -> Text:
            passed = task.elapsed or 0.0
            left = 0.0 if expected is None else expected - passed
            more = f", up to {left:.0f} s left" if left >= 1 else ""
            return Text(f"{passed:.0f} s{more}")

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeLeft())
    with Progress(*columns, console=output, transient=True) as bar:
        task = bar.add_task(title, total=None)
        with follow_stages(lambda stage: bar.update(task, description=f"{title}: {stage}")):
            yield


def print_json(record: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(record, allow_nan=False))


def show_solution(solution: Solution) -> None:
    """Print centroids: a rounded table at a terminal, CSV in full precision in a pipe."""
    if not sys.stdout.isatty():
        sys.stdout.write(centroids_csv(solution))
        return
    shown = solution.summary()
    n = solution.centroids.shape[1]
    left = len(shown.header) - 2
    notes = (f"{left} of {n} columns; -o centroids.csv writes them all",) if left < n else ()
    _print(replace(shown, title="", notes=notes))


def coordinate_names(columns: tuple[str, ...] | None, n: int) -> tuple[str, ...]:
    """Return the names of the columns, or their positions [0], [1], ... for data without names.

    >>> coordinate_names(("east", "north"), 2), coordinate_names(None, 2)
    (('east', 'north'), ('[0]', '[1]'))
    """
    return columns or tuple(f"[{i}]" for i in range(n))


def centroids_header(
    names: tuple[str, ...], is_standardized: bool = False, metric: str = EUCLIDEAN
) -> list[str]:
    """Return the first line of a CSV of centroids: units of columns and a metric come last, where
    distances depend on them.

    >>> centroids_header(("east", "north"), is_standardized=True)
    ['cluster', 'weight', 'east', 'north', 'unit of east', 'unit of north']
    """
    units = [f"unit of {name}" for name in names] if is_standardized else []
    return ["cluster", "weight", *names, *units, *(["metric"] if metric != EUCLIDEAN else [])]


def centroids_csv(solution: Solution) -> str:
    """Return one line per cluster: its number, weight and coordinates, in full precision; then the
    units of standardised columns, and a metric other than the Euclidean.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = coordinate_names(solution.columns, solution.centroids.shape[1])
    metric = solution.metric
    writer.writerow(centroids_header(names, solution.units is not None, metric))
    units = [] if solution.units is None else solution.units.tolist()
    clusters = zip(solution.weights.tolist(), solution.centroids.tolist(), strict=True)
    for k, (weight, centroid) in enumerate(clusters):
        row = [k, weight, *centroid, *units]
        writer.writerow(row if metric == EUCLIDEAN else [*row, metric])
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
    shown = tuple(
        (f"{k}", f"{rows:,}", f"{rows / total:.2%}", f"{sse:.6g}")
        for k, (rows, sse) in enumerate(clusters)
    )
    _print(Summary("", ("cluster", "rows", "share", "SSE"), shown))


def sketch_record(sketch: Sketch) -> dict[str, Any]:
    """Return everything about a sketch but its sums, as plain values."""
    f = sketch.frequencies
    columns = column_values(sketch)
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
        "bounds": _bounds_kind(sketch),
        "max_weight": None if f.bounds is None else f.bounds.max_weight,
        "cells": 0 if sketch.cells is None else len(sketch.cells.anchors),
        "pool": 0 if sketch.pool is None else len(sketch.pool),
        "columns": None if sketch.columns is None else list(sketch.columns),
        "reveals": reveals(sketch),
        "log": [] if f.preparation is None else list(f.preparation.logged),
        "categories": [category.record() for category in categories_of(f.preparation)],
        "standardized": _kind_of_units(sketch),
        **{name: None if values is None else values.tolist() for name, values in columns.items()},
    }


def show_sketch(sketch: Sketch) -> None:
    """Print a sketch as two tables: the sketch as a whole, and its columns."""
    f = sketch.frequencies
    facts = _facts(sketch_record(sketch))
    width = max(len(name) for name, _ in facts)
    for name, text in facts:
        print(f"{name.ljust(width)}  {text}")
    print()
    columns = summarise_columns(sketch, "--json shows them all")
    has_logs = f.preparation is not None and bool(f.preparation.logged)
    has_units = f.column_units is not None
    more = [name for name, given in (("unit", has_units), ("of", has_logs)) if given]
    rows = ((*row, *_preparation_cells(sketch, i)) for i, row in enumerate(columns.rows))
    _print(replace(columns, header=(*columns.header, *more), rows=tuple(rows)))
    print()
    print("Whoever has this file can learn:")
    for sentence in reveals(sketch):
        print(f"- {sentence}")


def _facts(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and values in words; the names are short enough for the fingerprint to fit in
    80 characters.
    """
    pool = record["pool"]
    cells = record["cells"]
    return [
        ("rows", f"{record['rows']:,}"),
        ("weight", f"{record['weight']:,.12g}"),
        ("dimension", str(record["dimension"])),
        *_projection_fact(record["projected_to"]),
        *_units_fact(record["standardized"]),
        *_categories_facts(record["categories"], record["standardized"] is not None),
        ("frequencies", f"{record['sketch_size']:,}"),
        ("bytes", f"{record['bytes']:,} ({'with' if cells else 'without'} cells)"),
        ("metric", record["metric"]),
        ("distribution", record["distribution"]),
        ("scale", f"{record['scale']:.6g} (variance)"),
        ("seed", "-" if record["seed"] is None else str(record["seed"])),
        ("fingerprint", record["fingerprint"]),
        ("exact sums", "yes" if record["exact"] else "no"),
        ("bounds", _bounds_fact(record)),
        *_cap_fact(record["max_weight"]),
        ("cells", f"{cells:,} (one of a single row is that row)" if cells else "none"),
        ("pool", f"{pool:,} sampled rows" if pool else "none"),
        ("columns", "named" if record["columns"] else "not named"),
    ]


def _bounds_kind(sketch: Sketch) -> str:
    if sketch.release is not None:
        return "public"
    return "tight" if sketch.tally.tight else "outer"


def _bounds_fact(record: dict[str, Any]) -> str:
    words = {
        "public": "public, none of the data",
        "tight": "smallest and largest values",
        "outer": "outer (rows were subtracted)",
    }
    return words[record["bounds"]]


def _cap_fact(max_weight: int | None) -> list[tuple[str, str]]:
    return [] if max_weight is None else [("weights", f"whole numbers up to {max_weight}")]


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


def _categories_facts(records: list[dict[str, Any]], has_units: bool) -> list[tuple[str, str]]:
    if not records:
        return []
    coded = [str(Category.of_record(record)) for record in records]
    weight = "the columns of one together have the variance of one column, times weight squared"
    return [
        *(("category", text) for text in coded),
        *([("categories", weight)] if has_units else []),
    ]


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


def readable_bytes(count: int) -> str:
    """Return a number of bytes in decimal units.

    >>> readable_bytes(8000), readable_bytes(40_000_000)
    ('8.0 kB', '40.0 MB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _print(summary: Summary) -> None:
    """Print a table that fits the terminal; letters that standard output lacks are escaped."""
    text = summary.text(terminal_width())
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))
