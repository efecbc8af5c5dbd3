"""How fast rows are sketched, in pairs of (row, frequency) a second: against the machine's limit, NumPy, torch and pycle, in one run.

The limit is what `probe.py` reaches. A pair counts as n + 16 multiply-adds: n for its phase, 16 for cosine, sine and their sums. Contenders
take turns, many short ones, and each keeps its best. With one thread the kernel and the probe are timed by the processor time of their
thread, so that other programs disturb little; everything else is timed by the clock.

Every rival gets the same number of threads: ours share out blocks of rows; NumPy's rows are cut into one part a thread, each thread working
through its part in chunks (BLAS at one thread in each, since cos and sin do not use BLAS threads); torch uses its own threads; pycle has
none, so BLAS gets them.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import ckm
from ckm.kernels import load_kernel
from common import Target, console, options, peer, report, show
from probe import Probe
from statistics_cost import without_statistics

M = 1000
PER_PAIR = 16  # multiply-adds of a pair besides the n of its phase
GRID_N, GRID_M = (2, 10, 64, 128), (100, 1000, 10_000)
BLOCK = 16384  # rows that a kernel is given at a time
CHUNK = 64  # rows: the fastest of 32 to 16384 for NumPy, since its two buffers of 64 x 1000 float32 stay in the cache
BIG_CHUNK = 16384
SHARE, THREADS, EXTRA = 0.7, 1.8, 0.15  # promised: of the limit, from a second thread, and for bounds and moments
# Promised at n = 10. The usual way to bound NumPy's memory is chunks of 16384 rows; 64 rows are the fastest NumPy can be made.
RIVAL_TARGETS = {"NumPy, 16384-row chunks": 12, "NumPy, 64-row chunks": 8, "pycle": 100}

LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "from last to first": lambda X: X[::-1].copy()[::-1],
}


def rows_of(count: int, n: int, dtype: Any = np.float32) -> np.ndarray:
    return ckm.datasets.gaussian_mixture(count, 10, n, dtype=np.float32, random_state=0).rows.astype(dtype, copy=False)


def block_rows(n: int, m: int) -> int:
    """A whole block, or as much of one as takes a few hundredths of a second."""
    return int(min(BLOCK, max(1024, 2**31 // (m * (n + PER_PAIR)) // 64 * 64)))


def take_turns(works: dict[Any, Callable[[], Any]], probe: Probe, seconds: float) -> tuple[dict[Any, float], float]:
    """The least processor time of each work, and the probe's best speed, over turns of all of them.

    The probe's turns are as long as the works': the longer a turn, the less likely it is that nothing disturbs it.
    """
    best, limit, began = {name: thread_seconds(work) for name, work in works.items()}, 0.0, time.perf_counter()
    while time.perf_counter() - began < seconds or not limit:
        for name, work in works.items():
            limit = max(limit, probe.alone(best[name]))
            best[name] = min(best[name], thread_seconds(work))
    return best, limit


def thread_seconds(work: Callable[[], Any]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def against_limit(probe: Probe, seconds: float) -> list[dict]:
    """The kernel's share of the limit for every size and type."""
    tally, rows = load_kernel("numba"), []
    for n in GRID_N:
        for m in GRID_M:
            frequencies, count = ckm.draw_frequencies(m, n, seed=0), block_rows(n, m)
            X = rows_of(count, n)
            works = {kind: partial(tally, frequencies, X.astype(kind), None) for kind in ("float32", "float64")}
            best, limit = take_turns(works, probe, seconds)
            rows += [size_of(n, m, count, limit, best[kind]) | {"dtype": kind} for kind in works]
    return rows


def wall_seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def size_of(n: int, m: int, count: int, limit: float, elapsed: float) -> dict:
    pairs = count * m / elapsed
    return {"n": n, "m": m, "rows": count, "pairs_per_s": pairs, "limit": limit, "share_of_limit": pairs * (n + PER_PAIR) / limit}


