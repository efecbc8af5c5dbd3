"""The whole job on data in memory, sketch included, side by side with other libraries: the paper's
Gaussian data, K = n = 10, m = 500, float32.

Each contestant runs in its own process for each N. The process loads the rows, fits a few of them,
so that no time includes imports and compilation, and then fits all of them. Measured are seconds,
the peak of memory beyond what was in use before, and the SSE on all rows relative to
KMeans(n_init=5). "ckm" is `ckm.sketch` and `ckm.decode` without a pool; "ckm fit" is the estimator
with its defaults, labels included as in scikit-learn. Every contestant may use every core.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ckm
from benchmarks.baselines import sse
from benchmarks.contestants import CONTESTANTS, LARGEST, N_FEATURES, K, M
from benchmarks.harness import ROOT, Target, console, options, report, result_path, show

SIZES = (10_000, 100_000, 1_000_000, 5_000_000, 10_000_000)
QUICK_SIZES = (10_000, 50_000)
HEADLINE = 5_000_000  # rows of the main targets
BEYOND_INPUT = 100e6  # bytes


def contest(name: str, path: Path, seed: int, repeats: int) -> dict[str, Any]:
    """Measure one contestant, in its own process: the fastest of `repeats` fits with its parts, the
    peak of memory beyond the input, and the SSE.
    """
    X = np.load(path)
    fit = CONTESTANTS[name].fit
    # pycle compiles nothing, and takes as long for few rows.
    if name != "pycle":
        fit(X[:3000], seed)
    before = _reset_peak()
    runs = []
    for _ in range(repeats):
        began = time.perf_counter()
        fitted = fit(X, seed)
        runs.append((time.perf_counter() - began, fitted))
    beyond = _memory("VmHWM") - before
    seconds, fitted = min(runs, key=lambda run: run[0])
    return {
        "seconds": seconds,
        "parts": fitted.parts,
        "beyond_input": beyond,
        "sse": sse(X, np.asarray(fitted.centroids, np.float64)),
    }


def _reset_peak() -> int:
    """Reset the peak of memory (Linux), and return the bytes in use."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(field: str) -> int:
    """Return a field of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def measure(name: str, path: Path, seed: int, repeats: int) -> dict[str, Any] | None:
    """Return the result of `contest`; None, with a printed sentence, if the contestant is not
    installed or fails.
    """
    command = [
        sys.executable,
        "-m",
        "benchmarks.end_to_end",
        "--contestant",
        name,
        "--rows",
        str(path),
        "--seeds",
        str(seed),
        "--repeats",
        str(repeats),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        console.print(f"{name} is left out: {lines[-1]}", markup=False)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run_all(sizes: Sequence[int], seed: int) -> list[dict[str, Any]]:
    """Run every contestant at every size, the smallest first."""
    runs = []
    absent = set()
    with tempfile.TemporaryDirectory() as folder:
        for n_samples in sizes:
            path = Path(folder) / "rows.npy"
            np.save(
                path,
                ckm.datasets.gaussian_mixture(
                    n_samples, K, N_FEATURES, random_state=seed
                ).rows.astype(np.float32),
            )
            for name, contestant in CONTESTANTS.items():
                if n_samples > contestant.most or name in absent:
                    continue
                found = measure(
                    name, path, seed, repeats=3 if n_samples <= 1_000_000 and name != "pycle" else 1
                )
                if found is None:
                    absent.add(name)
                else:
                    runs.append({"N": n_samples, "contestant": name, **found})
            _show_size(n_samples, [run for run in runs if run["N"] == n_samples])
    return runs


def _show_size(n_samples: int, runs: list[dict[str, Any]]) -> None:
    best = next((run["sse"] for run in runs if run["contestant"] == "KMeans(n_init=5)"), np.nan)
    for run in runs:
        run["relative_sse"] = run["sse"] / best
    ours = next(run["seconds"] for run in runs if run["contestant"] == "ckm")
    show(
        f"N = {n_samples:,}, K = n = {K}, m = {M}, float32; SSE relative to KMeans(n_init=5)",
        ["contestant", "seconds", "/ ckm", "of it decode", "MB beyond the input", "relative SSE"],
        [
            [
                r["contestant"],
                r["seconds"],
                r["seconds"] / ours,
                r["parts"].get("decode"),
                r["beyond_input"] / 1e6,
                f"{r['relative_sse']:.4f}",
            ]
            for r in runs
        ],
    )


class Findings:
    """Figures by contestant and N."""

    def __init__(self, runs: list[dict[str, Any]]) -> None:
        self.runs = {(run["contestant"], run["N"]): run for run in runs}

    def value(self, name: str, n_samples: int, what: str = "seconds") -> float | None:
        """Return one figure, or None if it was not measured."""
        run = self.runs.get((name, n_samples))
        return None if run is None else run["parts"].get(what, run.get(what))

    def ratio(self, over: tuple[str, str], under: tuple[str, str], n_samples: int) -> float | None:
        """Return one figure over another at the same N."""
        a, b = (self.value(name, n_samples, what) for name, what in (over, under))
        return None if a is None or b is None else a / b

    def line(self, name: str) -> tuple[list[int], list[float]]:
        """Return N and seconds of one contestant."""
        points = sorted((n, run["seconds"]) for (who, n), run in self.runs.items() if who == name)
        return [n for n, _ in points], [s for _, s in points]

    def break_even(self, rival: str) -> float | None:
        """Return the N above which the whole job is faster than `rival`, interpolated between the
        measured sizes, or None.
        """
        sizes, ours = self.line("ckm")
        theirs = dict(zip(*self.line(rival), strict=True))
        ahead = [
            np.log(theirs[n] / s) if n in theirs else np.nan
            for n, s in zip(sizes, ours, strict=True)
        ]
        if not ahead or not ahead[-1] > 0:
            return None
        first = max((i + 1 for i, a in enumerate(ahead) if not a > 0), default=0)
        if first == 0:
            return float(sizes[0])
        share = -ahead[first - 1] / (ahead[first] - ahead[first - 1])
        return float(
            np.exp(np.log(sizes[first - 1]) + share * np.log(sizes[first] / sizes[first - 1]))
        )

    def targets(self) -> list[Target]:
        """Return the targets; those at sizes that were not run are not measured."""
        at = f"at N = {HEADLINE:.0e}"
        most = f"at N = {LARGEST:.0e}"
        memory = [
            run["beyond_input"] / 1e6 for (name, _), run in self.runs.items() if name == "ckm"
        ]
        return [
            Target(
                f"KMeans(n_init=5) / ckm, {at}",
                10,
                self.ratio(("KMeans(n_init=5)", "seconds"), ("ckm", "seconds"), HEADLINE),
            ),
            Target(
                f"KMeans(n_init=1) / ckm, {at}",
                3,
                self.ratio(("KMeans(n_init=1)", "seconds"), ("ckm", "seconds"), HEADLINE),
            ),
            Target(
                f"SSE of ckm / of KMeans(n_init=5), {at}",
                1.005,
                self.value("ckm", HEADLINE, "relative_sse"),
                at_most=True,
            ),
            Target(
                f"KMeans(n_init=5) / ckm given the sketch, {most}",
                150,
                self.ratio(("KMeans(n_init=5)", "seconds"), ("ckm", "decode"), LARGEST),
            ),
            Target(
                "MB beyond the input, largest of all N",
                BEYOND_INPUT / 1e6,
                max(memory, default=None),
                at_most=True,
            ),
        ]


def exponents(findings: Findings) -> dict[str, float]:
    """Fit seconds ~ N^e for each contestant over the sizes where N dominates."""
    found = {}
    for name in CONTESTANTS:
        sizes, seconds = (np.array(part, float) for part in findings.line(name))
        large = sizes >= 1e5
        if large.sum() >= 2:
            found[name] = float(np.polyfit(np.log(sizes[large]), np.log(seconds[large]), 1)[0])
    return found


def draw(findings: Findings, path: Path) -> None:
    """Draw seconds and relative SSE over N."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for name, contestant in CONTESTANTS.items():
        sizes, seconds = findings.line(name)
        if not sizes:
            continue
        style = {
            "color": contestant.colour,
            "marker": "o",
            "markersize": 4,
            "linewidth": 2.2 if name == "ckm" else 1.2,
        }
        left.loglog(sizes, seconds, label=name, **style)
        right.semilogx(sizes, [findings.value(name, n, "relative_sse") for n in sizes], **style)
    sizes, _ = findings.line("ckm")
    left.loglog(
        sizes,
        [findings.value("ckm", n, "decode") for n in sizes],
        ":",
        color=CONTESTANTS["ckm"].colour,
        label="ckm, given the sketch",
    )
    left.set_ylabel("seconds")
    right.set_ylabel("SSE relative to KMeans(n_init=5)")
    right.set_ylim(0.995, 1.1)
    for axes in (left, right):
        axes.set_xlabel("N")
        axes.grid(color="#dddddd", linewidth=0.5)
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=120)


