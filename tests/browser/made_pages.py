"""Pages that ckm makes: a report, and what notebooks show of results."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import ckm

# As around the output of a cell; notebooks bring their own colours.
NOTEBOOK = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Results in a notebook</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>:root{{color-scheme:light dark}}body{{font:14px/1.4 sans-serif}}
.output{{overflow-x:auto}}</style></head>
<body><main><h1>Results in a notebook</h1>{cells}</main></body></html>
"""
CELL = (
    '<h2>{name}</h2><div class="output" tabindex="0" role="region" aria-label="{name}">{html}</div>'
)


def table(seed: int, shift: float = 0.0) -> pa.Table:
    """Three clusters in named columns."""
    rng = np.random.default_rng(seed)
    means = np.array([[30, 20, 5], [60, 25, 5], [40, 70, 9]], float)
    labels = rng.choice(3, size=3000, p=[0.6, 0.3, 0.1])
    X = means[labels] + rng.normal(size=(3000, 3)) * [4, 4, 1] + [0, shift, 0]
    return pa.table(dict(zip(("age", "income", "<visits> & more"), X.T, strict=True)))


def results() -> dict[str, Any]:
    """One result of every kind that shows itself in a notebook."""
    data = table(0)
    rows = np.column_stack([column.to_numpy() for column in data.columns])
    sketch = ckm.sketch(data, n_clusters=4, standardize=True, random_state=0)
    later = ckm.sketch(table(1, shift=6.0), like=sketch)
    solution = ckm.decode(sketch, 3, random_state=0)
    monitor = ckm.Monitor(reference=1000, n_clusters=3, random_state=0)
    return {
        "Sketch": sketch,
        "Solution": solution,
        "Profile": ckm.profile(sketch, solution),
        "KCurve": ckm.curve(sketch, max_clusters=4, random_state=0),
        "Comparison": ckm.compare(sketch, later),
        "Description": ckm.describe(data),
        "Marginals": ckm.marginals(sketch, random_state=0),
        "MonitorStatus": monitor.update(rows),
        "GaussianMixtureSolution": ckm.fit_mixture(sketch, 3, random_state=0),
        "CompressiveKMeans": ckm.CompressiveKMeans(3, random_state=0).fit(rows),
        "CompressiveGaussianMixture": ckm.CompressiveGaussianMixture(3, random_state=0),
    }


def write_pages(folder: Path) -> dict[str, Path]:
    """Write a report and a page of results; return their paths by name."""
    shown = results()
    cells = (CELL.format(name=name, html=value._repr_html_()) for name, value in shown.items())
    notebook = folder / "notebook.html"
    notebook.write_text(NOTEBOOK.format(cells="".join(cells)), encoding="utf-8")
    later = ckm.sketch(table(1, shift=6.0), like=shown["Sketch"])
    report = ckm.report(
        later,
        path=folder / "report.html",
        data=table(1, shift=6.0),
        compare=shown["Sketch"],
        max_clusters=4,
    )
    plain = ckm.report(shown["Sketch"], shown["Solution"], folder / "plain.html", max_clusters=3)
    return {"report": report, "report of a sketch alone": plain, "notebook": notebook}
