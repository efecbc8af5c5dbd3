"""The kernel for GPUs: rows on a GPU are summed in place, rows on the CPU are copied to a GPU while
others are summed.

With at most `EXACT_COLUMNS` columns the sums are bit-identical to those of the CPU. With more
columns, and for structured frequencies, phases come from the matrix units, with each number as the
sum of two float16 numbers: such sketches agree to 1e-6 and are marked `exact=False`. So are those
of wide rows that are projected, which the matrix units do too (`ckm._kernels.gpu.wide`).

Each call has a stream and buffers of its own, so a pass in a few threads keeps a GPU busy while
rows are copied, and uses every GPU there is. A GPU without Triton runs the plain kernel of
`ckm._kernels.torch`.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

from ckm._core.cells import Anchors, Cells, Design
from ckm._core.frequencies import Frequencies
from ckm._core.moments import has_full_moment
from ckm._core.pool import Pool
from ckm._core.tally import Tally, sum_of_squares
from ckm._kernels import Kernel, Plan
from ckm._kernels import torch as plain
from ckm._kernels.cpu import dense
from ckm._kernels.cpu.wide import Reduced, WideSums
from ckm._kernels.gpu.sampling import draw_pool
from ckm._kernels.gpu.streams import STREAMS, StreamPool
from ckm._util.arrays import Array, FloatArray
from ckm._util.device import (
    DEVICE_BYTES,
    DeviceRows,
    as_floats,
    has_triton,
    is_on_gpu,
    is_tensor,
    rows_at_once,
)

EXACT_COLUMNS = 64  # columns up to which the exact kernel is as fast as the matrix units
PROJECTED_COLUMNS = 12  # the same for projections, which are not exact anyway
STAGED_BYTES = 2**26  # bytes of rows from the CPU that are summed at once
_COPYING_THREADS = 12  # threads per GPU that copy rows to it, at most
_SUMMING_THREADS = 2  # threads per GPU that keep it busy with rows that are there
_MEMORY_PARTS = 64  # a block takes at most this fraction of a GPU's memory
# The same for rows on a GPU that are projected: nothing but projections and the numbers of cells is
# made of them, and the fewer blocks, the fewer sums are copied to the CPU.
_PROJECTED_MEMORY_PARTS = 16
_CHECKED_ROWS = 300  # rows that show whether a GPU is bit-identical to the CPU

_log = logging.getLogger(__name__)


class ExactnessCheck:
    """Whether a GPU's compiler keeps to the specified arithmetic: a few rows are summed there and
    on the CPU, once per device and shape of the frequencies.
    """

    def __init__(self) -> None:
        self._known = dict[tuple[Any, int, int], bool]()

    def __call__(self, frequencies: Frequencies, device: Any) -> bool:
        """Whether sums on this device are bit-identical to those of the CPU."""
        key = device, frequencies.m, frequencies.n
        if key not in self._known:
            self._known[key] = self._compare(frequencies, device)
        return self._known[key]

    def _compare(self, frequencies: Frequencies, device: Any) -> bool:
        from ckm._kernels.gpu import launch

        normal = np.random.default_rng(0).normal(size=(_CHECKED_ROWS, frequencies.n))
        rows = frequencies.absolute(2 * normal)
        sums, _ = launch.exact_sums(frequencies, torch.tensor(rows, device=device)).collected()
        same = np.array_equal(sums, dense.tally(frequencies, rows).sums)
        if not same:
            _log.warning(
                "Triton's code on %s is not bit-identical to the CPU: sketches from there agree to "
                "rounding and are marked exact=False.",
                device,
            )
        return same


EXACTNESS = ExactnessCheck()  # what this process has found out


class GpuKernel(Kernel):
    """The specified arithmetic on one GPU, or on every GPU there is.

    Parameters
    ----------
    device : torch.device, optional
        The GPU to use. Without an index, or by default, rows on a GPU stay there, and rows on the
        CPU go to the GPU with the least to do.
    streams, exactness, has_triton, plain_tally, staged_bytes
        What it works with; tests pass their own.
    """

    def __init__(
        self,
        device: Any = None,
        *,
        streams: StreamPool = STREAMS,
        exactness: Callable[[Frequencies, Any], bool] = EXACTNESS,
        has_triton: Callable[[Any], bool] = has_triton,
        plain_tally: Callable[..., Tally] = plain.tally,
        staged_bytes: int = STAGED_BYTES,
    ) -> None:
        self._device = None if device is None or device.index is None else device
        self._streams = streams
        self._exactness = exactness
        self._has_triton = has_triton
        self._plain_tally = plain_tally
        self._staged_bytes = staged_bytes

    def tally(
        self, frequencies: Frequencies, rows: Any, weights: FloatArray | None = None
    ) -> Tally:
        """The sums over these rows, with their bounds and moments: an array, a tensor, or rows on a
        GPU.
        """
        if not len(rows):
            return Tally.empty(frequencies.m, frequencies.n)
        with self._lane_for(rows) as (lane, there, turn):
            return self._sum(frequencies, there, weights, lane, turn)

    def tally_cells(
        self,
        anchors: Anchors,
        origin: FloatArray,
        rows: Any,
        weights: FloatArray | None = None,
    ) -> Cells:
        """The cells of these rows, which are finite. Sums with weights are computed on the CPU."""
        if weights is not None or not len(rows):
            return super().tally_cells(anchors, origin, rows, weights)
        with self._lane_for(rows) as (lane, there, turn):
            if not self._has_triton(lane.device):
                return super().tally_cells(anchors, origin, rows)
            from ckm._kernels.gpu import tallying

            with turn:
                there = there.synchronized() if isinstance(there, DeviceRows) else there
                with self._streams.launching(tallying, *anchors.values.shape, lane.device):
                    if not tallying.CELL_EXACTNESS(lane.device, anchors.n):
                        return super().tally_cells(anchors, origin, rows)
                    found = tallying.sum_cells(anchors, origin, there)
            return found.collected()

    def reduce(
        self,
        design: Design,
        rows: Any,
        weights: FloatArray | None = None,
        sums: WideSums | None = None,
    ) -> Reduced:
        """Projections, cells and sums over columns; on the CPU without Triton. Blocks on a GPU are
        large, so that wide sums are part of their cells.
        """
        if not len(rows):
            return super().reduce(design, rows, weights, sums)
        with self._lane_for(rows) as (lane, there, turn):
            if not self._has_triton(lane.device):
                return super().reduce(design, rows, weights, sums)
            from ckm._kernels.gpu import wide

            with turn:
                there = there.synchronized() if isinstance(there, DeviceRows) else there
                variant = (design.fingerprint, lane.device, there.dtype, there.stride())
                alignment = there.data_ptr() % 16
                with self._streams.launching(wide, *variant, alignment, weights is None):
                    found = wide.sum_wide(design, there, weights)
            return found.collected()

    @property
    def keeps_cells(self) -> bool:
        """Whether there is a kernel for cells: with Triton."""
        return all(map(self._has_triton, self._gpus()))

    def plan(
        self, n_features: int, n_threads: int, on_device: bool = False, is_projected: bool = False
    ) -> Plan | None:
        """Blocks that are worth a launch, and as many threads as keep every GPU busy."""
        gpus = self._gpus()
        memory = min(torch.cuda.get_device_properties(gpu).total_memory for gpu in gpus)
        n_bytes = min(memory // _MEMORY_PARTS, DEVICE_BYTES if on_device else self._staged_bytes)
        if on_device and is_projected:
            n_bytes = memory // _PROJECTED_MEMORY_PARTS
        block_rows = rows_at_once(n_features, n_bytes)
        per_gpu = _SUMMING_THREADS if on_device else _COPYING_THREADS
        return Plan(block_rows, min(per_gpu * len(gpus), max(2, n_threads)))

    def draw_pool(
        self,
        rng: np.random.Generator,
        rows: Any,
        weights: FloatArray | None,
        capacity: int,
        frequencies: Frequencies,
        limit: float = np.inf,
    ) -> Pool:
        """A sample of at most `capacity` of these rows, drawn where they are."""
        return draw_pool(rng, rows, weights, capacity, frequencies, limit)

    def _gpus(self) -> list[Any]:
        if self._device is not None:
            return [self._device]
        return [torch.device("cuda", i) for i in range(torch.cuda.device_count())]

    @contextmanager
    def _lane_for(self, rows: Any) -> Iterator[tuple[Any, Any, Any]]:
        """A lane of the GPU that sums these rows, the rows there, and the turn in which to launch.

        Rows on a GPU are copied only if another one is asked for.
        """
        if is_on_gpu(rows):
            rows = DeviceRows.of(rows)
        elif is_tensor(rows):
            rows = rows.detach().numpy()
        if not isinstance(rows, DeviceRows):
            with self._streams.lane(self._device) as lane:
                yield lane, lane.copied("rows", rows), nullcontext()
            return
        if self._device is not None and rows.tensor.device != self._device:
            rows = DeviceRows.of(rows.synchronized().to(self._device))
        device = rows.tensor.device
        with self._streams.lane(device) as lane:
            yield lane, rows, self._streams.in_turn(device)

    def _sum(
        self, frequencies: Frequencies, rows: Any, weights: FloatArray | None, lane: Any, turn: Any
    ) -> Tally:
        """The tally, computed in the stream of a lane; returns when it is done, so that buffers may
        be used again. Launches are made while `turn` is held.
        """
        device = lane.device
        with turn:
            rows = rows.synchronized() if isinstance(rows, DeviceRows) else rows
            rows = as_floats(rows)
            beta = None if weights is None else lane.copied("weights", weights)
            if not self._has_triton(device):
                return self._plain_tally(frequencies, rows, beta)
            from ckm._kernels.gpu import launch

            is_projected = frequencies.projection is not None
            most = PROJECTED_COLUMNS if is_projected else EXACT_COLUMNS
            split = frequencies.n > most or frequencies.signs is not None
            # whatever Triton compiles a kernel of its own for
            variant = (
                frequencies.m,
                frequencies.n,
                device,
                rows.dtype,
                rows.stride(),
                rows.data_ptr() % 16,
                beta is None,
                split,
            )
            with self._streams.launching(launch, *variant):
                if split:
                    found = launch.split_sums(frequencies, rows, beta)
                    exact = False
                else:
                    found = launch.exact_sums(frequencies, rows, beta)
                    exact = not is_projected and self._exactness(frequencies, device)
        sums, notes = found.collected()
        sums = sums if exact else sums.astype(np.float64)
        return _as_tally(frequencies, rows, weights, sums, notes)


def _as_tally(
    frequencies: Frequencies, rows: Any, weights: FloatArray | None, sums: Array, notes: FloatArray
) -> Tally:
    """The tally of these sums and notes; refuses rows that are not finite in float32."""
    lower = notes[0]
    upper = -notes[1]
    first = notes[2]
    # NaN shows in the moments, overflow in the bounds
    with np.errstate(over="ignore", invalid="ignore"):
        ends = np.array([lower, upper] - frequencies.origin, np.float32)
    if not (np.isfinite(ends).all() and np.isfinite(first).all()):
        plain.require_finite(rows.double() - torch.tensor(frequencies.origin, device=rows.device))
    full = has_full_moment(frequencies.m, frequencies.n)
    second = notes[4:] if full else notes[3]
    weight = float(len(rows)) if weights is None else float(np.sum(weights))
    squares = weight if weights is None else sum_of_squares(weights)
    return Tally(sums, weight, len(rows), lower, upper, first, second, squared_weight=squares)
