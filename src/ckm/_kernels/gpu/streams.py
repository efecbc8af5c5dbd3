"""Streams of GPUs, with buffers in pinned memory; they are reused, as both are slow to make."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ckm._util.arrays import Array


class Lane:
    """A stream of one GPU, and pinned buffers for what is copied to that GPU."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self._pinned: dict[str, Any] = {}

    def copied(self, name: str, array: Array) -> Any:
        """A copy of the array on the GPU, by way of the buffer of this name; kernels of other lanes
        run meanwhile.
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
        # NumPy copies, because torch's threads would spin between copies and slow other threads.
        np.copyto(pinned.numpy(), array)
        return pinned.to(self.device, non_blocking=True)


class StreamPool:
    """The streams of every GPU, shared by all threads of a process.

    Parameters
    ----------
    make_lane : callable
        Makes the lane of a device; tests pass one that needs no GPU.
    """

    def __init__(self, make_lane: Callable[[Any], Any] = Lane) -> None:
        self._make_lane = make_lane
        self._lock = threading.Lock()
        # lanes not in use, and how many are in use, by device
        self._free = dict[Any, list[Any]]()
        self._busy = Counter[Any]()
        # whose turn it is, and the event that ends the last turn, by device
        self._turns = dict[Any, threading.Lock]()
        self._last_turn = dict[Any, Any]()
        # the stream of high priority, by device
        self._urgent = dict[Any, Any]()
        # variants of kernels that are compiled, and the lock that a thread holds to compile one
        self._compiling = threading.Lock()
        self._compiled = set[tuple[Any, ...]]()

    @contextmanager
    def lane(self, device: Any = None) -> Iterator[Any]:
        """A lane for one thread, its stream the current one.

        It belongs to `device`, or by default to the GPU with the fewest lanes in use.
        """
        with self._lock:
            if device is None:
                gpus = [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
                device = min(gpus, key=lambda gpu: self._busy[gpu])
            self._busy[device] += 1
            free = self._free.setdefault(device, [])
            own = free.pop() if free else self._make_lane(device)
        try:
            with torch.cuda.device(device), torch.cuda.stream(own.stream):
                yield own
        finally:
            with self._lock:
                self._busy[device] -= 1
                free.append(own)

    @contextmanager
    def in_turn(self, device: Any) -> Iterator[None]:
        """Launch kernels in the current stream, one thread at a time.

        They start when those of the turn before are done: kernels that run side by side take
        longer, and so do the threads that launch them.
        """
        stream = torch.cuda.current_stream(device)
        with self._lock:
            turn = self._turns.setdefault(device, threading.Lock())
        with turn:
            if device in self._last_turn:
                stream.wait_event(self._last_turn[device])
            yield
            self._last_turn[device] = stream.record_event()

    @contextmanager
    def urgent(self, device: Any) -> Iterator[None]:
        """A stream whose kernels run before those of lanes, for short work to be waited for."""
        if device.type != "cuda":
            yield
            return
        with self._lock:
            if device not in self._urgent:
                self._urgent[device] = torch.cuda.Stream(device, priority=-1)
        with torch.cuda.device(device), torch.cuda.stream(self._urgent[device]):
            yield

    @contextmanager
    def launching(self, *variant: Any) -> Iterator[None]:
        """A launch of Triton kernels. The first launch of a variant compiles it, and other threads
        wait, because Triton's compiler is not safe to enter from several threads.
        """
        if variant in self._compiled:
            yield
            return
        with self._compiling:
            yield
            self._compiled.add(variant)


STREAMS = StreamPool()  # those of this process
