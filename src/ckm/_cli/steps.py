"""The steps of which commands are made: checking options, opening rows, decoding, labelling,
delivering results.
"""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from os import fspath
from pathlib import Path
from typing import Any

import typer

import ckm
from ckm._cli.centroids import solution_record, write_centroids
from ckm._cli.earlier import EarlierCentroids, init_file
from ckm._cli.errors import as_option, in_options, usage_errors
from ckm._cli.options import (
    ComputeOptions,
    DecodingOptions,
    EngineOptions,
    FrequencyOptions,
    ReportOptions,
    RowOptions,
    UserOptions,
)
from ckm._cli.parsing import (
    parse_categories,
    parse_cells,
    parse_projection,
    parse_scale,
    split_names,
)
from ckm._cli.streams import say
from ckm._core.laws import find_law
from ckm._core.sketch import Sketch
from ckm._decoding.api import resolve_decoder, uses_cells
from ckm._decoding.effort import expected_seconds, warning_before
from ckm._decoding.requirements import require_rows
from ckm._decoding.solution import Solution
from ckm._decoding.starts import require_init
from ckm._display import tables
from ckm._kmeans.assign import Centroids, Labelling
from ckm._kmeans.polish import polish_centroids
from ckm._messages import Argument, Message
from ckm._sketching.advice import Advice, sentences
from ckm._sketching.checkpoint import remove_checkpoint
from ckm._sketching.options import ROBUST, SketchOptions
from ckm._sketching.screening import Screening, with_columns
from ckm._sources import ColumnRequest, Source, open_source
from ckm._sources import open_rows as open_source_of_rows
from ckm._sources.adapters import Imputed
from ckm._sources.category_columns import refuse_categories
from ckm._sources.column_request import ColumnChoice, listed
from ckm._sources.engines.base import PartitionReader
from ckm._sources.paths import import_optional
from ckm._util.address import Address
from ckm._util.arrays import FloatArray, LabelArray
from ckm._util.checks import check_nan_of_sketch
from ckm._util.device import check_device
from ckm._util.parallel import thread_count
from ckm._util.progress import rows_bar
from ckm._util.stores import FilePath, path_exists
from ckm.errors import InputFileError, MismatchError

__all__ = [
    "announce_checkpoint",
    "as_options",
    "check_compute",
    "check_decoding",
    "check_engine",
    "check_nan",
    "check_row_count",
    "check_rows",
    "data_arguments",
    "decode",
    "deliver",
    "facts_of",
    "is_standardized",
    "label",
    "merge_files",
    "open_rows",
    "polish_and_score",
    "remove_checkpoint",
    "report_sketch",
    "require_rereadable",
    "same_rows",
    "screening",
    "sketching_arguments",
    "split_names",
]
# The package that each engine needs, and the option that says where its cluster is.
_ENGINE_PACKAGES = {"dask": "dask", "spark": "pyspark", "ray": "ray"}
_ENGINE_OPTIONS = {"dask": "--scheduler", "spark": "--master", "ray": "--address"}


def check_decoding(decoding: DecodingOptions, has_rows: bool) -> None:
    """Report, before the pass over the data, what decoding would report after it."""
    with usage_errors("--decoder"):
        resolve_decoder(decoding.decoder)
    if init_file(decoding) is None:
        with usage_errors("--init"):
            require_init(decoding.init, has_rows)


def check_nan(nan: str) -> str:
    """Return "error", "drop" or "impute"."""
    with usage_errors("--nan"):
        return check_nan_of_sketch(nan)


def screening(rows: RowOptions, report: ReportOptions) -> Screening:
    """Return what happens to a table before a pass: advice is printed, and a clear id is left out
    unless columns were named.
    """

    def print_advice(advice: Sequence[Advice]) -> None:
        for sentence in sentences(advice):
            say(f"Advice: {in_options(sentence)}", report.quiet)

    def print_word(word: Message) -> None:
        say(in_options(word), report.quiet)

    is_chosen = rows.columns is not None
    return Screening(not is_chosen, print_advice, is_chosen, print_word)


