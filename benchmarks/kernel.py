"""How fast rows are sketched, in pairs of (row, frequency) per second: against the machine's limit,
plain numba loops, NumPy, torch and pycle, in one run.

The limit is what `probe.py` reaches. A pair counts as n + 16 multiply-adds: n for its phase, 16 for
cosine, sine and their sums. Contenders take turns, many short ones, and each keeps its best. One
thread is timed by its processor time, which other programs disturb little. Two threads are timed by
the clock, which is meaningful on an idle machine only.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import ckm
from benchmarks.harness import Target, console, options, report, show
from benchmarks.kernel_rivals import (
    BIG_CHUNK,
    BLOCK,
    CHUNK,
    M,
    contenders,
    measure,
    rows_of,
    seconds_of,
)
from benchmarks.plain_loops import dense_sums, structured_sums
from benchmarks.probe import Probe
from benchmarks.statistics_cost import without_statistics
from ckm._kernels import load_kernel

PER_PAIR = 16  # multiply-adds of a pair besides the n of its phase
GRID_N, GRID_M = (2, 10, 64, 128), (100, 1000, 10_000)
# sizes at which generated vectors are compared with plain loops
PLAIN_N = (2, 10, 64)
PLAIN_STRUCTURED_N = (64, 256, 1000)
PLAIN_M = (100, 1000)
SHARE = 0.7  # target: the kernel's share of the limit
THREADS = 1.8  # target: two threads over one
EXTRA = 0.15  # target: extra time for bounds and moments, at most
# Targets at n = 10. Large chunks are how one would write it in NumPy; chunks of 64 rows with reused
# buffers are the fastest that NumPy can be made.
RIVAL_TARGETS = {"NumPy, 16384-row chunks": 12, "NumPy, 64-row chunks": 8, "pycle": 100}

LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "from last to first": lambda X: X[::-1].copy()[::-1],
}


def block_rows(n: int, m: int) -> int:
    """A whole block, or as much of one as takes a few hundredths of a second."""
    return int(min(BLOCK, max(1024, 2**31 // (m * (n + PER_PAIR)) // 64 * 64)))


def take_turns(
    works: dict[Any, Callable[[], Any]], probe: Probe, seconds: float
) -> tuple[dict[Any, float], float]:
    """The least processor time of each work, and the probe's best speed, over turns that take about
    so many seconds of processor time.

    The probe's turns are as long as the works': the longer a turn, the less likely it is that
    nothing disturbs it.
    """
    best = {name: seconds_of(work, 1) for name, work in works.items()}
    limit = 0.0
    began = time.process_time()
    while time.process_time() - began < seconds or not limit:
        for name, work in works.items():
            limit = max(limit, probe.alone(best[name]))
            best[name] = min(best[name], seconds_of(work, 1))
    return best, limit


def against_limit(probe: Probe, seconds: float) -> list[dict]:
    """The kernel's share of the limit for every size and type."""
    tally, rows = load_kernel("cpu").tally, []
    for n in GRID_N:
        for m in GRID_M:
            frequencies, count = ckm.draw_frequencies(m, n, seed=0), block_rows(n, m)
            X = rows_of(count, n)
            works = {
                kind: partial(tally, frequencies, X.astype(kind), None)
                for kind in ("float32", "float64")
            }
            best, limit = take_turns(works, probe, seconds)
            rows += [size_of(n, m, count, limit, best[kind]) | {"dtype": kind} for kind in works]
    return rows


def size_of(n: int, m: int, count: int, limit: float, elapsed: float) -> dict:
    pairs = count * m / elapsed
    return {
        "n": n,
        "m": m,
        "rows": count,
        "pairs_per_s": pairs,
        "limit": limit,
        "share_of_limit": pairs * (n + PER_PAIR) / limit,
    }


def layouts(probe: Probe, seconds: float) -> list[dict]:
    """The kernel's share of the limit for rows that lie otherwise in memory, and weighted."""
    tally, rows = load_kernel("cpu").tally, []
    for n in (10, 64):
        frequencies, count = ckm.draw_frequencies(M, n, seed=0), block_rows(n, M)
        X, weights = rows_of(count, n), np.random.default_rng(0).uniform(0.1, 3, size=count)
        works = {name: partial(tally, frequencies, lay(X), None) for name, lay in LAYOUTS.items()}
        best, limit = take_turns(
            works | {"C, weighted": partial(tally, frequencies, X, weights)}, probe, seconds
        )
        rows += [
            size_of(n, M, count, limit, elapsed) | {"layout": name}
            for name, elapsed in best.items()
        ]
    return rows


