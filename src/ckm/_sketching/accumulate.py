"""The local runner: fixed-size blocks over a thread pool, merged in order.

Kernels release the interpreter lock, so threads are all it takes. Blocks do not depend on the
number of threads and are merged in the order of the data, so neither do the results.
"""

import zlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.pool import Pool
from ckm._core.tally import Tally
from ckm._kernels import Kernel
from ckm._sources.base import BEGINNING, Place
from ckm._sources.blocks import Block, group_tasks, to_floats
from ckm._util.parallel import ordered_map
from ckm._util.progress import OnRows, ignore
from ckm._util.random import stream
from ckm.errors import NonFiniteError


class State(NamedTuple):
    """What a pass has added up so far, how many blocks and rows it has read and rows were dropped,
    and where reading goes on.
    """

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
    """Add the tally of every block to `state`, and its rows to the pool (if there is one; `seed`
    decides which). `on_state` hears of every state that the pass could go on from; `n_rows` is how
    many rows are expected, where that is known.
    """
    capacity = None if state.pool is None else state.pool.capacity

    def work(block: Block) -> tuple[Tally, Pool | None]:
        rows, weights = to_floats(block.rows), block.weights
        # rows of weight zero are as if they were not there
        if weights is not None and not weights.min(initial=1.0) > 0:
            rows, weights = rows[weights > 0], weights[weights > 0]
        try:
            part = kernel.tally(frequencies, rows, weights)
        except NonFiniteError as error:
            if block.weights is not None:
                error.row = int(np.flatnonzero(block.weights > 0)[error.row])
            raise block.locate_error(error, columns) from None
        if capacity is None:
            return part, None
        # The order of some values is part of the stream's name: two files sketched with one seed
        # seldom keep the same positions, and a change of units or origin changes nothing.
        order = np.argsort(rows[:64], axis=0, kind="stable").astype(np.int64)
        rng = stream(seed, "pool", block.number, zlib.crc32(order.tobytes()))
        return part, kernel.draw_pool(rng, rows, weights, capacity, frequencies)

    tasks = group_tasks(blocks, n_threads, n_rows)
    done = ordered_map(lambda task: [work(block) for block in task], tasks, n_threads)
    for block, (part, sample) in (
        (block, result)
        for task, results in done
        for block, result in zip(task, results, strict=True)
    ):
        kept = state.pool + sample if state.pool is not None and sample is not None else None
        state = state._replace(tally=state.tally + part, pool=kept, blocks=block.number + 1)
        if block.ends_chunk:
            read, place = block.chunk.after.row - block.chunk.start.row, block.chunk.after
            state = state._replace(
                rows=state.rows + read,
                dropped=state.dropped + read - len(block.chunk.rows),
                place=place,
            )
            if on_state is not None:
                on_state(state)
        on_rows(len(block.rows), block.n_bytes)
    return state
