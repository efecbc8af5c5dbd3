"""The nearest of K centroids on a GPU: float32 scores where they are certain, else distances in
float64 (see `index` for why that is exact). On a GPU without Triton, float64 decides everything.
Wide rows in half precision have a kernel of their own (`nearest_short`).
"""

from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import torch

from ckm._kmeans.index import CentroidIndex, PreparedCentroids
from ckm._kmeans.nearest_short import (
    MIN_COLUMNS,
    SHORT_TYPES,
    ShortCentroids,
    decide_short_rows,
    label_short_rows,
)
from ckm._kmeans.search import NearestSearch, check_width, no_distance
from ckm._sources import Chunk, Source
from ckm._sources.adapters import measured_rows
from ckm._util.checks import EUCLIDEAN
from ckm._util.device import as_floats, has_triton
from ckm.errors import NonFiniteError

# Columns up to which the kernel unrolls its loop over them.
MAX_UNROLLED_COLUMNS = 16
# Tiles of rows that one program labels, one after another.
TILES_PER_PROGRAM = 8
# Distances in float64 that are computed at a time: 128 MB.
PAIRS_AT_ONCE = 2**24


@dataclass(frozen=True)
class GpuSearch(NearestSearch):
    """Searches chunk by chunk where the rows are; labels and distances are tensors there.

    `use_triton` is None to use it where it compiles for the GPU; False never does. `metric` is that
    of `search_for`.
    """

    index: CentroidIndex
    pairs_at_once: int = PAIRS_AT_ONCE
    use_triton: bool | None = None
    metric: str = EUCLIDEAN

    def label(self, source: Source) -> Any:
        """The label of each row (int32)."""
        return self.assign(source)[0]

    def assign(self, source: Source) -> tuple[Any, float]:
        """The label of each row (int32), and the SSE."""
        check_width(source.n_features, self.index.n_features)
        copies = dict[Any, _DeviceCentroids | ShortCentroids]()
        waiting = deque[_Launch]()
        labels = list[Any]()
        sse = 0.0
        for chunk in chain(source.chunks(), [None]):
            if chunk is not None:
                waiting.append(self._launch(chunk, copies))
            # The GPU works on the next chunk while the result of this one is fetched.
            if waiting and (chunk is None or len(waiting) > 1):
                done = waiting.popleft()
                sse += self._finish(done, source.columns)
                labels.append(done.labels)
        return torch.cat(labels) if labels else torch.empty(0, dtype=torch.int32), sse

    def distances(self, source: Source, dtype: Any) -> Any:
        """Euclidean distances (N, K) from every row to every centroid."""
        K = len(self.index.centroids)
        kind = torch.float32 if dtype == np.float32 else torch.float64
        parts = list[Any]()
        for chunk in source.chunks():
            x = measured_rows(chunk.rows, self.metric).synchronized()
            C = torch.tensor(self.index.centroids, dtype=torch.float64, device=x.device)
            for piece in x.split(max(1, self.pairs_at_once // K)):
                parts.append(_squared_distances(piece.double(), C).sqrt().to(kind))
        return torch.cat(parts) if parts else torch.empty((0, K), dtype=kind)

    def _launch(
        self, chunk: Chunk, copies: "dict[Any, _DeviceCentroids | ShortCentroids]"
    ) -> "_Launch":
        """Start to label a chunk. Without Triton nothing is computed yet, and the SSE is NaN."""
        x = measured_rows(chunk.rows, self.metric).synchronized()
        triton = has_triton(x.device) if self.use_triton is None else self.use_triton
        is_short = triton and x.dtype in SHORT_TYPES and x.shape[1] >= MIN_COLUMNS
        x = x if is_short else as_floats(x)
        key = (x.device, x.dtype)
        if key not in copies:
            dtype = np.float64 if x.dtype == torch.float64 else np.float32
            kind = ShortCentroids if is_short else _DeviceCentroids
            copies[key] = kind.of(self.index.prepared_for(dtype), x.device)
        weights = None
        if chunk.weights is not None:
            weights = torch.tensor(chunk.weights, dtype=torch.float64, device=x.device)
        labels = torch.empty(len(x), dtype=torch.int32, device=x.device)
        partial_sse = torch.tensor(torch.nan)
        centroids = copies[key]
        with torch.cuda.device(x.device) if triton else nullcontext():
            if isinstance(centroids, ShortCentroids):
                partial_sse = label_short_rows(x, centroids, weights, labels)
            elif triton:
                partial_sse = _label_with_triton(x, centroids, weights, labels)
        return _Launch(chunk, x, centroids, weights, labels, partial_sse)

    def _finish(self, launch: "_Launch", columns: tuple[str, ...] | None) -> float:
        """The SSE of a chunk. Where the kernel's is not finite, float64 decides every row."""
        sse = float(launch.partial_sse.sum())
        if isinstance(launch.centroids, ShortCentroids):
            with torch.cuda.device(launch.x.device):
                sse += decide_short_rows(launch.x, launch.centroids, launch.weights, launch.labels)
        if isfinite(sse):
            return sse
        try:
            return self._label_in_float64(launch)
        except NonFiniteError as error:
            raise launch.chunk.locate_error(error, error.row, columns) from None

    def _label_in_float64(self, launch: "_Launch") -> float:
        """Label every row by distances in float64; returns the SSE, or raises `NonFiniteError`."""
        C = launch.centroids.values
        step = max(1, self.pairs_at_once // len(C))
        total = 0.0
        for start in range(0, len(launch.x), step):
            part = slice(start, start + step)
            x = launch.x[part].double()
            squares, nearest = _squared_distances(x, C).min(dim=1)
            failed = (~torch.isfinite(squares)).nonzero()
            if len(failed):
                row = int(failed[0, 0])
                raise no_distance(start + row, x[row].cpu().numpy())
            launch.labels[part] = launch.centroids.labels[nearest]
            weights = None if launch.weights is None else launch.weights[part]
            total += float(squares.sum() if weights is None else weights @ squares)
        return total


class _DeviceCentroids(NamedTuple):
    """`PreparedCentroids` on a GPU.

    `negatives` (columns, width) and `half_norms` (width,) are padded with what is never nearest;
    `block_size` is the number of centroids that the kernel compares at a time.
    """

    values: Any
    labels: Any
    origin: Any
    factor: Any
    negatives: Any
    half_norms: Any
    bounds: Any
    block_size: int

    @classmethod
    def of(cls, prepared: PreparedCentroids, device: Any) -> "_DeviceCentroids":
        """Copies on that GPU."""
        K, n = prepared.centroids.shape
        smallest, largest = (4, 32) if n <= MAX_UNROLLED_COLUMNS else (16, 128)
        block_size = max(smallest, min(largest, 2 ** (K - 1).bit_length()))
        width = -(-K // block_size) * block_size
        negatives = np.zeros((-(-n // 16) * 16, width), np.float32)
        negatives[:n, :K] = prepared.negatives[:K].T
        half_norms = np.full(width, np.inf, np.float32)
        half_norms[:K] = prepared.half_norms[:K]
        arrays = (
            prepared.centroids,
            prepared.labels,
            prepared.origin[:n],
            np.asarray(prepared.factor),
            negatives,
            half_norms,
            prepared.bounds,
        )
        copies: list[Any] = [torch.tensor(array, device=device) for array in arrays]
        return cls._make([*copies, block_size])


class _Launch(NamedTuple):
    """A chunk whose kernel was launched: its labels, and the SSE in parts to be added up."""

    chunk: Chunk
    x: Any
    centroids: _DeviceCentroids | ShortCentroids
    weights: Any
    labels: Any
    partial_sse: Any


def _label_with_triton(x: Any, centroids: _DeviceCentroids, weights: Any, labels: Any) -> Any:
    """Launch the kernel that writes the labels of x; returns the SSE of each program."""
    from ckm._kernels.gpu import nearest
    from ckm._kernels.gpu.streams import STREAMS

    count, n = x.shape
    if n <= MAX_UNROLLED_COLUMNS:
        kernel = nearest.nearest_in_few_columns
        tile_rows = 128
    else:
        kernel = nearest.nearest_in_many_columns
        tile_rows = 64
    C, numbers, origin, factor, negatives, half_norms, bounds, block_size = centroids
    programs = -(-count // (tile_rows * TILES_PER_PROGRAM))
    partial_sse = torch.empty(programs, dtype=torch.float64, device=x.device)
    is_weighted = weights is not None
    variant = (n, block_size, x.device, x.dtype, x.stride(), x.data_ptr() % 16, not is_weighted)
    with STREAMS.launching(kernel, *variant):
        kernel[(programs,)](
            x,
            *x.stride(),
            origin,
            factor,
            negatives,
            half_norms,
            bounds,
            len(half_norms) // block_size,
            len(negatives),
            C,
            len(C),
            numbers,
            weights if is_weighted else bounds,
            labels,
            partial_sse,
            count,
            N=n,
            R=tile_rows,
            T=TILES_PER_PROGRAM,
            K=block_size,
            WEIGHTED=is_weighted,
            enable_fp_fusion=False,
        )
    return partial_sse


def _squared_distances(x: Any, C: Any) -> Any:
    """Squared distances (rows, K), each added up in the order of the columns as on the CPU, so that
    rows halfway between centroids get the same label.
    """
    total = torch.zeros((len(x), len(C)), dtype=torch.float64, device=x.device)
    for own, other in zip(x.T, C.T, strict=True):
        total += (own[:, None] - other[None, :]).square()
    return total
