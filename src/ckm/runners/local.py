"""The local runner: fixed-size blocks over a thread pool, merged in order.

Kernels release the interpreter lock, so threads are all it takes. Blocks do not depend on the number of threads and are merged in the order
of the data, so neither do the results.
"""

import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from ckm.errors import NonFiniteError, ParameterError
from ckm.frequencies import Frequencies
from ckm.kernels import Kernel
from ckm.pool import Pool
from ckm.progress import OnRows, ignore
from ckm.readonly import Array
from ckm.seeding import stream
from ckm.sources.base import Chunk
from ckm.tally import Tally

BLOCK_ROWS = 16384

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Block(NamedTuple):
    """A piece of the data small enough to be one task: its rows, their weights, and where it stands."""

    rows: Array
    weights: Array | None
    number: int
    start: int
    chunk: Chunk
    offset: int

    def located(self, error: NonFiniteError, columns: tuple[str, ...] | None) -> NonFiniteError:
        """`error`, which knows its row in this block, with its place in the data."""
        return self.chunk.located(error, self.offset + error.row, columns)


class PoolPlan(NamedTuple):
    """How many rows to keep, and the seed that decides which."""

    capacity: int
    seed: int


def run(
    kernel: Kernel,
    frequencies: Frequencies,
    blocks: Iterable[Block],
    *,
    pool: PoolPlan | None = None,
    n_threads: int = 1,
    on_rows: OnRows = ignore,
    columns: tuple[str, ...] | None = None,
) -> tuple[Tally, Pool | None]:
    """The tally (and pool) of all blocks."""

    def work(block: Block) -> tuple[Tally, Pool | None]:
        rows, weights = as_floats(block.rows), block.weights
        if weights is not None:  # rows of weight zero are as if they were not there
            rows, weights = rows[weights > 0], weights[weights > 0]
        try:
            part = kernel(frequencies, rows, weights)
        except NonFiniteError as error:
            if block.weights is not None:
                error.row = int(np.flatnonzero(block.weights > 0)[error.row])
            raise block.located(error, columns) from None
        if pool is None:
            return part, None
        # The order of some values is part of the stream's name: two files sketched with one seed seldom keep the same positions, and
        # a change of units or origin changes nothing.
        order = np.argsort(rows[:64], axis=0, kind="stable").astype(np.int64)
        rng = stream(pool.seed, "pool", block.number, zlib.crc32(order.tobytes()))
        odds = importance(rows, frequencies)
        return part, Pool.draw(rng, rows, weights, pool.capacity, odds)

    total, kept = Tally.empty(frequencies.m, frequencies.n), None if pool is None else Pool.empty(pool.capacity, frequencies.n)
    for block, (part, sample) in ordered_map(work, blocks, n_threads):
        total = total + part
        kept = kept + sample if kept is not None and sample is not None else None
        on_rows(len(block.rows))
    return total, kept


def importance(rows: Array, frequencies: Frequencies) -> Array | None:
    """How much each row may matter to the SSE: one on average, half of it for every row and half in proportion to its squared distance.

    A few rows far out may decide the SSE, and an even sample would miss them (Bachem, Lucic and Krause, 2018). None where the spread of
    the data is not known.
    """
    if frequencies.spread is None:
        return None
    squares = (frequencies.relative(rows) ** 2).mean(axis=1)
    return np.asarray(0.5 + 0.5 * squares * (frequencies.scale / frequencies.spread))


def blocks_of(chunks: Iterable[Chunk]) -> Iterator[Block]:
    """Cut chunks into blocks of `BLOCK_ROWS`, with each row's weight beside it."""
    number = start = 0
    for chunk in chunks:
        for offset in range(0, len(chunk.rows), BLOCK_ROWS):
            part = slice(offset, offset + BLOCK_ROWS)
            rows, beta = chunk.rows[part], None if chunk.weights is None else chunk.weights[part]
            yield Block(rows, beta, number, start, chunk, offset)
            number, start = number + 1, start + len(rows)


def ordered_map(work: Callable[[_Item], _Result], items: Iterable[_Item], n_threads: int) -> Iterator[tuple[_Item, _Result]]:
    """(item, work(item)) in order, computed by threads that stay at most two items a thread ahead."""
    if n_threads == 1:
        yield from ((item, work(item)) for item in items)
        return
    waiting: deque[tuple[_Item, Future[_Result]]] = deque()
    with ThreadPoolExecutor(n_threads, thread_name_prefix="ckm") as executor:
        try:
            for item in items:
                waiting.append((item, executor.submit(work, item)))
                if len(waiting) >= 2 * n_threads:
                    done, future = waiting.popleft()
                    yield done, future.result()
            while waiting:
                done, future = waiting.popleft()
                yield done, future.result()
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


def thread_count(n_jobs: int | None) -> int:
    """How many threads `n_jobs` asks for: None and -1 mean every core this process may use; the result never depends on it."""
    if n_jobs is None or n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs < 1:
        raise ParameterError(f"n_jobs must be a positive number of threads (-1 for every core); got {n_jobs!r}.")
    return int(n_jobs)


def as_floats(rows: Array) -> Array:
    """Contiguous float32 or float64 rows; other numbers become float64. At most one block is copied."""
    return np.ascontiguousarray(rows, rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64)
