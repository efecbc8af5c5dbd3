"""Threads: an ordered map over a pool of them, and how many `n_jobs` asks for."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from ckm.errors import ParameterError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def ordered_map(
    work: Callable[[_Item], _Result], items: Iterable[_Item], n_threads: int
) -> Iterator[tuple[_Item, _Result]]:
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
    # threads without work end by themselves; with it, they may still be reading the caller's rows
    finally:
        executor.shutdown(wait=bool(waiting), cancel_futures=True)


def thread_count(n_jobs: int | None) -> int:
    """How many threads `n_jobs` asks for: None and -1 mean every core this process may use; the
    result never depends on it.
    """
    if n_jobs is None or n_jobs == -1:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs < 1:
        raise ParameterError(
            f"n_jobs must be a positive number of threads (-1 for every core); got {n_jobs!r}."
        )
    return int(n_jobs)
