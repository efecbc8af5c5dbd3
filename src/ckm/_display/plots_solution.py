"""The plot of a solution: its clusters along two principal axes. Needs matplotlib."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ckm._display.report.cluster_map import map_clusters
from ckm._display.report.palette import LIGHT
from ckm._util.files import atomic_file

if TYPE_CHECKING:
    from ckm._decoding.solution import Solution


def draw_solution(
    solution: "Solution", data: Any = None, path: str | PathLike[str] | None = None
) -> Figure:
    """Rows coloured by cluster, and numbered centroids; saved if a path is given."""
    rows = None if data is None else np.asarray(data, np.float64)
    found = map_clusters(solution, rows)
    figure = Figure(figsize=(8, 5.8), layout="constrained")
    FigureCanvasAgg(figure)
    plot = figure.add_subplot()
    colors = np.array([LIGHT[k % len(LIGHT)] for k in range(len(solution.weights))])
    x, y = found.points.T
    plot.scatter(x, y, s=7, c=list(colors[found.labels]), alpha=0.45, linewidths=0)
    for k, (cx, cy) in enumerate(found.centroids):
        plot.scatter(
            [cx], [cy], s=190, color=colors[k], edgecolors="white", linewidths=1.4, zorder=3
        )
        plot.text(
            cx, cy, str(k), color="white", ha="center", va="center", fontsize=9, weight="bold"
        )
    names = [f"{name} ({share:.0%} of the variance)" for name, share in found.axes]
    plot.set(xlabel=names[0], ylabel=names[1] if len(names) > 1 else "")
    K = len(solution.weights)
    plot.set_title(f"{K} cluster{'s' * (K > 1)}", loc="left", fontsize=13, fontweight="bold")
    plot.spines[["top", "right"]].set_visible(False)
    if path is not None:
        with atomic_file(Path(path)) as file:
            figure.savefig(file, dpi=150, format="png")
    return figure
