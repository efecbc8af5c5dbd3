"""The command line: `ckm fit | sketch | merge | decode | predict | inspect | demo`.

Results go to standard output or to the file named with -o; progress, notes, warnings and errors go
to standard error.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

import ckm
from ckm._cli import options as o
from ckm._cli import steps
from ckm._cli.errors import ReportingGroup, say

# `ckm` loads what computes when it is first used, and the commands import the rest themselves: help
# appears at once.


def _examples(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


app = typer.Typer(
    cls=ReportingGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help keeps the line breaks of examples in every version of typer
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_examples(
        "ckm demo                                      see it work, next to k-means",
        "ckm fit data.parquet -k 10 -o centroids.csv   the main job",
        "ckm predict data.parquet --centroids centroids.csv -o labels.npy",
        "",
        "In parts, on different days or machines, without moving the data:",
        "  ckm sketch monday.parquet -k 10 -o mon.ckm",
        "  ckm sketch tuesday.parquet --like mon.ckm -o tue.ckm",
        "  ckm merge mon.ckm tue.ckm -o week.ckm",
        "  ckm decode week.ckm -k 10 -o centroids.csv",
    ),
)


def main() -> None:
    """Run the command line."""
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"ckm {ckm.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Cluster any amount of data in one pass: compressive k-means.

    A sketch is m random averages of the rows, a few kilobytes whatever their number. Centroids are
    found from the sketch alone, and sketches of different data add up.
    """


