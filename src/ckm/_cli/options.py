"""The options that several commands share, each with its help: written once, so that they mean the
same everywhere.
"""

import logging
from pathlib import Path
from typing import Annotated

import typer


def talk(verbose: bool) -> bool:
    """Let the library's log be heard on standard error."""
    if verbose:
        logging.basicConfig(format="%(message)s", force=True)
        logging.getLogger("ckm").setLevel(logging.INFO)
    return verbose


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help="Data: names, quoted patterns or folders of .parquet, .csv or .tsv (.gz, .zst), .arrow, .feather, .npy, .h5 or .zarr files "
        "(data.h5::rows for an array inside one); or - for CSV or an Arrow stream on standard input.",
    ),
]
Clusters = Annotated[
    int, typer.Option("--clusters", "-k", metavar="K", min=1, help="How many clusters to find.")
]
Size = Annotated[
    int | None,
    typer.Option(
        "--sketch-size",
        "-m",
        metavar="M",
        min=1,
        help="Frequencies in the sketch (default: 5 K n).",
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        metavar="auto|FLOAT",
        help="Variance that frequencies are scaled to; auto estimates it from rows.",
    ),
]
Distribution = Annotated[
    str,
    typer.Option(
        metavar="LAW",
        help="Frequencies' law: multiscale, structured (wide data), adapted-radius (the paper's), folded-gaussian or gaussian.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="Columns of a table to use, in this order (default: all that hold numbers).",
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The column that holds each row's weight; it is not clustered."
    ),
]
Nan = Annotated[
    str,
    typer.Option(
        metavar="error|drop",
        help="Rows with missing values: refuse them, or leave them out and say how many.",
    ),
]
NanLabels = Annotated[
    str,
    typer.Option(
        "--nan",
        metavar="error|drop",
        help="Rows with missing values: refuse them, or label them -1 and say how many.",
    ),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize",
        help="Measure each column in units of its standard deviation; centroids stay in the data's own.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write down here every ten seconds, and when stopped, what has been added up so far.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Go on from --checkpoint, where there is one: the result is the same."
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Sketch on a cluster whose workers can read FILES: dask, spark or ray; a file is a task.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="With --engine dask: the scheduler (default: threads here)."
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="With --engine spark: the master, or sc://... for Spark Connect."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="With --engine ray: the cluster, or auto (default: a new one here)."
    ),
]
Decoder = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="How centroids are found: auto (density), density or clompr."
    ),
]
Init = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Where searches start: auto, range, or (from pooled rows) sample, k++."
    ),
]
Replicates = Annotated[
    int, typer.Option("--n-init", metavar="N", min=1, help="Decode N times and keep the best.")
]
Polish = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="Then at most N passes of k-means over the data, and one to measure.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        help="The same seed repeats the same result (in Python, random_state=None draws a new one).",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Threads (default: every core); the result is the same for any number."
    ),
]
Kernel = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What computes: auto (numba, the CPU), torch (a card, if there is one), torch-plain, reference.",
    ),
]
CentroidsOut = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write centroids here: .csv or .json."),
]
SketchOut = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the sketch here: a name ending in .ckm."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Say what is being done, and how long it took.", callback=talk
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no notes; warnings and errors only.")
]
