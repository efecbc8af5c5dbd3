"""Kernels: one block of rows in, its `Tally` out. Single-threaded: threads are in `_sketching`.

`Kernel` is the interface, with one implementation for the CPU and one for GPUs: `kernel_for`
chooses between them, once per pass over the data. `load_kernel` gives any kernel by its name, the
two slow reference kernels included; it is for tests and benchmarks. To add a kernel, write a class
with the methods of `Kernel` and name it in `KERNELS`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ckm._core.cells import Anchors, Cells, Design
from ckm._core.frequencies import Frequencies
from ckm._core.pool import Pool
from ckm._core.tally import Tally
from ckm._util.arrays import FloatArray
from ckm.errors import ParameterError

if TYPE_CHECKING:
    from ckm._kernels.cpu.wide import Reduced, WideSums

# name -> the module and the class; modules are imported when their kernel is asked for
KERNELS = {
    "numpy": ("ckm._kernels.numpy", "NumpyKernel"),
    "cpu": ("ckm._kernels.cpu.kernel", "CpuKernel"),
    "torch": ("ckm._kernels.torch", "TorchKernel"),
    "gpu": ("ckm._kernels.gpu.kernel", "GpuKernel"),
}


class Plan(NamedTuple):
    """How rows are given to a kernel: how many at a time, and from how many threads."""

    block_rows: int
    threads: int


class Kernel(Protocol):
    """What turns blocks of rows into sums.

    Rows are a float32 or float64 array (b, n) of any strides, possibly read-only, or `DeviceRows`,
    of any type, on a GPU. Weights are a float64 array (b,) of positive numbers, or None.
    """

    def tally(
        self, frequencies: Frequencies, rows: Any, weights: FloatArray | None = None
    ) -> Tally:
        """The sums of equation (3) over these rows, with their bounds and moments."""
        ...

    def tally_cells(
        self,
        anchors: Anchors,
        origin: FloatArray,
        rows: Any,
        weights: FloatArray | None = None,
    ) -> Cells:
        """The cells of these rows, which are finite. By default they are computed on the CPU."""
        from ckm._kernels.cpu.cells import tally_cells
        from ckm._kernels.cpu.kernel import on_host

        return tally_cells(anchors, origin, on_host(rows), weights)

    def reduce(
        self,
        design: Design,
        rows: Any,
        weights: FloatArray | None = None,
        sums: "WideSums | None" = None,
    ) -> "Reduced":
        """Wide rows as the other methods see them, projected, with their cells and the sums over
        their columns. By default they are computed on the CPU. Wide sums of cells may be added to
        `sums` instead of being part of the cells.
        """
        from ckm._kernels.cpu.kernel import on_host
        from ckm._kernels.cpu.wide import reduce_rows

        return reduce_rows(design, on_host(rows), weights, sums)

    @property
    def keeps_cells(self) -> bool:
        """Whether cells are computed where the sums are, so that they are kept by default."""
        return True

    def plan(
        self, n_features: int, n_threads: int, on_device: bool = False, is_projected: bool = False
    ) -> Plan | None:
        """How blocks of rows should be cut; None if the kernel has no preference.

        `on_device` says whether the rows are on a GPU already, `is_projected` whether they are wide
        and will be projected.
        """
        return None

    def draw_pool(
        self,
        rng: np.random.Generator,
        rows: Any,
        weights: FloatArray | None,
        capacity: int,
        frequencies: Frequencies,
        limit: float = np.inf,
    ) -> Pool:
        """A sample of at most `capacity` of these rows; those with keys from `limit` on may be left
        out.
        """
        ...


def kernel_for(device: Any) -> Kernel:
    """The kernel for a resolved device: None is the CPU, a `torch.device` a GPU.

    A device without an index stands for every GPU: rows on a GPU are summed in place, rows on the
    CPU are copied to whichever GPU has the least to do.
    """
    if device is None:
        return load_kernel("cpu")
    from ckm._kernels.gpu.kernel import GpuKernel

    return GpuKernel(device)


def load_kernel(name: str) -> Kernel:
    """The kernel of that name: "numpy", "cpu", "torch" or "gpu"."""
    if name not in KERNELS:
        names = ", ".join(map(repr, KERNELS))
        raise ParameterError(f"There is no kernel {name!r}; choose one of {names}.")
    module, kind = KERNELS[name]
    kernel: Kernel = getattr(import_module(module), kind)()
    return kernel