def check_compute(jobs: int | None, device: str = "auto") -> None:
    """Refuse a number of threads or a device that no machine has."""
    with usage_errors("--n-jobs"):
        thread_count(jobs)
    with usage_errors("--device"):
        check_device(device)


def sketching_arguments(
    frequencies: FrequencyOptions, compute: ComputeOptions, report: ReportOptions
) -> dict[str, Any]:
    """Return the arguments of `ckm.sketch` that `ckm fit` and `ckm sketch` share."""
    check_compute(compute.jobs, compute.device)
    with usage_errors("--distribution"):
        find_law(frequencies.distribution)
    with usage_errors("--metric"):
        metric = frequencies.metric
        SketchOptions(standardize=is_standardized(frequencies), metric=metric).check_metric()
    return {
        "sketch_size": frequencies.sketch_size,
        "scale": parse_scale(frequencies.scale),
        "distribution": frequencies.distribution,
        "standardize": _standardize(frequencies),
        "log": split_names(frequencies.log, "--log"),
        "projection": parse_projection(frequencies.projection),
        "metric": frequencies.metric,
        "cells": parse_cells(frequencies.cells),
        "random_state": compute.seed,
        "n_jobs": compute.jobs,
        "device": compute.device,
        "progress": not report.quiet,
    }


def _standardize(frequencies: FrequencyOptions) -> bool | str:
    """Return the argument `standardize` that two options stand for."""
    return ROBUST if frequencies.robust else frequencies.standardize


def is_standardized(frequencies: FrequencyOptions) -> bool:
    """Return whether columns get units of their own."""
    return bool(_standardize(frequencies))


def check_rows(rows: RowOptions) -> ColumnRequest:
    """Return the columns that are asked for, from valid options."""
    with usage_errors("--nan"):
        check_nan_of_sketch(rows.nan)
    exclude = split_names(rows.exclude, "--exclude")
    categories = parse_categories(rows.categories)
    return ColumnRequest(
        split_names(rows.columns), rows.weight_column, exclude=exclude, categories=categories
    )


def open_rows(inputs: Sequence[FilePath], rows: RowOptions) -> Source:
    """Open the rows of files or of standard input."""
    return open_source_of_rows(list(inputs), check_rows(rows), nan=rows.nan)


def same_rows(source: Source, sketch: Sketch, nan: str) -> Source:
    """Return the rows as they were sketched: without a column that was left out, and with missing
    values filled in.
    """
    source = with_columns(source, sketch.columns)
    return Imputed(source, sketch.frequencies.fill_values) if nan == "impute" else source


def filled_in(source: Source, fill_values: FloatArray | None, name: object) -> Imputed:
    """Return the rows with missing values replaced by those of the file of centroids `name`."""
    if fill_values is None:
        raise InputFileError(
            f"{name} does not say what missing values are replaced by: make it again with "
            "-o centroids.json, or use --nan drop."
        )
    return Imputed(source, fill_values)


def as_options(arguments: dict[str, Any]) -> str:
    """Return arguments of `ckm.sketch` as they are typed on the command line."""
    return " ".join(as_option(Argument(name, value)) for name, value in arguments.items())


def require_rereadable(source: Source, option: str) -> None:
    """Refuse an option that reads the data again where it can be read only once."""
    if not source.is_rereadable:
        raise typer.BadParameter(
            "It reads the data again, and standard input can be read only once; write it to a "
            "file first.",
            param_hint=option,
        )


def check_row_count(count: int | None, clusters: int, inputs: Sequence[FilePath]) -> None:
    """Refuse more clusters than rows, as soon as the number of rows is known."""
    if count is not None:
        require_rows(count, clusters, f"The data ({listed(inputs, 3)})")


