"""`ckm subtract` and `ckm window`: some of the rows of several sketches."""

from typing import Annotated

import typer

from ckm._cli import options as o

Last = Annotated[
    int,
    typer.Option("--last", metavar="N", min=1, help="Number of sketches in the window."),
]


def subtract(*, sketches: o.SketchFiles, output: o.SketchOutput, report: o.ReportOptions) -> None:
    """Remove the rows of sketches from the first of them.

    The sums are exactly those from before the rows were added. The smallest and largest values of
    columns are kept, so that they may lie outside those of the rows that are left, and sampled rows
    are not.
    """
    import ckm
    from ckm._cli import files as file
    from ckm._cli import steps
    from ckm.errors import MismatchError, ParameterError

    paths = file.find_inputs(sketches)
    if len(paths) < 2:
        raise typer.BadParameter(
            "There is nothing to subtract; name the sketch of all rows, then those to remove.",
            param_hint="SKETCHES",
        )
    file.check_files([*map(file.Input, paths)], [file.Output(output, file.SKETCHES)])
    left = ckm.load(paths[0])
    for path in paths[1:]:
        try:
            left = left - ckm.load(path)
        except (MismatchError, ParameterError) as error:
            raise type(error)(f"Cannot subtract {path} from {paths[0]}. ", error.message) from None
    left.save(output)
    steps.report_sketch(left, f"{left.count:,} rows are left: {output}", report)


def window(
    *, sketches: o.SketchFiles, last: Last, output: o.SketchOutput, report: o.ReportOptions
) -> None:
    """Merge the last N of some sketches.

    The window moves on as files are added. SKETCHES are in the order of time; the files of a quoted
    pattern are in the order of their names, as in days/2026-11-18.ckm. Where there are fewer than
    N, all are merged. The window is made from its sketches each time, so that a command that is
    repeated counts no day twice, and its result is bit-identical to the sketch of these rows.
    """
    from ckm._cli import files as file
    from ckm._cli import steps

    paths = file.find_inputs(sketches)
    file.check_files([*map(file.Input, paths)], [file.Output(output, file.SKETCHES)])
    chosen = paths[-last:]
    s = steps.merge_files(chosen)
    s.save(output)
    span = str(chosen[0]) if len(chosen) == 1 else f"{chosen[0]} to {chosen[-1]}"
    note = f"{len(chosen)} of {len(paths)} sketches, {span}, {s.count:,} rows: {output}"
    steps.report_sketch(s, note, report)