def parse() -> argparse.Namespace:
    parser = options("Measure the whole job against other libraries.", first_seed=100)
    parser.add_argument(
        "--sizes",
        type=lambda text: [int(float(word)) for word in text.split(",")],
        help="numbers of rows, comma separated",
    )
    for name in ("--contestant", "--rows"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=1, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    if arguments.contestant:
        print(
            json.dumps(
                contest(
                    arguments.contestant, Path(arguments.rows), arguments.seeds, arguments.repeats
                )
            )
        )
        return
    runs = run_all(arguments.sizes or (QUICK_SIZES if arguments.quick else SIZES), arguments.seeds)
    findings = Findings(runs)
    powers = exponents(findings)
    even = findings.break_even("KMeans(n_init=1)")
    show(
        "Growth with N from 1e5 rows: seconds ~ N^e",
        ["contestant", "e"],
        [[name, f"{e:.2f}"] for name, e in powers.items()],
    )
    console.print(
        "The whole job is faster than one k-means run "
        + (f"from N = {even:,.0f} on." if even else "at none of these sizes.")
    )
    settings = {"K": K, "n": N_FEATURES, "m": M, "seed": arguments.seeds}
    report(
        "end_to_end",
        arguments.quick,
        settings,
        {"runs": runs, "exponents": powers, "break_even": even},
        findings.targets(),
    )
    draw(findings, result_path("end_to_end", arguments.quick, ".png"))


if __name__ == "__main__":
    main()
