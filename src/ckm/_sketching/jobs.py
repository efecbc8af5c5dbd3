"""What workers compute for a sketch: sums and a fingerprint, and rows only for a pool.

The frequencies are sent to workers and never sent back. Sums are integers, so any split into
partitions, any order of merging and any engine give bit-identical sums.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ckm._core.frequencies import Frequencies
from ckm._kernels import kernel_for
from ckm._sketching.accumulate import State, run
from ckm._sources.base import Chunk
from ckm._sources.blocks import split_blocks
from ckm._sources.engines.base import Job, PartitionedSource
from ckm._util.device import resolve_device
from ckm._util.random import stream
from ckm.errors import MismatchError


@dataclass(frozen=True)
class PartitionSums:
    """The sums over a partition, or over several: what workers send back.

    `fingerprint` is that of the frequencies, and `partition` the (smallest) number of the
    partition.
    """

    fingerprint: str
    partition: int
    state: State


@dataclass(frozen=True)
class SketchJob(Job):
    """Add up the rows of every partition.

    `threads` is the number of threads per task; by default engines give a task one core.
    """

    frequencies: Frequencies
    device: str = "auto"
    capacity: int = 0
    seed: int = 0
    threads: int = 1
    columns: tuple[str, ...] | None = None

    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> PartitionSums:
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
        return PartitionSums(self.frequencies.fingerprint, number, state)

    def merge(self, parts: Sequence[PartitionSums]) -> PartitionSums:
        """Add up results in the order of their partition numbers.

        Moments are rounded sums, so the order makes them the same each time.
        """
        ordered = sorted(parts, key=lambda part: part.partition)
        total = self.state_of(ordered[0])
        for part in ordered[1:]:
            total = _sum(total, self.state_of(part))
        return PartitionSums(self.frequencies.fingerprint, ordered[0].partition, total)

    def state_of(self, part: PartitionSums) -> State:
        """The sums in a result, once it is known to be for the frequencies of this job."""
        if part.fingerprint != self.frequencies.fingerprint:
            raise MismatchError(
                "A worker sent back sums for other frequencies; run the same version of ckm on "
                "every worker."
            )
        return part.state


def sketch_partitions(source: PartitionedSource, job: SketchJob) -> State:
    """Add up all rows of `source` where they are."""
    # A copy of the frequencies without what was computed from them: each worker gets them once.
    light = replace(job, frequencies=replace(job.frequencies))
    return job.state_of(source.run(light))


def _sum(a: State, b: State) -> State:
    pool = a.pool + b.pool if a.pool is not None and b.pool is not None else None
    return State(
        a.tally + b.tally, pool, a.blocks + b.blocks, a.rows + b.rows, a.dropped + b.dropped
    )
