"""The local runner: fixed-size blocks over a thread pool, merged in order.

Kernels release the interpreter lock, so threads are all it takes. Blocks do not depend on the number of threads and are merged in the order
of the data, so neither do the results.
"""

import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ckm.errors import NonFiniteError, ParameterError
from ckm.frequencies import Frequencies
from ckm.kernels import Kernel
from ckm.pool import Pool
from ckm.progress import OnRows, ignore
from ckm.readonly import Array
from ckm.seeding import stream
from ckm.sources.base import BEGINNING, Chunk, Place
from ckm.tally import Tally
from ckm.tensors import CardRows

BLOCK_ROWS = 16384
_TASK_ROWS = 6 * BLOCK_ROWS  # of the blocks that a thread takes at once: each time it comes for more, others are disturbed
_TURNS = 4  # that each thread takes at least with what is left

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

    @property
    def n_bytes(self) -> int:
        """Bytes read for the chunk, where places count them: all of them with its last block."""
        return max(0, self.chunk.after.byte - self.chunk.start.byte) if self.ends_chunk else 0

    @property
    def ends_chunk(self) -> bool:
        """Whether it is the last of its chunk."""
        return self.offset + len(self.rows) == len(self.chunk.rows)


class State(NamedTuple):
    """What a pass has added up so far, how many blocks and rows it has read and rows were dropped, and where reading goes on."""

    tally: Tally
    pool: Pool | None
    blocks: int = 0
    rows: int = 0
    dropped: int = 0
    place: Place = BEGINNING

    @classmethod
    def empty(cls, frequencies: Frequencies, capacity: int) -> "State":
        """Nothing yet, and a pool only if it is to hold rows."""
        pool = Pool.empty(capacity, frequencies.n) if capacity else None
        return cls(Tally.empty(frequencies.m, frequencies.n), pool)


def run(
    kernel: Kernel,
    frequencies: Frequencies,
    blocks: Iterable[Block],
    state: State,
    seed: int,
    *,
    n_threads: int = 1,
    on_rows: OnRows = ignore,
    on_state: Callable[[State], None] | None = None,
    columns: tuple[str, ...] | None = None,
    n_rows: int | None = None,
) -> State:
    """Add the tally of every block to `state`, and its rows to the pool (if there is one; `seed` decides which). `on_state` hears of every
    state that the pass could go on from; `n_rows` is how many rows are expected, where that is known.
    """
    capacity = None if state.pool is None else state.pool.capacity

    def work(block: Block) -> tuple[Tally, Pool | None]:
        rows, weights = _floats(block.rows), block.weights
        if weights is not None and not weights.min(initial=1.0) > 0:  # rows of weight zero are as if they were not there
            rows, weights = rows[weights > 0], weights[weights > 0]
        try:
            part = kernel(frequencies, rows, weights)
        except NonFiniteError as error:
            if block.weights is not None:
                error.row = int(np.flatnonzero(block.weights > 0)[error.row])
            raise block.located(error, columns) from None
        if capacity is None:
            return part, None
        # The order of some values is part of the stream's name: two files sketched with one seed seldom keep the same positions, and
        # a change of units or origin changes nothing.
        order = np.argsort(rows[:64], axis=0, kind="stable").astype(np.int64)
        rng = stream(seed, "pool", block.number, zlib.crc32(order.tobytes()))
        if isinstance(rows, CardRows):
            from ckm.runners.card import draw_pool

            return part, draw_pool(rng, rows, weights, capacity, frequencies)
        odds = importance(rows, frequencies)
        return part, Pool.draw(rng, rows, weights, capacity, odds)

    tasks = tasks_of(blocks, n_threads, n_rows)
    done = ordered_map(lambda task: [work(block) for block in task], tasks, n_threads)
    for block, (part, sample) in ((block, result) for task, results in done for block, result in zip(task, results, strict=True)):
        kept = state.pool + sample if state.pool is not None and sample is not None else None
        state = state._replace(tally=state.tally + part, pool=kept, blocks=block.number + 1)
        if block.ends_chunk:
            read, place = block.chunk.after.row - block.chunk.start.row, block.chunk.after
            state = state._replace(rows=state.rows + read, dropped=state.dropped + read - len(block.chunk.rows), place=place)
            if on_state is not None:
                on_state(state)
        on_rows(len(block.rows), block.n_bytes)
    return state


