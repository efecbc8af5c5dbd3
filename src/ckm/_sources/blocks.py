"""Blocks: chunks cut into pieces of fixed size, each small enough to be one task."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ckm._sources.base import Chunk, Place
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

    def locate_error(
        self, error: NonFiniteError, columns: tuple[str, ...] | None
    ) -> NonFiniteError:
        """`error`, which knows its row in this block, with its place in the data."""
        return self.chunk.locate_error(error, self.offset + error.row, columns)

    @property
    def n_bytes(self) -> int:
        """Bytes read for the chunk, where places count them: all of them with its last block."""
        return max(0, self.chunk.after.byte - self.chunk.start.byte) if self.ends_chunk else 0

    @property
    def ends_chunk(self) -> bool:
        """Whether it is the last of its chunk."""
        return self.offset + len(self.rows) == len(self.chunk.rows)


def split_blocks(
    chunks: Iterable[Chunk], number: int = 0, size: int = BLOCK_ROWS
) -> Iterator[Block]:
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


def recut_chunks(chunks: Iterable[Chunk], size: int = BLOCK_ROWS) -> Iterator[Chunk]:
    """Yield the same rows in chunks of exactly `size` rows, except for the last.

    Sums over such chunks do not depend on how the source is split. Only rows at the cuts are
    copied. A chunk may come from several files, so its place is its number among all rows.
    """
    pieces = list[Chunk]()
    missing = size
    row = 0
    for chunk in chunks:
        low = 0
        while len(chunk.rows) - low >= missing:
            pieces.append(_between(chunk, low, low + missing))
            yield _concatenate(pieces, row)
            low += missing
            row += size
            pieces = []
            missing = size
        if low < len(chunk.rows):
            pieces.append(_between(chunk, low, len(chunk.rows)))
            missing -= len(chunk.rows) - low
    if pieces:
        yield _concatenate(pieces, row)


def _between(chunk: Chunk, low: int, high: int) -> Chunk:
    """Cut rows `low` to `high` out of a chunk."""
    return Chunk(chunk.rows[low:high], None if chunk.weights is None else chunk.weights[low:high])


def _concatenate(pieces: list[Chunk], row: int) -> Chunk:
    """Join pieces of chunks; `row` is the number of the first row."""
    if len(pieces) == 1:
        return pieces[0]._replace(start=Place(row=row))
    weights = None
    if pieces[0].weights is not None:
        weights = np.concatenate([piece.weights for piece in pieces if piece.weights is not None])
    return Chunk(np.concatenate([piece.rows for piece in pieces]), weights, Place(row=row))


def group_tasks(
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
