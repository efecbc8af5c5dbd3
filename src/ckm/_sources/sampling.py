"""Samples of rows: drawn by weight from chunks, and from parts picked all over a source."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ckm._core.pool import Pool
from ckm._messages import Argument
from ckm._sources.settings import ReadSettings
from ckm._util.arrays import FloatArray, IntArray
from ckm.errors import DataError

if TYPE_CHECKING:
    from ckm._sources.base import Chunk

# Parts that a sample reads at least, however large they are.
_MIN_PARTS = 16


def draw_sample(
    chunks: Iterable["Chunk"], size: int, n_features: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw at most `size` of all rows, with probabilities that follow their weights.

    Returns the rows (size, n) and their weights (size,): all rows with their own weights if there
    are no more than `size`; otherwise the weights are one, since they decided what was drawn.
    """
    pool = Pool.empty(size, n_features)
    for chunk in chunks:
        rows, beta = chunk.rows_with_weight()
        keys = rng.standard_exponential(len(rows)) / (1.0 if beta is None else beta)
        # Most rows come too late: only those that may still be kept are sorted and copied.
        largest = pool.keys[-1] if len(pool) == size else np.inf
        early = np.flatnonzero(keys < largest)
        if len(early) > size:
            early = early[np.argpartition(keys[early], size)[:size]]
        weights = np.ones(len(early)) if beta is None else beta[early]
        pool = pool + Pool(rows[early], weights, weights, keys[early], size, len(rows))
    return pool.rows, pool.weights if pool.is_complete else np.ones(len(pool))


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
