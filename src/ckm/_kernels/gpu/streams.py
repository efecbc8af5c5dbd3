"""Lanes: streams of a card with memory of the CPU that it can read. They are kept between calls,
for both take long to make.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ckm._util.arrays import Array

_compiling, _compiled = threading.Lock(), set[tuple[Any, ...]]()
_lock = threading.Lock()
_free: dict[Any, list["Lane"]] = {}
_urgent = dict[Any, Any]()
_busy = Counter[Any]()  # how many lanes of each card are in use
# whose turn it is on each card, and the event that ends the last one
_turns, _done = dict[Any, threading.Lock](), dict[Any, Any]()


class Lane:
    """A stream, and buffers for what is copied to its card."""

    def __init__(self, device: Any) -> None:
        self.device, self.stream = device, torch.cuda.Stream(device)
        self._pinned: dict[str, Any] = {}

    def copied(self, name: str, array: Array) -> Any:
        """A copy of the array on the card, by way of the buffer of this name: kernels of other
        lanes run meanwhile.
        """
        kind = np.float32 if array.dtype == np.float32 else np.float64
        size = array.size * np.dtype(kind).itemsize
        if name not in self._pinned or self._pinned[name].numel() < size:
            self._pinned[name] = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        pinned = (
            self._pinned[name][:size]
            .view(torch.float32 if kind == np.float32 else torch.float64)
            .view(array.shape)
        )
        # by NumPy: threads of torch would spin between copies, and take the time of others
        np.copyto(pinned.numpy(), array)
        return pinned.to(self.device, non_blocking=True)


@contextmanager
def launching(*way: Any) -> Iterator[None]:
    """A launch of Triton kernels. The first of its kind compiles them, and others wait for it:
    Triton was not made for threads.
    """
    if way in _compiled:
        yield
        return
    with _compiling:
        yield
        _compiled.add(way)


@contextmanager
def in_turn(device: Any) -> Iterator[None]:
    """Launches in the current stream, one thread at a time, of kernels that begin when those of the
    turn before are done: side by side they take longer, and so do threads that launch them.
    """
    stream = torch.cuda.current_stream(device)
    with _lock:
        turn = _turns.setdefault(device, threading.Lock())
    with turn:
        if device in _done:
            stream.wait_event(_done[device])
        yield
        _done[device] = stream.record_event()


@contextmanager
def urgent(device: Any) -> Iterator[None]:
    """A stream whose kernels go before those of lanes, for a little work that a thread waits for."""
    if device.type != "cuda":
        yield
        return
    with _lock:
        if device not in _urgent:
            _urgent[device] = torch.cuda.Stream(device, priority=-1)
    with torch.cuda.device(device), torch.cuda.stream(_urgent[device]):
        yield


@contextmanager
def lane(device: Any = None) -> Iterator[Lane]:
    """A lane to oneself, its stream the current one: of this card, or of the one with the fewest in
    use.
    """
    with _lock:
        if device is None:
            cards = [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
            device = min(cards, key=lambda card: _busy[card])
        _busy[device] += 1
        waiting = _free.setdefault(device, [])
        own = waiting.pop() if waiting else Lane(device)
    try:
        with torch.cuda.device(device), torch.cuda.stream(own.stream):
            yield own
    finally:
        with _lock:
            _busy[device] -= 1
            waiting.append(own)
