"""What `quality.py --rivals` reports: the mix of frequencies and cells against other one-pass
summaries of the same bytes.
"""

from pathlib import Path
from typing import Any

import numpy as np

import ckm
from benchmarks.data import BUDGET_RATIOS, Unavailable
from benchmarks.harness import Target, console, show
from benchmarks.mix import mix_sizes, sketch_bytes
from benchmarks.quality_report import Findings
from benchmarks.quality_runs import METHODS, MIX, RIVALS

# A set counts as level where the mix's median is at most this much of a rival's.
LEVEL = 1.002
Y_TICKS = (-0.03, -0.01, -0.002, 0, 0.002, 0.01, 0.03, 0.1, 0.3)


def budgets(findings: Findings) -> list[int]:
    """Return the sizes m / (K n) whose 16 m bytes are compared."""
    return [ratio for ratio in BUDGET_RATIOS if ratio in findings.plan.sets[0].ratios]


def medians(findings: Findings, ratio: int, method: str) -> dict[str, float]:
    """Return the median relative SSE of each set on which the method has run."""
    names = [data.name for data in findings.plan.sets]
    found = {name: findings.relative(name, ratio, method) for name in names}
    return {name: float(np.median(values)) for name, values in found.items() if len(values)}


def show_rivals(findings: Findings) -> list[dict[str, Any]]:
    """Print medians and worst runs for each budget; return the bytes of each mix."""
    for ratio in budgets(findings):
        rows = []
        for data in findings.plan.sets:
            cells = [findings.relative(data.name, ratio, method) for method in (MIX, *RIVALS)]
            if any(len(values) for values in cells):
                rows.append([data.name, *map(_middle_and_worst, cells)])
        title = f"{16 * ratio} K n bytes: median / worst relative SSE"
        show(title, ["data", MIX, *RIVALS], rows)
    used = [_bytes_of(data, ratio) for data in findings.plan.sets for ratio in budgets(findings)]
    found = [row for row in used if row]
    if found:
        show(
            "Bytes of the mix, its file, and the numbers of frequencies and cells",
            ["data", "budget / (K n)", "budget", "used", "file", "m", "cells"],
            [list(row.values()) for row in found],
        )
    return found


def _middle_and_worst(values: np.ndarray) -> str | None:
    return f"{np.median(values):.4f} / {values.max():.4f}" if len(values) else None


def _bytes_of(data: Any, ratio: int) -> dict[str, Any]:
    try:
        X, K = data.load(0, quick=True)
    except Unavailable as error:
        console.print(str(error), markup=False)
        return {}
    n = X.shape[1]
    budget = 16 * ratio * K * n
    m, cells = mix_sizes(budget, K, n)
    used = sketch_bytes(m, cells, n)
    return {
        "data": data.name,
        "ratio": 16 * ratio,
        "budget": budget,
        "used": used,
        "file": _file_bytes(X, m, cells),
        "m": m,
        "cells": cells,
    }


def _file_bytes(X: np.ndarray, m: int, cells: int) -> int:
    from ckm._core.storage import serialise

    sketch = ckm.sketch(X, sketch_size=m, cells=cells, projection=None, random_state=0)
    return len(serialise(sketch))


def rival_targets(findings: Findings) -> list[Target]:
    """Return, for each budget and rival, on how many sets the mix is ahead or level."""
    targets = []
    for ratio in budgets(findings):
        ours = medians(findings, ratio, MIX)
        for rival in RIVALS:
            theirs = medians(findings, ratio, rival)
            shares = {name: ours[name] / theirs[name] for name in ours if name in theirs}
            lost = [f"{name} {share:.4f}" for name, share in shares.items() if share > LEVEL]
            what = f"{16 * ratio} K n bytes, {MIX} / {rival}: sets ahead or within 0.2 %"
            what += f" (behind: {', '.join(lost)})" if lost else ""
            level = len(shares) - len(lost) if shares else None
            targets.append(Target(what, len(findings.plan.sets), level))
    return targets


def draw_rivals(findings: Findings, path: Path) -> None:
    """Draw the medians over bytes, one panel per set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = findings.available([data.name for data in findings.plan.sets])
    figure, grid = plt.subplots(3, 4, figsize=(11, 7.5), layout="constrained", squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        for method in (*RIVALS, MIX):
            values = {ratio: medians(findings, ratio, method).get(name) for ratio in BUDGET_RATIOS}
            at = {16 * ratio: value - 1 for ratio, value in values.items() if value is not None}
            axes.plot(
                list(at),
                list(at.values()),
                marker="o",
                markersize=3,
                linewidth=2.2 if method == MIX else 1,
                color=METHODS[method].colour,
                label=method,
            )
        axes.set_xscale("log", base=2)
        axes.set_xticks([16 * ratio for ratio in BUDGET_RATIOS], [16 * r for r in BUDGET_RATIOS])
        axes.set_yscale("symlog", linthresh=0.002)
        low, high = axes.get_ylim()
        axes.set_yticks(Y_TICKS, [f"{tick:g}" for tick in Y_TICKS])
        axes.set_ylim(low, high)
        axes.minorticks_off()
        axes.axhline(0, color="black", linewidth=0.6)
        axes.set_title(name, fontsize=9)
    for axes in list(grid.flat)[len(names) :]:
        axes.axis("off")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=8, frameon=False)
    figure.suptitle("median relative SSE - 1, over bytes / (K n)", fontsize=10)
    figure.savefig(path, dpi=110)
