"""The plot of a curve over the number of clusters. Needs matplotlib."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ckm._util.files import atomic_file

if TYPE_CHECKING:
    from ckm._analysis.k_curve import KCurve

_SSE = "#1f5a96"
_EVIDENCE = "#d95f02"
_STABILITY = "#3a7d44"
_MARKED = "#c2185b"


def draw_curve(curve: "KCurve", path: str | PathLike[str] | None = None) -> Figure:
    """SSE with its interval, evidence and stability, one above the other; saved if a path is
    given.
    """
    figure = Figure(figsize=(8, 7.2), layout="constrained")
    FigureCanvasAgg(figure)
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(2, 1.4, 1))
    K = curve.n_clusters
    top.fill_between(K, *curve.sse_interval.T, color=_SSE, alpha=0.2, linewidth=0)
    top.plot(K, curve.sse, "o-", color=_SSE, markersize=4)
    top.set_ylabel("SSE")
    # The evidence differs by orders of magnitude; one more makes zero visible.
    middle.plot(K, 1 + curve.evidence, "o-", color=_EVIDENCE, markersize=4)
    middle.set_yscale("log")
    middle.set_ylabel("1 + evidence\n(low is good)")
    bottom.plot(K, curve.stability, "o-", color=_STABILITY, markersize=4)
    bottom.set_ylim(0, 1.05)
    bottom.set(xlabel="number of clusters K", ylabel="stability")
    bottom.xaxis.set_major_locator(MaxNLocator(integer=True))
    for plot in (top, middle, bottom):
        _mark(plot, curve)
        plot.spines[["top", "right"]].set_visible(False)
    title = "No clear number of clusters"
    if curve.suggestion is not None:
        title = f"Suggested number of clusters: {curve.suggestion}"
    top.set_title(title, loc="left", fontsize=13, fontweight="bold")
    if path is not None:
        with atomic_file(Path(path)) as file:
            figure.savefig(file, dpi=150, format="png")
    return figure


def _mark(plot: Any, curve: "KCurve") -> None:
    """Lines at the suggestion and at the runner-up."""
    for number, style in ((curve.suggestion, "-"), (curve.runner_up, ":")):
        if number is not None and number <= np.max(curve.n_clusters):
            plot.axvline(number, color=_MARKED, linestyle=style, linewidth=1.2, zorder=0)
