"""`ckm frequencies` and `ckm release`: from public bounds to private releases."""

import json as json_format
from typing import Annotated, Any

import typer

import ckm
from ckm._cli import options as o
from ckm._cli.streams import say
from ckm._util.address import Address

BoundsFile = Annotated[
    o.FileName,
    typer.Option(
        "--bounds",
        metavar="FILE",
        parser=o.file_name,
        help='JSON that names each column with its bounds: {"age": [0, 110], "cm": [50, 250]}. '
        "They must be public knowledge, not taken from the data.",
    ),
]
ClustersOfDesign = Annotated[
    int | None,
    typer.Option("--clusters", "-k", metavar="K", min=1, help="Size the sketch for K clusters."),
]
SizeOfDesign = Annotated[
    int | None,
    typer.Option(
        "--sketch-size",
        "-m",
        metavar="M",
        min=1,
        help="Number of frequencies (default: 2 K n, at least 1000).",
    ),
]
InHalfWidths = Annotated[
    bool,
    typer.Option(
        "--standardize", help="Measure each column in units of half the width of its bounds."
    ),
]
MaxWeight = Annotated[
    int | None,
    typer.Option(
        "--max-weight",
        metavar="W",
        min=1,
        help="Largest weight of a row that counts, if rows have whole-number weights: public "
        "knowledge, and noise grows with it.",
    ),
]
PilotFile = Annotated[
    o.FileName | None,
    typer.Option(
        "--pilot",
        metavar="RELEASE",
        parser=o.file_name,
        help="A small private release with the same bounds, to estimate scale and origin from.",
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon", metavar="E", help="How much may be revealed; 1 is usual, less is more private."
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        "--delta",
        metavar="D",
        help="Probability that this fails: far below one over the number of rows, such as 1e-6.",
    ),
]
Unit = Annotated[
    str, typer.Option("--unit", metavar="UNIT", help="What is hidden: one row, or one user.")
]
LedgerFile = Annotated[
    o.FileName | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        parser=o.file_name,
        help="Record what was spent on which data in this file.",
    ),
]
PopulationName = Annotated[
    str | None,
    typer.Option(
        "--population", metavar="NAME", help="A name for whose data this is, in the ledger."
    ),
]


def frequencies(
    *,
    bounds: BoundsFile,
    output: o.SketchOutput,
    clusters: ClustersOfDesign = None,
    sketch_size: SizeOfDesign = None,
    standardize: InHalfWidths = False,
    max_weight: MaxWeight = None,
    pilot: PilotFile = None,
    seed: o.Seed = 0,
    quiet: o.Quiet = False,
) -> None:
    """Make a design from public bounds alone, for private releases.

    Hand it to everyone who has rows: `ckm sketch --like design.ckm` clips them to the bounds, and
    `ckm release` adds the noise that hides each of them.
    """
    from ckm._cli import files as file
    from ckm._cli.errors import usage_errors
    from ckm._privacy.public import checked_bounds

    inputs = [file.Input(bounds), *([] if pilot is None else [file.Input(pilot)])]
    file.check_files(inputs, [file.Output(output, file.SKETCHES)])
    names, lower, upper = read_bounds(bounds)
    with usage_errors("--bounds"):
        limits = checked_bounds((lower, upper))
    with usage_errors("--max-weight"):
        checked_bounds((lower, upper), max_weight)
    design = ckm.public_frequencies(
        (limits.lower, limits.upper),
        n_clusters=clusters,
        sketch_size=sketch_size,
        columns=names,
        standardize=standardize,
        max_weight=max_weight,
        pilot=None if pilot is None else ckm.load(pilot),
        seed=seed,
    )
    design.save(output)
    size = f"{design.frequencies.m:,} frequencies for {len(names)} columns"
    say(f"Made a public design of {size}: {output}", quiet)


