"""`ckm describe`: what the columns of a table hold."""

import json as json_library
from dataclasses import replace

import ckm
from ckm._cli import options as o


def describe(*, files: o.Files, columns: o.Columns = None, json: o.Json = False) -> None:
    """Say what the columns of FILES hold, and how to use them.

    One pass, in bounded memory. For each column: its kind, the share of missing values, the number
    of different values (about), its range and quartiles, standard deviation, skewness and outliers.
    Below, what to write after `ckm fit` and `ckm sketch`: columns to leave out, to standardise, and
    to take logarithms of.
    """
    from ckm._cli import files as file
    from ckm._cli import steps
    from ckm._cli.errors import in_options

    inputs = file.find_inputs(files)
    file.check_files([*map(file.Input, inputs)], [])
    found = ckm.describe(list(inputs), columns=steps.split_names(columns))
    if json:
        print(json_library.dumps(found.to_dict(), allow_nan=False))
        return
    summary = found.summary()
    notes = tuple(in_options(note) for note in summary.notes)
    print(replace(summary, notes=notes).text())
    options = [steps.as_options(found.arguments)] if found.arguments else []
    # Missing values are an error otherwise, and the command should work as it is printed.
    options += ["--nan drop"] if any("--nan drop" in note for note in notes) else []
    if options:
        print(f"\nTo follow this advice: ckm fit {' '.join(files)} -k K {' '.join(options)}")