@app.command(
    epilog=_examples(
        "ckm fit data.parquet -k 10 -o centroids.csv",
        "ckm fit 'events/*.parquet' -k 20 --columns x,y,z --sse",
        "ckm fit data.npy -k 10 --save-sketch data.ckm -o centroids.json",
        "ckm fit data.parquet -k 10 --polish 2 -o centroids.csv",
        "ckm fit 'events/*.parquet' -k 200 --kernel torch -o centroids.csv",
        "ckm fit data.csv -k 5 --json | jq .weights",
        "zcat log.csv.gz | ckm fit - -k 5 --columns lat,lon -o centroids.csv",
    )
)
def fit(
    files: o.Files,
    clusters: o.Clusters,
    output: o.CentroidsOut = None,
    save_sketch: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the sketch too: a name ending in .ckm."),
    ] = None,
    sse: Annotated[
        bool, typer.Option("--sse", help="Also report the SSE: one more pass over the data.")
    ] = False,
    polish: o.Polish = 0,
    columns: o.Columns = None,
    weight_column: o.WeightColumn = None,
    nan: o.Nan = "error",
    standardize: o.Standardize = False,
    sketch_size: o.Size = None,
    scale: o.Scale = "auto",
    distribution: o.Distribution = "multiscale",
    pool: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Sampled rows to start from, held during the fit only."
        ),
    ] = 1000,
    decoder: o.Decoder = "auto",
    init: o.Init = "auto",
    n_init: o.Replicates = 1,
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    kernel: o.Kernel = "auto",
    json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Find K centroids of the rows in FILES, in one pass.

    Memory stays bounded. Without -o the centroids are printed: a table at a terminal, CSV in a
    pipe. The CSV has one line for each cluster: cluster,weight,<column names>. It is all that `ckm
    predict` needs.

    --polish N gives up the one pass: at most N more move each centroid to the mean of its rows, and
    a last one measures SSE and shares of rows, which become the weights. Each costs rows x K x
    columns multiply-adds, as `ckm predict` does.
    """
    from ckm._cli import files as results

    steps.check_search(decoder, init, holds_rows=pool > 0)
    variance = steps.parse_scale(scale)
    inputs = results.find_inputs(files)
    results.check_outputs(
        [results.Output(output, results.CENTROIDS), results.Output(save_sketch, results.SKETCHES)],
        inputs,
    )
    results.require_place_for_units(output, standardize, json)
    source = steps.open_rows(
        inputs,
        columns,
        weight_column,
        nan,
        again="--polish" if polish else "--sse" if sse else None,
    )
    steps.require_rows(source.n_rows, clusters, inputs)
    s = ckm.sketch(
        source,
        n_clusters=clusters,
        sketch_size=sketch_size,
        scale=variance,
        distribution=distribution,
        standardize=standardize,
        pool=pool,
        random_state=seed,
        n_jobs=jobs,
        kernel=kernel,
        progress=not quiet,
    )
    steps.require_rows(s.count, clusters, inputs)
    if save_sketch is not None:
        # rows are written only by `ckm sketch --pool`, where they are asked for by name
        s.without_pool().save(save_sketch)
    solution = steps.decode(s, clusters, decoder, init, n_init, seed, jobs, kernel, quiet)
    more: dict[str, Any] = {"rows": s.count, "sketch_size": s.frequencies.m, "seed": seed}
    if polish or sse:
        solution, measured = steps.measure(source, solution, polish, jobs, quiet)
        more |= measured
    steps.deliver(solution, more, output, json, quiet)


@app.command(
    epilog=_examples(
        "ckm sketch data.parquet -k 10 -o data.ckm",
        "ckm sketch part-1.csv -m 2000 --pool 1000 -o part-1.ckm",
        "ckm sketch part-2.csv --like part-1.ckm --pool 1000 -o part-2.ckm",
        "ckm sketch 'logs/*.parquet' -k 50 --columns lat,lon -o logs.ckm",
        "ckm sketch logs/ -k 50 -o logs.ckm --checkpoint logs.part --resume",
        "ckm sketch /shared/ -k 50 -o logs.ckm --engine dask --scheduler HOST:8786",
    )
)
def sketch(
    files: o.Files,
    output: o.SketchOut,
    clusters: Annotated[
        int | None,
        typer.Option(
            "--clusters",
            "-k",
            metavar="K",
            min=1,
            help="Size it for K clusters: m = 5 K n; with --like, check that it will do.",
        ),
    ] = None,
    sketch_size: o.Size = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Use an earlier sketch's frequencies, so that both can merge."
        ),
    ] = None,
    columns: o.Columns = None,
    weight_column: o.WeightColumn = None,
    nan: o.Nan = "error",
    standardize: o.Standardize = False,
    scale: o.Scale = "auto",
    distribution: o.Distribution = "multiscale",
    pool: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Keep N sampled rows in the file, to start decoding from."
        ),
    ] = 0,
    checkpoint: o.Checkpoint = None,
    resume: o.Resume = False,
    engine: o.Engine = None,
    scheduler: o.Scheduler = None,
    master: o.Master = None,
    address: o.Address = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    kernel: o.Kernel = "auto",
    json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Sketch the rows in FILES in one pass, for decoding later.

    The size comes from -k, -m or --like; beside --like, which has one, -k only refuses a size that
    is too small for K clusters.

    The file holds averages and, unless --pool asks for them, no rows. To sketch data in parts, give
    every part after the first --like the first: the merged sketch is then the sketch of all the
    rows, bit for bit.

    With --checkpoint a long pass survives: whatever stops it, the same command with --resume goes
    on, and ends with the same bits. The checkpoint is removed once the sketch is written.

    With --engine the files are read and added up by the workers of a cluster, with the same bits
    for the same frequencies.
    """
    from ckm._cli import files as results
    from ckm._display import tables as report
    from ckm._sketching import checkpoint as checkpoints

    if clusters is None and sketch_size is None and like is None:
        raise typer.BadParameter(
            "The size of the sketch is not known; give -k K, -m M, or --like FILE.",
            param_hint="-k / -m / --like",
        )
    inputs = results.find_inputs(files)
    results.check_outputs(
        [results.Output(output, results.SKETCHES)], [*inputs, *([like] if like else [])]
    )
    data: Any = inputs
    which: dict[str, Any] = {
        "columns": steps.split(columns),
        "weight_column": weight_column,
        "nan": steps.check_nan(nan),
    }
    addresses = {"dask": scheduler, "spark": master, "ray": address}
    if engine is not None or any(addresses.values()):
        data, which = steps.on_engine(engine, addresses, inputs, like, **which), {}
    with steps.kept(checkpoint):
        s = ckm.sketch(
            data,
            n_clusters=clusters,
            sketch_size=sketch_size,
            like=like,
            scale=steps.parse_scale(scale),
            distribution=distribution,
            standardize=standardize,
            pool=pool,
            random_state=seed,
            n_jobs=jobs,
            kernel=kernel,
            checkpoint=checkpoint,
            resume=resume,
            progress=not quiet,
            **which,
        )
    s.save(output)
    if checkpoint is not None:
        checkpoints.remove(checkpoint)
    size = (
        f"{s.frequencies.m} frequencies"
        if like is None
        else f"the {s.frequencies.m} frequencies of {like}"
    )
    say(f"Sketched {s.count:,} rows of {s.frequencies.n} columns into {size}: {output}", quiet)
    if json:
        report.print_json(report.sketch_record(s))


