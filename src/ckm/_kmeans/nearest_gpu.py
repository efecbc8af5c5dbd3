"""The nearest of K centroids on a card, as in `nearest.py`: float32 scores decide where they can
without doubt, float64 the rest.

On a card without Triton, float64 decides everything.
"""

from collections import deque
from collections.abc import Iterable
from itertools import chain
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import torch

from ckm._kmeans.nearest import Ready, Targets
from ckm._sources import Chunk, Source
from ckm._util.arrays import Array
from ckm._util.device import has_triton
from ckm.errors import NonFiniteError

_FEW_COLUMNS = 16  # so few are unrolled
_TILES = 8  # that a program takes one after another
_PAIRS = 2**24  # distances in float64 at a time


class _There(NamedTuple):
    """Targets on a card: `scaled` (columns, blocks K) and `halves` filled up with what is never the
    nearest.
    """

    centroids: Any
    names: Any
    origin: Any
    factor: Any
    scaled: Any
    halves: Any
    bounds: Any
    together: int  # K, the centroids of a block

    @classmethod
    def of(cls, ready: Ready, device: Any) -> "_There":
        """Copies on that card."""
        count, n = ready.centroids.shape
        least, most = (4, 32) if n <= _FEW_COLUMNS else (16, 128)
        K = max(least, min(most, 2 ** (count - 1).bit_length()))
        scaled, halves = (
            np.zeros((-(-n // 16) * 16, -(-count // K) * K), np.float32),
            np.full(-(-count // K) * K, np.inf, np.float32),
        )
        scaled[:n, :count], halves[:count] = ready.scaled[:count].T, ready.halves[:count]
        arrays = (
            ready.centroids,
            ready.names,
            ready.origin[:n],
            np.asarray(ready.factor),
            scaled,
            halves,
            ready.bounds,
        )
        C, names, origin, factor, scaled, halves, bounds = (
            torch.tensor(array, device=device) for array in arrays
        )
        return cls(C, names, origin, factor, scaled, halves, bounds, K)


class _Labelled(NamedTuple):
    """A chunk whose kernel was launched: labels, and squared distances to be summed."""

    chunk: Chunk
    x: Any
    targets: _There
    weights: Any
    labels: Any
    parts: Any


def label_chunks(source: Source, targets: Targets) -> tuple[Any, float]:
    """Each row's label (int32), as a tensor on the card, and the SSE."""
    labels, sse, there, waiting = [], 0.0, dict[Any, _There](), deque[_Labelled]()
    for chunk in chain(source.chunks(), [None]):
        if chunk is not None:
            waiting.append(_launched(chunk, targets, there))
        # the card is at the next chunk meanwhile
        if waiting and (chunk is None or len(waiting) > 1):
            done = waiting.popleft()
            part = float(done.parts.sum())
            try:
                sse += part if isfinite(part) else _label_slowly(done)
            except NonFiniteError as error:
                raise done.chunk.locate_error(error, error.row, source.columns) from None
            labels.append(done.labels)
    return torch.cat(labels) if labels else torch.empty(0, dtype=torch.int32), sse


def measure(chunks: Iterable[Chunk], centroids: Array, dtype: Any) -> Any:
    """Euclidean distances from every row to every centroid (N, K), as a tensor on the card."""
    parts, kind = [], torch.float32 if dtype == np.float32 else torch.float64
    for chunk in chunks:
        x = chunk.rows.synchronized()  # type: ignore[attr-defined]
        C = torch.tensor(centroids, dtype=torch.float64, device=x.device)
        parts += [
            _squares(piece.double(), C).sqrt().to(kind)
            for piece in x.split(max(1, _PAIRS // len(C)))
        ]
    return torch.cat(parts) if parts else torch.empty((0, len(centroids)), dtype=kind)


def _launched(chunk: Chunk, targets: Targets, known: dict[Any, _There]) -> _Labelled:
    """Labels of a chunk, on their way; without Triton there is no sum yet."""
    x = chunk.rows.synchronized()  # type: ignore[attr-defined]
    x = x if x.dtype in (torch.float32, torch.float64) else x.double()
    (count, n), device, key = x.shape, x.device, (x.device, x.dtype)
    if key not in known:
        known[key] = _There.of(
            targets.single if x.dtype == torch.float32 else targets.double, device
        )
    there, beta = (
        known[key],
        None
        if chunk.weights is None
        else torch.tensor(chunk.weights, dtype=torch.float64, device=device),
    )
    if not has_triton(device):
        return _Labelled(
            chunk,
            x,
            there,
            beta,
            torch.empty(count, dtype=torch.int32, device=device),
            torch.tensor(torch.nan),
        )
    from ckm._kernels.gpu import nearest as distances
    from ckm._kernels.gpu.streams import STREAMS

    C, names, origin, factor, scaled, halves, bounds, K = there
    kernel, R = (
        (distances.nearest_in_few_columns, 128)
        if n <= _FEW_COLUMNS
        else (distances.nearest_in_many_columns, 64)
    )
    programs = -(-count // (R * _TILES))
    parts, labels = (
        torch.empty(programs, dtype=torch.float64, device=device),
        torch.empty(count, dtype=torch.int32, device=device),
    )
    with (
        STREAMS.launching(kernel, n, K, *key, x.stride(), x.data_ptr() % 16, beta is None),
        torch.cuda.device(device),
    ):
        kernel[(programs,)](
            x, *x.stride(), origin, factor, scaled, halves, bounds, len(halves) // K, len(scaled), C, len(C), names,
            bounds if beta is None else beta, labels, parts, count,
            N=n, R=R, T=_TILES, K=K, WEIGHTED=beta is not None, enable_fp_fusion=False,
        )  # fmt: skip
    return _Labelled(chunk, x, there, beta, labels, parts)


def _label_slowly(done: _Labelled) -> float:
    """Label every row by distances in float64; the SSE. `NonFiniteError` where there is no
    distance.
    """
    C, names = done.targets[:2]
    step, total = max(1, _PAIRS // len(C)), 0.0
    for start in range(0, len(done.x), step):
        part = slice(start, start + step)
        some = done.x[part].double()
        squares, nearest = _squares(some, C).min(dim=1)
        bad = (~torch.isfinite(squares)).nonzero()
        if len(bad):
            row = int(bad[0, 0])
            values = some[row].cpu().numpy()
            column = int(np.argmax(np.where(np.isfinite(values), np.abs(values), np.inf)))
            raise NonFiniteError(start + row, column, float(values[column]))
        done.labels[part] = names[nearest]
        total += float(squares.sum() if done.weights is None else done.weights[part] @ squares)
    return total


def _squares(x: Any, C: Any) -> Any:
    """Squared distances (rows, K), each summed in the order of the columns, as on the CPU: so that
    rows halfway get the same label.
    """
    total = torch.zeros((len(x), len(C)), dtype=torch.float64, device=x.device)
    for own, other in zip(x.T, C.T, strict=True):
        total += (own[:, None] - other[None, :]).square()
    return total
