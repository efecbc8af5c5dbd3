"""Plots of the distribution of columns, alone and in pairs. Needs matplotlib."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ckm._analysis.marginal import Marginals, marginals
from ckm._core.sketch import Sketch
from ckm._util.arrays import FloatArray
from ckm._util.files import atomic_file

# Columns up to which every two of them are drawn; beyond, columns are drawn alone, so many in a
# line.
MAX_PAIRED = 5
PER_LINE = 4
_SKETCH = "#1f5a96"
_DATA = "#d9a05b"
_BINS = 60


def plot_marginals(
    sketch: Sketch, columns: Any, data: Any, path: str | PathLike[str] | None, seed: Any
) -> Figure:
    """Draw columns of the data that a sketch summarises."""
    return draw_marginals(marginals(sketch, columns, random_state=seed), data, path)


def draw_marginals(
    found: Marginals, data: Any = None, path: str | PathLike[str] | None = None
) -> Figure:
    """Densities of the columns, over histograms of the data if it is given; saved if a path is."""
    rows = None if data is None else np.asarray(data, np.float64)[:, list(found.numbers)]
    count = len(found.columns)
    is_paired = 1 < count <= MAX_PAIRED
    across = count if is_paired else min(count, PER_LINE)
    down = count if is_paired else -(-count // PER_LINE)
    figure = Figure(figsize=(2.6 * across + 0.6, 2.3 * down + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    plots = figure.subplots(down, across, squeeze=False)
    for i in range(down * across):
        plot = plots.flat[i]
        row, column = divmod(i, across)
        if not is_paired and i >= count:
            plot.axis("off")
        elif not is_paired or row == column:
            _draw_one(plot, found, column if is_paired else i, rows)
        else:
            _draw_two(plot, found, column, row)
    figure.suptitle("Columns, from the sketch alone" if rows is None else _legend(), fontsize=11)
    if path is not None:
        with atomic_file(Path(path)) as file:
            figure.savefig(file, dpi=150, format="png")
    return figure


def _legend() -> str:
    return "Columns: from the sketch alone (line), histograms of the data (filled)"


def _draw_one(plot: Axes, found: Marginals, i: int, rows: FloatArray | None) -> None:
    values = found.grid[i]
    if rows is not None:
        plot.hist(rows[:, i], bins=_BINS, range=(values[0], values[-1]), density=True, color=_DATA)
    plot.plot(values, found.density[i], color=_SKETCH, linewidth=1.6)
    plot.set_title(found.columns[i], fontsize=10)
    plot.set_yticks([])
    plot.set_ylim(bottom=0)
    plot.spines[["top", "right", "left"]].set_visible(False)


def _draw_two(plot: Axes, found: Marginals, first: int, second: int) -> None:
    (x, y), density = found.pair(found.numbers[first], found.numbers[second])
    # The square root shows clusters that are small beside others.
    plot.pcolormesh(x, y, np.sqrt(density.T), cmap="Blues", shading="auto", rasterized=True)
    plot.tick_params(labelsize=7)