def release(
    *,
    sketch: o.SketchFile,
    output: o.SketchOutput,
    epsilon: Epsilon,
    delta: Delta,
    unit: Unit = "row",
    ledger: LedgerFile = None,
    population: PopulationName = None,
    quiet: o.Quiet = False,
) -> None:
    """Add noise to a sketch, so that it can be shared.

    The sketch must come from `ckm sketch --like design.ckm` with a design of `ckm frequencies`.
    Each release of the same rows reveals a little more: `--ledger` keeps account.
    """
    from ckm._cli import files as file
    from ckm._privacy.ledger import Ledger, spent_on

    file.check_files([file.Input(sketch)], [file.Output(output, file.SKETCHES)])
    check_budget(epsilon, delta, unit)
    if ledger is None and population is not None:
        raise typer.BadParameter(
            "It is recorded in a --ledger; name one.", param_hint="--population"
        )
    if ledger is not None and isinstance(ledger, Address):
        raise typer.BadParameter("Name a file of this machine.", param_hint="--ledger")
    exact = ckm.load(sketch)
    private = ckm.release(exact, epsilon, delta, unit=unit, ledger=ledger, population=population)
    private.save(output)
    _say_clipped(exact, quiet)
    assert private.release is not None
    budget = private.release.budget
    say(
        f"Released with epsilon = {budget.epsilon:g} and delta = {budget.delta:g} for each "
        f"{budget.unit}: {output}",
        quiet,
    )
    if ledger is not None:
        entries = Ledger(ledger).entries()
        say(f"Spent on this data in all: {spent_on(entries[-1].keys, entries)}.", quiet)


def _say_clipped(exact: "ckm.Sketch", quiet: bool) -> None:
    """Tell the owner how many rows were changed to fit the design."""
    bounded = exact.tally.bounded
    bounds = exact.frequencies.bounds
    if bounded is None or bounds is None:
        return
    note = "this is for you, and not part of the release."
    # Weighted rows are counted by their weights.
    of_all = "" if bounds.max_weight else f" of {exact.count:,}"
    if bounded.clipped:
        were = "rows were beyond the bounds and were clipped to them"
        say(f"{bounded.clipped:,}{of_all} {were}; {note}", quiet)
    if bounded.capped:
        were = f"above the cap and count as {bounds.max_weight} rows each"
        say(f"Weights of rows that were {were}: {bounded.capped:,}; {note}", quiet)


def check_budget(epsilon: float, delta: float, unit: str) -> None:
    """Refuse values of options that no release can have."""
    from ckm._cli.errors import usage_errors
    from ckm._core import accounting
    from ckm._core.budget import require_unit

    with usage_errors("--epsilon"):
        accounting.check_epsilon(epsilon)
    with usage_errors("--delta"):
        accounting.check_delta(delta)
    with usage_errors("--unit"):
        require_unit(unit)


def read_bounds(path: Any) -> tuple[list[str], list[float], list[float]]:
    """Return names, lower and upper bounds of columns from a JSON file."""
    from ckm._util.stores import read_bytes

    remedy = 'write an object such as {"age": [0, 110], "cm": [50, 250]}.'
    try:
        content = json_format.loads(read_bytes(path), object_pairs_hook=_named_once)
    except ValueError as error:
        raise typer.BadParameter(
            f"{path} is not JSON ({error}); {remedy}", param_hint="--bounds"
        ) from None
    is_right = (
        isinstance(content, dict)
        and content
        and all(
            isinstance(pair, list)
            and len(pair) == 2
            and all(isinstance(end, int | float) and not isinstance(end, bool) for end in pair)
            for pair in content.values()
        )
    )
    if not is_right:
        raise typer.BadParameter(
            f"{path} does not give two numbers for each column; {remedy}", param_hint="--bounds"
        )
    lower, upper = zip(*content.values(), strict=True)
    return list(content), list(lower), list(upper)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; ValueError if it says something twice, of which one would be lost."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("it names a column twice")
    return content
