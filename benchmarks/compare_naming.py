"""Does `ckm.compare` name the changed column first, and as often as the rows themselves would?

Samples as in the section "power" of `compare.py`, whose mean or variance is changed in one column.
Beside what is named from the sketches are two answers from the rows: that of the statistic of the
change that was made, t of the means or the ratio of the variances, which nobody knows beforehand;
and that of the largest likelihood ratio of two Gaussians against one, for either change.
"""

from typing import Any

import numpy as np

import ckm
from benchmarks.compare import MIN_NAMED, POWER_BATCH, SHIFTS, Shift, find_design, make_draw
from benchmarks.harness import Target, jobs_option, options, report, show
from benchmarks.processes import Outcome, work_all

REPEATS = 1000
ANSWERS = ("sketches", "told what changed", "likelihood ratio")

Task = tuple[Shift, int, int]


def work(task: Task) -> Outcome:
    """Return which of the answers are right, for samples of one seed."""
    shift, seed, repeats = task
    draw: Any = make_draw(shift.data, shift.n, seed)
    rng = np.random.default_rng([seed, 9])
    design = find_design(draw, shift.m, rng, seed)
    right = []
    for _ in range(repeats):
        first = draw(rng, shift.size)
        second = draw(rng, shift.size, shift.change, shift.amount)
        sketches = [ckm.sketch(rows, like=design, n_jobs=1) for rows in (first, second)]
        named = ckm.compare(*sketches).columns[0].index
        answers = (named, *name_by_rows(first, second, shift.change))
        right.append([answer == draw.column for answer in answers])
    return Outcome((shift, right), [])


def name_by_rows(first: np.ndarray, second: np.ndarray, change: str) -> tuple[int, int]:
    """Return the column with the largest statistic of this change, and with the largest likelihood
    ratio, of samples of the same size.
    """
    own = np.stack([first.var(axis=0), second.var(axis=0)])
    shifts = first.mean(axis=0) - second.mean(axis=0)
    told = shifts**2 / own.sum(axis=0)
    if change == "variance":
        told = np.abs(np.log(own[0] / own[1]))
    both = own.mean(axis=0) + shifts**2 / 4
    ratio = np.log(both) - np.log(own).mean(axis=0)
    return int(told.argmax()), int(ratio.argmax())


def main() -> None:
    parser = options("Measure which column ckm.compare names first.", first_seed=100)
    parser.add_argument("--repeats", type=int, help=f"of each setting (default: {REPEATS})")
    jobs_option(parser)
    arguments = parser.parse_args()
    repeats = arguments.repeats or (20 if arguments.quick else REPEATS)
    shifts = [shift for shift in SHIFTS if shift.change != "share"]
    tasks = [
        (shift, arguments.seeds + i // POWER_BATCH, min(POWER_BATCH, repeats - i))
        for shift in shifts
        for i in range(0, repeats, POWER_BATCH)
    ]
    found: dict[Shift, list[list[bool]]] = {shift: [] for shift in shifts}
    for shift, right in work_all(work, tasks, arguments.jobs):
        found[shift] += right
    rates = {shift: np.mean(right, axis=0) for shift, right in found.items()}
    lines = [[shift.name, repeats, *map(float, own)] for shift, own in rates.items()]
    show("The changed column is named first", ["changed", "repeats", *ANSWERS], lines)
    targets = [
        Target(f"named first: {shift.name}", MIN_NAMED, float(own[0]))
        for shift, own in rates.items()
    ]
    results = [
        {"name": shift.name, "repeats": repeats, **dict(zip(ANSWERS, map(float, own), strict=True))}
        for shift, own in rates.items()
    ]
    report("compare-naming", arguments.quick, {"first_seed": arguments.seeds}, results, targets)


if __name__ == "__main__":
    main()
