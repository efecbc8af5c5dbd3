"""Samples of rows: drawn by weight from chunks, and from parts picked all over a source."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ckm._core.pool import SMALLEST_WEIGHT
from ckm._messages import Argument
from ckm._sources.settings import ReadSettings
from ckm._util.arrays import FloatArray, IntArray, float_type
from ckm._util.device import concatenate_rows
from ckm._util.sparse import SparseRows
from ckm.errors import DataError

if TYPE_CHECKING:
    from ckm._sources.base import Chunk

# Parts that a sample reads at least, however large they are.
_MIN_PARTS = 16


class _Sample:
    """The rows with the smallest keys so far, at most `size` of them, in pieces."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pieces = list[Any]()
        self._weights = np.empty(0)
        self._keys = np.empty(0)
        # Only rows with a smaller key can still be in the sample.
        self.bound = np.inf

    def add(self, rows: Any, weights: FloatArray, keys: FloatArray) -> None:
        """Add rows with their weights and keys."""
        self._pieces.append(rows)
        self._weights = np.concatenate([self._weights, weights])
        self._keys = np.concatenate([self._keys, keys])
        # Rows are joined and copied only now and then.
        if len(self._keys) > 2 * self._size:
            self._prune()

    def _prune(self) -> None:
        kept = np.argsort(self._keys, kind="stable")[: self._size]
        self._weights = self._weights[kept]
        self._keys = self._keys[kept]
        self._pieces = [_take(self._pieces, kept)]
        if len(kept) == self._size and self._size:
            self.bound = self._keys[-1]

    def __len__(self) -> int:
        return len(self._keys)

    def finish(self) -> tuple[Any, FloatArray]:
        """The rows and their weights, sorted by key."""
        self._prune()
        return self._pieces[0], self._weights


def _take(pieces: list[Any], which: IntArray) -> Any:
    """Some rows of all pieces, by their numbers."""
    if not all(isinstance(piece, np.ndarray) for piece in pieces):
        return concatenate_rows(pieces)[which]
    # Without a copy of all rows: wide ones take long.
    kind = np.result_type(*pieces)
    rows = np.empty((len(which), pieces[0].shape[1]), kind)
    start = 0
    for piece in pieces:
        own = np.flatnonzero((which >= start) & (which < start + len(piece)))
        rows[own] = piece[which[own] - start]
        start += len(piece)
    return rows


def draw_rows(
    chunks: Iterable["Chunk"], size: int, n_features: int, rng: np.random.Generator
) -> tuple[Any, FloatArray]:
    """Draw at most `size` of all rows, with probabilities that follow their weights.

    Keys are those of a pool (`ckm._core.pool`): the smallest ones are the sample.

    Returns the rows (size, n), as floats of their own precision or sparse, and their weights
    (size,): all rows with their own weights if there are no more than `size`; otherwise the weights
    are one, since they decided what was drawn.
    """
    sample = _Sample(size)
    seen = 0
    for chunk in chunks:
        rows, beta = chunk.rows_with_weight()
        seen += len(rows)
        with np.errstate(over="ignore"):
            keys = rng.standard_exponential(len(rows)) / (1.0 if beta is None else beta)
        keys = np.minimum(keys, 1 / SMALLEST_WEIGHT)
        # Most rows come too late: only those that may still be kept are sorted and copied.
        early = np.flatnonzero(keys < sample.bound)
        if len(early) > size:
            early = early[np.argpartition(keys[early], size)[:size]]
        weights = np.ones(len(early)) if beta is None else beta[early]
        if len(early):
            sample.add(as_sampled(rows[early]), weights, keys[early])
    if not len(sample):
        return np.empty((0, n_features)), np.empty(0)
    drawn, weights = sample.finish()
    if seen > size:
        return drawn, np.ones(len(drawn))
    return drawn, np.maximum(weights, SMALLEST_WEIGHT)


def as_sampled(rows: Any) -> Any:
    """Rows of a sample: sparse ones as they are, others as an array of floats."""
    if isinstance(rows, SparseRows):
        return rows
    array = np.asarray(rows)
    return array.astype(float_type(array.dtype), copy=False)


def pair_weights(
    chunks: Iterable["Chunk"], weights: FloatArray | None, row: int = 0
) -> Iterator["Chunk"]:
    """Yield the chunks with the weights of their rows, of which the first is number `row`.

    Raises `DataError` unless there are as many weights as rows.
    """
    if weights is None:
        yield from chunks
        return
    for chunk in chunks:
        part = weights[row : row + len(chunk.rows)]
        row += len(chunk.rows)
        if len(part) < len(chunk.rows):
            raise wrong_number_of_weights(weights, f"more than {len(weights)}")
        yield chunk._replace(weights=part)
    if row != len(weights):
        raise wrong_number_of_weights(weights, str(row))


def wrong_number_of_weights(weights: FloatArray, rows: str) -> DataError:
    """The error for weights that are not one for each of `rows` rows."""
    return DataError(
        Argument("sample_weight"),
        f" has shape {weights.shape} for {rows} rows; give one weight for each row.",
    )


def pick_parts(
    count: int,
    rows: int,
    size: int,
    n_features: int,
    rng: np.random.Generator,
    settings: ReadSettings,
) -> IntArray:
    """Pick the parts that a sample of `size` rows reads, of `count` parts with `rows` rows in all.

    All of them if the rows are few; otherwise enough to hold several times the sample, and at least
    sixteen. They are whole parts, so that rows sorted within a part do no harm, from as many
    stretches, so that rows sorted over all parts do little.
    """
    needed_rows = settings.rows_to_sample(size, n_features)
    share = -(-needed_rows * count // max(rows, 1))
    return pick_evenly(count, max(_MIN_PARTS, share), rng)


def pick_evenly(count: int, n_picked: int, rng: np.random.Generator) -> IntArray:
    """Pick `n_picked` of the numbers below `count`, one at random from each of as many stretches.

    The stretches are equally long. All numbers if they are fewer.

    >>> pick_evenly(3, 16, np.random.default_rng(0))
    array([0, 1, 2])
    """
    if n_picked >= count:
        return np.arange(count)
    edges = np.arange(n_picked + 1) * count // n_picked
    return rng.integers(edges[:-1], edges[1:])
