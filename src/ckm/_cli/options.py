"""The options of the command line, each written once with its help, and groups of options that
several commands share.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ckm._cli.streams import log_to_stderr
from ckm._core.defaults import CHECKPOINT_INTERVAL, DEFAULT_DISTRIBUTION
from ckm._util.address import Address, as_path

if TYPE_CHECKING:
    FileName = Path | Address
else:
    # Typer takes no union, and would make a path of what a parser returns for `Path`.
    FileName = Address


# The names of an option are those of the argument in Python; shorter ones are accepted, too.
CLUSTERS = ("--n-clusters", "--clusters", "-k")


def _not_empty(value: str) -> str:
    """Refuse an empty text, which is often that of a variable that is not set."""
    if not value:
        raise typer.BadParameter("It is empty; perhaps a variable is not set.")
    return value


def file_name(name: str | Path | Address) -> Path | Address:
    """Return a path or an address; an empty one, which `Path` takes for the current folder, is
    refused.
    """
    return as_path(_not_empty(name) if isinstance(name, str) else name)


def _folder_name(name: str | Path) -> Path:
    """Return a folder of this machine."""
    folder = file_name(name)
    if isinstance(folder, Address):
        raise typer.BadParameter(f"{folder} is an address; name a folder of this machine.")
    return folder


def _not_empty_or_none(value: str | None) -> str | None:
    return None if value is None else _not_empty(value)


def _seconds(value: float) -> float:
    """Refuse a time that is negative, or not a number."""
    if not value >= 0:
        raise typer.BadParameter(f"{value} is not a number of seconds from 0 on.")
    return value


def _each_not_empty(names: list[str]) -> list[str]:
    return [_not_empty(name) for name in names]


def _file(metavar: str, help: str, *names: str) -> Any:
    """Declare an option that takes the name of a file or folder."""
    return _value(metavar, help, *names, parser=file_name)


def _value(metavar: str, help: str, *names: str, **more: Any) -> Any:
    """Declare an option that takes a value; its name is the parameter's unless given."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


