"""From a source to the kernels: small chunks are joined, and a thread reads ahead while kernels
run.
"""

from collections.abc import Generator, Iterable, Iterator
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import NamedTuple, TypeVar

import numpy as np

from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._util.device import concatenate_rows
from ckm.errors import DataError

# a chunk of fewer rows, and fewer bytes, waits for more of them: each costs a task
JOINED_ROWS, JOINED_BYTES = 2**14, 2**20
_AHEAD = 2  # chunks read before they are asked for
# seconds that a reader may take to notice that it is not needed any more; it may be waiting for a
# pipe
_PATIENCE = 1.0

_Item = TypeVar("_Item")


def read(source: Source, start: Place = BEGINNING, wanted: int | None = None) -> Generator[Chunk]:
    """The chunks of `source` from `start` on, none of them tiny, read ahead where the source allows
    it. Close it to stop early.

    Where a number of rows is `wanted`, chunks have half as many or more, except at the end of a
    part.
    """
    least = (
        min(JOINED_ROWS, JOINED_BYTES // (8 * source.n_features)) if wanted is None else wanted // 2
    )
    chunks = _joined(map(_with_known_weights, source.chunks(start)), least)
    return prefetch(chunks) if source.can_prefetch else chunks


def _with_known_weights(chunk: Chunk) -> Chunk:
    if chunk.weights is not None and np.isnan(np.min(chunk.weights, initial=0.0)):
        number = chunk.row_numbers()[np.argmax(np.isnan(chunk.weights))]
        place = f"row {number}{'' if chunk.name is None else f' of {chunk.name}'}"
        raise DataError(
            f"The weight of {place} is missing (NaN); drop or fill such rows first; ckm.sketch takes nan='drop'."
        )
    return chunk


def _joined(chunks: Iterable[Chunk], least: int) -> Generator[Chunk]:
    """The same rows, in chunks of at least as many of them except at the end of a part, or where
    the next is large as it is.
    """
    held, waiting = list[Chunk](), 0
    for chunk in chunks:
        if held and (
            chunk.start.part != held[0].start.part or waiting + len(chunk.rows) > 2 * least
        ):
            yield _join(held)
            held, waiting = [], 0
        held.append(chunk)
        waiting += len(chunk.rows)
        if waiting >= least:
            yield _join(held)
            held, waiting = [], 0
    if held:
        yield _join(held)


def _join(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    rows = concatenate_rows([chunk.rows for chunk in chunks])
    weights = (
        None
        if chunks[0].weights is None
        else np.concatenate([chunk.weights for chunk in chunks if chunk.weights is not None])
    )
    numbers = (
        None
        if all(chunk.numbers is None for chunk in chunks)
        else np.concatenate([chunk.row_numbers() for chunk in chunks])
    )
    return Chunk(rows, weights, chunks[0].start, chunks[-1].after, chunks[0].name, numbers)


class _End(NamedTuple):
    """Nothing more comes; or, it failed."""

    error: BaseException | None


def prefetch(items: Iterator[_Item], ahead: int = _AHEAD) -> Generator[_Item]:
    """The same items, made by a thread that stays at most `ahead` of them before the one who asks.

    What fails in the thread is raised here. Closing the generator ends the thread: it waits for
    nothing but room, which closing makes, and the item it is making.
    """
    ready, room, wanted = SimpleQueue[tuple[_Item] | _End](), Semaphore(ahead), True

    def produce() -> None:
        try:
            while room.acquire() and wanted:
                try:
                    ready.put((next(items),))
                except StopIteration:
                    break
            ready.put(_End(None))
        except BaseException as error:
            ready.put(_End(error))
        finally:
            if isinstance(items, Generator):
                items.close()

    thread = Thread(target=produce, name="ckm-reader", daemon=True)
    thread.start()
    try:
        while not isinstance(item := ready.get(), _End):
            room.release()
            yield item[0]
        if item.error is not None:
            raise item.error
    finally:
        wanted = False
        room.release()
        thread.join(_PATIENCE)