def check_engine(cluster: EngineOptions) -> str | None:
    """Return the address of the cluster, if one is given, from valid options."""
    addresses = {"dask": cluster.scheduler, "spark": cluster.master, "ray": cluster.address}
    for name, address in addresses.items():
        if address is not None and name != cluster.engine:
            raise typer.BadParameter(
                f"It is for --engine {name}; give that too, or leave it out.",
                param_hint=_ENGINE_OPTIONS[name],
            )
    if cluster.engine is None:
        return None
    if cluster.engine not in _ENGINE_PACKAGES:
        raise typer.BadParameter(
            f"There is no {cluster.engine!r}; choose one of {', '.join(_ENGINE_PACKAGES)}.",
            param_hint="--engine",
        )
    return addresses[cluster.engine]


def data_arguments(
    inputs: Sequence[FilePath],
    rows: RowOptions,
    users: UserOptions,
    cluster: EngineOptions,
    like: Path | Address | None,
) -> dict[str, Any]:
    """Return the arguments of `ckm.sketch` that name the rows: files read here, or by an engine."""
    request = check_rows(rows)
    address = check_engine(cluster)
    if cluster.engine is None:
        return {
            "data": list(inputs),
            "columns": request.columns,
            "exclude": request.exclude,
            "categories": {
                category.name: (category.coding, category.weight) for category in request.categories
            },
            "weight_column": request.weight,
            "user_column": users.user_column,
            "max_rows_per_user": users.max_rows_per_user,
            "nan": rows.nan,
        }
    if users.user_column is not None or users.max_rows_per_user is not None:
        raise typer.BadParameter(
            "The rows of each user are counted in one pass, in order; leave out --engine.",
            param_hint="--user-column",
        )
    refuse_categories(request.categories, cluster.engine)
    known_columns = None if like is None else ckm.load(like).columns or ()
    request = request._replace(like=known_columns)
    return {"data": _open_on_engine(cluster.engine, address, inputs, request, rows.nan)}


def _open_on_engine(
    engine: str, address: str | None, inputs: Sequence[FilePath], request: ColumnRequest, nan: str
) -> Source:
    """Open files that the workers of a cluster read, one task per file. The columns are chosen
    here, from the first file.
    """
    source = open_source(list(inputs), request)
    if not source.is_rereadable:
        raise typer.BadParameter(
            "Workers cannot read standard input; give files instead.", param_hint="--engine"
        )
    import_optional(
        _ENGINE_PACKAGES[engine],
        f"files with --engine {engine}",
        f"pip install 'compressive-kmeans[{engine}]'",
    )
    columns = source.columns
    chosen = None if columns is None else ColumnChoice(list(columns), request.weight)
    reader = PartitionReader(source.n_features, chosen, drop_missing=nan == "drop")
    paths = [str(path.resolve()) if isinstance(path, Path) else fspath(path) for path in inputs]
    module = import_module(f"ckm._sources.engines.{engine}")
    opened: Source = module.open_files(paths, reader, address)
    return opened


@contextmanager
def announce_checkpoint(checkpoint: Path | Address | None) -> Iterator[None]:
    """Around a pass with a checkpoint: SIGTERM ends it as Ctrl-C does, and a line says how to
    continue.
    """
    if checkpoint is None:
        yield
        return
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        if path_exists(checkpoint):
            say(
                f"Stopped. The unfinished sketch is in {checkpoint}; the same command with "
                "--resume continues from there."
            )
        raise
    finally:
        signal.signal(signal.SIGTERM, previous)


def merge_files(paths: Sequence[FilePath], population: str | None = None) -> Sketch:
    """Add the sketches in files; if one does not match the first, the error names both.
    `population` says whose rows private releases are.
    """
    total = ckm.load(paths[0])
    for path in paths[1:]:
        try:
            total = ckm.merge([total, ckm.load(path)], population=population)
        except MismatchError as error:
            raise MismatchError(f"Cannot merge {path} with {paths[0]}. ", error.message) from None
    return total


def report_sketch(sketch: Sketch, note: str, report: ReportOptions) -> None:
    """Say what was written, and print it as JSON if requested."""
    say(note, report.quiet)
    if report.json:
        tables.print_json(tables.sketch_record(sketch))


