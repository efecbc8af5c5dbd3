"""What a worker makes of one partition and sends back: sums and a fingerprint, never frequencies,
and rows only where a pool is asked for.

Sums are integers, so any split into partitions, any order of merging and any engine give the same
bits.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.moments import second_moment_shape
from ckm._core.pool import Pool
from ckm._core.tally import Tally
from ckm._kernels import kernel_for
from ckm._sketching.accumulate import State, run
from ckm._sources.base import Chunk
from ckm._sources.blocks import split_blocks
from ckm._sources.engines.base import Job, PartitionedSource
from ckm._util.arrays import Array
from ckm._util.device import resolve_device
from ckm._util.random import stream
from ckm.errors import MismatchError

# Its first bytes; the fingerprint; the partition's number, rows and dropped rows; the tally's count
# and weight; m and n; whether sums are integers, bounds are tight, and a pool follows.
_HEADER = struct.Struct("<4s16sQQQQdII???x")
_POOL = struct.Struct("<QQQI4x")  # capacity, rows seen, rows kept, columns
_MARK = b"ckm1"


@dataclass(frozen=True)
class SketchJob(Job):
    """Add up the rows of every partition. `threads` are those of one task, which has one core
    unless the engine was told otherwise.
    """

    frequencies: Frequencies
    device: str = "auto"
    capacity: int = 0
    seed: int = 0
    threads: int = 1
    columns: tuple[str, ...] | None = None

    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> bytes:
        """The sums over one partition; its pool is drawn from a stream of its own."""
        seed = (
            int(stream(self.seed, "pool", number).integers(2**63)) if self.capacity else self.seed
        )
        state = State.empty(self.frequencies, self.capacity)
        kernel = kernel_for(resolve_device(self.device))
        planned = kernel.plan(self.frequencies.n, self.threads)
        blocks = (
            split_blocks(chunks)
            if planned is None
            else split_blocks(chunks, size=planned.block_rows)
        )
        state = run(
            kernel,
            self.frequencies,
            blocks,
            state,
            seed,
            n_threads=self.threads,
            columns=self.columns,
        )
        return pack(self.frequencies, number, state)

    def merge(self, parts: Sequence[bytes]) -> bytes:
        """The sums over several, added in the order of their numbers, so that moments, which are
        rounded, are the same each time.
        """
        numbered = sorted(
            (unpack(part, self.frequencies) for part in parts), key=lambda pair: pair[0]
        )
        total = numbered[0][1]
        for _, state in numbered[1:]:
            total = _sum(total, state)
        return pack(self.frequencies, numbered[0][0], total)


def sketch_partitions(source: PartitionedSource, job: SketchJob) -> State:
    """Everything that `source` holds, added up where it is."""
    # without what was computed from them: each worker gets them once
    light = replace(job, frequencies=replace(job.frequencies))
    return unpack(source.run(light), job.frequencies)[1]


def _sum(a: State, b: State) -> State:
    pool = a.pool + b.pool if a.pool is not None and b.pool is not None else None
    return State(
        a.tally + b.tally, pool, a.blocks + b.blocks, a.rows + b.rows, a.dropped + b.dropped
    )


def pack(frequencies: Frequencies, number: int, state: State) -> bytes:
    """One partition's result: 16 m bytes of sums, 24 n of bounds and means, at most 8 m of second
    moments, 96 that say what they are.
    """
    t = state.tally
    head = (
        _MARK,
        _short(frequencies),
        number,
        state.rows,
        state.dropped,
        t.count,
        t.weight,
        frequencies.m,
        frequencies.n,
    )
    header = _HEADER.pack(*head, t.exact, t.tight, state.pool is not None)
    arrays = b"".join(array.tobytes() for array in (t.sums, t.lower, t.upper, t.first, t.second))
    return header + arrays + (b"" if state.pool is None else pack_pool(state.pool))


def unpack(data: bytes, frequencies: Frequencies) -> tuple[int, State]:
    """The partition's number and what it added up to, once it is known to be for these frequencies."""
    mark, fingerprint, number, rows, dropped, count, weight, m, n, exact, tight, pooled = (
        _HEADER.unpack_from(data)
    )
    if mark != _MARK or fingerprint != _short(frequencies):
        raise MismatchError(
            "A worker sent back sums for other frequencies; run the same version of ckm on every worker."
        )
    take = _Taker(data, _HEADER.size)
    sums = take.array((2, m), np.int64 if exact else np.float64)
    lower, upper, first, second = (
        take.array(shape) for shape in ((n,), (n,), (n,), second_moment_shape(m, n))
    )
    tally = Tally(sums, weight, count, lower, upper, first, second, tight)
    return number, State(
        tally, unpack_pool(data[take.place :]) if pooled else None, rows=rows, dropped=dropped
    )


def pack_pool(pool: Pool) -> bytes:
    """A pool as bytes."""
    header = _POOL.pack(pool.capacity, pool.seen, *pool.rows.shape)
    return header + b"".join(
        array.tobytes() for array in (pool.rows, pool.weights, pool.odds, pool.keys)
    )


def unpack_pool(data: bytes) -> Pool:
    """The pool behind the bytes."""
    capacity, seen, kept, n = _POOL.unpack_from(data)
    take = _Taker(data, _POOL.size)
    rows, weights, odds, keys = (
        take.array(shape) for shape in ((kept, n), (kept,), (kept,), (kept,))
    )
    return Pool(rows, weights, odds, keys, capacity, seen)


def _short(frequencies: Frequencies) -> bytes:
    return bytes.fromhex(frequencies.fingerprint)[:16]


class _Taker:
    """Arrays that follow each other in some bytes."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self.place = data, place

    def array(self, shape: tuple[int, ...], dtype: type = np.float64) -> Array:
        count = int(np.prod(shape))
        found: Array = np.frombuffer(self._data, dtype, count, self.place).reshape(shape)
        self.place += found.nbytes
        return found
