"""The commands. Each checks what can be checked before any data is read, then runs its steps.

What computes is imported when a command runs, so that help appears at once.
"""

import typer

import ckm
from ckm._cli import options as o
from ckm._cli.curve import AUTO, ClustersOrAuto, MaxClusters, choose_clusters
from ckm._cli.errors import naming
from ckm._cli.streams import say
from ckm._core.defaults import DEFAULT_MAX_CLUSTERS, DEFAULT_POOL


def fit(
    *,
    files: o.Files,
    clusters: ClustersOrAuto,
    max_clusters: MaxClusters = DEFAULT_MAX_CLUSTERS,
    output: o.CentroidsOutput = None,
    save_sketch: o.SaveSketch = None,
    sse: o.Sse = False,
    polish: o.Polish = 0,
    rows: o.RowOptions,
    frequencies: o.FrequencyOptions,
    pool: o.FitPool = DEFAULT_POOL,
    decoding: o.DecodingOptions,
    compute: o.ComputeOptions,
    report: o.ReportOptions,
) -> None:
    """Find K centroids of the rows in FILES, in one pass.

    Memory use is bounded. Without -o the centroids are printed: a table at a terminal, CSV in a
    pipe. The CSV has one line per cluster: cluster,weight,<column names>, where [0],[1],... stand
    for data without column names. It is all that `ckm predict` needs. With --standardize, the
    units of columns follow as further columns, with --metric cosine the metric.

    With --polish N the data is read again: at most N passes move each centroid to the mean of its
    rows, and a last one measures the SSE and the shares of rows, which become the weights. Each
    pass costs rows x K x columns multiply-adds, as `ckm predict` does.

    With -k auto the number of clusters is the one that `ckm curve` suggests, up to --max-clusters;
    if there is no clear number, the command says so and fails.
    """
    from ckm._cli import centroids, steps
    from ckm._cli import files as file
    from ckm._cli.earlier import earlier_inputs, read_earlier
    from ckm._decoding.api import uses_cells
    from ckm._sketching.screened_pass import sketch_screened

    steps.check_decoding(decoding, has_rows=pool > 0)
    sketching = steps.sketching_arguments(frequencies, compute, report)
    steps.check_rows(rows)
    inputs = file.find_inputs(files)
    file.check_files(
        [*map(file.Input, inputs), *earlier_inputs(decoding)],
        [
            file.Output(output, file.CENTROIDS),
            file.Output(save_sketch, file.SKETCHES, "--save-sketch"),
        ],
    )
    is_prepared = frequencies.log is not None or rows.categories is not None
    measure = centroids.Measure(steps.is_standardized(frequencies), frequencies.metric, is_prepared)
    with naming(*inputs):
        source = steps.open_rows(inputs, rows)
    centroids.require_space_for_names(source.columns, measure, output, report.json)
    if polish or sse:
        steps.require_rereadable(source, "--polish" if polish else "--sse")
    is_open = clusters == AUTO
    K = 1 if is_open else int(clusters)
    steps.check_row_count(source.n_rows, K, inputs)
    earlier = read_earlier(decoding, source.columns, source.n_features, None if is_open else K)
    sized_for = max_clusters if is_open else K
    screening = steps.screening(rows, report)
    # Rows with missing values were dropped when the source was opened.
    nan = "impute" if rows.nan == "impute" else "error"
    # A sketch that is kept may be decoded otherwise, or be what later ones are like.
    serves_one_fit = (
        save_sketch is None
        and not is_open
        and source.is_rereadable
        and uses_cells(decoding.decoder)
    )
    with naming(*inputs):
        s = sketch_screened(
            source,
            screening,
            n_clusters=sized_for,
            pool=pool,
            nan=nan,
            serves_one_fit=serves_one_fit,
            **sketching,
        )
    steps.check_row_count(s.count, K, inputs)
    source = steps.same_rows(source, s, rows.nan)
    if save_sketch is not None:
        # Sampled rows are written only by `ckm sketch --pool`, where they are requested by name.
        s.without_pool().save(save_sketch)
    facts = steps.facts_of(s, compute)
    if is_open:
        K, facts["auto"] = choose_clusters(s, max_clusters, compute, report)
    solution = steps.decode(s, K, decoding, earlier, compute, report)
    if polish or sse:
        solution, scores = steps.polish_and_score(source, solution, polish, compute, report)
        facts |= scores
    steps.deliver(solution, facts, output, report)


