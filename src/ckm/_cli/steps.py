"""The steps that commands share: reading options, decoding, labelling, delivering results."""

import csv
import math
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import ckm
from ckm._cli.errors import say

if TYPE_CHECKING:  # imported inside the functions, so that help appears at once
    from ckm._core.sketch import Sketch
    from ckm._decoding.api import Solution
    from ckm._kmeans.assign import Labelling
    from ckm._sources import Source
    from ckm._util.arrays import Array


def check_search(decoder: str, init: str, holds_rows: bool) -> None:
    """Refuse, before the pass over the data, what decoding would refuse after it."""
    from ckm._decoding.api import DECODERS
    from ckm._decoding.starts import FROM_ROWS, INITS

    for option, value, known in (
        ("--decoder", decoder, ("auto", *DECODERS)),
        ("--init", init, ("auto", *INITS)),
    ):
        if value not in known:
            raise typer.BadParameter(
                f"There is no {value!r}; choose one of {', '.join(known)}.", param_hint=option
            )
    if init in FROM_ROWS and not holds_rows:
        raise typer.BadParameter(
            f"{init} starts from sampled rows, and there are none; sketch with --pool 1000.",
            param_hint="--init",
        )


def parse_scale(text: str) -> float | str:
    """'auto', or a positive number."""
    try:
        scale = text if text == "auto" else float(text)
    except ValueError:
        scale = math.nan
    if isinstance(scale, float) and not 0 < scale < math.inf:
        raise typer.BadParameter(
            f"{text!r} is neither 'auto' nor a positive variance.", param_hint="--scale"
        )
    return scale


def check_nan(nan: str) -> str:
    """'error' or 'drop'."""
    if nan not in ("error", "drop"):
        raise typer.BadParameter(f"{nan!r} is neither 'error' nor 'drop'.", param_hint="--nan")
    return nan


def open_rows(
    inputs: "Sequence[Path]",
    columns: str | None,
    weight_column: str | None,
    nan: str,
    again: str | None,
) -> "Source":
    """The rows of files or standard input; `again` is the option that wants them more than once."""
    from ckm._sources import ColumnRequest
    from ckm._sources import open_rows as open_source

    source = open_source(
        list(inputs), ColumnRequest(split(columns), weight_column), nan=check_nan(nan)
    )
    if again is not None and not source.is_rereadable:
        raise typer.BadParameter(
            "It reads the data again, and standard input comes once only; write it to a file.",
            param_hint=again,
        )
    return source


def require_rows(count: int | None, clusters: int, inputs: "Sequence[Path]") -> None:
    """Refuse more clusters than rows, as soon as their number is known."""
    from ckm._decoding.api import require_rows as require
    from ckm._sources.columns import listed

    if count is not None:
        require(count, clusters, f"The data ({listed(inputs, 3)})")


def merged(paths: "Sequence[Path]") -> "Sketch":
    """The sum of sketches in files; where one does not go with the first, both are named."""
    from ckm.errors import MismatchError

    total = ckm.load(paths[0])
    for path in paths[1:]:
        try:
            total = total + ckm.load(path)
        except MismatchError as error:
            raise MismatchError(f"Cannot merge {path} with {paths[0]}. {error}") from None
    return total


ENGINES = {
    "dask": ("dask", "--scheduler"),
    "spark": ("pyspark", "--master"),
    "ray": ("ray", "--address"),
}


def on_engine(
    engine: str | None,
    addresses: "Mapping[str, str | None]",
    inputs: "Sequence[Path]",
    like: Path | None,
    columns: list[str] | None,
    weight_column: str | None,
    nan: str,
) -> "Source":
    """The rows of files as a cluster's workers will read them, each file a task; columns are found
    out here.
    """
    from ckm._sources import ColumnRequest, open_source
    from ckm._sources.columns import ColumnChoice
    from ckm._sources.engines.base import PartitionReader
    from ckm._sources.paths import needed

    for name, address in addresses.items():
        if address is not None and name != engine:
            raise typer.BadParameter(
                f"It is for --engine {name}; give that too, or leave it out.",
                param_hint=ENGINES[name][1],
            )
    if engine not in ENGINES:
        raise typer.BadParameter(
            f"There is no {engine!r}; choose one of {', '.join(ENGINES)}.", param_hint="--engine"
        )
    source = open_source(
        list(inputs),
        ColumnRequest(columns, weight_column, None if like is None else ckm.load(like).columns),
    )
    if not source.is_rereadable:
        raise typer.BadParameter(
            "Workers cannot read standard input; give it files.", param_hint="--engine"
        )
    needed(
        ENGINES[engine][0],
        f"files with --engine {engine}",
        f"pip install 'compressive-kmeans[{engine}]'",
    )
    chosen = None if source.columns is None else ColumnChoice(list(source.columns), weight_column)
    reader = PartitionReader(source.n_features, chosen, drop_missing=nan == "drop")
    opened: Source = import_module(f"ckm._sources.engines.{engine}").open_files(
        [str(path.resolve()) for path in inputs], reader, addresses[engine]
    )
    return opened


