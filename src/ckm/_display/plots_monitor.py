"""The plot of a monitor: its statistic over time. Needs matplotlib."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ckm._util.arrays import FloatArray
from ckm._util.files import atomic_file

# Distance of two points, in those of others, from which on no line is drawn between them.
GAP_RATIO = 4
_STATISTIC = "#1f5a96"
_THRESHOLD = "#5f6b76"
_CHANGE = "#c2185b"


def draw_history(
    history: FloatArray,
    changes: Sequence[tuple[int, int]],
    path: str | PathLike[str] | None = None,
) -> Figure:
    """The statistic in units of its threshold, after so many rows, and the time of each change;
    saved if a path is given.
    """
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    plot = figure.subplots()
    plot.axhline(1.0, color=_THRESHOLD, linestyle="--", linewidth=1.2, label="threshold")
    plot.plot(*_interrupted(history).T, color=_STATISTIC, linewidth=1.2, label="statistic")
    for i, (row, noticed) in enumerate(changes):
        plot.axvline(row, color=_CHANGE, linewidth=1.4, label=None if i else "estimated change")
        plot.axvspan(
            row, noticed, color=_CHANGE, alpha=0.15, linewidth=0, label=None if i else "delay"
        )
    plot.set(xlabel="rows", ylabel="statistic / threshold")
    plot.set_ylim(bottom=0)
    n = len(changes)
    title = f"{n} change{'s' * (n > 1)}" if n else "No change"
    plot.set_title(title, loc="left", fontsize=13, fontweight="bold")
    plot.legend(frameon=False, fontsize=9)
    plot.spines[["top", "right"]].set_visible(False)
    if path is not None:
        with atomic_file(Path(path)) as file:
            figure.savefig(file, dpi=150, format="png")
    return figure


def _interrupted(history: FloatArray) -> FloatArray:
    """The history with a gap where a new reference was collected, in which nothing was measured."""
    steps = np.diff(history[:, 0])
    if not len(steps):
        return history
    gaps = np.flatnonzero(steps > GAP_RATIO * np.median(steps)) + 1
    return np.insert(history, gaps, np.nan, axis=0)
