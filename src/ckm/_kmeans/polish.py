"""Polish: passes of Lloyd's algorithm over the data itself, from centroids that a sketch gave.

A pass reads every row once more and costs N K n multiply-adds, as much as labelling the rows. Rows
are read in blocks, in bounded memory, as for a sketch. (`lloyd` works on points in memory.)
"""

from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from ckm._core.preparation import unprepared
from ckm._kmeans.assign import Centroids
from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.search import CpuSearch, search_block
from ckm._sources import Source
from ckm._sources.adapters import Weighted, in_metric
from ckm._sources.blocks import Block, as_floats, recut_chunks, split_blocks
from ckm._sources.prefetch import read
from ckm._util.arrays import FloatArray, read_only
from ckm._util.checks import check_whole_number
from ckm._util.jit import entry
from ckm._util.parallel import ordered_map, thread_count
from ckm._util.progress import OnRows, ignore, rows_bar


class Polished(NamedTuple):
    """The result of polishing.

    Parameters
    ----------
    centroids : array (K, n)
        The centroids after the last pass.
    sse : tuple of float
        For each pass the SSE of the centroids that it started from. It never increases, except by
        rounding.
    settled : bool
        Whether the last pass moved no centroid: further passes would not either.
    """

    centroids: FloatArray
    sse: tuple[float, ...]
    settled: bool


class _Sums(NamedTuple):
    """Sums over the rows nearest to each centroid.

    Parameters
    ----------
    mass : array (K,)
        sum beta_l
    first : array (K, n)
        sum beta_l (x_l - anchor_k)
    sse : float
        sum beta_l |x_l - c_k|^2, over all rows.
    """

    mass: FloatArray
    first: FloatArray
    sse: float

    def plus(self, other: "_Sums") -> "_Sums":
        """The sums over the rows of both."""
        return _Sums(self.mass + other.mass, self.first + other.first, self.sse + other.sse)


def polish_centroids(
    centroids: Centroids, source: Source, passes: int, *, n_jobs: int | None, progress: bool
) -> Polished:
    """Polish centroids in the units and metric of distances; the result is in the data's own units.

    With `progress`, a bar shows the rows of all passes.
    """
    units = 1.0 if centroids.units is None else centroids.units
    total = None if source.n_rows is None else passes * source.n_rows
    with rows_bar("Polishing", total, enabled=progress and passes > 0) as on_rows:
        polished = polish(
            in_metric(centroids.measured(source), centroids.metric),
            centroids.measured_values,
            passes,
            n_threads=thread_count(n_jobs),
            on_rows=on_rows,
        )
    found = unprepared(polished.centroids * units, centroids.preparation)
    return polished._replace(centroids=read_only(found))


def polish(
    source: Source,
    centroids: FloatArray,
    passes: int,
    *,
    weights: FloatArray | None = None,
    n_threads: int = 1,
    on_rows: OnRows = ignore,
) -> Polished:
    """Move each centroid to the mean of the rows nearest to it, at most `passes` times.

    c_k = sum beta_l x_l / sum beta_l over the rows l nearest to c_k. A centroid that is nearest to
    no row, or only to rows of weight zero, stays where it is. For rows in the same order the result
    is bit-identical for any number of threads and any division of the rows into chunks or files.

    Examples
    --------
    >>> import numpy as np
    >>> from ckm._sources import open_source
    >>> X = np.array([[0.0], [1.0], [9.0], [11.0]])
    >>> polish(open_source(X), np.array([[1.0], [5.1]]), 10)
    Polished(centroids=array([[ 0.5],
           [10. ]]), sse=(51.02, 2.5), settled=True)
    """
    max_passes = check_whole_number(passes, "polish", 0)
    source = source if weights is None else Weighted(source, weights)
    C = np.array(centroids, np.float64)
    # Rows are taken relative to the first centroids. So means far from zero lose nothing to
    # rounding, and the same labels give bit-identical centroids in every pass, which is how it is
    # known that nothing moves any more. Sparse rows are taken as they are: most numbers are zero.
    is_sparse = source.stay_sparse()
    anchors = np.zeros(()) if is_sparse else C
    sse = list[float]()
    settled = False
    while len(sse) < max_passes and not settled:
        if is_sparse:
            sums = _sum_sparse_rows(source, C, n_threads, on_rows)
        else:
            sums = _sum_rows(source, C, anchors, n_threads, on_rows)
        moved = _means(sums, C, anchors)
        settled = np.array_equal(moved, C)
        sse.append(sums.sse)
        C = moved
    return Polished(read_only(C), tuple(sse), settled)


def _means(sums: _Sums, C: FloatArray, anchors: FloatArray) -> FloatArray:
    """The means of the rows nearest to each centroid; the centroid itself if there are none."""
    mass = sums.mass[:, None]
    return np.where(mass > 0, anchors + sums.first / np.where(mass > 0, mass, 1.0), C)


def _sum_rows(
    source: Source, C: FloatArray, anchors: FloatArray, n_threads: int, on_rows: OnRows
) -> _Sums:
    """One pass over all rows. Blocks are added up in the order of the data."""
    index = CentroidIndex(C)

    def work(block: Block) -> _Sums:
        rows = as_floats(block.rows)
        labels, squares = search_block(block._replace(rows=rows), index, source.columns)
        beta = np.ones(len(rows)) if block.weights is None else block.weights
        mass = np.zeros(len(C))
        first = np.zeros(C.shape)
        _add_rows(rows, beta, labels, anchors, mass, first)
        return _Sums(mass, first, float((beta * squares).sum()))

    total = _Sums(np.zeros(len(C)), np.zeros(C.shape), 0.0)
    with closing(read(source)) as chunks:
        blocks = split_blocks(recut_chunks(chunks))
        for block, sums in ordered_map(work, blocks, n_threads):
            total = total.plus(sums)
            on_rows(len(block.rows))
    return total


def _sum_sparse_rows(source: Source, C: FloatArray, n_threads: int, on_rows: OnRows) -> _Sums:
    """The same for sparse rows, relative to zero.

    Threads search, which takes K times as long as adding up. Rows are added up here one after the
    other, so that there is one table (K, n) of sums however many blocks there are.
    """
    search = CpuSearch(CentroidIndex(C), n_threads)
    mass = np.zeros(len(C))
    first = np.zeros(C.shape)
    sse = np.zeros(1)
    with closing(read(source)) as chunks:
        for block, labels, squares in search.blocks(split_blocks(chunks), source.columns):
            rows: Any = block.rows
            beta = np.ones(len(labels)) if block.weights is None else block.weights
            _add_sparse_rows(*rows.compressed(), beta, labels, squares, mass, first, sse)
            on_rows(len(labels))
    return _Sums(mass, first, float(sse[0]))


@entry
def _add_sparse_rows(  # type: ignore[no-untyped-def]
    values, columns, starts, beta, labels, squares, mass, first, sse
):
    for r in range(len(labels)):
        k = labels[r]
        mass[k] += beta[r]
        sse[0] += beta[r] * squares[r]
        for j in range(starts[r], starts[r + 1]):
            first[k, columns[j]] += beta[r] * values[j]


@entry
def _add_rows(rows, beta, labels, anchors, mass, first):  # type: ignore[no-untyped-def]
    for r in range(len(rows)):
        k = labels[r]
        mass[k] += beta[r]
        for d in range(rows.shape[1]):
            first[k, d] += beta[r] * (rows[r, d] - anchors[k, d])
