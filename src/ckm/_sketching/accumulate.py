"""Accumulation: fixed-size blocks of rows are sketched by a pool of threads and added up in order.

Kernels release the interpreter lock, so threads are enough. Blocks do not depend on the number of
threads and are merged in the order of the data, so neither do the results.
"""

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ckm._core.bounds import BoundedSums
from ckm._core.cells import Cells, Design
from ckm._core.pool import Pool
from ckm._core.sketch import empty_tally
from ckm._core.tally import Tally
from ckm._kernels import Kernel
from ckm._kernels.cpu.wide import WideSums
from ckm._messages import Argument
from ckm._sources.adapters import measured_rows
from ckm._sources.base import BEGINNING, Place
from ckm._sources.blocks import Block, group_tasks, to_floats
from ckm._util.arrays import FloatArray
from ckm._util.parallel import ordered_map
from ckm._util.progress import OnRows, ignore
from ckm._util.random import stream
from ckm.errors import NonFiniteError, ParameterError

# Rows at the start of a block whose order becomes part of the name of its random stream.
_FINGERPRINT_ROWS = 64


@dataclass(frozen=True)
class State:
    """The sums of a pass so far, and where it stands.

    Parameters
    ----------
    tally : Tally
        The sums over the rows so far.
    pool : Pool or None
        A sample of these rows, if one is kept.
    blocks, rows : int
        The number of blocks and rows read.
    dropped : int
        The number of rows left out because of missing values.
    place : Place
        Where reading continues.
    cells : Cells or None
        The cells of these rows, if there are anchors.
    """

    tally: Tally
    pool: Pool | None
    blocks: int = 0
    rows: int = 0
    dropped: int = 0
    place: Place = BEGINNING
    cells: Cells | None = None

    @classmethod
    def empty(cls, design: Design, capacity: int) -> "State":
        """The state before the first row; it has no pool if the capacity is zero."""
        bounds = design.frequencies.bounds
        if capacity and bounds is not None and bounds.max_weight is not None:
            raise ParameterError(
                Argument("pool", capacity),
                " samples rows by weights that may be any number, which those of this design, "
                f"whole numbers up to {bounds.max_weight}, are not; leave it out.",
            )
        pool = Pool.empty(capacity, design.frequencies.n) if capacity else None
        cells = None if design.anchors is None else Cells.empty(design.anchors)
        return cls(empty_tally(design.frequencies), pool, cells=cells)

    def after(
        self, block: Block, tally: Tally, sample: Pool | None, cells: Cells | None
    ) -> "State":
        """The state after the next block, given its tally, its sample of rows and its cells."""
        chunk = block.chunk
        n_read = chunk.after.row - chunk.start.row if block.ends_chunk else 0
        n_dropped = n_read - len(chunk.rows) if block.ends_chunk else 0
        return State(
            self.tally + tally,
            _joined(self.pool, sample),
            block.number + 1,
            self.rows + n_read,
            self.dropped + n_dropped,
            chunk.after if block.ends_chunk else self.place,
            _joined(self.cells, cells),
        )

    def __add__(self, other: "State") -> "State":
        """The sums over two parts of the data; the place of neither is kept."""
        return State(
            self.tally + other.tally,
            _joined(self.pool, other.pool),
            self.blocks + other.blocks,
            self.rows + other.rows,
            self.dropped + other.dropped,
            cells=_joined(self.cells, other.cells),
        )


def _joined(a: Any, b: Any) -> Any:
    """The sum of two pools, or of two tables of cells; None if one of them is."""
    return None if a is None or b is None else a + b


