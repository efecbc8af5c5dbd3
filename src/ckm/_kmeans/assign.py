"""Nearest centroids, distances and SSE (equation 1), block by block and in threads."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from ckm._kmeans.nearest import Targets, find_nearest
from ckm._sources import Source
from ckm._sources.arrays import ArraySource
from ckm._sources.base import Chunk
from ckm._sources.blocks import BLOCK_ROWS, Block, as_floats, split_blocks
from ckm._sources.prefetch import read
from ckm._util.arrays import Array
from ckm._util.jit import entry
from ckm._util.parallel import ordered_map
from ckm._util.progress import OnRows, ignore
from ckm.errors import MismatchError, NonFiniteError

# of centroids that a row is compared with, for a block of the usual size to be worth a task
_NUMBERS = 512
_MOST_BLOCKS = 8  # usual ones that are taken together
UNKNOWN = -1  # the label of a row with a missing value, where nan="drop": rows keep their places


def assign(
    X: Array | Source,
    centroids: Array,
    sample_weight: Array | None = None,
    n_threads: int = 1,
    nan: str = "error",
) -> tuple[Array, float]:
    """Each row's nearest centroid (the first of several), and SSE = sum_l beta_l min_k |x_l -
    c_k|^2.
    """
    source = X if isinstance(X, Source) else ArraySource(X, weights=sample_weight)
    if source.is_on_gpu:
        return _on_card(source, centroids)
    sse = list[float]()

    def labels_of(chunks: Iterable[Chunk]) -> Iterator[Array]:
        for block, part, squares in assign_blocks(
            _blocks(chunks, centroids), centroids, n_threads, source.columns, nan
        ):
            sse.append(float(squares.sum() if block.weights is None else block.weights @ squares))
            yield part

    with closing(read(source)) as chunks:
        return _joined(labels_of(chunks), source.n_rows), sum(sse)


def label(X: Array | Source, centroids: Array, n_threads: int = 1, nan: str = "error") -> Array:
    """Each row's nearest centroid alone, which spares its distance."""
    source = X if isinstance(X, Source) else ArraySource(X)
    if source.is_on_gpu:
        found: Array = _on_card(source, centroids)[0]
        return found
    targets = Targets(centroids)

    def work(block: Block) -> Array:
        labels = np.empty(len(block.rows), np.int32)
        _look_up(block, targets, source.columns, labels, nan=nan)
        return labels

    with closing(read(source)) as chunks:
        return _joined(
            (part for _, part in ordered_map(work, _blocks(chunks, centroids), n_threads)),
            source.n_rows,
        )


def _joined(parts: Iterable[Array], most: int | None) -> Array:
    """Labels one after another; where it is known how many there are at most, they are never in
    memory twice.
    """
    if most is None:
        return np.concatenate([np.empty(0, np.int32), *parts])
    labels, total = np.empty(most, np.int32), 0
    for part in parts:
        labels[total : total + len(part)] = part
        total += len(part)
    return labels[:total]


def assign_blocks(
    blocks: Iterable[Block],
    centroids: Array,
    n_threads: int = 1,
    columns: tuple[str, ...] | None = None,
    nan: str = "error",
) -> Iterator[tuple[Block, Array, Array]]:
    """(block, labels, squared distances) for each block in order: the streaming form. `columns` are
    named in errors.
    """
    targets = Targets(centroids)
    for block, (labels, squares) in ordered_map(
        lambda block: nearest(block, targets, columns, nan), blocks, n_threads
    ):
        yield block, labels, squares


def nearest(
    block: Block, targets: Targets, columns: tuple[str, ...] | None = None, nan: str = "error"
) -> tuple[Array, Array]:
    """Each row's nearest centroid and squared distance to it, for one block."""
    labels, squares = np.empty(len(block.rows), np.int32), np.empty(len(block.rows))
    _look_up(block, targets, columns, labels, squares, nan)
    return labels, squares


def distances(
    X: Array | Source, centroids: Array, n_threads: int = 1, dtype: Any = np.float64
) -> Array:
    """Euclidean distances from every row to every centroid (N, K)."""
    source = X if isinstance(X, Source) else ArraySource(X)
    transposed = np.ascontiguousarray(centroids.T, np.float64)
    if source.is_on_gpu:
        from ckm._kmeans.nearest_gpu import measure

        measured: Array = measure(source.chunks(), centroids, dtype)
        return measured

    def work(block: Block) -> Array:
        rows, part = (
            _of_width(block.rows, len(transposed)),
            np.empty((len(block.rows), len(centroids)), dtype),
        )
        _distances(rows, transposed, part)
        finite = np.isfinite(part[:, 0])
        if not finite.all():
            raise _without_distance(block, rows, int(np.argmin(finite)), source.columns)
        return part

    with closing(read(source)) as chunks:
        parts = [part for _, part in ordered_map(work, _blocks(chunks, centroids), n_threads)]
    return np.concatenate([np.empty((0, len(centroids)), dtype), *parts])


