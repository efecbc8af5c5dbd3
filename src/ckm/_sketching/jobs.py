"""What workers of an engine compute: the pilot that frequencies are chosen by, and the sums.

A worker sends back sums and a fingerprint, and rows only for a pool; frequencies are sent to
workers and never back. Sums are integers, so any split into partitions, any order of merging and
any engine give bit-identical sums.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ckm._core.cells import Design
from ckm._core.pool import Pool
from ckm._kernels import kernel_for
from ckm._sketching.accumulate import BlockSketcher, State, accumulate
from ckm._sketching.options import SketchOptions
from ckm._sketching.pilot import pilot_from_rows
from ckm._sketching.scale import PilotSummary, pilot_rows, summarise_pilot
from ckm._sketching.wide import summarise_wide, wide_sample_rows
from ckm._sources.adapters import measured_chunks
from ckm._sources.base import Chunk, Place
from ckm._sources.blocks import split_blocks
from ckm._sources.engines.base import Job, PartitionedSource
from ckm._sources.sampling import pick_evenly
from ckm._sources.settings import BLOCK_ROWS
from ckm._util.device import resolve_device
from ckm._util.random import stream
from ckm.errors import MismatchError

# Partitions that a pilot is drawn from, if they hold enough rows: enough of them that sorted data
# does not mislead it.
PILOT_PARTITIONS = 16


@dataclass(frozen=True)
class PilotJob(Job):
    """Draw a pilot and summarise it: rows are sampled where they are, the samples go to one worker,
    and its summary is sent back, without any row.
    """

    options: SketchOptions
    n: int
    m: int
    seed: int
    columns: tuple[str, ...] | None = None

    @property
    def rows_wanted(self) -> int:
        """The number of rows to sample."""
        if self.options.projects(self.n):
            return wide_sample_rows(self.options, self.n)
        return pilot_rows(self.options, self.n, self.m)

    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> Pool:
        """A sample of one partition; raises if a value is not finite."""
        rng = stream(self.seed, "pilot", number)
        size = self.rows_wanted
        pool = Pool.empty(size, self.n)
        for chunk in measured_chunks(chunks, self.options.metric):
            chunk.require_finite(self.columns, values=chunk.rows, ignore_weightless=True)
            pool = pool + Pool.draw(rng, *chunk.rows_with_weight(), size)
        return pool

    def merge(self, parts: Sequence[Pool]) -> Pool:
        """One sample of several."""
        return sum(parts[1:], parts[0])

    def finish(self, merged: Pool) -> PilotSummary:
        """The summary of the sample; its `n_rows` counts all rows of these partitions."""
        weights = merged.weights if merged.is_complete else np.ones(len(merged))
        if self.options.projects(self.n):
            found = summarise_wide(merged.rows, weights, self.options, self.seed)
            return found._replace(n_rows=merged.seen)
        pilot = pilot_from_rows(merged.rows, weights)
        summary = summarise_pilot(pilot, self.options, self.n, self.m, self.seed)
        return summary._replace(n_rows=merged.seen)


def summarise_partitions(source: PartitionedSource, job: PilotJob) -> PilotSummary:
    """Run `job` on a few partitions from all over the data; on all of them if those hold too few
    rows.
    """
    count = source.n_partitions
    if count is None:
        which = None
    else:
        which = pick_evenly(count, PILOT_PARTITIONS, stream(job.seed, "pilot"))
    summary: PilotSummary = source.run(job, which)
    wanted = job.rows_wanted
    if count is not None and count > PILOT_PARTITIONS and summary.n_rows < wanted:
        summary = source.run(job)
    return summary


@dataclass(frozen=True)
class PartitionSums:
    """The sums over a partition, or over several: what workers send back.

    `fingerprint` is that of the design, and `partition` the (smallest) number of the
    partition.
    """

    fingerprint: str
    partition: int
    state: State


@dataclass(frozen=True)
class SketchJob(Job):
    """Add up the rows of every partition.

    `n_threads` is the number of threads per task; by default engines give a task one core.
    """

    design: Design
    device: str = "auto"
    capacity: int = 0
    seed: int = 0
    n_threads: int = 1
    columns: tuple[str, ...] | None = None

    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> PartitionSums:
        """The sums over one partition; its pool is drawn from a stream of its own."""
        seed = self.seed
        if self.capacity:
            seed = int(stream(self.seed, "pool", number).integers(2**63))
        kernel = kernel_for(resolve_device(self.device))
        plan = kernel.plan(self.design.frequencies.n_features, self.n_threads)
        blocks = split_blocks(chunks, size=BLOCK_ROWS if plan is None else plan.block_rows)
        state = accumulate(
            BlockSketcher(kernel, self.design, self.capacity, seed, self.columns),
            blocks,
            State.empty(self.design, self.capacity),
            n_threads=self.n_threads,
        )
        return PartitionSums(self.design.fingerprint, number, state)

    def merge(self, parts: Sequence[PartitionSums]) -> PartitionSums:
        """Add up results in the order of their partition numbers.

        Moments are rounded sums, so the order makes them the same each time.
        """
        ordered = sorted(parts, key=lambda part: part.partition)
        total = self.state_of(ordered[0])
        for part in ordered[1:]:
            total = total + self.state_of(part)
        return PartitionSums(self.design.fingerprint, ordered[0].partition, total)

    def state_of(self, part: PartitionSums) -> State:
        """The sums in a result, once it is known to be for the frequencies of this job."""
        if part.fingerprint != self.design.fingerprint:
            raise MismatchError(
                "A worker sent back sums for other frequencies or anchors; run the same version of "
                "ckm on every worker."
            )
        return part.state


def sketch_partitions(source: PartitionedSource, job: SketchJob) -> State:
    """Add up all rows of `source` where they are."""
    return job.state_of(source.run(_light(job)))


def sketch_in_steps(
    source: PartitionedSource,
    job: SketchJob,
    state: State,
    step: int,
    on_state: Callable[[State], None],
) -> State:
    """Add up the partitions from the place of `state` on, `step` of them at a time.

    `on_state` is called after each step. Steps begin at multiples of `step`, so a pass that is
    resumed adds up moments in the same order.
    """
    light = _light(job)
    for low in range(state.place.part, source.n_partitions or 0, step):
        high = min(low + step, source.n_partitions or 0)
        added = job.state_of(source.run(light, np.arange(low, high)))
        state = replace(state + added, place=Place(high))
        on_state(state)
    return state


def _light(job: SketchJob) -> SketchJob:
    """A copy without what was computed from frequencies and anchors: each worker gets them once."""
    frequencies, anchors = job.design
    light = Design(replace(frequencies), None if anchors is None else replace(anchors))
    return replace(job, design=light)
