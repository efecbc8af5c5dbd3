"""The command line: one module or function for each command (`ckm --help`).

Results go to standard output or to the file named with -o; progress, notes, warnings and errors go
to standard error.
"""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

import ckm
from ckm._cli import (
    commands,
    compare,
    curve,
    describe,
    mixture,
    monitor,
    privacy,
    report,
    windows,
)
from ckm._cli.errors import ReportingGroup
from ckm._cli.options import with_option_groups
from ckm._cli.streams import say


def _examples(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


app = typer.Typer(
    cls=ReportingGroup,
    no_args_is_help=True,
    # Plain help keeps the line breaks of the examples in every version of typer.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_examples(
        "ckm demo                                      see it work, next to k-means",
        "ckm fit data.parquet -k 10 -o centroids.csv   the main command",
        "ckm predict data.parquet --centroids centroids.csv -o labels.npy",
        "",
        "In parts, on different days or machines, without moving the data:",
        "  ckm sketch monday.parquet -k 10 -o mon.ckm",
        "  ckm sketch tuesday.parquet --like mon.ckm -o tue.ckm",
        "  ckm merge mon.ckm tue.ckm -o week.ckm",
        "  ckm decode week.ckm -k 10 -o centroids.csv",
    ),
)

# The examples in the help of each command, in the order in which `ckm --help` lists the commands.
_COMMANDS: dict[Callable[..., None], tuple[str, ...]] = {
    commands.fit: (
        "ckm fit data.parquet -k 10 -o centroids.csv",
        "ckm fit 'events/*.parquet' -k 20 --columns x,y,z --sse",
        "ckm fit data.parquet -k auto -o centroids.csv",
        "ckm fit data.npy -k 10 --save-sketch data.ckm -o centroids.json",
        "ckm fit data.parquet -k 10 --polish 2 -o centroids.csv",
        "ckm fit 'events/*.parquet' -k 200 --device cuda -o centroids.csv",
        "ckm fit data.csv -k 5 --json | jq .weights",
        "zcat log.csv.gz | ckm fit - -k 5 --columns lat,lon -o centroids.csv",
    ),
    describe.describe: (
        "ckm describe customers.parquet",
        "ckm describe 'days/*.csv' --json | jq .arguments",
    ),
    commands.sketch: (
        "ckm sketch data.parquet -k 10 -o data.ckm",
        "ckm sketch part-1.csv -m 2000 --pool 1000 -o part-1.ckm",
        "ckm sketch part-2.csv --like part-1.ckm --pool 1000 -o part-2.ckm",
        "ckm sketch 'logs/*.parquet' -k 50 --columns lat,lon -o logs.ckm",
        "ckm sketch 's3://bucket/logs/*.parquet' -k 50 -o s3://bucket/logs.ckm",
        "ckm sketch logs/ -k 50 -o logs.ckm --checkpoint logs.part --resume",
        "ckm sketch /shared/ -k 50 -o logs.ckm --engine dask --scheduler HOST:8786",
    ),
    commands.merge: (
        "ckm merge monday.ckm tuesday.ckm -o week.ckm",
        "ckm merge parts/*.ckm -o all.ckm",
        "ckm merge site-1.ckm site-2.ckm --population disjoint -o all.ckm",
    ),
    windows.subtract: (
        "ckm subtract week.ckm monday.ckm -o rest.ckm",
        "ckm subtract all.ckm withdrawn/*.ckm -o kept.ckm",
    ),
    windows.window: (
        "ckm window 'days/*.ckm' --last 7 -o week.ckm",
        "ckm window mon.ckm tue.ckm wed.ckm --last 2 -o two-days.ckm",
    ),
    commands.decode: (
        "ckm decode data.ckm -k 10 -o centroids.csv",
        "ckm decode today.ckm -k 10 --match yesterday.csv -o today.csv",
        "ckm decode data.ckm -k 12 --n-init 5 --init range",
        "for k in 5 10 20; do ckm decode data.ckm -k $k --json | jq .cost; done",
    ),
    curve.curve: (
        "ckm curve data.ckm",
        "ckm curve data.ckm --max 30 -o curve.png",
        "ckm curve data.ckm --json | jq .suggestion",
    ),
    commands.predict: (
        "ckm predict data.parquet --centroids centroids.csv -o labels.npy",
        "ckm predict 'new/*.csv' --centroids centroids.json -o labels.csv",
        "ckm predict data.npy --centroids centroids.csv --json | jq .sse",
        "ckm predict gaps.csv --centroids centroids.csv --nan drop -o labels.csv",
    ),
    monitor.monitor: (
        "ckm monitor days/ --state days.monitor",
        "ckm monitor 'days/*.parquet' --state days.monitor --fail-on-change || echo changed",
        "ckm monitor days/ --dependence batches --run-length 1e8 --json | jq .changes",
        "ckm monitor today.csv --like yesterday.ckm",
    ),
    compare.compare: (
        "ckm compare monday.ckm tuesday.ckm",
        "ckm compare monday.ckm tuesday.ckm --json | jq .p_value",
        "ckm compare trained.ckm today.ckm --fail-above 0.05 && ./publish",
    ),
    mixture.mixture: (
        "ckm mixture data.ckm -k 10",
        "ckm mixture data.ckm -k 10 --covariance-type full -o mixture.json",
        "ckm mixture data.ckm -k auto --json | jq .means",
    ),
    privacy.frequencies: (
        "ckm frequencies --bounds bounds.json -k 10 -o design.ckm",
        "ckm sketch patients.parquet --like design.ckm -o exact.ckm",
    ),
    privacy.release: (
        "ckm release exact.ckm --epsilon 1 --delta 1e-6 -o private.ckm",
        "ckm release exact.ckm --epsilon 1 --delta 1e-6 --ledger spent.json -o private.ckm",
        "ckm merge clinic-*.private.ckm --population disjoint -o all.ckm",
    ),
    report.report: (
        "ckm report data.ckm -o report.html",
        "ckm report data.ckm -k 6 --data 'events/*.parquet' -o report.html",
        "ckm report today.ckm --compare yesterday.ckm -o report.html",
    ),
    commands.inspect: ("ckm inspect data.ckm", "ckm inspect data.ckm --json | jq .fingerprint"),
    commands.demo: ("ckm demo", "ckm demo --rows 100000 --folder /tmp/demo --seed 1"),
}
for _command, _lines in _COMMANDS.items():
    app.command(epilog=_examples(*_lines))(with_option_groups(_command))


def main() -> None:
    """Run the command line."""
    try:
        app()
    except KeyboardInterrupt:
        # Before the command has begun: later ones are reported there.
        say("Interrupted.")
        sys.exit(130)


def _show_version(requested: bool) -> None:
    if requested:
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

    A sketch is m random averages of the rows, a few kilobytes for any number of rows. Centroids are
    found from the sketch alone, and sketches of different data can be added.
    """
