"""Ways to sketch, ours and others', and their speed on the same rows.

Each gets the same number of threads: ours share blocks of rows; for NumPy and plain numba the rows
are cut into one part per thread (BLAS at one thread in each, since cos and sin do not use BLAS
threads); torch uses its own threads; pycle has none, so BLAS gets them.
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
from benchmarks.harness import peer
from benchmarks.plain_loops import dense_sums

M = 1000
BLOCK = 16384  # rows that our kernels are given at a time
# rows: the fastest of 32 to 16384 for NumPy, since its two buffers of 64 x 1000 float32 stay in the
# cache
CHUNK = 64
BIG_CHUNK = 16384


def rows_of(count: int, n: int, dtype: Any = np.float32) -> np.ndarray:
    return ckm.datasets.gaussian_mixture(
        count, 10, n, dtype=np.float32, random_state=0
    ).rows.astype(dtype, copy=False)


def seconds_of(work: Callable[[], Any], threads: int) -> float:
    """The processor time of one thread, which other programs disturb little; by the clock, that of
    several.
    """
    clock = time.process_time if threads == 1 else time.perf_counter
    began = clock()
    work()
    return clock() - began


@dataclass(frozen=True)
class Contender:
    """A way to sketch, (X, frequencies, threads) to z, and how many rows to time it on."""

    name: str
    sketch: Callable[[np.ndarray, ckm.Frequencies, int], np.ndarray]
    rows: int
    blas_threads: bool = False
    dtype: type = np.float32


def ours(X: np.ndarray, frequencies: ckm.Frequencies, threads: int) -> np.ndarray:
    """The generated vectors, with bounds and moments."""
    return ckm.sketch(X, like=frequencies, device="cpu", n_jobs=threads).z


def numba_plain(X: np.ndarray, frequencies: ckm.Frequencies, threads: int) -> np.ndarray:
    """The same arithmetic as plain loops, without bounds and moments; the same bits."""
    return _in_parts(lambda rows: dense_sums(frequencies, rows) * 2.0**-22, X, threads)


def numpy_plain(X: np.ndarray, frequencies: ckm.Frequencies, threads: int) -> np.ndarray:
    """Large chunks of rows, as one would write it: a matrix product, cos, sin and sums in float32;
    totals in float64.
    """
    turned = np.ascontiguousarray(frequencies.omega.T, np.float32)

    def part(rows: np.ndarray) -> np.ndarray:
        total = np.zeros((2, frequencies.m))
        for start in range(0, len(rows), BIG_CHUNK):
            phases = rows[start : start + BIG_CHUNK] @ turned
            total += np.cos(phases).sum(axis=0), np.sin(phases).sum(axis=0)
        return total

    return _in_parts(part, X, threads)


def numpy_tuned(X: np.ndarray, frequencies: ckm.Frequencies, threads: int) -> np.ndarray:
    """Chunks that stay in the cache, buffers reused, sums by BLAS."""
    turned = np.ascontiguousarray(frequencies.omega.T, np.float32)

    def part(rows: np.ndarray) -> np.ndarray:
        phases, cosines = np.empty((2, CHUNK, frequencies.m), np.float32)
        ones, total = np.ones(CHUNK, np.float32), np.zeros((2, frequencies.m))
        for start in range(0, len(rows), CHUNK):
            block = rows[start : start + CHUNK]
            b = len(block)
            np.matmul(block, turned, out=phases[:b])
            total[0] += ones[:b] @ np.cos(phases[:b], out=cosines[:b])
            total[1] += ones[:b] @ np.sin(phases[:b], out=phases[:b])
        return total

    return _in_parts(part, X, threads)


def _in_parts(part: Callable[[np.ndarray], np.ndarray], X: np.ndarray, threads: int) -> np.ndarray:
    with ThreadPoolExecutor(threads) as executor:
        cosines, sines = sum(executor.map(part, np.array_split(X, threads)))
    return (cosines - 1j * sines) / len(X)


def torch_float32(
    torch: Any, X: np.ndarray, frequencies: ckm.Frequencies, threads: int
) -> np.ndarray:
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
    # whole blocks for each thread, since ours takes blocks of 16384 rows
    block = BLOCK // 2 if quick else BLOCK
    found = [
        Contender("ckm", ours, 64 * block),
        Contender("numba, plain loops", numba_plain, 32 * block),
        Contender("NumPy, 64-row chunks", numpy_tuned, 8 * block),
        Contender("NumPy, 16384-row chunks", numpy_plain, 8 * block),
    ]
    if modules := peer("torch"):
        found.append(
            Contender("torch CPU, 16384-row chunks", partial(torch_float32, *modules), 4 * block)
        )
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
        error[c.name] = float(
            np.abs(c.sketch(check.astype(c.dtype), frequencies, threads) - truth).max()
        )
    for _ in range(rounds):
        for c in rivals:
            with threadpool_limits(threads if c.blas_threads else 1):
                best[c.name] = min(
                    best[c.name],
                    seconds_of(partial(c.sketch, inputs[c.name], frequencies, threads), threads),
                )
    rates = {c.name: c.rows * M / best[c.name] for c in rivals}
    return [
        {
            "n": n,
            "threads": threads,
            "contender": c.name,
            "pairs_per_s": rates[c.name],
            "ckm_over_it": rates["ckm"] / rates[c.name],
            "max_error": error[c.name],
        }
        for c in rivals
    ]
