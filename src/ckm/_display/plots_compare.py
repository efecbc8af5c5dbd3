"""The plot of a comparison: how far columns moved, and shares of clusters. Needs matplotlib."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ckm._util.files import atomic_file

if TYPE_CHECKING:
    from ckm._analysis.comparison import Comparison

# Columns, and clusters, that are drawn.
_DRAWN = 12
_FOUND = "#c2185b"
_OTHER = "#1f5a96"
_ZERO = "#5f6b76"


def draw_comparison(
    found: "Comparison", level: float, path: str | PathLike[str] | None = None
) -> Figure:
    """Differences with their 95 % intervals, those with evidence at this level in another colour;
    saved if a path is given.
    """
    columns = found.columns[:_DRAWN]
    clusters = found.clusters[:_DRAWN]
    height = 1.4 + 0.3 * max(len(columns), len(clusters), 3)
    figure = Figure(figsize=(9, height), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _draw_intervals(
        left,
        [column.name for column in columns],
        [(column.shift, *column.shift_interval) for column in columns],
        [column.p_value < level for column in columns],
    )
    left.set(xlabel="shift of the mean (standard deviations)", title="Columns")
    shares = []
    for cluster in clusters:
        low, high = cluster.share_interval
        shares.append((100 * (cluster.share_b - cluster.share_a), 100 * low, 100 * high))
    _draw_intervals(
        right,
        [f"cluster {c.index} ({c.share_a:.1%})" for c in clusters],
        shares,
        [c.p_value < level for c in clusters],
    )
    right.set(xlabel="change of share (percentage points)", title="Clusters")
    low, high = found.effect_interval
    figure.suptitle(
        f"p = {found.p_value:.2g}, effect {found.effect:.3g} ({low:.3g} to {high:.3g})",
        x=0.01,
        ha="left",
        fontweight="bold",
    )
    if path is not None:
        with atomic_file(Path(path)) as file:
            figure.savefig(file, dpi=150, format="png")
    return figure


def _draw_intervals(
    plot: Any,
    names: Sequence[str],
    intervals: Sequence[tuple[float, float, float]],
    is_found: Sequence[bool],
) -> None:
    """One line per name, the first on top: (value, low, high)."""
    plot.axvline(0.0, color=_ZERO, linewidth=1)
    for i, (interval, found) in enumerate(zip(intervals, is_found, strict=True)):
        # A constant column that has another value has moved infinitely far.
        if not np.isfinite(interval).all():
            continue
        value, low, high = interval
        color = _FOUND if found else _OTHER
        plot.plot([low, high], [i, i], color=color, linewidth=2, solid_capstyle="butt")
        plot.plot([value], [i], "o", color=color, markersize=5)
    # Names are text: a dollar sign does not begin a formula.
    labels = [name.replace("$", r"\$") for name in names]
    plot.set_yticks(range(len(names)), labels)
    plot.set_ylim(len(names) - 0.5, -0.5)
    plot.spines[["top", "right"]].set_visible(False)
