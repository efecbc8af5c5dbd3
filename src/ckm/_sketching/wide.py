"""What a sample of wide rows says: the axes to project rows to, and all else about their
projections.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from ckm._core.cells import Anchors, grid_exponents
from ckm._core.defaults import (
    CELLS_PER_CLUSTER,
    HALF_WIDE_CELLS,
    MAX_WIDE_SUMS,
    MIN_WIDE_CELLS_PER_CLUSTER,
    USUAL_AXES,
    USUAL_WIDE_CELLS,
)
from ckm._core.laws import FREQUENCIES_PER_PARAMETER
from ckm._kernels.cpu.projecting import Projector
from ckm._sketching.anchors import MIN_ROWS, ROWS_PER_ANCHOR
from ckm._sketching.axes import choose_projection, column_moments
from ckm._sketching.options import SketchOptions
from ckm._sketching.pilot import PILOT_ROWS, pilot_from_rows
from ckm._sketching.scale import PilotSummary, summarise_pilot
from ckm._sources import Source
from ckm._sources.settings import BLOCK_ROWS
from ckm._util.arrays import BoolArray, FloatArray
from ckm._util.random import stream
from ckm._util.sparse import SparseRows
from ckm.errors import NonFiniteError

# Numbers of the sample, at most: 64 MB in float32.
MAX_SAMPLED_NUMBERS = 2**24
# Rows for each column, at least: with fewer, axes are those of chance where all columns have noise.
ROWS_PER_COLUMN = 8
# Numbers of a block of rows: 32 MB in float32.
_BLOCK_NUMBERS = 2**23
_MIN_BLOCK_ROWS = 256
# Rows that are dense at a time where a value that is not finite is looked for.
_ROWS_AT_ONCE = 64


def wide_options(options: SketchOptions, n: int) -> SketchOptions:
    """The options with a number of anchors that suits rows of n columns."""
    if options.cells != "auto":
        return options
    K = count_clusters(options)
    cells = max(
        min(CELLS_PER_CLUSTER * K, USUAL_WIDE_CELLS),
        min(CELLS_PER_CLUSTER // 2 * K, HALF_WIDE_CELLS),
        MIN_WIDE_CELLS_PER_CLUSTER * K,
    )
    affordable = MAX_WIDE_SUMS // n
    if MIN_WIDE_CELLS_PER_CLUSTER * K <= affordable < cells:
        cells = affordable
    return replace(options, cells=cells)


def count_clusters(options: SketchOptions) -> int:
    """The number of clusters, as it was given or as the size of the sketch suggests."""
    if options.n_clusters is not None:
        return options.n_clusters
    return max(1, (options.sketch_size or 1) // (FREQUENCIES_PER_PARAMETER * USUAL_AXES))


def wide_block_rows(n: int) -> int:
    """How many wide rows to read at a time: so many that sums over cells are seldom added up."""
    return max(_MIN_BLOCK_ROWS, min(BLOCK_ROWS, _BLOCK_NUMBERS // n))


def wide_sample_rows(options: SketchOptions, n: int, is_sparse: bool = False) -> int:
    """How many wide rows to sample."""
    s = options.cells if isinstance(options.cells, int) else 0
    if is_sparse:
        return max(MIN_ROWS, ROWS_PER_ANCHOR * s)
    wanted = max(PILOT_ROWS, ROWS_PER_COLUMN * n, ROWS_PER_ANCHOR * s)
    return max(PILOT_ROWS, min(wanted, MAX_SAMPLED_NUMBERS // n))


def summarise_source(source: Source, options: SketchOptions, seed: int) -> PilotSummary:
    """What a sample of the rows of a source says."""
    is_sparse = source.stay_sparse()
    size = wide_sample_rows(options, source.n_features, is_sparse)
    rows, weights = source.sample_rows(size, stream(seed, "pilot"))
    try:
        return summarise_wide(rows, weights, options, seed)
    except NonFiniteError as error:
        # Now rather than late in the pass.
        for chunk in source.chunks():
            for start in range(0, len(chunk.rows), _ROWS_AT_ONCE):
                some = chunk.where(_between(len(chunk.rows), start, start + _ROWS_AT_ONCE))
                with np.errstate(over="ignore"):
                    seen = np.asarray(some.rows).astype(np.float32)
                some.require_finite(source.columns, values=seen, ignore_weightless=True)
        raise error


def _between(count: int, low: int, high: int) -> BoolArray:
    """A mask of `count` rows that is true from `low` to `high`."""
    numbers = np.arange(count)
    return (numbers >= low) & (numbers < high)


def summarise_wide(
    rows: Any, weights: FloatArray, options: SketchOptions, seed: int
) -> PilotSummary:
    """What sampled rows (p, n), dense or sparse, say."""
    n = rows.shape[1]
    if not len(rows):
        # There are no axes of nothing.
        plain = replace(options, projection=None)
        nothing = pilot_from_rows(np.empty((0, n)), np.empty(0))
        return summarise_pilot(nothing, plain, n, plain.check(n), seed)
    _require_finite(rows)
    K = count_clusters(options)
    rng = stream(seed, "axes")
    moments = column_moments(rows)
    is_standardized = bool(options.standardize)
    found = choose_projection(
        rows, moments, options.projection, K, rng, is_standardized, options.categories
    )
    pilot = pilot_from_rows(Projector(found)(rows).astype(np.float64), weights)
    narrow = replace(options, standardize=False, projection=None, categories=())
    m = narrow.size_for(found.d, is_projected=True)
    summary = summarise_pilot(pilot, narrow, found.d, m, seed)
    anchors = summary.anchors
    if anchors is not None and len(anchors) * n <= MAX_WIDE_SUMS:
        anchors = with_wide_sums(anchors, moments[1])
    return summary._replace(projection=found, anchors=anchors)


def _require_finite(rows: Any) -> None:
    """Raise `NonFiniteError`, without a place, if rows are not finite in float32."""
    values = rows.values[rows.numbers()] if isinstance(rows, SparseRows) else rows
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(values.astype(np.float32, copy=False)).all()
    if not is_finite:
        raise NonFiniteError(0, 0, np.nan)


def with_wide_sums(anchors: Anchors, deviations: FloatArray) -> Anchors:
    """Anchors whose cells also keep sums in all columns, of these standard deviations."""
    return replace(anchors, wide_exponents=grid_exponents(deviations))