def layouts(probe: Probe, seconds: float) -> list[dict]:
    """The kernel's share of the limit for rows that lie otherwise in memory, and weighted."""
    tally, rows = load_kernel("numba"), []
    for n in (10, 64):
        frequencies, count = ckm.draw_frequencies(M, n, seed=0), block_rows(n, M)
        X, weights = rows_of(count, n), np.random.default_rng(0).uniform(0.1, 3, size=count)
        works = {name: partial(tally, frequencies, lay(X), None) for name, lay in LAYOUTS.items()}
        best, limit = take_turns(works | {"C, weighted": partial(tally, frequencies, X, weights)}, probe, seconds)
        rows += [size_of(n, M, count, limit, elapsed) | {"layout": name} for name, elapsed in best.items()]
    return rows


def statistics_cost(probe: Probe, seconds: float) -> list[dict]:
    """How much longer the compiled pass takes than one without bounds and moments."""
    rows = []
    for n in GRID_N:
        for m in GRID_M:
            with_them, without = without_statistics(ckm.draw_frequencies(m, n, seed=0), rows_of(block_rows(n, m), n))
            best, _ = take_turns({"with": with_them, "without": without}, probe, seconds)
            rows.append({"n": n, "m": m, "extra": best["with"] / best["without"] - 1})
    return rows


def threads(probe: Probe, rounds: int, quick: bool) -> list[dict]:
    """One thread and two, of ckm.sketch and of the probe, by the clock."""
    rows = []
    for n in (10, 64):
        frequencies, X = ckm.draw_frequencies(M, n, seed=0), rows_of((4 if quick else 8) * BLOCK, n)
        best = {count: wall_seconds(partial(ckm.sketch, X, like=frequencies, n_jobs=count)) for count in (1, 2)}
        limit = dict.fromkeys(best, 0.0)
        for _ in range(4 * rounds):
            for count in best:
                limit[count] = max(limit[count], probe.together(count, best[count]))
                best[count] = min(best[count], wall_seconds(partial(ckm.sketch, X, like=frequencies, n_jobs=count)))
        for count, elapsed in best.items():
            own = size_of(n, M, len(X), limit[count], elapsed)
            speedup, limits_speedup = best[1] / elapsed, limit[count] / limit[1]
            rows.append(own | {"threads": count, "over_one_thread": speedup, "limit_over_one_thread": limits_speedup})
    return rows


@dataclass(frozen=True)
class Contender:
    """A way to sketch, (X, frequencies, threads) to z, and how many rows to time it on."""

    name: str
    sketch: Callable[[np.ndarray, ckm.Frequencies, int], np.ndarray]
    rows: int
    blas_threads: bool = False
    dtype: type = np.float32


def ours(kernel: str, X: np.ndarray, frequencies: ckm.Frequencies, threads: int) -> np.ndarray:
    return ckm.sketch(X, like=frequencies, kernel=kernel, n_jobs=threads).z


def numpy_float32(chunk: int, X: np.ndarray, frequencies: ckm.Frequencies, threads: int) -> np.ndarray:
    """Chunks of rows: one matrix product, cos, sin and sums in float32, buffers reused; totals in float64."""
    turned = np.ascontiguousarray(frequencies.omega.T, np.float32)

    def part(rows: np.ndarray) -> np.ndarray:
        phases, cosines = np.empty((2, chunk, frequencies.m), np.float32)
        ones, total = np.ones(chunk, np.float32), np.zeros((2, frequencies.m))
        for start in range(0, len(rows), chunk):
            block = rows[start : start + chunk]
            b = len(block)
            np.matmul(block, turned, out=phases[:b])
            total[0] += ones[:b] @ np.cos(phases[:b], out=cosines[:b])
            total[1] += ones[:b] @ np.sin(phases[:b], out=phases[:b])
        return total

    with ThreadPoolExecutor(threads) as executor:
        cosines, sines = sum(executor.map(part, np.array_split(X, threads)))
    return (cosines - 1j * sines) / len(X)


