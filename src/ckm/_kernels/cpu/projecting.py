"""Projections of rows on the CPU: the specified arithmetic of `ckm._core.projection`.

Dense rows are taken `PANEL` at a time and transposed, so that vectors run along rows. Of sparse
rows only the numbers that are not zero are visited, and vectors run along the axes.
"""

from typing import Any, NamedTuple

import numpy as np

from ckm._core.projection import Projection
from ckm._kernels.cpu.llvm import LANES, add_multiple
from ckm._kernels.cpu.nearest import PANEL, TILE, score_all, transpose_panel
from ckm._util.arrays import Array, Float32Array, FloatArray, aligned, read_only_view
from ckm._util.jit import entry
from ckm._util.sparse import SparseRows, as_sparse
from ckm.errors import NonFiniteError

_NO_ORIGIN = np.empty(0)


class Projector:
    """A projection prepared for rows, with buffers: for one thread.

    Parameters
    ----------
    projection : Projection
        The projection.
    """

    def __init__(self, projection: Projection) -> None:
        self.projection = projection
        self._dense: _Dense | None = None
        self._by_column: Float32Array | None = None

    def __call__(self, rows: Any) -> Float32Array:
        """The projections (b, d) of rows (b, n), dense or sparse.

        Raises `NonFiniteError` if one is not finite; it names the value that is to blame.
        """
        origin = self.projection.origin
        if isinstance(rows, SparseRows) and origin is not None:
            rows = np.asarray(rows)
        y = np.zeros((len(rows), self.projection.d), np.float32)
        if self.projection.is_signed:
            table = rows if isinstance(rows, SparseRows) else as_sparse(rows)
            _project_on_signs(*_arrays_of(table), read_only_view(self.projection.axes), y)
        elif isinstance(rows, SparseRows):
            self._project_sparse(rows, y)
        else:
            self._project_dense(rows, y)
        if not np.isfinite(y).all():
            raise first_nonfinite(self.projection, rows, y)
        return y

    def _project_dense(self, rows: Array, y: Float32Array) -> None:
        if self._dense is None:
            self._dense = _Dense.of(self.projection)
        flat = read_only_view(np.ascontiguousarray(rows).reshape(-1))
        _project_rows(flat, *self._dense, y)

    def _project_sparse(self, rows: SparseRows, y: Float32Array) -> None:
        d = self.projection.d
        if self._by_column is None:
            width = d + -d % LANES
            self._by_column = np.zeros((self.projection.n, width), np.float32)
            self._by_column[:, :d] = self.projection.coefficients.T
        wide = np.zeros((len(y), self._by_column.shape[1]), np.float32)
        _project_sparse_rows(
            *_arrays_of(rows),
            read_only_view(self._by_column.reshape(-1)),
            wide.reshape(-1),
            wide.shape[1],
        )
        y[:] = wide[:, :d]


def _arrays_of(rows: SparseRows) -> tuple[Array, Array, Array]:
    return read_only_view(rows.values), read_only_view(rows.columns), read_only_view(rows.starts)


def first_nonfinite(projection: Projection, rows: Any, y: Float32Array) -> NonFiniteError:
    """The error for the first row whose projection is not finite."""
    row = int(np.argmin(np.isfinite(y).all(axis=1)))
    values = np.asarray(rows[row : row + 1], np.float64)[0]
    with np.errstate(over="ignore", invalid="ignore"):
        seen = projection.centred(values).astype(np.float32)
    column = int(np.argmax(np.where(np.isfinite(seen), np.abs(seen), np.inf)))
    return NonFiniteError(row, column, float(values[column]))


class _Dense(NamedTuple):
    """A projection in the form in which panels of rows are multiplied by it, and buffers."""

    origin: FloatArray  # (PANEL n,): the origin, repeated for every row of a panel; or empty
    axes: Float32Array  # (d + padding, n)
    starts: Float32Array  # (d + padding,): zeros
    x: Float32Array  # (PANEL n + LANES,): rows relative to the origin
    transposed: Float32Array  # (n + padding, PANEL)
    scores: Float32Array  # (d + padding, PANEL)

    @classmethod
    def of(cls, projection: Projection) -> "_Dense":
        d = projection.d
        n = projection.n
        axes = aligned((d + -d % TILE, n), np.float32)
        axes[:d] = projection.coefficients
        axes[d:] = 0
        x = aligned((PANEL * n + LANES,), np.float32)
        x[:] = 0  # the first panel may have few rows
        return cls(
            _NO_ORIGIN if projection.origin is None else np.tile(projection.origin, PANEL),
            axes,
            np.zeros(len(axes), np.float32),
            x,
            aligned((n + -n % LANES, PANEL), np.float32),
            aligned((len(axes), PANEL), np.float32),
        )


@entry
def _project_rows(  # type: ignore[no-untyped-def]
    rows, origin, axes, starts, x, transposed, scores, y
):
    n = axes.shape[1]
    for start in range(0, len(y), PANEL):
        size = min(PANEL, len(y) - start)
        numbers = rows[start * n : (start + size) * n]
        if len(origin):
            for i in range(len(numbers)):
                x[i] = np.float32(np.float64(numbers[i]) - origin[i])
        else:
            for i in range(len(numbers)):
                x[i] = np.float32(numbers[i])
        transpose_panel(x, n, transposed)
        score_all(transposed, axes, starts, scores)
        for r in range(size):
            for j in range(y.shape[1]):
                y[start + r, j] = scores[j, r]


@entry
def _project_sparse_rows(  # type: ignore[no-untyped-def]
    values, columns, starts, by_column, y, width
):
    for r in range(len(starts) - 1):
        for i in range(starts[r], starts[r + 1]):
            place = np.int64(columns[i]) * width
            add_multiple(np.float32(values[i]), by_column, place, y, r * width, width)


@entry
def _project_on_signs(values, columns, starts, signed, y):  # type: ignore[no-untyped-def]
    """Each number is added to, or subtracted from, the line of its column."""
    for r in range(len(starts) - 1):
        for i in range(starts[r], starts[r + 1]):
            line = signed[columns[i]]
            x = np.float32(values[i])
            if line > 0:
                y[r, line - 1] += x
            else:
                y[r, -line - 1] -= x
