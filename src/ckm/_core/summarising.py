"""What is shown of a sketch: what it holds, and its columns."""

from typing import TYPE_CHECKING

import numpy as np

from ckm._util.arrays import FloatArray
from ckm._util.summary import Summary

if TYPE_CHECKING:
    from ckm._core.sketch import Sketch

# Columns of a table that is printed.
SHOWN_COLUMNS = 40


def column_values(sketch: "Sketch") -> dict[str, FloatArray | None]:
    """Bounds, mean and standard deviation of each column; None for what is not known."""
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


def summarise_columns(sketch: "Sketch", hint: str) -> Summary:
    """A table of the columns; `hint` says where those that are not shown can be seen."""
    values = column_values(sketch)
    n = sketch.frequencies.n_features
    names = sketch.columns or tuple(f"[{i}]" for i in range(n))
    rows = tuple(
        (name, *("-" if column is None else f"{column[i]:.6g}" for column in values.values()))
        for i, name in enumerate(names[:SHOWN_COLUMNS])
    )
    notes = (f"{SHOWN_COLUMNS} of {n} columns; {hint}",) if n > SHOWN_COLUMNS else ()
    return Summary("", ("column", *values), rows, notes)


def summarise_sketch(sketch: "Sketch") -> Summary:
    """What `print` and notebooks show of a sketch."""
    f = sketch.frequencies
    n = f.n_features
    cells = 0 if sketch.cells is None else len(sketch.cells.anchors)
    pool = 0 if sketch.pool is None else len(sketch.pool)
    title = f"Sketch of {sketch.count:,} rows, {n} column{'s' * (n > 1)}, {f.m:,} frequencies"
    kept = f"{cells:,} cells" if cells else "no cells"
    kept += f", {pool:,} sampled rows" if pool else ", no sampled rows"
    columns = summarise_columns(sketch, "lower, upper, mean and covariance have them all")
    note = f"{kept}; {f.distribution} frequencies, fingerprint {sketch.design.fingerprint[:8]}."
    return Summary(title, columns.header, columns.rows, (*columns.notes, note))
