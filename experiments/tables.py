"""The tables of docs/reproduction.md, written from the summaries of the full run: no number there
is typed by hand.

Each table stands between <!-- NAME --> and <!-- end -->, with its plot. For a figure that was not
run, a sentence says so.
"""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments import figure2
from experiments.claims import METHODS, cells, judge_all
from experiments.experiment import Row, pick, read_summary
from experiments.methods import LABELS, STRATEGIES
from experiments.paper import (
    FIGURE_1,
    FIGURE_3_ARI,
    FIGURE_3_SSE,
    FIGURE_4_SSE,
    FIGURE_4_TIME,
    SIZES,
)

DOCUMENT = Path(__file__).parents[1] / "docs" / "reproduction.md"
LEVEL = "full"

Read = Callable[[str, str], list[Row]]  # (level, name) to the rows of a summary


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def spread(row: Row | None, measure: str, digits: int = 3) -> str:
    """Return mean ± standard deviation, or the mean alone for a single run."""
    if row is None or measure not in row:
        return "not run"
    found = row[measure]
    return f"{found['mean']:.{digits}f}" + (
        f" ± {found['std']:.{digits}f}" if row["count"] > 1 else ""
    )


def first(rows: Sequence[Row], **values: object) -> Row | None:
    """Return the first row with these values, or None."""
    return next(iter(pick(rows, **values)), None)


def claims_table(read: Read) -> str:
    """Return every claim and whether it holds."""
    head = ["claim", "the paper", "its decoder here", "holds", "ours", "holds"]
    return table(head, [cells(row, LEVEL) for row in judge_all(read, LEVEL)])


def figure1_table(read: Read) -> str:
    """Return SSE / N by strategy."""
    rows = read(LEVEL, "figure1")
    lines = []
    for data, N in dict.fromkeys((row["data"], row["N"]) for row in rows):
        for method in LABELS:
            known = {
                strategy: first(rows, data=data, N=N, method=method, strategy=strategy)
                for strategy in STRATEGIES
            }
            ours = [spread(row, "sse") if row else "as Sample" for row in known.values()]
            paper = FIGURE_1.get((data, method))
            runs = max(row["count"] for row in known.values() if row)
            lines.append(
                [
                    data,
                    f"{N:,}",
                    LABELS[method],
                    *ours,
                    " / ".join(f"{mean:.3g}" for mean in paper) if paper else "",
                    str(runs),
                ]
            )
    return table(
        ["data", "N", "method", "Range", "Sample", "K++", "the paper (N = 300,000)", "runs"], lines
    )


def figure2_table(read: Read) -> str:
    """Return the relative SSE by m / (K n), and where it stays below the bound."""
    rows = read(LEVEL, "figure2")
    lines = []
    ratios = sorted({row["ratio"] for row in rows if row["ratio"] is not None})
    for method, (measure, bound) in figure2.BELOW.items():
        for K, n, N in figure2.all_cells(rows):
            known = {
                ratio: first(rows, K=K, n=n, N=N, method=method, ratio=ratio) for ratio in ratios
            }
            means = [f"{row[measure]['mean']:.3f}" if row else "" for row in known.values()]
            enough = figure2.enough(pick(rows, K=K, n=n, N=N), method, measure, bound)
            runs = max(row["count"] for row in known.values() if row)
            lines.append(
                [
                    LABELS[method],
                    f"{N:,}",
                    str(K),
                    str(n),
                    *means,
                    f"below {bound:g}: " + ("never" if enough is None else str(enough)),
                    str(runs),
                ]
            )
    return table(
        [
            "decoder",
            "N",
            "K",
            "n",
            *(f"m = {ratio}Kn" for ratio in ratios),
            "from m / (Kn)",
            "runs",
        ],
        lines,
    )


