"""The options of the command line, each written once with its help, and groups of options that
several commands share.
"""

import dataclasses
import functools
import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def log_to_stderr(verbose: bool) -> bool:
    """Show the library's log on standard error."""
    if verbose:
        logging.basicConfig(format="%(message)s", force=True)
        logging.getLogger("ckm").setLevel(logging.INFO)
    return verbose


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help=(
            "Data: names, quoted patterns or folders of .parquet, .csv or .tsv (.gz, .zst), "
            ".arrow, .feather, .npy, .h5 or .zarr files (data.h5::rows for an array inside one); "
            "or - for CSV or an Arrow stream on standard input."
        ),
    ),
]
SketchFile = Annotated[
    Path, typer.Argument(metavar="SKETCH", help="A file made by `ckm sketch` or `ckm merge`.")
]
SketchFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="SKETCHES", help="Files made by `ckm sketch` with the same frequencies."
    ),
]
Clusters = Annotated[
    int, typer.Option("--clusters", "-k", metavar="K", min=1, help="Number of clusters to find.")
]
ClustersToSizeFor = Annotated[
    int | None,
    typer.Option(
        "--clusters",
        "-k",
        metavar="K",
        min=1,
        help="Size the sketch for K clusters; with --like, check that it is large enough.",
    ),
]
Like = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Use the frequencies of this sketch, so that the two can be merged (default: new).",
    ),
]
CentroidsFile = Annotated[
    Path,
    typer.Option(
        "--centroids",
        "-c",
        metavar="FILE",
        help="Centroids written by `ckm fit` or `ckm decode`: .csv or .json.",
    ),
]
CentroidsOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the centroids to this file, .csv or .json (default: print them).",
    ),
]
SketchOutput = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the sketch to this file; its name must end in .ckm.",
    ),
]
LabelsOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write one label per row to this file, .csv, .npy or .parquet (default: no labels).",
    ),
]
SaveSketch = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also write the sketch to this file; its name must end in .ckm (default: not kept).",
    ),
]
Sse = Annotated[
    bool,
    typer.Option("--sse", help="Also report the SSE, which takes one more pass over the data."),
]
Polish = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Then run at most N passes of k-means over the data, and one to measure the SSE.",
    ),
]
FitPool = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Number of sampled rows that decoding may start from; kept during the fit only.",
    ),
]
SketchPool = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Number of sampled rows to store in the file, for decoding to start from.",
    ),
]
Nan = Annotated[
    str,
    typer.Option(
        metavar="error|drop",
        help="Rows with missing values: stop with an error, or leave them out and count them.",
    ),
]
NanLabels = Annotated[
    str,
    typer.Option(
        "--nan",
        metavar="error|drop",
        help="Rows with missing values: stop with an error, or label them -1 and count them.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Seed of the random numbers; the same seed gives the same result.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Number of threads (default: one per core); the result does not depend on it.",
    ),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Where to compute: auto (the CPU), cpu, cuda (every GPU), or one GPU, as cuda:1.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show warnings and errors only, no progress.")
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Show each step and how long it took, in seconds.",
        callback=log_to_stderr,
    ),
]
DEMO_FOLDER = Path("demo")
DemoRows = Annotated[int, typer.Option(metavar="N", min=100, help="Number of rows to generate.")]
DemoFolder = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Folder for the data, the sketch and the plot.")
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Which columns and rows of the files are used."""

    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="Columns of a table to use, in this order (default: all that hold numbers).",
        ),
    ] = None
    weight_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column with the weight of each row; it is not clustered (default: weights of 1).",
        ),
    ] = None
    nan: Nan = "error"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrequencyOptions:
    """How the frequencies of a sketch are chosen."""

    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize",
            help="Divide each column by its standard deviation; centroids keep the data's units.",
        ),
    ] = False
    sketch_size: Annotated[
        int | None,
        typer.Option(
            "--sketch-size",
            "-m",
            metavar="M",
            min=1,
            help="Number of frequencies in the sketch (default: 5 x clusters x columns).",
        ),
    ] = None
    scale: Annotated[
        str,
        typer.Option(
            metavar="auto|FLOAT",
            help="Variance that the frequencies are adapted to; auto estimates it from rows.",
        ),
    ] = "auto"
    distribution: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=(
                "Distribution of the frequencies: multiscale, structured (for many columns), "
                "adapted-radius (the paper's), folded-gaussian or gaussian."
            ),
        ),
    ] = "multiscale"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingOptions:
    """How centroids are found from a sketch."""

    decoder: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Decoding algorithm: auto (density), density or clompr (the paper's).",
        ),
    ] = "auto"
    init: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Where searches start: auto, range, or sample and k++ (from sampled rows).",
        ),
    ] = "auto"
    n_init: Annotated[
        int,
        typer.Option(
            "--n-init", metavar="N", min=1, help="Number of decodings, of which the best is kept."
        ),
    ] = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointOptions:
    """Where an interrupted pass is continued from."""

    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "Save the unfinished sketch to this file every 10 seconds and when interrupted "
                "(default: do not)."
            ),
        ),
    ] = None
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue from --checkpoint if that file exists; same result."
        ),
    ] = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Which cluster reads the files."""

    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=(
                "Sketch on a cluster whose workers can read FILES, one task per file: dask, spark "
                "or ray (default: on this machine)."
            ),
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --engine dask: address of the scheduler (default: local threads).",
        ),
    ] = None
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="With --engine spark: the master, or sc://... for Spark Connect.",
        ),
    ] = None
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --engine ray: address of the cluster, or auto (default: start one here).",
        ),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """What a computation runs on, and the seed of its random numbers."""

    seed: Seed = 0
    jobs: Jobs = None
    device: Device = "auto"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What is printed."""

    json: Json = False
    quiet: Quiet = False
    verbose: Verbose = False


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take groups of options as values.

    Typer sees one option per field of each parameter whose type is a dataclass; the command gets
    the dataclass.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {
        name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)
    }
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        group = groups.get(parameter.name)
        taken = [parameter] if group is None else inspect.signature(group).parameters.values()
        parameters.extend(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in taken)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            fields = [field.name for field in dataclasses.fields(kind)]
            given[name] = kind(**{field: given.pop(field) for field in fields})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
