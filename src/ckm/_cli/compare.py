"""`ckm compare`: what differs between two sketches."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ckm
from ckm._cli import options as o
from ckm._cli.errors import naming
from ckm._cli.streams import say

if TYPE_CHECKING:
    from ckm._analysis.comparison import Comparison

ComparedClusters = Annotated[
    int | None,
    typer.Option(
        *o.CLUSTERS,
        metavar="K",
        min=1,
        help="Number of clusters to look at (default: what the sketches are large enough for).",
    ),
]
FailAbove = Annotated[
    float | None,
    typer.Option(
        "--fail-above",
        metavar="EFFECT",
        min=0.0,
        help="End with exit status 1 if the effect is larger (errors have status 2).",
    ),
]


def compare(
    *,
    first: o.SketchFile,
    second: o.SketchFile,
    clusters: ComparedClusters = None,
    fail_above: FailAbove = None,
    json: o.Json = False,
) -> None:
    """Test whether two sketches are from one distribution.

    Also shows what differs between them.

    They must have the same frequencies: make the second with `ckm sketch --like first.ckm`. The
    effect is the RMS difference between their characteristic functions, without what chance adds;
    it does not grow with the number of rows, as evidence (a small p) does. Columns and clusters
    with the most evidence come first.
    """
    from ckm._display import tables

    with naming(first, second):
        found = ckm.compare(ckm.load(first), ckm.load(second), n_clusters=clusters)
    if json:
        tables.print_json(comparison_record(found))
    else:
        print(found)
    # Written so that an effect that is not a number fails, too.
    if fail_above is not None and not found.effect <= fail_above:
        say(f"The effect {found.effect:.3g} is above {fail_above:g} (--fail-above).")
        raise typer.Exit(1)


def comparison_record(found: "Comparison") -> dict[str, Any]:
    """The comparison as values for JSON; null stands for what is not a finite number."""
    record: dict[str, Any] = _plain(asdict(found))
    return record


def _plain(value: Any) -> Any:
    # Not above, where `ckm --help` would load it.
    import numpy as np

    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