def torch_float32(torch: Any, X: np.ndarray, frequencies: ckm.Frequencies, threads: int) -> np.ndarray:
    """As NumPy's large chunks, on torch's CPU threads."""
    torch.set_num_threads(threads)
    omega, total = (
        torch.from_numpy(np.ascontiguousarray(frequencies.omega.T, np.float32)),
        torch.zeros(2, frequencies.m, dtype=torch.float64),
    )
    for rows in torch.from_numpy(X).split(BIG_CHUNK):
        phases = rows @ omega
        total += torch.stack([torch.cos(phases).sum(dim=0), torch.sin(phases).sum(dim=0)])
    cosines, sines = total.numpy()
    return (cosines - 1j * sines) / len(X)


def contenders(quick: bool) -> list[Contender]:
    block = BLOCK // 2 if quick else BLOCK  # whole blocks for each thread, since our runner shares out 16384 rows at a time
    found = [
        Contender("ckm numba", partial(ours, "numba"), 16 * block),
        Contender("ckm reference", partial(ours, "reference"), 4 * block, dtype=np.float64),
        Contender("NumPy, 64-row chunks", partial(numpy_float32, CHUNK), 8 * block),
        Contender("NumPy, 16384-row chunks", partial(numpy_float32, BIG_CHUNK), 4 * block),
    ]
    if modules := peer("torch"):
        found.append(Contender("torch CPU, 16384-row chunks", partial(torch_float32, *modules), 4 * block))
    if modules := peer("pycle.sketching"):
        (pycle,) = modules

        def pycle_sketch(X: np.ndarray, frequencies: ckm.Frequencies, threads: int) -> np.ndarray:
            features = pycle.SimpleFeatureMap("complexExponential", frequencies.omega.T)
            return np.conj(pycle.computeSketch(X, features))  # pycle's sign is +i

        found.append(Contender("pycle", pycle_sketch, block, blas_threads=True, dtype=np.float64))
    return found


