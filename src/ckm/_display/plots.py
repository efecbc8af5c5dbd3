"""Plots of clusters: the density of the rows in their two principal axes, with sets of centroids on
top. Needs matplotlib.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from ckm._core.sketch import Sketch
from ckm._util.arrays import FloatArray, RowsArray
from ckm._util.files import atomic_file

# Rows in a plot: enough for a smooth density, few enough to draw at once.
_DRAWN_ROWS = 20_000
# Rings, crosses and dots nest, so that all three can be seen where they coincide.
_MARKERS: tuple[dict[str, Any], ...] = (
    {"marker": "o", "s": 320, "facecolors": "none", "edgecolors": "#222222", "linewidths": 1.6},
    {"marker": "x", "s": 110, "color": "#d95f02", "linewidths": 2.4},
    {"marker": "o", "s": 42, "color": "#c2185b", "edgecolors": "white", "linewidths": 0.9},
)


def draw_clusters(
    path: Path,
    title: str,
    subtitle: str,
    rows: RowsArray,
    sketch: Sketch,
    centroids: Mapping[str, FloatArray],
) -> None:
    """Draw up to three sets of points over `rows` and save the plot as `path`.

    The axes are the two leading eigenvectors of the covariance that the sketch holds.
    """
    axes = np.linalg.eigh(sketch.central_moment.matrix)[1][:, :-3:-1]
    shown = rows[:: max(1, len(rows) // _DRAWN_ROWS)][:_DRAWN_ROWS]
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    plot = figure.add_subplot()
    x, y = ((shown - sketch.mean) @ axes).T
    density = plot.hexbin(x, y, gridsize=60, cmap="Blues", mincnt=1, linewidths=0, alpha=0.85)
    # The sparse edges of the data should be visible too.
    density.set_norm(PowerNorm(0.6, vmin=-2))
    for (name, points), style in zip(centroids.items(), _MARKERS, strict=False):
        plot.scatter(*((points - sketch.mean) @ axes).T, label=name, zorder=3, **style)
    plot.set(xlabel="first principal axis", ylabel="second principal axis", aspect="equal")
    plot.set_title(f"{title}\n", loc="left", fontsize=13, fontweight="bold")
    plot.text(0, 1.02, subtitle, transform=plot.transAxes, fontsize=10, color="#555555")
    plot.spines[["top", "right"]].set_visible(False)
    # An empty line puts the density into the legend.
    hexagon: dict[str, Any] = {"marker": "h", "markersize": 13, "color": "#9ecae1"}
    plot.plot([], [], linestyle="none", label=f"rows ({len(shown):,} drawn)", **hexagon)
    plot.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, labelspacing=1.2)
    with atomic_file(path) as file:
        figure.savefig(file, dpi=150, format="png")
