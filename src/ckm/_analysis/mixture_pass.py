"""Passes over rows with a mixture: log densities, shares of components, and EM on all rows.

Rows are read in blocks, in bounded memory, as for a sketch. Threads change no result.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple, TypeVar

import numpy as np

from ckm._analysis.components import Components
from ckm._analysis.expectation import Shape, Sums, maximise, sum_points
from ckm._sources import Source
from ckm._sources.blocks import Block, recut_chunks, split_blocks
from ckm._sources.engines.base import PartitionedSource
from ckm._sources.prefetch import read
from ckm._util.arrays import FloatArray, LabelArray
from ckm._util.checks import first_nonfinite
from ckm._util.parallel import one_library_thread, ordered_map, thread_count
from ckm._util.progress import OnRows, rows_bar
from ckm.errors import DataError, NonFiniteError

# Gain of the mean log density, per row, of a pass that is the last: further ones would gain less.
MIN_PASS_GAIN = 1e-6

_Result = TypeVar("_Result")


class Polished(NamedTuple):
    """What passes of EM over the rows gave.

    Parameters
    ----------
    components : Components
        The mixture after the last pass.
    log_likelihoods : tuple of float
        For each pass the mean log density of the rows in the mixture that it started from.
    """

    components: Components
    log_likelihoods: tuple[float, ...]


def label_rows(components: Components, source: Source, n_jobs: int | None) -> LabelArray:
    """The most probable component of each row (N,)."""

    def work(block: Block, rows: FloatArray) -> LabelArray:
        return np.asarray(components.log_joint(rows).argmax(axis=1), np.int32)

    parts = [found for _, found in _map_blocks(source, work, n_jobs)]
    return np.concatenate([np.empty(0, np.int32), *parts])


def share_rows(components: Components, source: Source, n_jobs: int | None) -> FloatArray:
    """The probability of each component for each row (N, K)."""

    def work(block: Block, rows: FloatArray) -> FloatArray:
        return components.shares(rows)

    parts = [found for _, found in _map_blocks(source, work, n_jobs)]
    return np.concatenate([np.empty((0, len(components))), *parts])


def score_rows(components: Components, source: Source, n_jobs: int | None) -> FloatArray:
    """The log density of each row (N,)."""

    def work(block: Block, rows: FloatArray) -> FloatArray:
        return components.log_density(rows)

    parts = [found for _, found in _map_blocks(source, work, n_jobs)]
    return np.concatenate([np.empty(0), *parts])


def sum_log_densities(
    components: Components, source: Source, n_jobs: int | None
) -> tuple[float, float]:
    """The sum of weight times log density over all rows, and the sum of their weights."""

    def work(block: Block, rows: FloatArray) -> tuple[float, float]:
        densities = components.log_density(rows)
        if block.weights is None:
            return float(densities.sum()), float(len(rows))
        return float(block.weights @ densities), float(block.weights.sum())

    parts = [found for _, found in _map_blocks(source, work, n_jobs)]
    total = sum(part[0] for part in parts)
    weight = sum(part[1] for part in parts)
    if not weight > 0:
        raise DataError("The data has no rows to score; check what was read.")
    return total, weight


def polish_components(
    components: Components,
    source: Source,
    shape: Shape,
    passes: int,
    *,
    n_jobs: int | None,
    progress: bool = False,
) -> Polished:
    """At most `passes` steps of EM over all rows; fewer if one gains next to nothing."""
    total = None if source.n_rows is None else passes * source.n_rows
    found = list[float]()
    with rows_bar("Polishing", total, enabled=progress and passes > 0) as on_rows:
        while len(found) < passes:
            sums = _sum_rows(components, source, n_jobs, on_rows)
            components = maximise(components, sums, shape)
            found.append(sums.log_likelihood / float(sums.mass.sum()))
            if len(found) > 1 and found[-1] - found[-2] < MIN_PASS_GAIN:
                break
    return Polished(components, tuple(found))


def _sum_rows(components: Components, source: Source, n_jobs: int | None, on_rows: OnRows) -> Sums:
    """The E step over all rows. Blocks are added up in the order of the data."""

    def work(block: Block, rows: FloatArray) -> Sums:
        beta = np.ones(len(rows)) if block.weights is None else block.weights
        return sum_points(components, rows, beta)

    total: Sums | None = None
    for block, sums in _map_blocks(source, work, n_jobs):
        total = sums if total is None else total.plus(sums)
        on_rows(len(block.rows))
    if total is None or not total.mass.sum() > 0:
        raise DataError("The data has no rows to fit a mixture to; check what was read.")
    return total


def _map_blocks(
    source: Source, work: Callable[[Block, FloatArray], _Result], n_jobs: int | None
) -> Iterator[tuple[Block, _Result]]:
    if isinstance(source, PartitionedSource):
        raise DataError(
            f"These rows stay with {source.engine}, where mixtures are not evaluated; give the "
            "rows of one partition at a time, or files."
        )

    def checked(block: Block) -> _Result:
        rows = np.asarray(block.rows, np.float64)
        place = first_nonfinite(rows)
        if place is not None:
            error = NonFiniteError(*place, float(rows[place]))
            raise block.locate_error(error, source.columns)
        return work(block, rows)

    with one_library_thread(), closing(read(source)) as chunks:
        blocks = split_blocks(recut_chunks(chunks))
        yield from ordered_map(checked, blocks, thread_count(n_jobs))