def sketch(
    *,
    files: o.Files,
    output: o.SketchOutput,
    clusters: o.ClustersToSizeFor = None,
    like: o.Like = None,
    rows: o.RowOptions,
    users: o.UserOptions,
    frequencies: o.FrequencyOptions,
    pool: o.SketchPool = 0,
    interruption: o.CheckpointOptions,
    cluster: o.EngineOptions,
    compute: o.ComputeOptions,
    report: o.ReportOptions,
) -> None:
    """Sketch the rows in FILES in one pass, for decoding later.

    The size of the sketch comes from -k, -m or --like. With --like, which fixes the size, -k only
    checks that it is large enough for K clusters.

    The file holds averages, the smallest and largest value of each column, which are values of
    rows, counts and sums of the rows around some anchors (--cells; a cell of one row is that row),
    and, only if --pool asks for them, sampled rows. To sketch data in parts,
    sketch every part after the first with --like and the first sketch: the merged sketch is then
    bit-identical to the sketch of all the rows.

    With --checkpoint an interrupted pass is not lost: the same command with --resume continues it,
    with a bit-identical result. The checkpoint is removed once the sketch is written.

    With --engine the workers of a cluster read and sketch the files; the result is bit-identical
    for the same frequencies. With --checkpoint too, they do so a few files per core at a time.
    """
    if clusters is None and frequencies.sketch_size is None and like is None:
        raise typer.BadParameter(
            "The size of the sketch is not known; give -k K, -m M, or --like FILE.",
            param_hint="-k / -m / --like",
        )
    from ckm._cli import files as file
    from ckm._cli import steps
    from ckm._sketching.screened_pass import sketch_screened

    checkpoint = interruption.checkpoint
    if interruption.resume and checkpoint is None:
        raise typer.BadParameter(
            "It continues from a checkpoint; name it with --checkpoint.", param_hint="--resume"
        )
    sketching = steps.sketching_arguments(frequencies, compute, report)
    steps.check_rows(rows)
    steps.check_engine(cluster)
    inputs = file.find_inputs(files)
    file.check_files(
        [*map(file.Input, inputs), file.Input(like, "the sketch of --like")],
        [
            file.Output(output, file.SKETCHES),
            file.Output(checkpoint, None, "--checkpoint"),
        ],
    )
    with naming(*inputs):
        data = steps.data_arguments(inputs, rows, users, cluster, like)
    with steps.announce_checkpoint(checkpoint), naming(*inputs):
        s = sketch_screened(
            screening=steps.screening(rows, report),
            n_clusters=clusters,
            like=like,
            pool=pool,
            checkpoint=checkpoint,
            checkpoint_interval=interruption.checkpoint_interval,
            resume=interruption.resume,
            **data,
            **sketching,
        )
    s.save(output)
    if checkpoint is not None:
        steps.remove_checkpoint(checkpoint)
    m = s.frequencies.m
    size = f"{m} frequencies" if like is None else f"the {m} frequencies of {like}"
    note = f"Sketched {s.count:,} rows of {s.frequencies.n_features} columns into {size}: {output}"
    steps.report_sketch(s, note, report)


def merge(
    *,
    sketches: o.SketchFiles,
    output: o.SketchOutput,
    population: o.Population = None,
    report: o.ReportOptions,
) -> None:
    """Add sketches: the result is the sketch of all their rows.

    They must have the same frequencies: make all but the first with `ckm sketch --like first.ckm`.
    """
    from ckm._cli import files as file
    from ckm._cli import steps

    paths = file.find_inputs(sketches)
    file.check_files([*map(file.Input, paths)], [file.Output(output, file.SKETCHES)])
    s = steps.merge_files(paths, population)
    s.save(output)
    note = f"Merged {len(paths)} sketches of {s.count:,} rows in all: {output}"
    steps.report_sketch(s, note, report)


