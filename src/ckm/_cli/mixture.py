"""`ckm mixture`: Gaussians with their weights, means and covariances from a sketch."""

import json as json_format
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ckm
from ckm._cli import options as o
from ckm._cli.streams import say

if TYPE_CHECKING:
    from ckm._analysis.mixture_solution import GaussianMixtureSolution

Components = Annotated[
    str,
    typer.Option(
        "--n-components",
        "--components",
        "-k",
        metavar="K|auto",
        help="Number of Gaussians, or auto for the number that `ckm curve` suggests.",
    ),
]
MaxComponents = Annotated[
    int,
    typer.Option(
        "--max-components", metavar="K", min=1, help="The largest number that auto may choose."
    ),
]
CovarianceType = Annotated[
    str,
    typer.Option(
        "--covariance-type",
        metavar="NAME",
        help=(
            "What covariances look like: diag (a variance for each column), full (a matrix for "
            "each Gaussian), tied (one matrix for all) or spherical (one variance for each)."
        ),
    ),
]
RegCovar = Annotated[
    float,
    typer.Option(
        "--reg-covar", metavar="VARIANCE", min=0.0, help="Added to the variances of all columns."
    ),
]
MixtureOutput = Annotated[
    o.FileName | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        parser=o.file_name,
        help="Write the mixture to this .json file (default: print it).",
    ),
]


def mixture(
    *,
    sketch: o.SketchFile,
    components: Components,
    covariance_type: CovarianceType = "diag",
    max_components: MaxComponents = 20,
    reg_covar: RegCovar = 1e-6,
    output: MixtureOutput = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    report: o.ReportOptions,
) -> None:
    """Find a mixture of K Gaussians in a sketch, without the data.

    Prints weights, means and standard deviations; -o or --json give everything, covariances in
    scikit-learn's shapes. The sketch should have five frequencies for each number of the means and
    covariances: sketch with -m 10 x K x columns for diag, 5 x K x (columns + 1) for spherical, 2.5
    x K x columns x (columns + 3) for full.
    """
    from ckm._analysis.components import check_covariance_type
    from ckm._cli import files as file
    from ckm._cli import steps
    from ckm._cli.errors import in_options, naming, usage_errors
    from ckm._decoding.status import Status
    from ckm._display import tables
    from ckm._util.files import write_atomically

    number = _parse_components(components)
    with usage_errors("--covariance-type"):
        check_covariance_type(covariance_type)
    steps.check_compute(jobs)
    file.check_files([file.Input(sketch)], [file.Output(output, (".json",))])
    s = ckm.load(sketch)
    with tables.show_stages("Fitting", report.quiet), naming(sketch):
        found = ckm.fit_mixture(
            s,
            number,
            covariance_type,
            max_components=max_components,
            reg_covar=reg_covar,
            random_state=seed,
            n_jobs=jobs,
        )
    for finding in found.findings:
        # `ckm.fit_mixture` itself warns of a sketch that is too small.
        if finding.status is not Status.SMALL_SKETCH:
            say(f"Warning: {in_options(finding.sentence)}")
    record = mixture_record(found, rows=s.count, sketch_size=s.frequencies.m, seed=seed)
    if output is not None:
        write_atomically(output, (json_format.dumps(record, indent=1) + "\n").encode())
        say(f"Found {len(found.weights)} Gaussians: {output}", report.quiet)
    if report.json:
        tables.print_json(record)
    elif output is None:
        print(found)


def mixture_record(found: "GaussianMixtureSolution", **facts: Any) -> dict[str, Any]:
    """The mixture as values for JSON."""
    from ckm._cli.errors import in_options

    return {
        "n_components": len(found.weights),
        "covariance_type": found.covariance_type,
        "columns": None if found.columns is None else list(found.columns),
        "weights": found.weights.tolist(),
        "means": found.means.tolist(),
        "covariances": found.covariances.tolist(),
        "residual": found.residual,
        "is_matched": found.is_matched,
        "status": found.status.value,
        "findings": [
            {"status": finding.status.value, "message": in_options(finding.sentence)}
            for finding in found.findings
        ],
        **facts,
    }


def _parse_components(text: str) -> int | str:
    """The number of components, or "auto"."""
    if text == "auto" or (text.isdecimal() and int(text) > 0):
        return text if text == "auto" else int(text)
    raise typer.BadParameter(
        f"It must be auto or a whole number from 1 on; got {text!r}.", param_hint="-k"
    )