@app.command(
    epilog=_examples(
        "ckm merge monday.ckm tuesday.ckm -o week.ckm",
        "ckm merge parts/*.ckm -o all.ckm",
    )
)
def merge(
    sketches: Annotated[
        list[str],
        typer.Argument(
            metavar="SKETCHES", help="Files made by `ckm sketch` with the same frequencies."
        ),
    ],
    output: o.SketchOut,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Add sketches up: the result is the sketch of all their rows.

    They must share their frequencies: make all but the first with `ckm sketch --like first.ckm`.
    """
    from ckm._cli import files as results
    from ckm._display import tables as report

    paths = results.find_inputs(sketches)
    results.check_outputs([results.Output(output, results.SKETCHES)], paths)
    s = steps.merged(paths)
    s.save(output)
    say(f"Merged {len(paths)} sketches of {s.count:,} rows in all: {output}", quiet)
    if json:
        report.print_json(report.sketch_record(s))


@app.command(
    epilog=_examples(
        "ckm decode data.ckm -k 10 -o centroids.csv",
        "ckm decode data.ckm -k 12 --n-init 5 --init range",
        "for k in 5 10 20; do ckm decode data.ckm -k $k --json | jq .cost; done",
    )
)
def decode(
    sketch: Annotated[
        Path, typer.Argument(metavar="SKETCH", help="A file made by `ckm sketch` or `ckm merge`.")
    ],
    clusters: o.Clusters,
    output: o.CentroidsOut = None,
    decoder: o.Decoder = "auto",
    init: o.Init = "auto",
    n_init: o.Replicates = 1,
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    kernel: o.Kernel = "auto",
    json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Find K centroids from a sketch alone; any K, again and again.

    Without -o the centroids are printed: a table at a terminal, CSV in a pipe.
    """
    from ckm._cli import files as results

    results.check_outputs([results.Output(output, results.CENTROIDS)], [sketch])
    s = ckm.load(sketch)
    steps.check_search(decoder, init, holds_rows=s.pool is not None)
    results.require_place_for_units(output, s.frequencies.units is not None, json)
    solution = steps.decode(s, clusters, decoder, init, n_init, seed, jobs, kernel, quiet)
    steps.deliver(
        solution,
        {"rows": s.count, "sketch_size": s.frequencies.m, "seed": seed},
        output,
        json,
        quiet,
    )


@app.command(
    epilog=_examples(
        "ckm predict data.parquet --centroids centroids.csv -o labels.npy",
        "ckm predict 'new/*.csv' --centroids centroids.json -o labels.csv",
        "ckm predict data.npy --centroids centroids.csv --json | jq .sse",
        "ckm predict gaps.csv --centroids centroids.csv --nan drop -o labels.csv",
    )
)
def predict(
    files: o.Files,
    centroids: Annotated[
        Path,
        typer.Option(
            "--centroids",
            "-c",
            metavar="FILE",
            help="Written by `ckm fit` or `decode`: .csv or .json.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write one label a row here: .csv, .npy or .parquet.",
        ),
    ] = None,
    nan: o.NanLabels = "error",
    jobs: o.Jobs = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Give every row of FILES the number of its nearest centroid.

    Rows stream through in bounded memory. Columns are matched by name, in any order. Prints each
    cluster's rows and SSE (sum of squared distances); the labels themselves go to -o, in the order
    of the rows: one for each, -1 where --nan drop met a missing value.
    """
    from ckm._cli import files as results
    from ckm._cli.labels import writing_labels
    from ckm._display import tables as report
    from ckm._kmeans.centroids import open_for
    from ckm._sources.adapters import in_units

    inputs = results.find_inputs(files)
    results.check_outputs([results.Output(output, results.LABELS)], [*inputs, centroids])
    found = results.read_centroids(centroids)
    steps.check_nan(nan)
    source = in_units(
        open_for(inputs, found.columns, found.values.shape[1], str(centroids), str(inputs[0])),
        found.units,
    )
    values = found.values if found.units is None else found.values / found.units
    if output is None:
        labelling = steps.label(source, values, jobs, quiet, nan=nan)
    else:
        with writing_labels(output) as writer:
            labelling = steps.label(source, values, jobs, quiet, writer.write, nan)
    if labelling.missing:
        say(
            f"Warning: {labelling.missing:,} rows have missing values: their label is -1, and they count in no cluster."
        )
    record = report.labelling_record(labelling)
    say(
        f"Labelled {record['rows']:,} rows, SSE {record['sse']:.6g}{'' if output is None else f': {output}'}",
        quiet,
    )
    if json:
        report.print_json(record)
    else:
        report.show_labelling(labelling)


@app.command(
    epilog=_examples("ckm inspect data.ckm", "ckm inspect data.ckm --json | jq .fingerprint")
)
def inspect(
    sketch: Annotated[
        Path, typer.Argument(metavar="SKETCH", help="A file made by `ckm sketch` or `ckm merge`.")
    ],
    json: o.Json = False,
) -> None:
    """Show what a sketch holds: rows, size, scale, columns.

    Sketches with the same fingerprint can be merged.
    """
    from ckm._display import tables as report

    s = ckm.load(sketch)
    if json:
        report.print_json(report.sketch_record(s))
    else:
        report.show_sketch(s)


@app.command(epilog=_examples("ckm demo", "ckm demo --rows 100000 --folder /tmp/demo --seed 1"))
def demo(
    rows: Annotated[
        int, typer.Option(metavar="N", min=100, help="How many rows to make.")
    ] = 1_000_000,
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to put the data and the picture.")
    ] = Path("demo"),
    seed: o.Seed = 0,
) -> None:
    """See it work: ckm and k-means side by side, on made data.

    Writes a Parquet file of a Gaussian mixture (10 clusters in dimension 10, as in the paper), its
    sketch and a picture. Takes under a minute.
    """
    from ckm._cli.demo import run_demo

    run_demo(folder, rows, seed)