def figure3_table(read: Read) -> str:
    """Return SSE / N and adjusted Rand index, the paper's in brackets."""
    rows = read(LEVEL, "figure3")
    lines = []
    for i, N in enumerate(SIZES):
        for method in LABELS:
            for replicates in (1, 5):
                row = first(rows, N=N, method=method, replicates=replicates)
                if row is None:
                    continue
                line = [f"{N:,}", LABELS[method], str(replicates)]
                for measure, paper in (("sse", FIGURE_3_SSE), ("ari", FIGURE_3_ARI)):
                    theirs = paper.get((method, replicates))
                    line += [
                        spread(row, measure),
                        "{:.3f} ± {:.3f}".format(*theirs[i]) if theirs else "",
                    ]
                lines.append([*line, str(row["count"])])
    return table(
        ["N", "method", "replicates", "SSE / N", "the paper's", "ARI", "the paper's", "runs"], lines
    )


def figure4_table(read: Read) -> str:
    """Return relative time, memory and SSE by N and m / (K n)."""
    rows = read(LEVEL, "figure4")
    lines = []
    for row in rows:
        if row["ratio"] is None:
            continue
        one_run = first(rows, N=row["N"], method="lloyd")
        time = FIGURE_4_TIME.get(row["N"])
        sse = FIGURE_4_SSE.get(row["ratio"])
        means = [
            f"{row[measure]['mean']:.3g}"
            for measure in ("relative_time", "relative_whole", "relative_memory")
        ]
        seconds = f"{one_run['seconds']['mean']:.3g} s" if one_run else ""
        paper = ["{:g} to {:g}".format(*found) if found else "" for found in (time, sse)]
        lines.append(
            [
                f"{row['N']:,}",
                str(row["ratio"]),
                LABELS[row["method"]],
                seconds,
                *means,
                spread(row, "relative_sse"),
                *paper,
                str(row["count"]),
            ]
        )
    head = [
        "N",
        "m / (Kn)",
        "decoder",
        "one Lloyd run",
        "time",
        "with sketching",
        "memory",
        "SSE",
        "the paper's time",
        "the paper's SSE",
        "runs",
    ]
    return table(head, lines)


def outlook_table(name: str, label: str, measures: Sequence[str]) -> Callable[[Read], str]:
    """Return the function that makes a table with a line per method and value of `label`."""

    def make(read: Read) -> str:
        rows = read(LEVEL, name)
        lines = [
            [
                LABELS.get(row["method"], row["method"]),
                f"{row['N']:,}",
                *([] if label == "N" else [f"{row[label] or ''}"]),
                *(spread(row, measure) for measure in measures),
                str(row["count"]),
            ]
            for row in rows
        ]
        return table(["method", "N", *([] if label == "N" else [label]), *measures, "runs"], lines)

    return make


TABLES: dict[str, Callable[[Read], str]] = {
    "claims": claims_table,
    "figure1": figure1_table,
    "figure2": figure2_table,
    "figure3": figure3_table,
    "figure4": figure4_table,
    "outlook_projection": outlook_table("outlook_projection", "d", ("relative", "seconds")),
    "outlook_spectral": outlook_table("outlook_spectral", "N", ("sse", "ari")),
    "outlook_kernel": outlook_table("outlook_kernel", "D", ("ari",)),
}


def filled(text: str, read: Read = read_summary) -> str:
    """Return the document with every table rewritten."""

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        if name == "claims":
            written = TABLES[name](read)
        elif read(LEVEL, name):
            plot = f"![The plot of {name}](../experiments/results/{LEVEL}/{name}.png)"
            written = f"{TABLES[name](read)}\n\n{plot}"
        else:
            written = "Not run yet."
        return f"<!-- {name} -->\n{written}\n<!-- end -->"

    return re.sub(r"<!-- (\w+) -->\n.*?\n<!-- end -->", fill, text, flags=re.DOTALL)


def main() -> None:
    """Write the tables into the document."""
    DOCUMENT.write_text(filled(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    print(
        f"Written: {DOCUMENT.name}, {len(TABLES)} tables for {len(METHODS)} decoders.",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
