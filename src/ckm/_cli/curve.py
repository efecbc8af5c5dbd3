"""`ckm curve`: what a sketch says about every number of clusters; and `-k auto`, which takes the
number that it suggests.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ckm
from ckm._cli import options as o
from ckm._cli.errors import in_options, naming
from ckm._cli.streams import say
from ckm._core.defaults import DEFAULT_MAX_CLUSTERS

if TYPE_CHECKING:
    from ckm._analysis.k_curve import KCurve
    from ckm._core.sketch import Sketch

AUTO = "auto"


def check_clusters(text: str) -> str:
    """Refuse what is neither a number of clusters nor auto."""
    if text == AUTO:
        return text
    try:
        number = int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a valid integer, nor auto.") from None
    if number < 1:
        raise typer.BadParameter(f"{number} is not in the range x>=1.")
    return str(number)


ClustersOrAuto = Annotated[
    str,
    typer.Option(
        *o.CLUSTERS,
        metavar="K|auto",
        callback=check_clusters,
        help="Number of clusters to find, or auto for the number that `ckm curve` suggests.",
    ),
]
MaxClusters = Annotated[
    int,
    typer.Option(
        "--max-clusters",
        "--max",
        metavar="K",
        min=1,
        help="The largest number of clusters to ask about.",
    ),
]
CurveOutput = Annotated[
    o.FileName | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        parser=o.file_name,
        help="Draw the curve to this .png file (needs matplotlib).",
    ),
]


def curve(
    *,
    sketch: o.SketchFile,
    max_clusters: MaxClusters = DEFAULT_MAX_CLUSTERS,
    output: CurveOutput = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    report: o.ReportOptions,
) -> None:
    """Ask a sketch about every number of clusters.

    For each K: the SSE that k-means would reach, with an interval; the residual of K Gaussians
    relative to chance; Schwarz's criterion relative to the best; and the share of the rows whose
    cluster does not depend on what the sketch leaves open. A number is suggested only where these
    speak for one. Make the sketch for as many clusters: `ckm sketch -k 20`.
    """
    from ckm._cli import files as file
    from ckm._cli import steps
    from ckm._display import tables

    steps.check_compute(jobs)
    file.check_files([file.Input(sketch)], [file.Output(output, (".png",))])
    loaded = ckm.load(sketch)
    with tables.show_stages("Decoding", report.quiet), naming(sketch):
        found = ckm.curve(loaded, max_clusters, random_state=seed, n_jobs=jobs)
    if output is not None:
        found.plot(output)
    if report.json:
        tables.print_json(curve_record(found))
    else:
        for finding in found.findings:
            say(f"Warning: {in_options(finding.sentence)}")
        print(replace(found, findings=()))


def choose_clusters(
    sketch: "Sketch", max_clusters: int, compute: o.ComputeOptions, report: o.ReportOptions
) -> tuple[int, dict[str, Any]]:
    """The number of clusters that the sketch suggests, which is said, and what to record of it."""
    from ckm._display import tables
    from ckm._messages import Argument
    from ckm.errors import DataError

    with tables.show_stages("Choosing the number of clusters", report.quiet):
        found = ckm.curve(sketch, max_clusters, random_state=compute.seed, n_jobs=compute.jobs)
    if found.suggestion is None:
        raise DataError(
            f"{found.reason} Give ",
            Argument("n_clusters", ...),
            "; `ckm sketch` and `ckm curve` show what speaks for each number.",
        )
    say(f"Chose {found.suggestion} clusters. {found.reason}", report.quiet)
    return found.suggestion, {"reason": found.reason, "runner_up": found.runner_up}


def curve_record(found: "KCurve") -> dict[str, Any]:
    """The curve as values for JSON; null stands for what is not known."""
    arrays = ("n_clusters", "sse", "sse_interval", "residual", "evidence", "stability")
    return {
        "suggestion": found.suggestion,
        "runner_up": found.runner_up,
        "reason": found.reason,
        "status": found.status.value,
        "findings": [
            {"status": finding.status.value, "message": in_options(finding.sentence)}
            for finding in found.findings
        ],
        **{name: _plain(getattr(found, name).tolist()) for name in arrays},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
