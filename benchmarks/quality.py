"""SSE relative to the best of 10 k-means++ runs: our decoders, the paper's, k-means in its usual
forms, and k-means on samples of rows.

Every finished run is logged in results/quality-runs.jsonl under a tag, and a logged run does not
run again: stop and continue at any time. After a change of the decoder use another --tag, or
measure what changed (--fresh --methods ckm,ckm+pool) and report with a second call. "pool-alone"
and "equal-bytes" are the best of 10 k-means++ runs on those rows, so they are as good as rows can
be.

With --rivals: the sketch with cells that fits in 80, 160, 320 and 640 K n bytes ("mix") against
other one-pass summaries of the same bytes (rivals.py), on eleven sets. Each is solved by the
placing that our decoder uses for cells.
"""

import argparse
from functools import partial
from typing import Any

import ckm
from benchmarks import mnist
from benchmarks.baselines import PYCLE
from benchmarks.data import GROUPS, data_sets, prepare, rival_sets, rows_made
from benchmarks.harness import (
    console,
    options,
    peer,
    process_options,
    report,
    result_path,
    seeds_of,
)
from benchmarks.processes import work_all
from benchmarks.quality_report import Findings, draw, promises, show_tables
from benchmarks.quality_rivals import draw_rivals, rival_targets, show_rivals
from benchmarks.quality_runs import METHODS, MIX, POOL, RIVALS, Plan, read_runs, run_log, work


def parse() -> argparse.Namespace:
    parser = options(
        "Measure SSE relative to the best of 10 k-means++ runs, on synthetic and real data.",
        first_seed=100,
    )
    process_options(parser, count=10, quick_count=2)
    parser.add_argument(
        "--groups", default=",".join(GROUPS), help="groups of data sets (default: %(default)s)"
    )
    parser.add_argument(
        "--methods",
        default=",".join(m for m in METHODS if m not in ("pycle", MIX, *RIVALS)),
        help="default: %(default)s",
    )
    parser.add_argument(
        "--pycle", action="store_true", help="also run pycle, which takes a minute per run"
    )
    parser.add_argument(
        "--rivals",
        action="store_true",
        help="compare one-pass summaries of equal bytes instead (--groups and --methods are fixed)",
    )
    parser.add_argument(
        "--tag",
        default=ckm.__version__,
        help="the name that runs are logged under (default: the version, %(default)s)",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="remove the logged runs of these seeds, groups, methods and tag first",
    )
    arguments = parser.parse_args()
    for option, known in (("groups", GROUPS), ("methods", METHODS)):
        chosen = [word.strip() for word in getattr(arguments, option).split(",")]
        unknown = [word for word in chosen if word not in known]
        if unknown:
            parser.error(f"--{option} has no {unknown[0]!r}; choose from {', '.join(known)}")
        setattr(arguments, option, [word for word in known if word in chosen])
    return arguments


def main() -> None:
    arguments = parse()
    mnist.name_source(arguments.mnist)
    methods = [m for m in METHODS if m in arguments.methods or (m == "pycle" and arguments.pycle)]
    if "pycle" in methods and peer(*PYCLE) is None:
        methods.remove("pycle")
    seeds = seeds_of(arguments)
    sets = data_sets(arguments.groups, arguments.quick)
    if arguments.rivals:
        methods = [MIX, *RIVALS]
        sets = rival_sets(arguments.quick)
    plan = Plan(sets, seeds, methods, arguments.tag, arguments.quick)
    log = run_log(arguments.quick)
    if arguments.fresh:
        log.rewrite(run._asdict() for run in read_runs(log) if not plan.includes(run))
    kept = [run for run in read_runs(log) if plan.includes(run)]
    if kept:
        console.print(
            f"{len(kept)} earlier runs are logged under the tag {plan.tag}; --fresh removes them."
        )
    tasks = plan.tasks(kept)
    if tasks:
        prepare([task.data for task in tasks])
        work_all(
            partial(work, plan, log),
            tasks,
            arguments.jobs,
            "Stopped; the same command continues from here.",
        )

    findings = Findings(plan, [run for run in read_runs(log) if plan.includes(run)])
    if arguments.rivals:
        report_rivals(findings)
    else:
        report_groups(findings, arguments.groups)


def report_rivals(findings: Findings) -> None:
    plan = findings.plan
    bytes_used = show_rivals(findings)
    settings = settings_of(plan) | {"bytes": bytes_used}
    report("quality-rivals", plan.quick, settings, findings.listed(), rival_targets(findings))
    draw_rivals(findings, result_path("quality-rivals", plan.quick, ".png"))


def report_groups(findings: Findings, groups: list[str]) -> None:
    plan = findings.plan
    show_tables(findings)
    targets = [
        t
        for p in promises(plan.quick)
        if p.group in groups and p.method in plan.methods
        for t in p.targets(findings)
    ]
    # A run of some groups does not overwrite the file of all groups.
    name = "quality" if len(groups) == len(GROUPS) else f"quality-{'-'.join(groups)}"
    report(name, plan.quick, settings_of(plan), findings.listed(), targets)
    draw(findings, result_path(name, plan.quick, ".png"))


def settings_of(plan: Plan) -> dict[str, Any]:
    return {
        "N": rows_made(plan.quick),
        "pool": POOL,
        "first_seed": plan.seeds[0],
        "seeds": len(plan.seeds),
        "methods": plan.methods,
        "tag": plan.tag,
    }


if __name__ == "__main__":
    main()