def _flag(help: str, *names: str, **more: Any) -> Any:
    """Declare an option that takes no value."""
    return typer.Option(*names, help=help, **more)


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        callback=_each_not_empty,
        help=(
            "Data: names, quoted patterns or folders of .parquet, .csv or .tsv (.gz, .zst), "
            ".arrow, .feather, .npy, .h5 or .zarr files (data.h5::rows for an array inside one); "
            "addresses of these (s3://, gs://, az://, https://); or - for CSV or an Arrow stream "
            "on standard input."
        ),
    ),
]
SketchFile = Annotated[
    FileName,
    typer.Argument(
        metavar="SKETCH",
        help="A file made by `ckm sketch` or `ckm merge`.",
        parser=file_name,
    ),
]
SketchFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="SKETCHES",
        callback=_each_not_empty,
        help="Files made by `ckm sketch` with the same frequencies.",
    ),
]
Population = Annotated[
    str | None,
    _value(
        "WHOSE",
        "For private releases: disjoint if nobody is in two of them, same otherwise.",
        "--population",
    ),
]
Clusters = Annotated[int, _value("K", "Number of clusters to find.", *CLUSTERS, min=1)]
ClustersToSizeFor = Annotated[
    int | None,
    _value(
        "K",
        "Size the sketch for K clusters; with --like, check that it is large enough.",
        *CLUSTERS,
        min=1,
    ),
]
Like = Annotated[
    FileName | None,
    _file(
        "FILE", "Use the frequencies of this sketch, so that the two can be merged (default: new)."
    ),
]
CentroidsFile = Annotated[
    FileName,
    _file(
        "FILE",
        "Centroids written by `ckm fit` or `ckm decode`: .csv, .json or .parquet.",
        "--centroids",
        "-c",
    ),
]
CentroidsOutput = Annotated[
    FileName | None,
    _file(
        "FILE",
        "Write the centroids to this file, .csv, .json or .parquet (default: print them).",
        "--output",
        "-o",
    ),
]
SketchOutput = Annotated[
    FileName,
    _file("FILE", "Write the sketch to this file; its name must end in .ckm.", "--output", "-o"),
]
LabelsOutput = Annotated[
    FileName | None,
    _file(
        "FILE",
        "Write one label per row to this file, .csv, .npy or .parquet (default: no labels).",
        "--output",
        "-o",
    ),
]
SaveSketch = Annotated[
    FileName | None,
    _file(
        "FILE", "Also write the sketch to this file; its name must end in .ckm (default: not kept)."
    ),
]
Sse = Annotated[
    bool,
    _flag("Also report the SSE, which takes one more pass over the data.", "--sse"),
]
Polish = Annotated[
    int,
    _value(
        "N",
        "Then run at most N passes of k-means over the data, and one to measure the SSE.",
        min=0,
    ),
]
FitPool = Annotated[
    int,
    _value(
        "N", "Number of sampled rows that decoding may start from; kept during the fit only.", min=0
    ),
]
SketchPool = Annotated[
    int,
    _value("N", "Number of sampled rows to store in the file, for decoding to start from.", min=0),
]
Columns = Annotated[
    str | None,
    _value(
        "A,B,C",
        (
            "Columns of a table to use, in this order (default: all that hold numbers). "
            "Quotes protect a comma in a name: '\"a,b\",c'."
        ),
    ),
]
Exclude = Annotated[
    str | None,
    _value("A,B,C", "Columns of a table to leave out, such as ids (default: none)."),
]
Nan = Annotated[
    str,
    _value(
        "error|drop|impute",
        (
            "Rows with missing values: stop with an error, leave them out and count them, or fill "
            "in about the mean of their column."
        ),
    ),
]
NanLabels = Annotated[
    str,
    _value(
        "error|drop|impute",
        "Rows with missing values: stop with an error, label them -1 and count them, or fill them "
        "in as the sketch would (centroids from a .json or .parquet file).",
        "--nan",
    ),
]
Seed = Annotated[
    int,
    _value(
        "N",
        "Seed of the random numbers; the same seed gives the same result.",
        "--random-state",
        "--seed",
        min=0,
        max=2**64 - 1,
    ),
]
Jobs = Annotated[
    int | None,
    _value(
        "N",
        "Number of threads (default: one per core); the result does not depend on it.",
        "--n-jobs",
        "--jobs",
    ),
]
Device = Annotated[
    str,
    _value(
        "NAME", "Where to compute: auto (the CPU), cpu, cuda (every GPU), or one GPU, as cuda:1."
    ),
]
Json = Annotated[bool, _flag("Print the result as one JSON object.", "--json")]
Quiet = Annotated[bool, _flag("Show warnings and errors only, no progress.", "--quiet", "-q")]
Verbose = Annotated[
    bool,
    _flag(
        "Show each step and how long it took, in seconds.",
        "--verbose",
        "-v",
        callback=log_to_stderr,
    ),
]
DEMO_FOLDER = Path("demo")
DemoRows = Annotated[int, _value("N", "Number of rows to generate.", min=100)]
DemoFolder = Annotated[
    Path,
    _value("FOLDER", "Folder for the data, the sketch and the plot.", parser=_folder_name),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Which columns and rows of the files are used."""

    columns: Columns = None
    exclude: Exclude = None
    categories: Annotated[
        str | None,
        _value(
            "A,B=frequency",
            (
                "Columns of text, whole numbers or booleans to use too: a column of zeros and ones "
                "per value, or with =frequency the share of rows with that value; a weight may "
                "follow, as in A=2 or B=frequency:2 (default: none)."
            ),
        ),
    ] = None
    weight_column: Annotated[
        str | None,
        _value(
            "NAME",
            "Column with the weight of each row; it is not clustered (default: weights of 1).",
            callback=_not_empty_or_none,
        ),
    ] = None
    nan: Nan = "error"


@dataclasses.dataclass(frozen=True, kw_only=True)
class UserOptions:
    """Whose rows they are, and how many of each user count."""

    user_column: Annotated[
        str | None,
        _value(
            "NAME",
            "Column with the user, a number or a name, of each row; it is not clustered.",
            callback=_not_empty_or_none,
        ),
    ] = None
    max_rows_per_user: Annotated[
        int | None,
        _value(
            "N",
            "With --user-column: only the first N rows of each user count.",
            min=1,
        ),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class FrequencyOptions:
    """How the frequencies of a sketch are chosen."""

    standardize: Annotated[
        bool,
        _flag(
            "Divide each column by its standard deviation; centroids keep the data's units.",
            "--standardize",
        ),
    ] = False
    robust: Annotated[
        bool,
        _flag(
            "Standardise by the interquartile range of sampled rows, which outliers do not change.",
            "--robust",
        ),
    ] = False
    log: Annotated[
        str | None,
        _value(
            "A,B,C",
            (
                "Columns to replace by their logarithms, as heavy-tailed amounts should be; "
                "centroids keep the data's units (default: none)."
            ),
        ),
    ] = None
    sketch_size: Annotated[
        int | None,
        _value(
            "M",
            "Number of frequencies in the sketch (default: 5 x clusters x columns).",
            "--sketch-size",
            "-m",
            min=1,
        ),
    ] = None
    scale: Annotated[
        str,
        _value(
            "auto|FLOAT",
            "Variance that the frequencies are adapted to; auto estimates it from rows.",
        ),
    ] = "auto"
    distribution: Annotated[
        str,
        _value(
            "NAME",
            (
                "Distribution of the frequencies: multiscale, gaussian, folded-gaussian, "
                "adapted-radius (the paper's), structured (for many columns) or broad (for a "
                "scale that is a guess)."
            ),
        ),
    ] = DEFAULT_DISTRIBUTION
    projection: Annotated[
        str,
        _value(
            "auto|none|D",
            (
                "Project rows to D numbers, along the axes in which they vary most; auto chooses D "
                "for 64 columns and more."
            ),
        ),
    ] = "auto"
    metric: Annotated[
        str,
        _value(
            "NAME",
            (
                "Distances: euclidean, or cosine (each row is divided by its length first; rows of "
                "zeros stay as they are)."
            ),
        ),
    ] = "euclidean"
    cells: Annotated[
        str,
        _value(
            "auto|N",
            (
                "Anchors around which rows are counted and summed beside the frequencies; auto is "
                "16 per cluster (48 from 500 clusters on), at least 160; 0 for none. A cell of one "
                "row is that row."
            ),
        ),
    ] = "auto"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingOptions:
    """How centroids are found from a sketch."""

    decoder: Annotated[
        str,
        _value("NAME", "Decoding algorithm: auto (density), density or clompr (the paper's)."),
    ] = "auto"
    init: Annotated[
        str,
        _value(
            "NAME|FILE",
            (
                "Where searches start: auto, range, sample or k++ (random and k-means++ are the "
                "same), from sampled rows; or a file of centroids, .csv or .json."
            ),
            callback=_not_empty,
        ),
    ] = "auto"
    n_init: Annotated[
        int,
        _value("N", "Number of decodings, of which the best is kept.", "--n-init", min=1),
    ] = 1
    match: Annotated[
        FileName | None,
        _file(
            "FILE",
            (
                "Number the clusters as the centroids in this file, .csv or .json, by least total "
                "distance (default: by descending weight)."
            ),
        ),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointOptions:
    """Where an interrupted pass is continued from."""

    checkpoint: Annotated[
        FileName | None,
        _file(
            "FILE",
            (
                "Save the unfinished sketch to this file regularly and when interrupted "
                "(default: do not)."
            ),
        ),
    ] = None
    checkpoint_interval: Annotated[
        float,
        _value(
            "SECONDS",
            "Time between two checkpoints: at most this much work is lost.",
            "--checkpoint-interval",
            callback=_seconds,
        ),
    ] = CHECKPOINT_INTERVAL
    resume: Annotated[
        bool,
        _flag("Continue from --checkpoint if that file exists; same result.", "--resume"),
    ] = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Which cluster reads the files."""

    engine: Annotated[
        str | None,
        _value(
            "NAME",
            (
                "Sketch on a cluster whose workers can read FILES, one task per file: dask, spark "
                "or ray (default: on this machine)."
            ),
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        _value(
            "ADDRESS",
            "With --engine dask: address of the scheduler (default: local threads).",
            callback=_not_empty_or_none,
        ),
    ] = None
    master: Annotated[
        str | None,
        _value(
            "URL",
            "With --engine spark: the master, or sc://... for Spark Connect.",
            callback=_not_empty_or_none,
        ),
    ] = None
    address: Annotated[
        str | None,
        _value(
            "ADDRESS",
            "With --engine ray: address of the cluster, or auto (default: start one here).",
            callback=_not_empty_or_none,
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
