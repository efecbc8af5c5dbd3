"""Polish: passes of k-means (Lloyd's algorithm) over the data itself, from centroids that came from
a sketch.

A pass reads every row once more and costs N K n multiply-adds, as labelling the rows does. Rows
stream through in blocks, as for a sketch.
"""

from collections.abc import Iterable
from contextlib import closing
from typing import NamedTuple

import numpy as np

from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.search import search_block
from ckm._sources import Source
from ckm._sources.adapters import Weighted
from ckm._sources.blocks import Block, as_floats, recut_chunks, split_blocks
from ckm._sources.prefetch import read
from ckm._util.arrays import Array, read_only
from ckm._util.checks import check_whole_number
from ckm._util.jit import entry
from ckm._util.parallel import ordered_map
from ckm._util.progress import OnRows, ignore


class Polished(NamedTuple):
    """What the passes made of the centroids.

    Parameters
    ----------
    centroids : array (K, n)
        After the last pass.
    sse : tuple of float
        The SSE of the centroids that each pass started from: one value for each pass made. It never
        rises, but for rounding.
    settled : bool
        Whether the last pass moved no centroid: further passes would not either.
    """

    centroids: Array
    sse: tuple[float, ...]
    settled: bool


class _Sums(NamedTuple):
    """Over the rows nearest to each centroid: their mass (K,) and their sum of beta (x - anchor)
    (K, n); and the SSE of all rows.
    """

    mass: Array
    first: Array
    sse: float


def polish(
    source: Source,
    centroids: Array,
    passes: int,
    *,
    weights: Array | None = None,
    n_threads: int = 1,
    on_rows: OnRows = ignore,
) -> Polished:
    """Move each centroid to the mean of the rows nearest to it, at most `passes` times: c_k = sum
    beta_l x_l / sum beta_l.

    A centroid that is nearest to no row (or only to rows of weight zero) stays where it is. For
    rows in the same order the result is the same, bit for bit, whatever the number of threads and
    the chunks or files that the rows come in.

    Examples
    --------
    >>> import numpy as np
    >>> from ckm._sources import open_source
    >>> X = np.array([[0.0], [1.0], [9.0], [11.0]])
    >>> polish(open_source(X), np.array([[1.0], [5.1]]), 10)
    Polished(centroids=array([[ 0.5],
           [10. ]]), sse=(51.02, 2.5), settled=True)
    """
    # Rows are taken relative to where the centroids began: means far from zero lose nothing, and
    # the same assignment gives the same bits in every pass, which is how it is known that nothing
    # moves any more.
    C = anchors = np.array(centroids, np.float64)
    most, sse, settled = check_whole_number(passes, "polish", 0), list[float](), False
    source = source if weights is None else Weighted(source, weights)
    while len(sse) < most and not settled:
        with closing(read(source)) as chunks:
            sums = _add_up(
                split_blocks(recut_chunks(chunks)), C, anchors, n_threads, on_rows, source.columns
            )
        moved = _means(sums, C, anchors)
        settled = np.array_equal(moved, C)
        sse.append(sums.sse)
        C = moved
    return Polished(read_only(C), tuple(sse), settled)


def _means(sums: _Sums, C: Array, anchors: Array) -> Array:
    mass = sums.mass[:, None]
    return np.where(mass > 0, anchors + sums.first / np.where(mass > 0, mass, 1.0), C)


def _add_up(
    blocks: Iterable[Block],
    C: Array,
    anchors: Array,
    n_threads: int,
    on_rows: OnRows,
    columns: tuple[str, ...] | None,
) -> _Sums:
    """One pass, merged in the order of the data."""
    index = CentroidIndex(C)

    def work(block: Block) -> _Sums:
        rows = as_floats(block.rows)
        labels, squares = search_block(block._replace(rows=rows), index, columns)
        beta = np.ones(len(rows)) if block.weights is None else block.weights
        mass, first = np.zeros(len(C)), np.zeros(C.shape)
        _add_rows(rows, beta, labels, anchors, mass, first)
        return _Sums(mass, first, float((beta * squares).sum()))

    mass, first, sse = np.zeros(len(C)), np.zeros(C.shape), 0.0
    for block, part in ordered_map(work, blocks, n_threads):
        mass += part.mass
        first += part.first
        sse += part.sse
        on_rows(len(block.rows))
    return _Sums(mass, first, sse)


@entry
def _add_rows(rows, beta, labels, anchors, mass, first):  # type: ignore[no-untyped-def]
    for r in range(len(rows)):
        k = labels[r]
        mass[k] += beta[r]
        for d in range(rows.shape[1]):
            first[k, d] += beta[r] * (rows[r, d] - anchors[k, d])