def importance(rows: Array, frequencies: Frequencies) -> Array | None:
    """How much each row may matter to the SSE: one on average, half of it for every row and half in proportion to its squared distance.

    A few rows far out may decide the SSE, and an even sample would miss them (Bachem, Lucic and Krause, 2018). None where the spread of
    the data is not known.
    """
    if frequencies.spread is None:
        return None
    squares = (frequencies.relative(rows) ** 2).mean(axis=1)
    return np.asarray(0.5 + 0.5 * squares * (frequencies.scale / frequencies.spread))


def blocks_of(chunks: Iterable[Chunk], number: int = 0, size: int = BLOCK_ROWS) -> Iterator[Block]:
    """Cut chunks into blocks of `size` rows, with each row's weight beside it; the first has this `number`."""
    start = 0
    for chunk in chunks:
        for offset in range(0, len(chunk.rows), size):
            part = slice(offset, offset + size)
            rows, beta = chunk.rows[part], None if chunk.weights is None else chunk.weights[part]
            yield Block(rows, beta, number, start, chunk, offset)
            number, start = number + 1, start + len(rows)


def tasks_of(blocks: Iterable[Block], n_threads: int, n_rows: int | None = None) -> Iterator[list[Block]]:
    """Blocks that one thread takes at once: some of a chunk, fewer towards the end of `n_rows` rows, so that all threads end together.

    Where nobody knows the end, as much is expected as there has been.
    """
    task = list[Block]()
    for block in blocks:
        task.append(block)
        left = block.start if n_rows is None else n_rows - block.start
        if block.ends_chunk or sum(len(part.rows) for part in task) >= min(_TASK_ROWS, left // (_TURNS * n_threads)):
            yield task
            task = []


def ordered_map(work: Callable[[_Item], _Result], items: Iterable[_Item], n_threads: int) -> Iterator[tuple[_Item, _Result]]:
    """(item, work(item)) in order, computed by threads that stay at most two items a thread ahead."""
    if n_threads == 1:
        yield from ((item, work(item)) for item in items)
        return
    waiting: deque[tuple[_Item, Future[_Result]]] = deque()
    executor = ThreadPoolExecutor(n_threads, thread_name_prefix="ckm")
    try:
        for item in items:
            waiting.append((item, executor.submit(work, item)))
            if len(waiting) >= 2 * n_threads:
                yield waiting[0][0], waiting[0][1].result()
                waiting.popleft()
        while waiting:
            yield waiting[0][0], waiting[0][1].result()
            waiting.popleft()
    finally:  # threads without work end by themselves; with it, they may still be reading the caller's rows
        executor.shutdown(wait=bool(waiting), cancel_futures=True)


def thread_count(n_jobs: int | None) -> int:
    """How many threads `n_jobs` asks for: None and -1 mean every core this process may use; the result never depends on it."""
    if n_jobs is None or n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs < 1:
        raise ParameterError(f"n_jobs must be a positive number of threads (-1 for every core); got {n_jobs!r}.")
    return int(n_jobs)


def as_floats(rows: Array) -> Array:
    """Contiguous float32 or float64 rows; other numbers become float64. At most one block is copied."""
    return np.ascontiguousarray(_floats(rows))


def _floats(rows: Any) -> Any:
    """Float32 or float64 rows as they lie in memory; other numbers become float64. Those on a card stay as they are."""
    return rows if isinstance(rows, CardRows) or rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
