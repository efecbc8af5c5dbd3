"""The nearest of K centroids on a card, as in `nearest.py`: float32 scores decide where they can without doubt, float64 the rest."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl

from ckm.errors import NonFiniteError
from ckm.nearest import Ready, Targets
from ckm.readonly import Array
from ckm.sources import Chunk, Source

_ROWS, _TILES = 64, 8  # rows at a time, and how many times, of a program
_PAIRS = 2**24  # distances in float64 at a time


class _There(NamedTuple):
    """Targets on a card: `scaled` (blocks K, columns) and `halves` filled up with what is never the nearest."""

    centroids: Any
    names: Any
    origin: Any
    scaled: Any
    halves: Any
    bounds: Any  # the factor, the largest length, and the three constants of `nearest._doubt`
    together: int  # K, the centroids of a block

    @classmethod
    def of(cls, ready: Ready, device: Any) -> "_There":
        """Copies on that card."""
        count, n = ready.centroids.shape
        K = max(16, min(128, triton.next_power_of_2(count)))
        scaled, halves = np.zeros((-(-count // K) * K, -(-n // 16) * 16), np.float32), np.full(-(-count // K) * K, np.inf, np.float32)
        scaled[:count, :n], halves[:count] = ready.scaled[:count], ready.halves[:count]
        tiny = 1e-33 * n
        bounds = np.array([ready.factor, ready.length, 2.1 * 2.0**-24 * (n + 3) * ready.length + tiny, 1.1 * 2.0**-53 * (n + 3), tiny])
        arrays = ready.centroids, ready.names, ready.origin[:n], scaled, halves, bounds
        C, names, origin, scaled, halves, bounds = (torch.tensor(array, device=device) for array in arrays)
        return cls(C, names, origin, scaled, halves, bounds, K)


def label_chunks(source: Source, targets: Targets) -> tuple[Any, float]:
    """Each row's label (int32), as a tensor on the card, and the SSE."""
    parts, sse, there = [], 0.0, dict[Any, _There]()
    for chunk in source.chunks():
        x = chunk.rows.waited()  # type: ignore[attr-defined]
        x = x if x.dtype in (torch.float32, torch.float64) else x.double()
        key = x.device, x.dtype
        if key not in there:
            there[key] = _There.of(targets.single if x.dtype == torch.float32 else targets.double, x.device)
        try:
            labels, part = _find_nearest(x, there[key], chunk.weights)
        except NonFiniteError as error:
            raise chunk.located(error, error.row, source.columns) from None
        parts.append(labels)
        sse += part
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int32), sse


