"""Draw the last results of kernel.py, scaling.py and decoder.py (results/speed.png): rates side by
side, and growth.
"""

import json
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS, console, options

COLOURS = {1: "#56B4E9", 2: "#0072B2"}  # by threads
MARKS = {"N": "o", "m": "s", "n": "^", "K": "D"}


def load(name: str) -> Any:
    """Return the results of one benchmark; None, with a printed sentence, if it was never run."""
    path = RESULTS / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text())["results"]
    console.print(
        f"{path.name} does not exist: run the benchmark that writes it first.", markup=False
    )
    return None


def draw_rivals(axes: Any, kernel: dict[str, list[dict]]) -> None:
    """Draw pairs per second of each contender at n = 10, by threads."""
    rows = [row for row in kernel["rivals"] if row["n"] == 10]
    names = sorted(
        {row["contender"] for row in rows},
        key=lambda name: max(r["pairs_per_s"] for r in rows if r["contender"] == name),
    )
    for offset, threads in ((-0.2, 1), (0.2, 2)):
        rates = [
            next(
                r["pairs_per_s"] for r in rows if r["contender"] == name and r["threads"] == threads
            )
            for name in names
        ]
        axes.barh(
            np.arange(len(names)) + offset,
            rates,
            height=0.38,
            color=COLOURS[threads],
            label=f"{threads} thread{'s'[: threads - 1]}",
        )
    axes.set(
        xscale="log",
        xlabel="pairs (row, frequency) per second, n = 10, m = 1000",
        yticks=range(len(names)),
        yticklabels=names,
    )
    axes.legend(frameon=False, loc="lower right")


def draw_shares(axes: Any, kernel: dict[str, list[dict]]) -> None:
    """Draw the kernel's share of the machine's multiply-adds over m, for each n."""
    rows = [row for row in kernel["against_limit"] if row["dtype"] == "float32"]
    for shade, n in zip(
        ("#A6CEE3", "#56B4E9", "#0072B2", "#08306B"),
        sorted({row["n"] for row in rows}),
        strict=True,
    ):
        own = [row for row in rows if row["n"] == n]
        axes.semilogx(
            [r["m"] for r in own],
            [r["share_of_limit"] for r in own],
            marker="o",
            markersize=4,
            color=shade,
            label=f"n = {n}",
        )
    axes.axhline(1, color="#999999", linewidth=1)
    axes.set(ylim=(0, 1.05), xlabel="m", ylabel="share of the machine's multiply-adds")
    axes.legend(frameon=False, loc="lower right")


def draw_growth(
    axes: Any,
    runs: list[dict],
    exponents: dict[str, float],
    base: dict[str, int],
    seconds: Any,
    ylabel: str,
) -> None:
    """Draw seconds over each size, relative to the one where the lines cross."""
    for size, exponent in exponents.items():
        key = size.split("/")[0]
        own = [
            run
            for run in runs
            if all(
                run[other] == base[other]
                for other in base
                if other not in (key, "m" if key != "m" else key)
            )
        ]
        own = [run for run in own if key == "m" or run["m"] == _usual(run, base, key)]
        points = sorted(
            {
                run[key] / base[key]: seconds(run) for run in sorted(own, key=seconds, reverse=True)
            }.items()
        )
        label = f"{key}, {key}$^{{{exponent:.2f}}}$"
        axes.loglog(*zip(*points, strict=True), marker=MARKS[key], markersize=4, label=label)
    sizes = [f"{name} = {value:,}" for name, value in base.items()]
    axes.set(
        xlabel=f"size relative to {', '.join(sizes)}",
        ylabel=ylabel,
    )
    axes.xaxis.set_minor_formatter("")
    axes.yaxis.set_minor_formatter("")
    axes.legend(frameon=False)


def _usual(run: dict, base: dict[str, int], key: str) -> int:
    """Return the number of frequencies while another size grows: constant for sketching, 5 K n for
    decoding.
    """
    return base["m"] if "K" not in run else 5 * run["K"] * run["n"]


def main() -> None:
    options("Draw what kernel.py, scaling.py and decoder.py measured.").parse_args()
    kernel = load("kernel")
    scaling = load("scaling")
    growth = load("decoder-growth")
    if kernel is None or scaling is None or growth is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 7.5), layout="constrained")
    draw_rivals(axes[0, 0], kernel)
    draw_shares(axes[0, 1], kernel)
    sizes = {"N": 1_000_000, "m": 500, "n": 10}
    draw_growth(
        axes[1, 0],
        scaling["runs"],
        scaling["exponents"],
        sizes,
        lambda run: run["sketch"],
        "seconds to sketch",
    )
    draw_growth(
        axes[1, 1],
        growth["runs"],
        growth["exponents"],
        {"K": 10, "m": 500, "n": 10},
        lambda r: np.median(r["seconds"]),
        "seconds to decode",
    )
    for each in axes.flat:
        each.grid(color="#dddddd", linewidth=0.5)
        each.set_axisbelow(True)
    figure.savefig(RESULTS / "speed.png", dpi=110)
    console.print("Written to results/speed.png.")


if __name__ == "__main__":
    main()
