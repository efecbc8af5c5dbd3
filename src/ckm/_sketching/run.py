"""One pass over the rows of a source: in threads on this machine, or by workers of an engine."""

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from ckm._core.cells import Design
from ckm._core.frequencies import Frequencies
from ckm._kernels import Kernel, kernel_for
from ckm._sketching.accumulate import BlockSketcher, State, accumulate
from ckm._sketching.jobs import SketchJob, sketch_in_steps, sketch_partitions
from ckm._sketching.options import PassOptions
from ckm._sources import Source
from ckm._sources.blocks import split_blocks
from ckm._sources.engines.base import PartitionedSource
from ckm._sources.prefetch import read
from ckm._sources.settings import BLOCK_ROWS
from ckm._util.checks import EUCLIDEAN
from ckm._util.device import resolve_device
from ckm._util.parallel import thread_count
from ckm._util.progress import rows_bar

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pass:
    """A pass over the rows of `source`, ready to run.

    Parameters
    ----------
    source : Source
        The rows.
    options : PassOptions
        What the caller asks for.
    kernel : Kernel
        Computes the sums on this machine; workers of an engine choose their own.
    n_threads : int
        The number of threads; of each task on an engine.
    block_rows : int or None
        The number of rows that the kernel takes at a time; None for the default.
    step : int or None
        The number of partitions of an engine between two checkpoints; None for all at once.
    """

    source: Source
    options: PassOptions
    kernel: Kernel
    n_threads: int
    block_rows: int | None = None
    step: int | None = None

    def run(self, design: Design, state: State, on_state: Callable[[State], None] | None) -> State:
        """Add all rows that `state` does not include yet; `on_state` is called with every state
        from which the pass could be resumed.
        """
        started = time.perf_counter()
        frequencies = design.frequencies
        _log.info(
            "sketching %d columns with %d frequencies (%s) in %d threads",
            frequencies.n_features,
            frequencies.m,
            frequencies.distribution,
            self.n_threads,
        )
        if isinstance(self.source, PartitionedSource):
            state = self._run_on_engine(self.source, design, state, on_state)
        elif self.source.is_on_gpu and _is_projected_only(frequencies):
            state = self._in_large_blocks(design, state, on_state)
        else:
            state = self._run_here(design, state, on_state)
        _log.info("sketched %d rows in %.2f s", state.tally.count, time.perf_counter() - started)
        return state

    def _in_large_blocks(
        self, design: Design, state: State, on_state: Callable[[State], None] | None
    ) -> State:
        """Run it with the blocks that rows on a GPU have if nothing but projections is made of
        them. Other passes over the source get chunks as before.
        """
        source = self.source
        before = source.chunk_rows
        plan = self.kernel.plan(source.n_features, self.n_threads, True, is_projected=True)
        block_rows = before if plan is None else plan.block_rows
        source.prefer_chunk_rows(block_rows)
        try:
            return replace(self, block_rows=block_rows)._run_here(design, state, on_state)
        finally:
            source.prefer_chunk_rows(before)

    def _run_on_engine(
        self,
        source: PartitionedSource,
        design: Design,
        state: State,
        on_state: Callable[[State], None] | None,
    ) -> State:
        job = SketchJob(
            design,
            self.options.device,
            self.options.capacity,
            self.options.seed,
            self.n_threads,
            source.columns,
        )
        if self.step is None:
            return sketch_partitions(source, job)
        assert on_state is not None
        return sketch_in_steps(source, job, state, self.step, on_state)

    def _run_here(
        self, design: Design, state: State, on_state: Callable[[State], None] | None
    ) -> State:
        source = self.source
        options = self.options
        sketch_block = BlockSketcher(
            self.kernel, design, options.capacity, options.seed, source.columns
        )
        with (
            rows_bar("Sketching", source.n_rows, options.progress, source.n_bytes) as on_rows,
            closing(read(source, state.place, self.block_rows)) as chunks,
        ):
            on_rows(state.rows)
            return accumulate(
                sketch_block,
                split_blocks(chunks, state.blocks, self.block_rows or BLOCK_ROWS),
                state,
                n_threads=self.n_threads,
                n_rows=None if source.n_rows is None else source.n_rows - state.rows,
                on_rows=on_rows,
                on_state=on_state,
            )


def _is_projected_only(frequencies: Frequencies) -> bool:
    """Whether rows are projected as they are, without a copy of them."""
    return frequencies.projection is not None and frequencies.metric == EUCLIDEAN


def plan_pass(source: Source, options: PassOptions) -> Pass:
    """Choose the kernel, once per pass; raises if the device does not exist."""
    n_threads = thread_count(options.n_jobs)
    if isinstance(source, PartitionedSource):
        # Each worker resolves the device for itself. It runs many tasks, each on one core.
        return Pass(source, options, kernel_for(None), 1 if options.n_jobs is None else n_threads)
    kernel = kernel_for(resolve_device(options.device, source.device))
    plan = kernel.plan(source.n_features, n_threads, source.is_on_gpu)
    if plan is None:
        return Pass(source, options, kernel, n_threads)
    source.prefer_chunk_rows(plan.block_rows)
    is_one_block = source.n_rows is not None and source.n_rows <= plan.block_rows
    return Pass(source, options, kernel, 1 if is_one_block else plan.threads, plan.block_rows)
