"""Blocks: chunks cut into pieces of fixed size, each small enough to be one task."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ckm._sources.base import Chunk
from ckm._util.arrays import Array
from ckm._util.device import DeviceRows
from ckm.errors import NonFiniteError

BLOCK_ROWS = 16384
# of the blocks that a thread takes at once: each time it comes for more, others are disturbed
_TASK_ROWS = 6 * BLOCK_ROWS
_TURNS = 4  # that each thread takes at least with what is left


class Block(NamedTuple):
    """A piece of the data small enough to be one task: its rows, their weights, and where it
    stands.
    """

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


def blocks_of(chunks: Iterable[Chunk], number: int = 0, size: int = BLOCK_ROWS) -> Iterator[Block]:
    """Cut chunks into blocks of `size` rows, with each row's weight beside it; the first has this
    `number`.
    """
    start = 0
    for chunk in chunks:
        for offset in range(0, len(chunk.rows), size):
            part = slice(offset, offset + size)
            rows, beta = chunk.rows[part], None if chunk.weights is None else chunk.weights[part]
            yield Block(rows, beta, number, start, chunk, offset)
            number, start = number + 1, start + len(rows)


def tasks_of(
    blocks: Iterable[Block], n_threads: int, n_rows: int | None = None
) -> Iterator[list[Block]]:
    """Blocks that one thread takes at once: some of a chunk, fewer towards the end of `n_rows`
    rows, so that all threads end together.

    Where nobody knows the end, as much is expected as there has been.
    """
    task = list[Block]()
    for block in blocks:
        task.append(block)
        left = block.start if n_rows is None else n_rows - block.start
        if block.ends_chunk or sum(len(part.rows) for part in task) >= min(
            _TASK_ROWS, left // (_TURNS * n_threads)
        ):
            yield task
            task = []


def as_floats(rows: Array) -> Array:
    """Contiguous float32 or float64 rows; other numbers become float64. At most one block is
    copied.
    """
    return np.ascontiguousarray(to_floats(rows))


def to_floats(rows: Any) -> Any:
    """Float32 or float64 rows as they lie in memory; other numbers become float64. Those on a card
    stay as they are.
    """
    return (
        rows
        if isinstance(rows, DeviceRows) or rows.dtype in (np.float32, np.float64)
        else rows.astype(np.float64)
    )
