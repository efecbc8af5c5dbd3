"""Wide rows on a GPU: their projections, the cells of these, and sums over their own columns.

Products run on the matrix units, in another order than the specified one, so that such sums are
correct to rounding and marked as not exact: they are float64. They do not depend on how the GPU
schedules its work: rows are sorted by cell, and each cell is added up in pieces, in order.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from ckm._core.cells import Anchors, Cells, Design
from ckm._core.column_sums import ColumnSums
from ckm._core.projection import Projection
from ckm._kernels.cpu.projecting import first_nonfinite
from ckm._kernels.cpu.wide import Reduced
from ckm._kernels.gpu import projecting as kernels
from ckm._util.arrays import FloatArray
from ckm._util.device import DeviceRows

# Rows per program, columns at a time, and axes per program of `project_rows`.
_ROWS = 128
_COLUMNS = 32
_MAX_AXES = 128
# Rows per program, anchors at a time, and columns at a time of `nearest_anchors`.
_SEARCHED_ROWS = 128
_SEARCHED_ANCHORS = 128
_MAX_DEPTH = 64
# Rows of a piece, those at a time, and columns per program of `sum_pieces`.
_PIECE = 1024
_PIECE_ROWS = 8
_PIECE_COLUMNS = 256
# Bits of float32 that the matrix units ignore.
_IGNORED_BITS = 13
# The largest numbers of rows whose nearest anchor is searched in float16, in standard deviations.
_FARTHEST = 60_000.0
# Kinds of rows whose bits all fit the matrix units.
_SHORT = (torch.float16, torch.bfloat16)


class DeviceSums(NamedTuple):
    """What a GPU is computing of a block of wide rows."""

    design: Design
    rows: Any  # (count, n)
    weights: FloatArray | None
    y: Any  # float32 (count, d)
    is_finite: Any  # bool ()
    columns: Any  # float64 (2, n)
    # float64 (s,), (s, 2, d) and (s, n): mass, sums and squares along the axes, sums in all columns
    cells: tuple[Any, Any, Any] | None

    def collected(self) -> Reduced:
        """The sums on the CPU, the projections where they are; waits for them."""
        if not self.is_finite:
            raise self._nonfinite()
        first, second = self.columns.cpu().numpy()
        columns = ColumnSums(first, second)
        return Reduced(DeviceRows.of(self.y), self._collected_cells(), columns)

    def _collected_cells(self) -> Cells | None:
        anchors = self.design.anchors
        if anchors is None or self.cells is None:
            return None
        mass, narrow, wide = (numbers.cpu().numpy() for numbers in self.cells)
        squares = narrow[:, 1] @ anchors.metric**2 / anchors.square_step
        sums = narrow[:, 0] / anchors.steps
        if anchors.wide_exponents is None:
            return Cells(anchors, mass, sums, squares)
        return Cells(anchors, mass, sums, squares, wide / anchors.wide_steps)

    def _nonfinite(self) -> Exception:
        """The error for the first row that is not finite."""
        projection = self.design.frequencies.projection
        assert projection is not None
        row = int(torch.isfinite(self.y).all(dim=1).int().argmin())
        seen = self.rows[row : row + 1].double().cpu().numpy()
        error = first_nonfinite(projection, seen, self.y[row : row + 1].cpu().numpy())
        error.row = row
        return error


def sum_wide(design: Design, rows: Any, weights: FloatArray | None = None) -> DeviceSums:
    """Start to project rows (count, n) on a GPU, and to add them up."""
    frequencies, anchors = design
    projection = frequencies.projection
    assert projection is not None
    device = rows.device
    rows = rows.byte() if rows.dtype == torch.bool else rows
    beta = None if weights is None else torch.tensor(weights, device=device)
    y = project(projection, rows)
    is_finite = torch.isfinite(y).all()
    origin = _origin(projection, device)
    if anchors is None:
        pieces = _Pieces.of(torch.zeros(len(rows), dtype=torch.int32, device=device), 1)
        columns = pieces.sums(rows, origin, beta)[0]
        return DeviceSums(design, rows, weights, y, is_finite, columns, None)
    centre = _tensor(frequencies.origin, device)
    pieces = _Pieces.of(nearest(anchors, y, centre), len(anchors))
    narrow = pieces.sums(y, centre, beta)
    wide = pieces.sums(rows, origin, beta)
    mass = pieces.mass(beta)
    cells = (mass, narrow, wide[:, 0] if anchors.wide_exponents is not None else mass)
    return DeviceSums(design, rows, weights, y, is_finite, wide.sum(dim=0), cells)


def project(projection: Projection, rows: Any) -> Any:
    """The projections (count, d) of rows (count, n) on a GPU, in float32."""
    count, n = rows.shape
    d = projection.d
    axes = _power_of_two(d, 16, _MAX_AXES)
    high, low = _split_axes(projection, rows.device, axes)
    origin = _origin(projection, rows.device)
    is_short = origin is None and rows.dtype in _SHORT
    y = torch.empty((count, d), device=rows.device)
    kernels.project_rows[(-(-count // _ROWS), len(high) // axes)](
        rows, *rows.stride(), count, high if origin is None else origin, high, low, n, y, d,
        CENTRED=origin is not None, SHORT=is_short, R=_ROWS, C=_COLUMNS, D=axes,
        num_warps=8 if axes > 64 else 4, num_stages=3,
    )  # fmt: skip
    return y


def nearest(anchors: Anchors, y: Any, origin: Any) -> Any:
    """The number of an anchor (count,) for each row of projections (count, d), int32.

    It is the anchor nearest to the row once both are rounded to float16, of 11 bits: rows may be in
    a cell next to their own if that is nearly as near.
    """
    there = _searched(anchors, y.device)
    count, d = y.shape
    depth = there.values.shape[1]
    v = torch.zeros((count, depth), dtype=torch.float16, device=y.device)
    scaled = (y - origin).float() * there.factors
    # What is not finite is reported later, and until then it is in some cell.
    v[:, :d] = scaled.nan_to_num_(0.0).clamp_(-_FARTHEST, _FARTHEST)
    cells = torch.empty(count, dtype=torch.int32, device=y.device)
    kernels.nearest_anchors[(-(-count // _SEARCHED_ROWS),)](
        v, count, there.values, there.halves, len(there.halves) // _SEARCHED_ANCHORS, cells,
        DEPTH=depth, D=min(depth, _MAX_DEPTH), R=_SEARCHED_ROWS, K=_SEARCHED_ANCHORS,
        num_warps=8,
    )  # fmt: skip
    return cells


class _Pieces(NamedTuple):
    """Rows sorted by cell, and cut into pieces of the same cell."""

    order: Any  # int64 (count,): the numbers of the rows
    low: Any  # int64 (pieces,): where each piece begins in this order
    high: Any  # int64 (pieces,): where it ends; where it begins, if there is no such piece
    ends: Any  # int64 (s + 1,): the first piece of each cell
    counts: Any  # int64 (s,): the rows of each cell

    @classmethod
    def of(cls, cells: Any, s: int) -> "_Pieces":
        """The pieces of rows in these cells (count,), which are numbers below s."""
        device = cells.device
        by_cell, order = torch.sort(cells, stable=True)
        numbers = torch.arange(s + 1, dtype=by_cell.dtype, device=device)
        starts = torch.searchsorted(by_cell, numbers)
        counts = starts.diff()
        ends = torch.nn.functional.pad(((counts + _PIECE - 1) // _PIECE).cumsum(0), (1, 0))
        # As many as there may be: how many there are is known on the GPU only.
        piece = torch.arange(len(cells) // _PIECE + s, device=device)
        cell = torch.searchsorted(ends, piece, right=True) - 1
        is_there = cell < s
        cell = cell.clamp_max(s - 1)
        low = torch.where(is_there, starts[cell] + _PIECE * (piece - ends[cell]), 0)
        high = torch.where(is_there, torch.minimum(low + _PIECE, starts[cell + 1]), 0)
        return cls(order, low, high, ends, counts)

    def sums(self, rows: Any, origin: Any, weights: Any) -> Any:
        """Sums of w x and w x^2 of each cell, (s, 2, n) in float64, for x = rows - origin."""
        n = rows.shape[1]
        s = len(self.counts)
        columns = _power_of_two(n, 16, _PIECE_COLUMNS)
        parts = torch.empty((len(self.low), 2, n), dtype=torch.float64, device=rows.device)
        nothing = self.order
        kernels.sum_pieces[(len(self.low), -(-n // columns))](
            rows, *rows.stride(), nothing if origin is None else origin,
            nothing if weights is None else weights, self.order, self.low, self.high, parts, n,
            CENTRED=origin is not None, WEIGHTED=weights is not None, T=_PIECE_ROWS, C=columns,
            num_warps=4,
        )  # fmt: skip
        total = torch.empty((s, 2, n), dtype=torch.float64, device=rows.device)
        columns = _power_of_two(2 * n, 16, _PIECE_COLUMNS)
        kernels.join_pieces[(s, -(-2 * n // columns))](
            parts, self.ends, total, 2 * n, C=columns, num_warps=2
        )
        return total

    def mass(self, weights: Any) -> Any:
        """The total weight of each cell (s,), or the number of its rows, in float64."""
        if weights is None:
            return self.counts.double()
        return self.sums(torch.ones_like(weights)[:, None], None, weights)[:, 0, 0]


class _Searched(NamedTuple):
    """Anchors as `nearest_anchors` takes them, on a GPU."""

    values: Any  # float16 (s + padding, depth): in standard deviations of the data
    halves: Any  # float32 (s + padding,): half their squared lengths; infinite for the padding
    factors: Any  # float32 (d,): what columns are multiplied by


@lru_cache(maxsize=16)
def _searched(anchors: Anchors, device: Any) -> _Searched:
    s = len(anchors)
    depth = _power_of_two(anchors.n, 16, _MAX_DEPTH)
    columns = -(-anchors.n // depth) * depth
    width = -(-s // _SEARCHED_ANCHORS) * _SEARCHED_ANCHORS
    scaled = anchors.values * anchors.unit_metric
    values = np.zeros((width, columns), np.float16)
    values[:s, : anchors.n] = np.clip(scaled, -_FARTHEST, _FARTHEST)
    # Those of the rounded anchors: rounding then moves anchors, and no boundary of a cell is torn.
    halves = np.full(width, np.inf, np.float32)
    halves[:s] = (values[:s].astype(np.float64) ** 2).sum(axis=1) / 2
    return _Searched(
        torch.tensor(values, device=device),
        torch.tensor(halves, device=device),
        torch.tensor(anchors.unit_metric, device=device).float(),
    )


@lru_cache(maxsize=16)
def _split_axes(projection: Projection, device: Any, axes: int) -> tuple[Any, Any]:
    """P (d + padding, n) as the sum of two matrices, the first of them of as many bits as the
    matrix units take.
    """
    d = projection.d
    padded = np.zeros((-(-d // axes) * axes, projection.n), np.float32)
    padded[:d] = projection.coefficients
    high = (padded.view(np.uint32) & np.uint32(2**32 - 2**_IGNORED_BITS)).view(np.float32)
    return torch.tensor(high, device=device), torch.tensor(padded - high, device=device)


@lru_cache(maxsize=16)
def _origin(projection: Projection, device: Any) -> Any:
    return None if projection.origin is None else _tensor(projection.origin, device)


def _tensor(values: FloatArray, device: Any) -> Any:
    return torch.tensor(np.array(values), device=device)


def _power_of_two(number: int, least: int, most: int) -> int:
    """The smallest power of two from `number` on, within these limits."""
    return max(least, min(most, 1 << (number - 1).bit_length()))
