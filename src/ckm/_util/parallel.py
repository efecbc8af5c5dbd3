"""Threads: an ordered map over a thread pool, and the number of threads for `n_jobs`."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from ckm._messages import Argument
from ckm.errors import ParameterError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Items that are submitted ahead, per thread: enough to keep threads busy while the caller takes
# results, few enough to bound memory.
_AHEAD_PER_THREAD = 2
# More threads than any machine has cores: the system would refuse to start them.
_MAX_THREADS = 1024

# The limits on libraries' threads belong to the whole process: overlapping uses would restore them
# in the wrong order.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def one_library_thread() -> Iterator[None]:
    """One thread in BLAS and the like, so that results do not depend on how they split small
    products.
    """
    with _ONE_AT_A_TIME, _loaded_libraries().limit(limits=1):
        yield


@cache
def _loaded_libraries() -> ThreadpoolController:
    """The libraries that are loaded by now, which are all that is used.

    Looking for them takes up to a tenth of the time of a decoding, so it is done once.
    """
    return ThreadpoolController()


def ordered_map(
    work: Callable[[_Item], _Result], items: Iterable[_Item], n_threads: int
) -> Iterator[tuple[_Item, _Result]]:
    """Yield (item, work(item)) in the order of the items, computed by a pool of threads."""
    if n_threads == 1:
        yield from ((item, work(item)) for item in items)
        return
    waiting: deque[tuple[_Item, Future[_Result]]] = deque()
    executor = ThreadPoolExecutor(n_threads, thread_name_prefix="ckm")
    try:
        for item in items:
            waiting.append((item, executor.submit(work, item)))
            if len(waiting) >= _AHEAD_PER_THREAD * n_threads:
                yield waiting[0][0], waiting[0][1].result()
                waiting.popleft()
        while waiting:
            yield waiting[0][0], waiting[0][1].result()
            waiting.popleft()
    finally:
        # Idle threads end by themselves. Threads at work may still read the caller's rows, so they
        # are waited for.
        executor.shutdown(wait=bool(waiting), cancel_futures=True)


def thread_count(n_jobs: int | None) -> int:
    """The number of threads for `n_jobs`; None and -1 mean all cores this process may use."""
    if n_jobs is None or n_jobs == -1:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs < 1:
        raise ParameterError(
            Argument("n_jobs"),
            f" must be a positive number of threads (-1 for every core); got {n_jobs!r}.",
        )
    return min(int(n_jobs), _MAX_THREADS)
