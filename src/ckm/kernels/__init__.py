"""Kernels: one chunk of rows in, its `Tally` out. Single-threaded; threads live in the runners.

A kernel is a module with a function `tally(frequencies, rows, weights)`. `rows` is a float32 or float64 array (b, n) of any
strides, perhaps read-only; `weights` a float64 array (b,) of positive numbers, or None. To add one: write the module, name it in `KERNELS`.
"""

from collections.abc import Callable
from importlib import import_module

from ckm.errors import ParameterError
from ckm.frequencies import Frequencies
from ckm.readonly import Array
from ckm.tally import Tally

Kernel = Callable[[Frequencies, Array, Array | None], Tally]

KERNELS = {"reference": "ckm.kernels.reference", "numba": "ckm.kernels.numba"}


def load_kernel(name: str) -> Kernel:
    """The kernel called `name`; "auto" is the fastest that is exact."""
    try:
        module = KERNELS["numba" if name == "auto" else name]
    except (KeyError, TypeError):
        known = ", ".join(map(repr, ("auto", *KERNELS)))
        raise ParameterError(f"There is no kernel {name!r}; choose one of {known}.") from None
    kernel: Kernel = import_module(module).tally
    return kernel