def oracle(X: np.ndarray, frequencies: ckm.Frequencies) -> np.ndarray:
    """Equation (3) in float64."""
    total = np.zeros(frequencies.m, complex)
    for rows in np.array_split(X.astype(np.float64), max(1, len(X) // 1024)):
        total += np.exp(-1j * (rows @ frequencies.omega.T)).sum(axis=0)
    return total / len(X)


def measure(n: int, threads: int, rounds: int, rivals: list[Contender]) -> list[dict]:
    """Every contender's best rate over `rounds` turns, and its error, in dimension n."""
    X = rows_of(max(c.rows for c in rivals), n)
    frequencies = ckm.draw_frequencies(M, n, seed=0)
    inputs = {c.name: X[: c.rows].astype(c.dtype, copy=False) for c in rivals}
    check = X[: 2**14]
    truth = oracle(check, frequencies)
    best, error = {c.name: np.inf for c in rivals}, {}
    for c in rivals:  # also warms up: compiled code is loaded here
        error[c.name] = float(np.abs(c.sketch(check.astype(c.dtype), frequencies, threads) - truth).max())
    for _ in range(rounds):
        for c in rivals:
            with threadpool_limits(threads if c.blas_threads else 1):
                best[c.name] = min(best[c.name], wall_seconds(partial(c.sketch, inputs[c.name], frequencies, threads)))
    rates = {c.name: c.rows * M / best[c.name] for c in rivals}
    return [
        {
            "n": n,
            "threads": threads,
            "contender": c.name,
            "pairs_per_s": rates[c.name],
            "ckm_over_it": rates["ckm numba"] / rates[c.name],
            "max_error": error[c.name],
        }
        for c in rivals
    ]


def smallest(what: str, bound: float, rows: list[dict], label: Callable[[dict], str]) -> Target:
    """The promise that the smallest share of the limit is at least `bound`; it says where that is."""
    least = min(rows, key=lambda r: r["share_of_limit"])
    missed = sum(r["share_of_limit"] < bound for r in rows)
    return Target(f"{what} ({label(least)}{f'; {missed} of {len(rows)} miss' if missed else ''})", bound, least["share_of_limit"])


def targets(found: dict[str, list[dict]]) -> list[Target]:
    grid, laid, cost, rivals = found["against_limit"], found["layouts"], found["statistics_cost"], found["rivals"]
    shares = [r for r in grid if r["m"] == M and r["n"] in (10, 64)]
    plain = [r for r in laid if "weighted" not in r["layout"]]
    most = max(cost, key=lambda r: r["extra"])
    at_thousand = max((r for r in cost if r["m"] == M and r["n"] in (10, 64)), key=lambda r: r["extra"])
    rates = {(r["contender"], r["threads"]): r["ckm_over_it"] for r in rivals if r["n"] == 10}
    return [
        *(Target(f"share of the limit, n = {r['n']}, m = {M}, {r['dtype']}", SHARE, r["share_of_limit"]) for r in shares),
        smallest("smallest share of the limit", SHARE, grid, lambda r: f"n = {r['n']}, m = {r['m']}, {r['dtype']}"),
        smallest(f"the same, whatever the layout, m = {M}", SHARE, plain, lambda r: f"n = {r['n']}, {r['layout']}"),
        *(Target(f"two threads / one, n = {r['n']}", THREADS, r["over_one_thread"]) for r in found["threads"] if r["threads"] == 2),
        Target(f"extra for bounds and moments, m = {M} (n = {at_thousand['n']})", EXTRA, at_thousand["extra"], at_most=True),
        Target(f"the same, largest (n = {most['n']}, m = {most['m']})", EXTRA, most["extra"], at_most=True),
        *(
            Target(f"ckm numba / {name}, n = 10, threads: {count}", target, rates.get((name, count)))
            for name, target in RIVAL_TARGETS.items()
            for count in (1, 2)
        ),
    ]


def show_all(found: dict[str, list[dict]]) -> None:
    show(
        "The kernel against the limit, one thread",
        ["n", "m", "type", "Gpairs/s", "limit, G multiply-adds/s", "share"],
        [[r["n"], r["m"], r["dtype"], r["pairs_per_s"] / 1e9, r["limit"] / 1e9, r["share_of_limit"]] for r in found["against_limit"]],
    )
    show(
        f"However rows lie, float32, m = {M}",
        ["layout", "n", "Gpairs/s", "share of the limit"],
        [[r["layout"], r["n"], r["pairs_per_s"] / 1e9, r["share_of_limit"]] for r in found["layouts"]],
    )
    show("Extra for bounds and moments", ["n", "m", "extra"], [[r["n"], r["m"], r["extra"]] for r in found["statistics_cost"]])
    show(
        f"Threads, ckm.sketch, m = {M}",
        ["n", "threads", "Gpairs/s", "/ one thread", "limit / one thread", "share of the limit"],
        [
            [r["n"], r["threads"], r["pairs_per_s"] / 1e9, r["over_one_thread"], r["limit_over_one_thread"], r["share_of_limit"]]
            for r in found["threads"]
        ],
    )
    show(
        f"Sketching, m = {M}",
        ["contender", "n", "threads", "Gpairs/s", "ckm numba / it", "max error of z"],
        [[r["contender"], r["n"], r["threads"], r["pairs_per_s"] / 1e9, r["ckm_over_it"], r["max_error"]] for r in found["rivals"]],
    )


def main() -> None:
    arguments = options("Measure how fast rows are sketched: against the machine's limit, chunked NumPy, torch and pycle.").parse_args()
    quick, probe, rivals = arguments.quick, Probe(), contenders(arguments.quick)
    rounds, seconds = (2, 0.2) if quick else (5, 2.0)
    console.print(f"The limit: {probe.shape[1]} accumulators of {32 * probe.shape[0]} bits.")
    found = {
        "against_limit": against_limit(probe, seconds),
        "layouts": layouts(probe, 2 * seconds),
        "statistics_cost": statistics_cost(probe, seconds / 2),
        "threads": threads(probe, rounds, quick),
        "rivals": [row for n in (10, 2, 64) for count in (1, 2) for row in measure(n, count, rounds, rivals)],
    }
    show_all(found)
    settings = {"m": M, "rounds": rounds, "seconds": seconds, "chunk": CHUNK, "large_chunk": BIG_CHUNK, "probe": list(probe.shape)}
    report("kernel", quick, settings, found, targets(found))


if __name__ == "__main__":
    main()
