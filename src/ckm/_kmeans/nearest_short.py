"""The nearest of K centroids to wide rows in half precision on a GPU, by products on the matrix
units.

A row in float16 or bfloat16 has no more bits than the matrix units take, so nothing of it is lost,
and no copy of it is made. Centroids are split into two parts. Rows are not centred: with the middle
o of the centroids, scores are |c - o|^2 / 2 + o.(c - o) - x.(c - o), in the units of `index`, and
the bound of their error there counts the length of o as well. It is smaller than where columns are
added one after another: the matrix units add a few, and these sums are added in float32.
"""

from typing import Any, NamedTuple

import numpy as np
import torch

from ckm._kmeans.index import PreparedCentroids

# Kinds of rows that are labelled so, and the columns from which on it pays.
SHORT_TYPES = (torch.float16, torch.bfloat16)
MIN_COLUMNS = 32
# Bits of float32 that the matrix units ignore.
IGNORED_BITS = 13
# Roundings of float32 that a score has for each column that the matrix units add, of both parts of
# the centroids: they truncate once per four columns or more, which is two roundings, and may keep
# a bit less. And those of the lower parts of centroids, and of the score itself.
ROUNDINGS_PER_COLUMN = 2
OTHER_ROUNDINGS = 16
# Rows per program, and columns at a time.
_ROWS = 128
_COLUMNS = 32
_MAX_CENTROIDS = 128
# The same for rows in doubt.
_DOUBTFUL_ROWS = 16
_COMPARED = 64


class ShortCentroids(NamedTuple):
    """`PreparedCentroids` on a GPU, for rows in half precision.

    `high` and `low` (K + padding, n) add up to `negatives`; `half_norms` (K + padding,) are
    infinite for the padding.
    """

    values: Any
    transposed: Any
    labels: Any
    factor: Any
    high: Any
    low: Any
    half_norms: Any
    bounds: Any
    block_size: int

    @classmethod
    def of(cls, prepared: PreparedCentroids, device: Any) -> "ShortCentroids":
        """Copies on that GPU."""
        K, n = prepared.centroids.shape
        block_size = max(16, min(_MAX_CENTROIDS, 2 ** (K - 1).bit_length()))
        negatives = np.zeros((-(-K // block_size) * block_size, n), np.float32)
        negatives[:K] = prepared.negatives[:K]
        high = (negatives.view(np.uint32) & np.uint32(2**32 - 2**IGNORED_BITS)).view(np.float32)
        middle = prepared.origin[:n].astype(np.float64) * float(prepared.factor)
        half_norms = np.full(len(negatives), np.inf, np.float32)
        half_norms[:K] = prepared.half_norms[:K] - negatives[:K].astype(np.float64) @ middle
        bounds = prepared.bounds.copy()
        bounds[0] += np.sqrt((middle**2).sum())
        roundings = -(-n // _COLUMNS) + ROUNDINGS_PER_COLUMN * _COLUMNS + OTHER_ROUNDINGS
        bounds[1] = bounds[1] * roundings / (n + 3) + bounds[3]
        arrays = (
            prepared.centroids,
            prepared.transposed,
            prepared.labels,
            np.asarray(prepared.factor, np.float32),
            high,
            negatives - high,
            half_norms,
            bounds,
        )
        copies: list[Any] = [torch.tensor(array, device=device) for array in arrays]
        return cls._make([*copies, block_size])


def label_short_rows(x: Any, centroids: ShortCentroids, weights: Any, labels: Any) -> Any:
    """Start to write the labels of x, -1 for rows in doubt; the SSE of the others, in parts."""
    from ckm._kernels.gpu import nearest
    from ckm._kernels.gpu.streams import STREAMS

    count, n = x.shape
    programs = -(-count // _ROWS)
    parts = torch.empty(programs, dtype=torch.float64, device=x.device)
    K = centroids.block_size
    kernel = nearest.nearest_to_short_rows
    variant = (n, K, x.device, x.dtype, x.stride(), x.data_ptr() % 16, weights is None)
    with STREAMS.launching(kernel, *variant):
        kernel[(programs,)](
            x, *x.stride(), centroids.factor, centroids.high, centroids.low, centroids.half_norms,
            centroids.bounds, len(centroids.high) // K, centroids.values, centroids.labels,
            parts if weights is None else weights, labels, parts, count, n,
            R=_ROWS, C=_COLUMNS, K=K, WEIGHTED=weights is not None, num_warps=8, num_stages=3,
        )  # fmt: skip
    return parts


def decide_short_rows(x: Any, centroids: ShortCentroids, weights: Any, labels: Any) -> float:
    """Label the rows in doubt by distances in float64; returns their SSE, infinite or NaN if one
    has no finite distance.
    """
    from ckm._kernels.gpu import nearest
    from ckm._kernels.gpu.streams import STREAMS

    chosen = (labels < 0).nonzero()[:, 0]
    if not len(chosen):
        return 0.0
    squares = torch.empty(len(chosen), dtype=torch.float64, device=x.device)
    n = x.shape[1]
    kernel = nearest.decide_rows
    with STREAMS.launching(kernel, n, x.device, x.dtype, x.stride(), x.data_ptr() % 16):
        kernel[(-(-len(chosen) // _DOUBTFUL_ROWS),)](
            x, *x.stride(), chosen, len(chosen), centroids.transposed, len(centroids.values),
            centroids.labels, labels, squares, n,
            R=_DOUBTFUL_ROWS, K=_COMPARED, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return float(squares.sum() if weights is None else weights[chosen] @ squares)
