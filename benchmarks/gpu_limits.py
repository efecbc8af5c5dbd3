"""The limits of a GPU, measured: multiply-adds, sines and copies; and how long work on it takes."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

STEPS = 4096
CHAINS = 4096
PROGRAMS = 1056


@triton.jit
def _multiply_adds(out, a, steps, CHAINS: tl.constexpr):
    x = tl.arange(0, CHAINS).to(tl.float32)
    for _ in range(0, steps, 16):
        for _ in tl.static_range(16):
            x = tl.fma(x, a, 1.0)
    tl.store(out + tl.program_id(0) * CHAINS + tl.arange(0, CHAINS), x)


@triton.jit
def _sines(out, a, steps, CHAINS: tl.constexpr):
    x = tl.arange(0, CHAINS).to(tl.float32)
    for _ in range(steps):
        x = tl.inline_asm_elementwise(
            "sin.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    tl.store(out + tl.program_id(0) * CHAINS + tl.arange(0, CHAINS), x * a)


def seconds(work: Callable[[], Any], rounds: int = 5) -> float:
    """Return the median over some rounds, by the clock of this process, after a first call."""
    work()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


def limits(quick: bool) -> dict[str, float]:
    """Return multiply-adds and sines per second, and bytes per second: within the GPU (read and
    written), and from the CPU to it.
    """
    out = torch.empty(PROGRAMS * CHAINS, device="cuda")
    steps = STEPS // (16 if quick else 1)
    size = 2**28 if quick else 2**31
    a, b = (torch.ones(size // 4, device="cuda") for _ in range(2))
    pinned = torch.ones(2**28 // 4, pin_memory=True)
    operations = PROGRAMS * CHAINS * steps
    return {
        "multiply-adds": operations
        / seconds(lambda: _multiply_adds[(PROGRAMS,)](out, 0.5, steps, CHAINS=CHAINS)),
        "sines": operations
        / 8
        / seconds(lambda: _sines[(PROGRAMS,)](out, 0.5, steps // 8, CHAINS=CHAINS)),
        "copy": 2 * size / seconds(lambda: b.copy_(a)),
        "from the CPU": 2**28 / seconds(lambda: a[: 2**26].copy_(pinned, non_blocking=True)),
    }


def staged_copy(X: np.ndarray, rows: int, threads: int = 12) -> float:
    """Return bytes per second from ordinary memory to the GPU, by threads with pinned buffers."""
    spare = [
        (torch.empty((rows, X.shape[1]), pin_memory=True), torch.cuda.Stream())
        for _ in range(threads)
    ]
    there = torch.empty((threads, rows, X.shape[1]), device="cuda")

    def copy(block: np.ndarray) -> None:
        own = spare.pop()
        with torch.cuda.stream(own[1]):
            np.copyto(own[0][: len(block)].numpy(), block)
            there[len(spare)][: len(block)].copy_(own[0][: len(block)], non_blocking=True)
            own[1].synchronize()
        spare.append(own)

    blocks = [X[start : start + rows] for start in range(0, len(X), rows)]
    with ThreadPoolExecutor(threads) as executor:
        return X.nbytes / seconds(lambda: list(executor.map(copy, blocks)), 3)