def vectors_over_plain_loops(probe: Probe, seconds: float) -> list[dict]:
    """How many times as fast generated vectors are as plain `@njit` loops with the same sums."""
    tally = load_kernel("cpu").tally
    sizes = [(dense_sums, "multiscale", n) for n in PLAIN_N]
    sizes += [(structured_sums, "structured", n) for n in PLAIN_STRUCTURED_N]
    rows = []
    for plain, distribution, n in sizes:
        for m in PLAIN_M:
            frequencies = ckm.draw_frequencies(m, n, distribution=distribution, seed=0)
            X = rows_of(block_rows(n, m), n)
            if not np.array_equal(plain(frequencies, X), tally(frequencies, X).sums):
                raise AssertionError(f"plain loops differ: {distribution}, n = {n}, m = {m}")
            works = {
                "vectors": partial(tally, frequencies, X),
                "plain loops": partial(plain, frequencies, X),
            }
            best, _ = take_turns(works, probe, seconds)
            ratio = best["plain loops"] / best["vectors"]
            rows.append({"distribution": distribution, "n": n, "m": m, "ratio": ratio})
    return rows


def statistics_cost(probe: Probe, seconds: float) -> list[dict]:
    """How much longer the compiled pass takes than one without bounds and moments."""
    rows = []
    for n in GRID_N:
        for m in GRID_M:
            with_them, without = without_statistics(
                ckm.draw_frequencies(m, n, seed=0), rows_of(block_rows(n, m), n)
            )
            best, _ = take_turns({"with": with_them, "without": without}, probe, seconds)
            rows.append({"n": n, "m": m, "extra": best["with"] / best["without"] - 1})
    return rows


def wall_seconds(X: np.ndarray, frequencies: ckm.Frequencies, count: int) -> float:
    began = time.perf_counter()
    ckm.sketch(X, like=frequencies, n_jobs=count)
    return time.perf_counter() - began


def threads(probe: Probe, seconds: float, quick: bool) -> list[dict]:
    """One thread and two, of ckm.sketch and of the probe, by the clock."""
    rows = []
    for n in (10, 64):
        frequencies, X = (
            ckm.draw_frequencies(M, n, seed=0),
            rows_of((8 if quick else 64) * BLOCK, n),
        )
        best = {count: wall_seconds(X, frequencies, count) for count in (1, 2)}
        limit, began = dict.fromkeys(best, 0.0), time.process_time()
        while time.process_time() - began < seconds or not all(limit.values()):
            for count in best:
                limit[count] = max(limit[count], probe.together(count, best[count]))
                best[count] = min(best[count], wall_seconds(X, frequencies, count))
        for count, elapsed in best.items():
            own = size_of(n, M, len(X), limit[count], elapsed)
            speedup, limits_speedup = best[1] / elapsed, limit[count] / limit[1]
            rows.append(
                own
                | {
                    "threads": count,
                    "over_one_thread": speedup,
                    "limit_over_one_thread": limits_speedup,
                }
            )
    return rows


def smallest(what: str, bound: float, rows: list[dict], label: Callable[[dict], str]) -> Target:
    """The target that the smallest share of the limit is at least `bound`, and where it is."""
    least = min(rows, key=lambda r: r["share_of_limit"])
    missed = sum(r["share_of_limit"] < bound for r in rows)
    return Target(
        f"{what} ({label(least)}{f'; {missed} of {len(rows)} miss' if missed else ''})",
        bound,
        least["share_of_limit"],
    )


