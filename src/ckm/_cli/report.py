"""`ckm report`: one page of HTML about the clusters of a sketch."""

from typing import Annotated

import typer

import ckm
from ckm._cli import options as o
from ckm._cli.curve import AUTO, MaxClusters, check_clusters
from ckm._cli.errors import in_options, naming
from ckm._cli.streams import say
from ckm._core.defaults import DEFAULT_MAX_CLUSTERS

ReportedClusters = Annotated[
    str,
    typer.Option(
        *o.CLUSTERS,
        metavar="K|auto",
        callback=check_clusters,
        help="Number of clusters, or auto for the number that the sketch speaks for.",
    ),
]
PageOutput = Annotated[
    o.FileName,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        parser=o.file_name,
        help="Write the page to this file; its name must end in .html.",
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="FILES",
        help=(
            "Also read the rows, for exact shares and example rows: a name, quoted pattern or "
            "folder, as in `ckm sketch`; may be given several times."
        ),
    ),
]
Compare = Annotated[
    o.FileName | None,
    typer.Option(
        "--compare",
        metavar="SKETCH",
        parser=o.file_name,
        help="An earlier sketch with the same frequencies: what changed since (default: none).",
    ),
]
Title = Annotated[
    str | None, typer.Option("--title", metavar="TEXT", help="The heading of the page.")
]


def report(
    *,
    sketch: o.SketchFile,
    output: PageOutput,
    clusters: ReportedClusters = AUTO,
    data: Data = None,
    compare: Compare = None,
    max_clusters: MaxClusters = DEFAULT_MAX_CLUSTERS,
    title: Title = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    quiet: o.Quiet = False,
) -> None:
    """Write a page about the clusters of a sketch.

    It says how many clusters there are, how large, what sets each apart and how far to trust them,
    with plots. One file of HTML that needs nothing from outside: open it in a browser, print it,
    send it.
    """
    from ckm._cli import files as file
    from ckm._cli import steps
    from ckm._display import tables
    from ckm._display.report.api import gather, render
    from ckm._util.files import write_atomically

    steps.check_compute(jobs)
    inputs = file.find_inputs(data) if data else []
    file.check_files(
        [
            file.Input(sketch),
            file.Input(compare, "the sketch of --compare"),
            *map(file.Input, inputs),
        ],
        [file.Output(output, (".html",))],
    )
    loaded = ckm.load(sketch)
    earlier = None if compare is None else ckm.load(compare)
    named = [sketch, *([] if compare is None else [compare])]
    with tables.show_stages("Writing the report", quiet), naming(*named):
        content = gather(
            loaded,
            None,
            data=inputs or None,
            compare=earlier,
            n_clusters=None if clusters == AUTO else int(clusters),
            max_clusters=max_clusters,
            title=title,
            seed=seed,
            n_jobs=jobs,
            word=in_options,
        )
    write_atomically(output, render(content).encode())
    clusters = "1 cluster" if content.K == 1 else f"{content.K} clusters"
    say(f"Wrote the report of {clusters} in {loaded.count:,} rows: {output}", quiet)
