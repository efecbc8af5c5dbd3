"""From a source to the kernels: small chunks are joined, and a thread reads ahead."""

import atexit
from collections.abc import Callable, Generator, Iterable, Iterator
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import NamedTuple, TypeVar

import numpy as np

from ckm._messages import Argument
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.blocks import join_weights
from ckm._util.device import concatenate_rows
from ckm.errors import DataError

# Chunks with fewer rows, and fewer bytes, are joined with the next ones: each costs a task.
MIN_ROWS = 2**14
MIN_BYTES = 2**20
# Chunks that are read before they are asked for.
_AHEAD = 2
# Seconds to wait for a reading thread that is no longer needed. It may be waiting for a pipe.
_JOIN_SECONDS = 1.0
# Seconds that the interpreter waits for one when it ends, unless it may be waiting for a pipe.
_EXIT_SECONDS = 60.0

_Item = TypeVar("_Item")


def read(
    source: Source, start: Place = BEGINNING, block_rows: int | None = None
) -> Generator[Chunk]:
    """Yield the chunks of a source from `start` on, joined if they are small.

    A thread reads ahead if the source allows it; close the generator to stop it early. With
    `block_rows`, chunks have half as many rows or more, except at the end of a part.
    """
    least = min(MIN_ROWS, MIN_BYTES // (8 * source.n_features))
    if block_rows is not None:
        least = block_rows // 2
    chunks = _join_small(map(_require_known_weights, source.chunks(start)), least)
    return prefetch(chunks, may_block=not source.is_rereadable) if source.can_prefetch else chunks


def _require_known_weights(chunk: Chunk) -> Chunk:
    """Return the chunk; raise `DataError` if a weight is missing."""
    if chunk.weights is not None and np.isnan(np.min(chunk.weights, initial=0.0)):
        number = chunk.row_numbers()[np.argmax(np.isnan(chunk.weights))]
        place = f"row {number}{'' if chunk.name is None else f' of {chunk.name}'}"
        raise DataError(
            f"The weight of {place} is missing (NaN); drop or fill such rows first; ckm.sketch "
            f"takes ",
            Argument("nan", "drop"),
            ".",
        )
    return chunk


def _join_small(chunks: Iterable[Chunk], least: int) -> Generator[Chunk]:
    """Yield the same rows in chunks of at least `least` rows.

    Chunks are smaller at the end of a part, and if the next one is large enough by itself.
    """
    waiting = list[Chunk]()
    n_waiting = 0
    for chunk in chunks:
        is_other_part = bool(waiting) and chunk.start.part != waiting[0].start.part
        if waiting and (is_other_part or n_waiting + len(chunk.rows) > 2 * least):
            yield _join(waiting)
            waiting = []
            n_waiting = 0
        waiting.append(chunk)
        n_waiting += len(chunk.rows)
        if n_waiting >= least:
            yield _join(waiting)
            waiting = []
            n_waiting = 0
    if waiting:
        yield _join(waiting)


def _join(chunks: list[Chunk]) -> Chunk:
    """Join consecutive chunks of one part."""
    if len(chunks) == 1:
        return chunks[0]
    rows = concatenate_rows([chunk.rows for chunk in chunks])
    numbers = None
    if any(chunk.numbers is not None for chunk in chunks):
        numbers = np.concatenate([chunk.row_numbers() for chunk in chunks])
    first = chunks[0]
    return Chunk(rows, join_weights(chunks), first.start, chunks[-1].after, first.name, numbers)


class _End(NamedTuple):
    """The end of the items, or the error that ended them."""

    error: BaseException | None


# How to stop each thread that is reading.
_running: dict[Thread, Callable[[], None]] = {}


@atexit.register
def _stop_reading() -> None:
    """Wait for threads that are inside Arrow: if the interpreter ended first, they would abort."""
    for stop in list(_running.values()):
        stop()


def prefetch(
    items: Iterator[_Item], ahead: int = _AHEAD, may_block: bool = False
) -> Generator[_Item]:
    """Yield the same items, made by a thread that is at most `ahead` items ahead.

    Errors of the thread are raised here. Closing the generator ends the thread: it waits only for
    a free slot, which closing provides, and for the item it is making. With `may_block`, an item
    may keep it waiting forever.
    """
    ready = SimpleQueue[tuple[_Item] | _End]()
    free_slots = Semaphore(ahead)
    is_needed = True

    def produce() -> None:
        try:
            while free_slots.acquire() and is_needed:
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
            _running.pop(thread, None)

    def stop(seconds: float) -> None:
        nonlocal is_needed
        is_needed = False
        free_slots.release()
        thread.join(seconds)

    thread = Thread(target=produce, name="ckm-reader", daemon=True)
    _running[thread] = lambda: stop(_JOIN_SECONDS if may_block else _EXIT_SECONDS)
    thread.start()
    try:
        while not isinstance(item := ready.get(), _End):
            free_slots.release()
            yield item[0]
        if item.error is not None:
            raise item.error
    finally:
        stop(_JOIN_SECONDS)