def decode(
    *,
    sketch: o.SketchFile,
    clusters: o.Clusters,
    output: o.CentroidsOutput = None,
    decoding: o.DecodingOptions,
    compute: o.ComputeOptions,
    report: o.ReportOptions,
) -> None:
    """Find K centroids from a sketch alone, for any K.

    Without -o the centroids are printed: a table at a terminal, CSV in a pipe. Clusters are
    numbered in descending order of their weights; with --match, as those of an earlier file.
    """
    from ckm._cli import centroids, steps
    from ckm._cli import files as file
    from ckm._cli.earlier import earlier_inputs, read_earlier

    steps.check_compute(compute.jobs, compute.device)
    inputs = [file.Input(sketch), *earlier_inputs(decoding)]
    file.check_files(inputs, [file.Output(output, file.CENTROIDS)])
    s = ckm.load(sketch)
    steps.check_decoding(decoding, has_rows=s.pool is not None)
    f = s.frequencies
    prepared = f.preparation
    is_prepared = prepared is not None and bool(prepared.logged or prepared.categories)
    measure = centroids.Measure(f.column_units is not None, f.metric, is_prepared)
    centroids.require_space_for_names(s.columns, measure, output, report.json)
    earlier = read_earlier(decoding, s.columns, f.n_features, clusters)
    with naming(sketch):
        solution = steps.decode(s, clusters, decoding, earlier, compute, report)
    steps.deliver(solution, steps.facts_of(s, compute), output, report)


def predict(
    *,
    files: o.Files,
    centroids: o.CentroidsFile,
    output: o.LabelsOutput = None,
    nan: o.NanLabels = "error",
    jobs: o.Jobs = None,
    report: o.ReportOptions,
) -> None:
    """Label every row of FILES with its nearest centroid.

    Memory use is bounded. Columns are matched by name, in any order. Prints the number of rows and
    the SSE (sum of squared distances) of each cluster; -o writes the labels themselves, one per
    row in the order of the rows, -1 for a row with a missing value if --nan drop.
    """
    from ckm._cli import files as file
    from ckm._cli import steps
    from ckm._cli.centroids import read_file_of_centroids
    from ckm._cli.labels import open_labels
    from ckm._display import tables

    steps.check_nan(nan)
    steps.check_compute(jobs)
    inputs = file.find_inputs(files)
    file.check_files(
        [*map(file.Input, inputs), file.Input(centroids, "the file of --centroids")],
        [file.Output(output, file.LABELS)],
    )
    found, fill_values = read_file_of_centroids(centroids)
    with naming(*inputs):
        source = found.open(inputs, name=str(centroids), data_name=str(inputs[0]))
    filled = steps.filled_in(source, fill_values, centroids) if nan == "impute" else None
    policy = "drop" if nan == "drop" else "error"
    with open_labels(output) as write:
        labelling = steps.label(found, filled or source, jobs, report, on_labels=write, nan=policy)
    if filled is not None and filled.rows:
        say(
            f"Warning: filled in {filled.values_filled:,} missing values of {filled.rows:,} rows "
            f"by the values of {centroids}."
        )
    if labelling.missing:
        say(
            f"Warning: {labelling.missing:,} rows have missing values: their label is -1, and they "
            "count in no cluster."
        )
    record = tables.labelling_record(labelling)
    place = "" if output is None else f": {output}"
    say(f"Labelled {record['rows']:,} rows, SSE {record['sse']:.6g}{place}", report.quiet)
    if report.json:
        tables.print_json(record)
    else:
        tables.show_labelling(labelling)


def inspect(*, sketch: o.SketchFile, json: o.Json = False) -> None:
    """Show what a sketch holds: rows, size, scale, columns.

    Sketches with the same fingerprint can be merged.
    """
    from ckm._display import tables

    s = ckm.load(sketch)
    if json:
        tables.print_json(tables.sketch_record(s))
    else:
        tables.show_sketch(s)


def demo(
    *, rows: o.DemoRows = 1_000_000, folder: o.DemoFolder = o.DEMO_FOLDER, seed: o.Seed = 0
) -> None:
    """Compare ckm with k-means on generated data.

    Writes a Parquet file of a Gaussian mixture (10 clusters in dimension 10, as in the paper), its
    sketch and a plot, and replaces those of an earlier run. Takes under a minute.
    """
    from ckm._cli.demo import run_demo

    run_demo(folder, rows, seed)