def decode(
    sketch: Sketch,
    clusters: int,
    decoding: DecodingOptions,
    earlier: EarlierCentroids,
    compute: ComputeOptions,
    report: ReportOptions,
) -> Solution:
    """Find centroids from a sketch, with a warning for each problem found with them."""
    expected = None
    if uses_cells(decoding.decoder):
        threads = thread_count(compute.jobs)
        warning = warning_before(sketch, clusters, threads)
        expected = expected_seconds(sketch, clusters) or None
        if warning is not None:
            say(in_options(warning), report.quiet)
    with tables.show_stages("Decoding", report.quiet, expected):
        return ckm.decode(
            sketch,
            clusters,
            decoder=decoding.decoder,
            init=earlier.init,
            n_init=decoding.n_init,
            match=earlier.match,
            random_state=compute.seed,
            n_jobs=compute.jobs,
            device=compute.device,
        )


def label(
    centroids: Centroids,
    source: Source,
    jobs: int | None,
    report: ReportOptions,
    on_labels: Callable[[LabelArray], None] | None = None,
    nan: str = "error",
) -> Labelling:
    """Label every row, with a progress bar."""
    with rows_bar("Labelling", source.n_rows, not report.quiet, source.n_bytes) as on_rows:
        return centroids.summarise(
            source, on_labels=on_labels, on_rows=on_rows, nan=nan, n_jobs=jobs
        )


def polish_and_score(
    source: Source, solution: Solution, passes: int, compute: ComputeOptions, report: ReportOptions
) -> tuple[Solution, dict[str, Any]]:
    """Return the solution after `passes` of k-means over the data, and its SSE. The weights of a
    polished solution are the shares of rows.
    """
    centroids = Centroids(
        solution.centroids,
        solution.units,
        metric=solution.metric,
        preparation=solution.preparation,
    )
    if not passes:
        return solution, {"sse": float(label(centroids, source, compute.jobs, report).sse.sum())}
    polished = polish_centroids(
        centroids, source, passes, n_jobs=compute.jobs, progress=not report.quiet
    )
    centroids = replace(centroids, values=polished.centroids)
    labelling = label(centroids, source, compute.jobs, report)
    sse = float(labelling.sse.sum())
    made = len(polished.sse)
    ending = " (no centroid moved in the last)" if polished.settled else ""
    say(
        f"Polished in {made} {'pass' if made == 1 else 'passes'}{ending}: "
        f"SSE {polished.sse[0]:.6g} before, {sse:.6g} after",
        report.quiet,
    )
    empty = int((labelling.counts == 0).sum())
    if empty:
        say(
            f"Warning: {empty} of {len(labelling.counts)} centroids are nearest to no row; ask for "
            "fewer clusters."
        )
    weights = labelling.mass / labelling.mass.sum()
    solution = replace(solution, centroids=polished.centroids, weights=weights)
    facts = {"passes": made, "settled": polished.settled, "sse_before": list(polished.sse)}
    return solution, {"sse": sse, "polish": facts}


def facts_of(sketch: Sketch, compute: ComputeOptions) -> dict[str, Any]:
    """Return what a file of centroids records about the sketch."""
    frequencies = sketch.frequencies
    return {
        "rows": sketch.count,
        "sketch_size": frequencies.m,
        "seed": compute.seed,
        "fill_values": frequencies.fill_values.tolist(),
    }


def deliver(
    solution: Solution, facts: dict[str, Any], output: Path | Address | None, report: ReportOptions
) -> None:
    """Write the centroids to the file, to standard output, or to both."""
    record = solution_record(solution, **facts)
    if output is not None:
        write_centroids(output, solution, record)
    if report.json:
        tables.print_json(record)
    elif output is None:
        tables.show_solution(solution)
    # Say that centroids were found only once standard output has taken them.
    sys.stdout.flush()
    place = "" if output is None else f": {output}"
    sse = f", SSE {facts['sse']:.6g}" if "sse" in facts else ""
    say(
        f"Found {len(solution.weights)} centroids of {facts['rows']:,} rows from "
        f"{facts['sketch_size']} frequencies{sse}{place}",
        report.quiet,
    )