def targets(found: dict[str, list[dict]]) -> list[Target]:
    grid = found["against_limit"]
    laid = found["layouts"]
    cost = found["statistics_cost"]
    rivals = found["rivals"]
    shares = [r for r in grid if r["m"] == M and r["n"] in (10, 64)]
    plain = [r for r in laid if "weighted" not in r["layout"]]
    most = max(cost, key=lambda r: r["extra"])
    at_thousand = max(
        (r for r in cost if r["m"] == M and r["n"] in (10, 64)), key=lambda r: r["extra"]
    )
    rates = {(r["contender"], r["threads"]): r["ckm_over_it"] for r in rivals if r["n"] == 10}
    return [
        *(
            Target(
                f"share of the limit, n = {r['n']}, m = {M}, {r['dtype']}",
                SHARE,
                r["share_of_limit"],
            )
            for r in shares
        ),
        smallest(
            "smallest share of the limit",
            SHARE,
            grid,
            lambda r: f"n = {r['n']}, m = {r['m']}, {r['dtype']}",
        ),
        smallest(
            f"the same, whatever the layout, m = {M}",
            SHARE,
            plain,
            lambda r: f"n = {r['n']}, {r['layout']}",
        ),
        *(
            Target(f"two threads / one, n = {r['n']}", THREADS, r["over_one_thread"])
            for r in found["threads"]
            if r["threads"] == 2
        ),
        Target(
            f"extra for bounds and moments, m = {M} (n = {at_thousand['n']})",
            EXTRA,
            at_thousand["extra"],
            at_most=True,
        ),
        Target(
            f"the same, largest (n = {most['n']}, m = {most['m']})",
            EXTRA,
            most["extra"],
            at_most=True,
        ),
        *(
            Target(f"ckm / {name}, n = 10, threads: {count}", target, rates.get((name, count)))
            for name, target in RIVAL_TARGETS.items()
            for count in (1, 2)
        ),
    ]


def show_all(found: dict[str, list[dict]]) -> None:
    show(
        "The kernel against the limit, one thread",
        ["n", "m", "type", "Gpairs/s", "limit, G multiply-adds/s", "share"],
        [
            [
                r["n"],
                r["m"],
                r["dtype"],
                r["pairs_per_s"] / 1e9,
                r["limit"] / 1e9,
                r["share_of_limit"],
            ]
            for r in found["against_limit"]
        ],
    )
    show(
        f"However rows lie, float32, m = {M}",
        ["layout", "n", "Gpairs/s", "share of the limit"],
        [
            [r["layout"], r["n"], r["pairs_per_s"] / 1e9, r["share_of_limit"]]
            for r in found["layouts"]
        ],
    )
    show(
        "Extra for bounds and moments",
        ["n", "m", "extra"],
        [[r["n"], r["m"], r["extra"]] for r in found["statistics_cost"]],
    )
    show(
        "Generated vectors (with bounds and moments) over plain @njit loops (without), one thread",
        ["frequencies", "n", "m", "times as fast"],
        [
            [r["distribution"], r["n"], r["m"], r["ratio"]]
            for r in found["vectors_over_plain_loops"]
        ],
    )
    show(
        f"Threads, ckm.sketch, m = {M}",
        ["n", "threads", "Gpairs/s", "/ one thread", "limit / one thread", "share of the limit"],
        [
            [
                r["n"],
                r["threads"],
                r["pairs_per_s"] / 1e9,
                r["over_one_thread"],
                r["limit_over_one_thread"],
                r["share_of_limit"],
            ]
            for r in found["threads"]
        ],
    )
    show(
        f"Sketching, m = {M}",
        ["contender", "n", "threads", "Gpairs/s", "ckm / it", "max error of z"],
        [
            [
                r["contender"],
                r["n"],
                r["threads"],
                r["pairs_per_s"] / 1e9,
                r["ckm_over_it"],
                r["max_error"],
            ]
            for r in found["rivals"]
        ],
    )


def main() -> None:
    arguments = options(
        "Measure how fast rows are sketched: against the machine's limit, plain numba loops, "
        "chunked NumPy, torch and pycle."
    ).parse_args()
    quick = arguments.quick
    probe = Probe()
    rivals = contenders(quick)
    rounds, seconds = (2, 0.2) if quick else (5, 2.0)
    console.print(f"The limit: {probe.shape[1]} accumulators of {32 * probe.shape[0]} bits.")
    found = {
        "against_limit": against_limit(probe, seconds),
        "layouts": layouts(probe, 2 * seconds),
        "statistics_cost": statistics_cost(probe, seconds / 2),
        "vectors_over_plain_loops": vectors_over_plain_loops(probe, seconds / 2),
        "threads": threads(probe, 5 * seconds, quick),
        "rivals": [
            row
            for n in (10, 2, 64)
            for count in (1, 2)
            for row in measure(n, count, rounds, rivals)
        ],
    }
    show_all(found)
    settings = {
        "m": M,
        "rounds": rounds,
        "seconds": seconds,
        "chunk": CHUNK,
        "large_chunk": BIG_CHUNK,
        "probe": list(probe.shape),
    }
    report("kernel", quick, settings, found, targets(found))


if __name__ == "__main__":
    main()
