"""Kernels: one chunk of rows in, its `Tally` out. Single-threaded; threads live in the runners.

A kernel is a module with a function `tally(frequencies, rows, weights)`. `rows` is a float32 or
float64 array (b, n) of any strides, perhaps read-only; `weights` a float64 array (b,) of positive
numbers, or None. One that cares how rows are cut also has a function `plan(n_features, n_threads,
on_card)`. To add one: write the module, name it in `KERNELS`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from ckm._core.frequencies import Frequencies
from ckm._core.tally import Tally
from ckm._util.arrays import Array
from ckm.errors import MissingPackageError, ParameterError

Kernel = Callable[[Frequencies, Array, Array | None], Tally]

KERNELS = {
    "reference": "ckm._kernels.numpy",
    "numba": "ckm._kernels.cpu.dense",
    "torch": "ckm._kernels.gpu.sums",
    "torch-plain": "ckm._kernels.torch",
}
ON_CARDS = "torch"  # the one for rows on a card


class Plan(NamedTuple):
    """How rows are given to a kernel: how many at a time, and from how many threads."""

    block_rows: int
    threads: int


def load_kernel(name: str, on_card: bool = False) -> Kernel:
    """The kernel called `name`; "auto" is the fastest for rows on the CPU, or on a card."""
    kernel: Kernel = _module(name, on_card).tally
    return kernel


def plan(name: str, n_features: int, n_threads: int, on_card: bool = False) -> Plan | None:
    """How the kernel wants rows of so many columns; None where it does not care."""
    wish = getattr(_module(name, on_card), "plan", None)
    found: Plan | None = wish(n_features, n_threads, on_card) if wish else None
    return found


def _module(name: str, on_card: bool) -> Any:
    known = (ON_CARDS if on_card else "numba") if name == "auto" else name
    try:
        module = KERNELS[known]
    except (KeyError, TypeError):
        names = ", ".join(map(repr, ("auto", *KERNELS)))
        raise ParameterError(f"There is no kernel {name!r}; choose one of {names}.") from None
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        message = f"The kernel {known!r} needs torch, which is not installed; run: pip install 'compressive-kmeans[gpu]'."
        raise MissingPackageError(message) from None