@dataclass(frozen=True)
class BlockSketcher:
    """Turns one block of rows into its tally, its part of the pool, and its cells. Rows are divided
    by their lengths first if the metric asks for it, clipped to public bounds if there are some,
    and wide rows are projected.

    Parameters
    ----------
    kernel : Kernel
        Computes the sums.
    design : Design
        The frequencies and the anchors of the sketch.
    capacity : int
        The size of the pool; zero for none.
    seed : int
        Determines which rows are sampled for the pool.
    columns : tuple of str, optional
        The names of the columns, for error messages.
    wide_sums : WideSums, optional
        Where sums of cells in all columns of wide rows are added up, instead of in each block.
    """

    kernel: Kernel
    design: Design
    capacity: int = 0
    seed: int = 0
    columns: tuple[str, ...] | None = None
    wide_sums: WideSums | None = None

    def __call__(
        self, block: Block, limit: float = np.inf
    ) -> tuple[Tally, Pool | None, Cells | None]:
        """The sums over a block; its part of the pool may lack rows with keys from `limit` on."""
        rows = to_floats(block.rows)
        weights = block.weights
        # A row of weight zero counts as absent.
        if weights is not None and not weights.min(initial=1.0) > 0:
            is_present = weights > 0
            rows = rows[is_present]
            weights = weights[is_present]
        rows = measured_rows(rows, self.design.frequencies.metric)
        bounds = self.design.frequencies.bounds
        clipped = 0
        capped = 0
        if bounds is not None:
            rows, clipped = bounds.clip(rows)
        has_cap = False
        if weights is not None and bounds is not None and bounds.max_weight is not None:
            weights, capped = bounds.cap(weights)
            has_cap = True
        try:
            rows, tally, cells = self._sums(rows, weights)
        except NonFiniteError as error:
            if block.weights is not None:
                error.row = int(np.flatnonzero(block.weights > 0)[error.row])
            raise block.locate_error(error, self.columns) from None
        if bounds is not None:
            bounded = BoundedSums.of_rows(bounds, rows, weights if has_cap else None)
            tally = replace(tally, bounded=replace(bounded, clipped=clipped, capped=capped))
        if has_cap:
            tally = tally.repeated()
        sample = self._sample(block.number, rows, weights, limit) if self.capacity else None
        return tally, sample, cells

    def _sums(self, rows: Any, weights: FloatArray | None) -> tuple[Any, Tally, Cells | None]:
        """The rows, projected if the design projects them, with their tally and their cells."""
        frequencies, anchors = self.design
        if frequencies.projection is not None:
            reduced = self.kernel.reduce(self.design, rows, weights, self.wide_sums)
            tally = self.kernel.tally(frequencies, reduced.rows, weights)
            return reduced.rows, replace(tally, columns=reduced.columns), reduced.cells
        tally = self.kernel.tally(frequencies, rows, weights)
        if anchors is None:
            return rows, tally, None
        return rows, tally, self.kernel.tally_cells(anchors, frequencies.origin, rows, weights)

    def _sample(self, number: int, rows: Any, weights: FloatArray | None, limit: float) -> Pool:
        """Draw the pool of one block."""
        # The order of some values is part of the stream's name: two files sketched with one seed
        # seldom keep the same positions, and changing the units or the origin changes nothing.
        order = np.argsort(rows[:_FINGERPRINT_ROWS], axis=0, kind="stable").astype(np.int64)
        rng = stream(self.seed, "pool", number, zlib.crc32(order.tobytes()))
        return self.kernel.draw_pool(
            rng, rows, weights, self.capacity, self.design.frequencies, limit
        )


def accumulate(
    sketch_block: BlockSketcher,
    blocks: Iterable[Block],
    state: State,
    *,
    n_threads: int = 1,
    n_rows: int | None = None,
    on_rows: OnRows = ignore,
    on_state: Callable[[State], None] | None = None,
) -> State:
    """Add every block to `state`, in order.

    `n_rows` is the number of rows to come, where it is known: threads then finish together.
    `on_rows` is called after each block, and `on_state` with every state from which the pass could
    be resumed; without it, sums that are large beside a block are added up in place.
    """
    anchors = sketch_block.design.anchors
    if on_state is None and anchors is not None and anchors.wide_exponents is not None:
        sketch_block = replace(sketch_block, wide_sums=WideSums(anchors))
        assert state.cells is not None
        before = state.cells.wide if state.rows else None
        state = replace(state, cells=state.cells.without_wide())
    tasks = group_tasks(blocks, n_threads, n_rows)

    def sketch_task(task: list[Block]) -> list[Any]:
        # The pool of the rows so far leaves less of a block to sort. Whichever state a thread
        # sees, the pool of all rows is the same.
        limit = np.inf if state.pool is None else state.pool.limit
        return [sketch_block(block, limit) for block in task]

    done = ordered_map(sketch_task, tasks, n_threads)
    for task, results in done:
        for block, parts in zip(task, results, strict=True):
            state = state.after(block, *parts)
            if on_state is not None and block.ends_chunk:
                on_state(state)
            on_rows(len(block.rows), block.n_bytes)
    sums = sketch_block.wide_sums
    if sums is None:
        return state
    assert state.cells is not None
    cells = sums.added_to(state.cells)
    if before is not None:
        cells = cells.plus_wide(before)
    elif cells.wide is None:
        empty = Cells.empty(cells.anchors).wide
        assert empty is not None
        cells = cells.plus_wide(empty)
    return replace(state, cells=cells)
