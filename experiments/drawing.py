"""How plots look: panels, and the colours and markers of the methods."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import replacing
from experiments.methods import COLOURS, LABELS, MARKERS

# the paper's own numbers
PAPER = {"color": "black", "marker": "_", "markersize": 16, "linestyle": "none", "zorder": 5}


@contextmanager
def panels(
    path: Path, count: int, width: float = 5.0, height: float = 4.0
) -> Iterator[Sequence[Any]]:
    """Yield axes side by side; the figure is written to `path` at the end."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * count, height), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
    yield axes
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        figure.savefig(part, dpi=110, format="png", metadata={"Software": None})


def style(method: str, **others: Any) -> dict[str, Any]:
    """Return the colour, marker and label of a method."""
    return {"color": COLOURS[method], "marker": MARKERS[method], "label": LABELS[method], **others}


def curve(
    ax: Any, rows: Sequence[dict[str, Any]], x: str, measure: str, method: str, **others: Any
) -> None:
    """Draw means over x with a band of one standard deviation; at the largest N unless x is N."""
    shown = rows if x == "N" else [row for row in rows if row["N"] == max(row["N"] for row in rows)]
    known = sorted(
        (row for row in shown if row["method"] == method and measure in row), key=lambda row: row[x]
    )
    places = [row[x] for row in known]
    means = [row[measure]["mean"] for row in known]
    ax.plot(places, means, **style(method, **others))
    low, high = (
        [mean + sign * row[measure]["std"] for row, mean in zip(known, means, strict=True)]
        for sign in (-1, 1)
    )
    ax.fill_between(places, low, high, color=COLOURS[method], alpha=0.15, linewidth=0)
