"""`ckm monitor`: files watched for change, one after the other, with a state that outlives the
command.
"""

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ckm
from ckm._cli import options as o
from ckm._cli.streams import say
from ckm._core.defaults import DEFAULT_MONITOR_SIZE, DEFAULT_REFERENCE, DEFAULT_RUN_LENGTH
from ckm._util.address import Address

if TYPE_CHECKING:
    from ckm._util.stores import FilePath

State = Annotated[
    o.FileName | None,
    typer.Option(
        "--state",
        metavar="FILE",
        parser=o.file_name,
        help=(
            "Continue from this file if it exists, and write it after each file of data (default: "
            "start anew, keep nothing)."
        ),
    ),
]
FailOnChange = Annotated[
    bool,
    typer.Option(
        "--fail-on-change", help="Exit with status 1 if there is a change (errors have status 2)."
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WatchingOptions:
    """How a stream is watched."""

    reference: Annotated[
        int,
        typer.Option(metavar="N", help="Rows at the start that define what is normal.", min=100),
    ] = DEFAULT_REFERENCE
    run_length: Annotated[
        float,
        typer.Option(metavar="N", help="Average number of rows to a false alarm, at least."),
    ] = DEFAULT_RUN_LENGTH
    block: Annotated[
        int, typer.Option(metavar="N", help="Rows after which a change is looked for.", min=1)
    ] = 100
    dependence: Annotated[
        str,
        typer.Option(
            metavar="rows|batches",
            help=(
                "What is independent: rows, or only whole files, of which the first 40 tell how "
                "much files differ."
            ),
        ),
    ] = "rows"
    on_change: Annotated[
        str,
        typer.Option(
            metavar="restart|continue",
            help="After a change: take the next rows as normal, or go on comparing with the past.",
        ),
    ] = "restart"
    like: Annotated[
        o.FileName | None,
        typer.Option(
            metavar="FILE",
            parser=o.file_name,
            help="A sketch of rows that came before; they are compared with (default: none).",
        ),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class WatchedRows:
    """Which rows are watched, and what a sketch sees of them."""

    columns: o.Columns = None
    nan: o.Nan = "error"
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize",
            help="Divide each column by its standard deviation in the reference.",
        ),
    ] = False
    sketch_size: Annotated[
        int | None,
        typer.Option(
            "--sketch-size",
            "-m",
            metavar="M",
            min=1,
            help=f"Number of frequencies (default: {DEFAULT_MONITOR_SIZE}, or those of --like).",
        ),
    ] = None
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="Distances: euclidean, or cosine.")
    ] = "euclidean"
    seed: o.Seed = 0


def monitor(
    *,
    files: o.Files,
    state: State = None,
    watching: WatchingOptions,
    rows: WatchedRows,
    fail_on_change: FailOnChange = False,
    report: o.ReportOptions,
) -> None:
    """Watch the rows of FILES for change.

    Files are read in the order of their names. The first rows are what is normal. After that, the
    latest rows are compared with all before them, in windows of every length, and a change is
    reported with the file and the row where it began, about. With --state the same command can run
    every day: files that were read before are left out, and the result is that of one long run.
    Each file is read once, so give files that are complete.

    Files count as one stream of independent rows, unless --dependence batches. Shuffle the rows
    of each file if their order means nothing; sorted rows are a change.
    """
    from ckm._analysis.monitor import require_same_options
    from ckm._cli import files as file
    from ckm._cli import steps
    from ckm._display import tables
    from ckm._util.locks import lock_for_command
    from ckm._util.stores import path_exists

    steps.check_nan(rows.nan)
    inputs = sorted(file.find_inputs(files), key=str)
    file.check_files(
        [*map(file.Input, inputs), file.Input(watching.like, "the sketch of --like")],
        [file.Output(state, None, "--state")],
    )
    watcher = ckm.Monitor(**_arguments(watching, rows))
    if state is not None:
        lock_for_command(state)
        if path_exists(state):
            earlier = ckm.Monitor.load(state)
            require_same_options(watcher, earlier, str(state))
            watcher = earlier
    new = _unread(inputs, watcher, state)
    changes: list[ckm.Change] = []
    for name, path in new:
        before = watcher.rows
        status = watcher.update([path], name=name)
        if state is not None:
            watcher.save(state)
        changes += status.changes
        n = len(status.changes)
        found = f"{n} change{'s' * (n > 1)}" if n else "no change"
        note = found if status.watching or status.changes else f"needs {status.waiting_for}"
        say(f"{name}: {status.rows - before:,} rows, {note}", report.quiet)
    status = dataclasses.replace(watcher.status, changes=tuple(changes))
    status = dataclasses.replace(status, alarm=bool(changes) or status.alarm)
    if not new:
        say("There is no new file.", report.quiet)
    if report.json:
        tables.print_json(status_record(status, [name for name, _ in new]))
    else:
        print(status)
    if fail_on_change and status.alarm:
        raise typer.Exit(1)


def _arguments(watching: WatchingOptions, rows: WatchedRows) -> dict[str, Any]:
    """Return the arguments of `ckm.Monitor`."""
    from ckm._cli import steps

    return dataclasses.asdict(watching) | {
        "like": watching.like,
        "columns": steps.split_names(rows.columns),
        "nan": rows.nan,
        "standardize": rows.standardize,
        "sketch_size": rows.sketch_size,
        "metric": rows.metric,
        "random_state": rows.seed,
    }


def _unread(
    inputs: "Sequence[FilePath]", watcher: "ckm.Monitor", state: Any
) -> "list[tuple[str, FilePath]]":
    """Return the files that were not read before, with the names that are kept of them."""
    folder = "." if state is None or isinstance(state, Address) else os.path.dirname(state) or "."
    named = [(_name(path, folder), path) for path in inputs]
    read = set(watcher.batches)
    new = [(name, path) for name, path in named if name not in read]
    last = max(read, default="")
    for name, _ in new:
        if name < last:
            say(
                f"Warning: {name} is new, but its name comes before {last}, which was read "
                "already: its rows count as later ones."
            )
            break
    return new


def _name(path: "FilePath", folder: str) -> str:
    """Return the name of a file from the folder of the state, so that both can be moved."""
    from ckm._util.stores import RemoteFile

    if isinstance(path, RemoteFile):
        return str(path)
    return os.path.relpath(os.path.realpath(path), os.path.realpath(folder))


def status_record(status: "ckm.MonitorStatus", files: Sequence[str]) -> dict[str, Any]:
    """Return a status as a JSON object; numbers that there are not yet are null."""
    facts = ("row", "noticed", "place", "window", "statistic", "threshold", "p_value", "effect")
    numbers = {name: getattr(status, name) for name in ("statistic", "threshold", "p_value")}
    return {
        "rows": status.rows,
        "files": list(files),
        "watching": status.watching,
        "alarm": status.alarm,
        **{name: None if math.isnan(value) else value for name, value in numbers.items()},
        "window": status.window,
        "changes": [{name: getattr(change, name) for name in facts} for change in status.changes],
    }