def _on_card(source: Source, centroids: Array) -> tuple[Any, float]:
    """Labels as a tensor where the rows are, and the SSE."""
    from ckm._kmeans.nearest_gpu import label_chunks

    _require_width(source.n_features, centroids.shape[1])
    return label_chunks(source, Targets(centroids))


class Labelling(NamedTuple):
    """What labelling found, for each cluster: rows, their weight (their number, where they have
    none), their squared distances summed; and how many rows have missing values, where these were
    not refused.
    """

    counts: Array
    mass: Array
    sse: Array
    missing: int = 0

    @classmethod
    def of(cls, found: Array) -> "Labelling":
        """From sums (3, 1 + K), of which the first belong to rows without a label."""
        counts, mass, sse = found[:, 1:]
        return cls(counts.astype(np.int64), mass, sse, int(found[0, 0]))


def label_rows(
    source: Source,
    centroids: Array,
    *,
    n_threads: int = 1,
    on_labels: Callable[[Array], None] | None = None,
    on_rows: OnRows = ignore,
    nan: str = "error",
) -> Labelling:
    """Give every row of `source` to its nearest centroid; `on_labels` gets the labels in order,
    block by block.
    """
    found = np.zeros((3, 1 + len(centroids)))
    with closing(read(source)) as chunks:
        for block, labels, squares in assign_blocks(
            _blocks(chunks, centroids), centroids, n_threads, source.columns, nan
        ):
            found += sums_of(block, labels, squares, len(centroids))
            if on_labels is not None:
                on_labels(labels)
            on_rows(len(labels), block.n_bytes)
    return Labelling.of(found)


def sums_of(block: Block, labels: Array, squares: Array, K: int) -> Array:
    """Rows, weight and squared distances of each label (3, 1 + K), those of rows without one first."""
    which = np.subtract(labels, UNKNOWN, dtype=np.intp)
    values = (None, block.weights, squares if block.weights is None else block.weights * squares)
    return np.array([np.bincount(which, value, minlength=1 + K) for value in values], np.float64)


def _blocks(chunks: Iterable[Chunk], centroids: Array) -> Iterator[Block]:
    """Larger blocks where there are few numbers to compare a row with: else threads would spend
    their time on taking turns.
    """
    return split_blocks(
        chunks, size=BLOCK_ROWS * max(1, min(_MOST_BLOCKS, _NUMBERS // max(1, centroids.size)))
    )


def _look_up(
    block: Block,
    targets: Targets,
    columns: tuple[str, ...] | None,
    labels: Array,
    squares: Array | None = None,
    nan: str = "error",
) -> None:
    """Write labels and squares of a block, or say which of its values has no distance."""
    rows = _of_width(block.rows, targets.n)
    bad = find_nearest(rows, targets, labels, squares)
    if bad is not None and nan == "drop":
        missing = np.asarray(np.isnan(rows).any(axis=1))
        bad = find_nearest(
            np.where(missing[:, None], rows.dtype.type(0), rows), targets, labels, squares
        )
        labels[missing] = UNKNOWN
        if squares is not None:
            squares[missing] = 0.0
    if bad is not None:
        raise _without_distance(block, rows, bad, columns)


def _without_distance(
    block: Block, rows: Array, bad: int, columns: tuple[str, ...] | None
) -> NonFiniteError:
    """That row number `bad` of a block has no distance, and why."""
    values = np.asarray(rows[bad], np.float64)
    column = int(np.argmax(np.where(np.isfinite(values), np.abs(values), np.inf)))
    return block.locate_error(NonFiniteError(bad, column, float(values[column])), columns)


def _of_width(rows: Array, n: int) -> Array:
    """Float rows, known to be as wide as the centroids: compiled code does not look."""
    _require_width(rows.shape[1], n)
    return as_floats(rows)


def _require_width(columns: int, n: int) -> None:
    if columns != n:
        raise MismatchError(
            f"The rows have {columns} columns where the centroids have {n}; give the columns they were made from."
        )


@entry
def _distances(rows, transposed, result):  # type: ignore[no-untyped-def]
    """The innermost loop runs along centroids, which vectorises."""
    squares = np.empty(transposed.shape[1])
    for r in range(len(rows)):
        squares[:] = 0.0
        for d in range(rows.shape[1]):
            x = np.float64(rows[r, d])
            c = transposed[d]
            for k in range(len(squares)):
                squares[k] += (x - c[k]) * (x - c[k])
        for k in range(len(squares)):
            result[r, k] = np.sqrt(squares[k])