def measure(chunks: Iterable[Chunk], centroids: Array, dtype: Any) -> Any:
    """Euclidean distances from every row to every centroid (N, K), as a tensor on the card."""
    parts, kind = [], torch.float32 if dtype == np.float32 else torch.float64
    for chunk in chunks:
        x = chunk.rows.waited()  # type: ignore[attr-defined]
        C = torch.tensor(centroids, dtype=torch.float64, device=x.device)
        parts += [_squares(piece.double(), C).sqrt().to(kind) for piece in x.split(max(1, _PAIRS // len(C)))]
    return torch.cat(parts) if parts else torch.empty((0, len(centroids)), dtype=kind)


def _find_nearest(x: Any, targets: _There, weights: Array | None) -> tuple[Any, float]:
    """Labels, and the sum of weighted squared distances. `NonFiniteError` where there is no distance."""
    (count, n), device = x.shape, x.device
    beta = None if weights is None else torch.tensor(weights, dtype=torch.float64, device=device)
    programs = -(-count // (_ROWS * _TILES))
    parts, labels = torch.empty(programs, dtype=torch.float64, device=device), torch.empty(count, dtype=torch.int32, device=device)
    C, names, origin, scaled, halves, bounds, K = targets
    with torch.cuda.device(device):
        _nearest[(programs,)](
            x, *x.stride(), origin, scaled, halves, bounds, len(halves) // K, scaled.shape[1], C, names, bounds if beta is None else beta,
            labels, parts, count, N=n, R=_ROWS, T=_TILES, K=K, WEIGHTED=beta is not None, enable_fp_fusion=False,
        )  # fmt: skip
    return labels, float(parts.sum()) + _decide(x, C, names, beta, labels)


def _decide(x: Any, C: Any, names: Any, beta: Any, labels: Any) -> float:
    """Label the rows in doubt by distances in float64; their part of the SSE."""
    doubtful, total = (labels < 0).nonzero()[:, 0], 0.0
    for which in doubtful.split(max(1, _PAIRS // len(C))):
        some = x[which].double()
        squares, nearest = _squares(some, C).min(dim=1)
        bad = (~torch.isfinite(squares)).nonzero()
        if len(bad):
            row = int(bad[0, 0])
            values = some[row].cpu().numpy()
            column = int(np.argmax(np.where(np.isfinite(values), np.abs(values), np.inf)))
            raise NonFiniteError(int(which[row]), column, float(values[column]))
        labels[which] = names[nearest]
        total += float(squares.sum() if beta is None else beta[which] @ squares)
    return total


def _squares(x: Any, C: Any) -> Any:
    """Squared distances (rows, K), each summed in the order of the columns, as on the CPU: so that rows halfway get the same label."""
    total = torch.zeros((len(x), len(C)), dtype=torch.float64, device=x.device)
    for own, other in zip(x.T, C.T, strict=True):
        total += (own[:, None] - other[None, :]).square()
    return total


@triton.jit
def _tile(rows, by_row, by_column, l, there, start, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sixteen columns of some rows, zero where there are none."""
    d = start + tl.arange(0, 16)
    mask = there[:, None] & (d < N)[None, :]
    return d, mask, tl.load(rows + l[:, None] * by_row + d[None, :].to(tl.int64) * by_column, mask=mask, other=0.0)


@triton.jit(do_not_specialize=["count", "blocks"])
def _nearest(  # type: ignore[no-untyped-def]
    rows, by_row, by_column, origin, scaled, halves, bounds, blocks, columns, centroids, names, weights, labels, parts, count,
    N: tl.constexpr, R: tl.constexpr, T: tl.constexpr, K: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Labels of T tiles of R rows, -1 where rounding may have chosen (see `nearest._doubt`); squared distances of the others, summed."""
    factor, length = tl.load(bounds).to(origin.dtype.element_ty), tl.load(bounds + 1)
    a, b, tiny = tl.load(bounds + 2), tl.load(bounds + 3), tl.load(bounds + 4)
    total = tl.zeros([R], tl.float64)
    for tile in range(T):
        l = (tl.program_id(0) * T + tile).to(tl.int64) * R + tl.arange(0, R)
        there = l < count
        best, second = tl.full([R], float("inf"), tl.float32), tl.full([R], float("inf"), tl.float32)
        which, norm = tl.zeros([R], tl.int32), tl.zeros([R], tl.float32)
        for block in range(blocks):
            k = block * K + tl.arange(0, K)
            score = tl.broadcast_to(tl.load(halves + k)[None, :], [R, K])
            norm = tl.zeros([R], tl.float32)
            for start in range(0, columns, 16):
                d, mask, y = _tile(rows, by_row, by_column, l, there, start, N)
                o = tl.load(origin + d, mask=d < N, other=0.0)
                v = tl.where(mask, (y - o[None, :]) * factor, 0.0).to(tl.float32)
                norm += tl.sum(v * v, axis=1)
                score = tl.dot(v, tl.load(scaled + k[None, :] * columns + d[:, None]), score, input_precision="ieee")
            least, at = tl.min(score, axis=1, return_indices=True)
            other = tl.min(tl.where(tl.arange(0, K)[None, :] == at[:, None], float("inf"), score), axis=1)
            second = tl.minimum(tl.maximum(best, least), tl.minimum(second, other))
            which = tl.where(least < best, block * K + at, which)
            best = tl.minimum(best, least)
        reach = 1.01 * tl.sqrt(norm.to(tl.float64)) + length
        sure = (second.to(tl.float64) - best.to(tl.float64) > reach * (a + b * reach) + tiny) & (norm < 1e37) & there
        squares = tl.zeros([R], tl.float64)
        for start in range(0, columns, 16):
            d, mask, y = _tile(rows, by_row, by_column, l, sure, start, N)
            gap = y.to(tl.float64) - tl.load(centroids + which[:, None] * N + d[None, :], mask=mask, other=0.0)
            squares += tl.sum(gap * gap, axis=1)
        if WEIGHTED:
            squares = squares * tl.load(weights + l, mask=sure, other=0.0)
        total += squares
        tl.store(labels + l, tl.where(sure, tl.load(names + which, mask=sure, other=0), -1), mask=there)
    tl.store(parts + tl.program_id(0), tl.sum(total, axis=0))
