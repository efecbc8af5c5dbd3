"""The steps that commands share: reading options, decoding, labelling, delivering results."""

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import ckm
from ckm.shell import say

if TYPE_CHECKING:  # imported inside the functions, so that help appears at once
    from ckm.decoding import Solution
    from ckm.labels import Labelling
    from ckm.readonly import Array
    from ckm.sketches import Sketch
    from ckm.sources import Source


def check_search(decoder: str, init: str, holds_rows: bool) -> None:
    """Refuse, before the pass over the data, what decoding would refuse after it."""
    from ckm.candidates import FROM_ROWS, INITS
    from ckm.decoding import DECODERS

    for option, value, known in (("--decoder", decoder, ("auto", *DECODERS)), ("--init", init, ("auto", *INITS))):
        if value not in known:
            raise typer.BadParameter(f"There is no {value!r}; choose one of {', '.join(known)}.", param_hint=option)
    if init in FROM_ROWS and not holds_rows:
        raise typer.BadParameter(f"{init} starts from sampled rows, and there are none; sketch with --pool 1000.", param_hint="--init")


def parse_scale(text: str) -> float | str:
    """'auto', or a positive number."""
    try:
        scale = text if text == "auto" else float(text)
    except ValueError:
        scale = math.nan
    if isinstance(scale, float) and not 0 < scale < math.inf:
        raise typer.BadParameter(f"{text!r} is neither 'auto' nor a positive variance.", param_hint="--scale")
    return scale


def split(names: str | None) -> list[str] | None:
    """Comma-separated names; quotes protect a comma inside one."""
    return None if names is None else next(csv.reader([names], skipinitialspace=True), [])


def decode(s: "Sketch", clusters: int, decoder: str, init: str, n_init: int, seed: int, quiet: bool) -> "Solution":
    """Centroids from a sketch, with a warning where some were left without weight."""
    from ckm.decoding import Status
    from ckm.report import working

    with working("Decoding", quiet):
        solution = ckm.decode(s, clusters, decoder=decoder, init=init, n_init=n_init, random_state=seed)
    if solution.status is not Status.OK:
        say(f"Warning: {solution.message}")
    return solution


def label(
    source: "Source", centroids: "Array", jobs: int | None, quiet: bool, on_labels: "Callable[[Array], None] | None" = None
) -> "Labelling":
    """Label every row, with a progress bar."""
    from ckm.labels import label_rows
    from ckm.progress import rows_bar
    from ckm.runners.local import thread_count

    with rows_bar("Labelling", source.n_rows, enabled=not quiet) as on_rows:
        return label_rows(source, centroids, n_threads=thread_count(jobs), on_labels=on_labels, on_rows=on_rows)


def deliver(solution: "Solution", more: dict[str, Any], output: Path | None, as_json: bool, quiet: bool) -> None:
    """Centroids to the file, to standard output, or both."""
    from ckm import report, results

    record = results.solution_record(solution, **more)
    if output is not None:
        results.write_centroids(output, solution, record)
    if as_json:
        report.print_json(record)
    elif output is None:
        report.show_solution(solution)
    place = "" if output is None else f": {output}"
    sse = f", SSE {more['sse']:.6g}" if "sse" in more else ""
    say(f"Found {len(solution.weights)} centroids of {more['rows']:,} rows from {more['sketch_size']} frequencies{sse}{place}", quiet)
