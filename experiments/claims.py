"""The paper's claims beside our measurements: a table, printed and written to
results/LEVEL/claims.json.

A claim that a quick run does not cover is judged by the summaries of the full run in the
repository, and marked so.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks.harness import console, environment, show
from experiments import figure2
from experiments.experiment import Row, one, options, pick, read_summary, result_path, write_json
from experiments.methods import STRATEGIES
from experiments.paper import FIGURE_1, FIGURE_2_RATIO, FIGURE_3_ARI, FIGURE_3_SSE, SIZES, SPEED_UP

ALIKE = 1.1  # "approximately the same SSE"
LOW_N = 4  # the paper excepts a deviation at low n
LARGE_N = 10_000_000
M_RATIO = 10
REPLICATES = 5


class Verdict(NamedTuple):
    """What was measured, in words, and whether the claim holds."""

    measured: str
    holds: bool


class Claim(NamedTuple):
    """A claim of the paper, the figure it is judged by, and the function that judges it from that
    figure's rows for one of the decoders.
    """

    claim: str
    paper: str
    figure: str
    judge: Callable[[Sequence[Row], str], Verdict]  # raises LookupError where rows are missing
    every_size: bool = False  # about all sizes: judged by the run that has more of them


def initialisation(data: str) -> Callable[[Sequence[Row], str], Verdict]:
    """Return the judge of how much the mean SSE depends on the strategy: largest over smallest."""

    def judge(rows: Sequence[Row], method: str) -> Verdict:
        known = pick(rows, data=data)
        shown = pick(known, N=max((row["N"] for row in known), default=0))
        spread = _spread(shown, method)
        lloyds = _spread(shown, "lloyd")
        holds = spread < lloyds if data == "mnist" else spread <= ALIKE
        return Verdict(f"{spread:.3f} (Lloyd {lloyds:.3f})", holds)

    return judge


def _spread(rows: Sequence[Row], method: str) -> float:
    means = [
        row["sse"]["mean"]
        for strategy in STRATEGIES
        for row in pick(rows, method=method, strategy=strategy)
    ]
    if len(means) < 2:
        raise LookupError(method)
    return max(means) / min(means)


def frequencies(rows: Sequence[Row], method: str) -> Verdict:
    """Find the largest m / (K n) that any K and n needs for a mean relative SSE below two."""
    cells = [cell for cell in figure2.all_cells(rows) if cell[1] >= LOW_N]
    if not cells:
        raise LookupError("no cells")
    needs = {
        (K, n, N): figure2.enough(pick(rows, K=K, n=n, N=N), method, "relative", 2.0)
        for K, n, N in cells
    }
    never = [cell for cell, need in needs.items() if need is None]
    if never:
        return Verdict(f"not reached at K, n, N = {never[0]}", False)
    most = max(need for need in needs.values() if need)
    return Verdict(f"{most} at most, {len(cells)} cells", most <= FIGURE_2_RATIO)


def strict_frequencies(rows: Sequence[Row], method: str) -> Verdict:
    """Find the largest mean at m = 5Kn, relative to the best of three k-means++ runs."""
    shown = pick(rows, method=method, ratio=FIGURE_2_RATIO)
    if not shown:
        raise LookupError(method)
    worst = max(shown, key=lambda row: row["to_best"]["mean"])
    value = worst["to_best"]["mean"]
    return Verdict(
        f"{value:.3f} (at most, K = {worst['K']}, n = {worst['n']})",
        value <= figure2.BELOW["density"][1],
    )


def better_classes(rows: Sequence[Row], method: str) -> Verdict:
    """Find the smallest lead in adjusted Rand index over Lloyd with as many replicates."""
    leads = {
        (N, r): _mean(rows, N, method, r, "ari") - _mean(rows, N, "lloyd", r, "ari")
        for N in sizes(rows)
        for r in (1, REPLICATES)
    }
    N, replicates = min(leads, key=lambda at: leads[at])
    return Verdict(
        f"{leads[N, replicates]:+.3f} (least: N = {N:,}, {replicates} rep.; {_said(rows)})",
        leads[N, replicates] > 0,
    )


def few_replicates(rows: Sequence[Row], method: str) -> Verdict:
    """Compare the SSE of one replicate with that of five."""
    lost = {
        N: _mean(rows, N, method, 1, "sse") / _mean(rows, N, method, REPLICATES, "sse")
        for N in sizes(rows)
    }
    lloyds = {
        N: _mean(rows, N, "lloyd", 1, "sse") / _mean(rows, N, "lloyd", REPLICATES, "sse")
        for N in sizes(rows)
    }
    worst = max(lost, key=lambda N: lost[N])
    return Verdict(
        f"{lost[worst]:.2f} (Lloyd {lloyds[worst]:.2f}; N = {worst:,})",
        all(lost[N] < lloyds[N] for N in lost),
    )


def improving(rows: Sequence[Row], method: str) -> Verdict:
    """Compare the adjusted Rand index and its deviation at the smallest and the largest N, with one
    replicate and the same m.
    """
    known = sizes(rows)
    if len(known) < 2:
        raise LookupError("one size")
    first, last = (
        one(rows, N=N, method=method, replicates=1)["ari"] for N in (known[0], known[-1])
    )
    small = f"{first['mean']:.3f} ± {first['std']:.3f}"
    large = f"{last['mean']:.3f} ± {last['std']:.3f}"
    text = f"{small} to {large} ({known[-1]:,})"
    return Verdict(text, last["mean"] > first["mean"] and last["std"] <= first["std"])


def speed(rows: Sequence[Row], method: str) -> Verdict:
    """Compare one decoding, given the sketch, with five runs of Lloyd at 10^7 rows.

    Each Lloyd run is assumed to last as long as the first.
    """
    row = one(rows, N=LARGE_N, method=method, ratio=M_RATIO)
    given = REPLICATES / row["relative_time"]["mean"]
    whole = REPLICATES / row["relative_whole"]["mean"]
    return Verdict(f"{given:.0f} times (with sketching {whole:.0f} times)", given >= SPEED_UP)


def _mean(rows: Sequence[Row], N: int, method: str, replicates: int, measure: str) -> float:
    return float(one(rows, N=N, method=method, replicates=replicates)[measure]["mean"])


def sizes(rows: Sequence[Row]) -> list[int]:
    """Return the numbers of images that were tried."""
    known = [N for N in SIZES if pick(rows, N=N)]
    if not known:
        raise LookupError("no sizes")
    return known


def _said(rows: Sequence[Row]) -> str:
    known = sizes(rows)
    return f"{len(known)} of {len(SIZES)} sizes"


def _paper_spreads(data: str) -> str:
    ours = max(FIGURE_1[data, "clompr"]) / min(FIGURE_1[data, "clompr"])
    lloyds = max(FIGURE_1[data, "lloyd"]) / min(FIGURE_1[data, "lloyd"])
    return f"{ours:.3f} (Lloyd {lloyds:.3f})"


def _paper_lead() -> float:
    return min(
        FIGURE_3_ARI["clompr", r][i][0] - FIGURE_3_ARI["lloyd", r][i][0]
        for r in (1, REPLICATES)
        for i in range(len(SIZES))
    )


def _paper_lost(method: str) -> float:
    return max(
        FIGURE_3_SSE[method, 1][i][0] / FIGURE_3_SSE[method, REPLICATES][i][0]
        for i in range(len(SIZES))
    )


CLAIMS = (
    Claim(
        "Starts hardly matter, Gaussian: largest over smallest mean SSE of Range, Sample, K++ "
        f"≤ {ALIKE}",
        _paper_spreads("gaussian"),
        "figure1",
        initialisation("gaussian"),
    ),
    Claim(
        "… MNIST: less than for Lloyd",
        _paper_spreads("mnist"),
        "figure1",
        initialisation("mnist"),
    ),
    Claim(
        f"m ≈ 5Kn suffices for twice Lloyd's SSE (n ≥ {LOW_N}): needed m / (Kn) ≤ 5",
        "≈ 5",
        "figure2",
        frequencies,
    ),
    Claim(
        "… not in the paper: SSE at 5Kn ≤ 1.05 of the best of 3 k-means++ (every n)",
        "",
        "figure2",
        strict_frequencies,
    ),
    Claim(
        "Better classes than Lloyd at every size: lead in ARI > 0",
        f"{_paper_lead():+.3f} at least",
        "figure3",
        better_classes,
        True,
    ),
    Claim(
        "Fewer replicates needed: SSE of one over SSE of five, below Lloyd's",
        f"{_paper_lost('clompr'):.2f} (Lloyd {_paper_lost('lloyd'):.2f}) at most",
        "figure3",
        few_replicates,
        True,
    ),
    Claim(
        "Better with more rows at the same m: ARI rises from N = 70,000, its deviation falls",
        "0.916 ± 0.018 to 0.971 ± 0.001",
        "figure3",
        improving,
        True,
    ),
    Claim(
        f"Given the sketch of 10⁷ rows, ≥ {SPEED_UP} times as fast as five Lloyd runs",
        f"up to {SPEED_UP} times",
        "figure4",
        speed,
    ),
)
METHODS = ("clompr", "density")


def judge_all(read: Callable[[str, str], list[Row]], level: str) -> list[Row]:
    """Judge every claim for both decoders, by the rows of `level`, or else of the full run."""
    found = []
    for claim in CLAIMS:
        row: Row = {"claim": claim.claim, "paper": claim.paper, "figure": claim.figure}
        for method in METHODS:
            verdict, source = _verdict(claim, method, read, level)
            row[method] = {
                "measured": verdict and verdict.measured,
                "holds": verdict and verdict.holds,
                "from": source,
            }
        found.append(row)
    return found


def _verdict(
    claim: Claim, method: str, read: Callable[[str, str], list[Row]], level: str
) -> tuple[Verdict | None, str | None]:
    sources = [*dict.fromkeys((level, "full"))]
    if claim.every_size:
        sources.sort(key=lambda source: -len({row["N"] for row in read(source, claim.figure)}))
    for source in sources:
        try:
            return claim.judge(read(source, claim.figure), method), source
        except LookupError:
            continue
    return None, None


def cells(row: Row, level: str) -> list[Any]:
    """Return a line of the printed table."""
    line = [row["claim"], row["paper"]]
    for method in METHODS:
        found = row[method]
        marked = "" if found["from"] in (level, None) else " (from the full run)"
        line += [
            (found["measured"] or "not measured") + marked,
            {True: "yes", False: "NO", None: ""}[found["holds"]],
        ]
    return line


def main() -> None:
    """Print the table and write it."""
    arguments = options("Print the paper's claims beside our measurements.").parse_args()
    level = "full" if arguments.full else "quick"
    rows = judge_all(read_summary, level)
    show(
        "The paper's claims",
        ["claim", "the paper", "its decoder here", "holds", "ours", "holds"],
        [cells(row, level) for row in rows],
    )
    write_json(
        result_path(level, "claims"),
        {"experiment": "claims", "environment": environment(), "rows": rows},
    )
    if any(row[method]["holds"] is None for row in rows for method in METHODS):
        console.print(
            "Claims that were not measured need MNIST's images, or the full run "
            "(make reproduce-full)."
        )


if __name__ == "__main__":
    main()
