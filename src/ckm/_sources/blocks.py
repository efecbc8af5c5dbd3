"""Blocks: chunks cut into pieces of fixed size, each small enough to be one task."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ckm._sources.base import Chunk, Place
from ckm._sources.settings import BLOCK_ROWS
from ckm._util.arrays import Array, FloatArray, RowsArray, float_type
from ckm._util.device import DeviceRows, concatenate_rows
from ckm._util.halves import widen_halves
from ckm.errors import NonFiniteError

T = TypeVar("T")

# Rows that a thread takes at once. Each time a thread fetches a task it disturbs the others, so a
# task is several blocks.
_TASK_ROWS = 6 * BLOCK_ROWS
# Tasks per thread, at least, that the remaining rows are divided into, so that all threads end
# together.
_TASKS_PER_THREAD = 4


class Block(NamedTuple):
    """A piece of the data small enough to be one task.

    Parameters
    ----------
    rows : array (b, n)
        The rows.
    weights : float64 array (b,) or None
        Their weights.
    number : int
        The number of the block in the data.
    start : int
        How many rows of this pass come before.
    chunk : Chunk
        The chunk that it was cut from.
    offset : int
        How many rows of the chunk come before.
    """

    rows: Array
    weights: FloatArray | None
    number: int
    start: int
    chunk: Chunk
    offset: int

    def locate_error(
        self, error: NonFiniteError, columns: tuple[str, ...] | None
    ) -> NonFiniteError:
        """Return `error`, whose row is that in this block, with its place in the data."""
        return self.chunk.locate_error(error, self.offset + error.row, columns)

    @property
    def n_bytes(self) -> int:
        """Bytes read for the chunk, if places count bytes; all of them count for its last block."""
        return max(0, self.chunk.after.byte - self.chunk.start.byte) if self.ends_chunk else 0

    @property
    def ends_chunk(self) -> bool:
        """Whether it is the last block of its chunk."""
        return self.offset + len(self.rows) == len(self.chunk.rows)


def split_blocks(
    chunks: Iterable[Chunk], number: int = 0, size: int = BLOCK_ROWS
) -> Iterator[Block]:
    """Cut chunks into blocks of `size` rows, of which the first has this `number`.

    A chunk whose rows were all left out becomes one block without rows, so that they are counted.
    """
    start = 0
    for chunk in chunks:
        least = 1 if chunk.after.row > chunk.start.row else 0
        for offset in range(0, max(least, len(chunk.rows)), size):
            piece = _between(chunk, offset, offset + size)
            yield Block(piece.rows, piece.weights, number, start, chunk, offset)
            number += 1
            start += len(piece.rows)


def recut_chunks(chunks: Iterable[Chunk], size: int = BLOCK_ROWS) -> Iterator[Chunk]:
    """Yield the same rows in chunks of exactly `size` rows, except for the last.

    Sums over such chunks do not depend on how the source is split. Only rows at the cuts are
    copied. A chunk may come from several files, so its place is its number among all rows.
    """
    sized = ((chunk, len(chunk.rows)) for chunk in chunks)
    for number, pieces in enumerate(cut_at_multiples(sized, size)):
        yield _concatenate([_between(*piece) for piece in pieces], number * size)


def cut_at_multiples(
    parts: Iterable[tuple[T, int]], size: int, row: int = 0
) -> Iterator[list[tuple[T, int, int]]]:
    """Group parts of a table, given with their numbers of rows, so that each group ends at a row
    number that is a multiple of `size`. A group is a list of (part, first row, end).

    The first row of all is number `row`.

    >>> list(cut_at_multiples([("a", 5), ("b", 2)], 3))
    [[('a', 0, 3)], [('a', 3, 5), ('b', 0, 1)], [('b', 1, 2)]]
    """
    group = list[tuple[T, int, int]]()
    missing = size - row % size
    for part, length in parts:
        low = 0
        while length - low >= missing:
            yield [*group, (part, low, low + missing)]
            low += missing
            group = []
            missing = size
        if low < length:
            group.append((part, low, length))
            missing -= length - low
    if group:
        yield group


def _between(chunk: Chunk, low: int, high: int) -> Chunk:
    """Cut rows `low` to `high` out of a chunk."""
    return Chunk(chunk.rows[low:high], None if chunk.weights is None else chunk.weights[low:high])


def _concatenate(pieces: list[Chunk], row: int) -> Chunk:
    """Join pieces of chunks; `row` is the number of the first row."""
    if len(pieces) == 1:
        return pieces[0]._replace(start=Place(row=row))
    rows = concatenate_rows([piece.rows for piece in pieces])
    return Chunk(rows, join_weights(pieces), Place(row=row))


def join_weights(chunks: Iterable[Chunk]) -> FloatArray | None:
    """The weights of all chunks, if they have weights."""
    weights = [chunk.weights for chunk in chunks if chunk.weights is not None]
    return np.concatenate(weights) if weights else None


def group_tasks(
    blocks: Iterable[Block], n_threads: int, n_rows: int | None = None
) -> Iterator[list[Block]]:
    """Group blocks into tasks: several blocks of a chunk, fewer towards the end of `n_rows` rows.

    With fewer blocks at the end, all threads end together. If `n_rows` is not known, as many rows
    are expected as there have been.
    """
    task = list[Block]()
    for block in blocks:
        task.append(block)
        left = block.start if n_rows is None else n_rows - block.start
        enough = min(_TASK_ROWS, left // (_TASKS_PER_THREAD * n_threads))
        if block.ends_chunk or sum(len(part.rows) for part in task) >= enough:
            yield task
            task = []


def as_floats(rows: Array) -> RowsArray:
    """Contiguous rows in NumPy, in the precision of `to_floats`. Copies at most a block."""
    return np.ascontiguousarray(to_floats(rows))


def to_floats(rows: Any) -> Any:
    """Float32 or float64 rows as they lie in memory; float16 becomes float32, which is exact, and
    other numbers float64.

    Rows on a GPU stay as they are.
    """
    if isinstance(rows, DeviceRows) or rows.dtype in (np.float32, np.float64):
        return rows
    if isinstance(rows, np.ndarray) and rows.dtype == np.dtype("=f2"):
        return widen_halves(rows)
    return rows.astype(float_type(rows.dtype))