def split(names: str | None) -> list[str] | None:
    """Comma-separated names; quotes protect a comma inside one."""
    return None if names is None else next(csv.reader([names], skipinitialspace=True), [])


@contextmanager
def kept(checkpoint: Path | None) -> Iterator[None]:
    """Around a pass with a checkpoint: a polite request to end (SIGTERM) is as good as Ctrl-C, and
    either says how to go on.
    """
    if checkpoint is None:
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint.exists():
            say(
                f"Stopped. What has been added up so far is in {checkpoint}; the same command with --resume goes on from there."
            )
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def decode(
    s: "Sketch",
    clusters: int,
    decoder: str,
    init: str,
    n_init: int,
    seed: int,
    jobs: int | None,
    kernel: str,
    quiet: bool,
) -> "Solution":
    """Centroids from a sketch, with a warning for each thing found wrong with them."""
    from ckm._decoding.diagnosis import Status
    from ckm._display.tables import working

    with working("Decoding", quiet):
        solution = ckm.decode(
            s,
            clusters,
            decoder=decoder,
            init=init,
            n_init=n_init,
            random_state=seed,
            n_jobs=jobs,
            kernel=kernel,
        )
    for finding in solution.findings:
        if finding.status is not Status.SMALL_SKETCH:  # which `ckm.decode` has said
            say(f"Warning: {finding.sentence}")
    return solution


def label(
    source: "Source",
    centroids: "Array",
    jobs: int | None,
    quiet: bool,
    on_labels: "Callable[[Array], None] | None" = None,
    nan: str = "error",
) -> "Labelling":
    """Label every row, with a progress bar."""
    from ckm._kmeans.assign import label_rows
    from ckm._util.parallel import thread_count
    from ckm._util.progress import rows_bar

    with rows_bar("Labelling", source.n_rows, not quiet, source.n_bytes) as on_rows:
        return label_rows(
            source,
            centroids,
            n_threads=thread_count(jobs),
            on_labels=on_labels,
            on_rows=on_rows,
            nan=nan,
        )


def measure(
    source: "Source", solution: "Solution", passes: int, jobs: int | None, quiet: bool
) -> "tuple[Solution, dict[str, Any]]":
    """The solution after `passes` of polish over the data, and its SSE. Polished, its weights are
    the shares of rows.
    """
    from ckm._kmeans.polish import polish
    from ckm._sources.adapters import in_units
    from ckm._util.parallel import thread_count
    from ckm._util.progress import rows_bar

    source, units = (
        in_units(source, solution.units),
        1.0 if solution.units is None else solution.units,
    )
    total = None if source.n_rows is None else passes * source.n_rows
    with rows_bar("Polishing", total, enabled=not quiet and passes > 0) as on_rows:
        moved = polish(
            source,
            solution.centroids / units,
            passes,
            n_threads=thread_count(jobs),
            on_rows=on_rows,
        )
    labelling = label(source, moved.centroids, jobs, quiet)
    sse = float(labelling.sse.sum())
    if not passes:
        return solution, {"sse": sse}
    made = len(moved.sse)
    ending = " (no centroid moved in the last)" if moved.settled else ""
    say(
        f"Polished in {made} {'pass' if made == 1 else 'passes'}{ending}: SSE {moved.sse[0]:.6g} before, {sse:.6g} after",
        quiet,
    )
    empty = int((labelling.counts == 0).sum())
    if empty:
        say(
            f"Warning: {empty} of {len(labelling.counts)} centroids are nearest to no row; ask for fewer clusters."
        )
    solution = replace(
        solution, centroids=moved.centroids * units, weights=labelling.mass / labelling.mass.sum()
    )
    return solution, {
        "sse": sse,
        "polish": {"passes": made, "settled": moved.settled, "sse_before": list(moved.sse)},
    }


def deliver(
    solution: "Solution", more: dict[str, Any], output: Path | None, as_json: bool, quiet: bool
) -> None:
    """Centroids to the file, to standard output, or both."""
    from ckm._cli import files as results
    from ckm._display import tables as report

    record = results.solution_record(solution, **more)
    if output is not None:
        results.write_centroids(output, solution, record)
    if as_json:
        report.print_json(record)
    elif output is None:
        report.show_solution(solution)
    place = "" if output is None else f": {output}"
    sse = f", SSE {more['sse']:.6g}" if "sse" in more else ""
    say(
        f"Found {len(solution.weights)} centroids of {more['rows']:,} rows from {more['sketch_size']} frequencies{sse}{place}",
        quiet,
    )
