"""Sketches by a kernel of a given name, and by one that fails."""

from typing import Any

import numpy as np

import ckm
from ckm._core.cells import Design
from ckm._core.tally import Tally
from ckm._kernels import load_kernel
from ckm._sketching.accumulate import BlockSketcher, State, accumulate
from ckm._sources.arrays import ArraySource
from ckm._sources.blocks import split_blocks


def sketch_by(kernel: str, X: np.ndarray, frequencies: ckm.Frequencies) -> ckm.Sketch:
    """The sketch of these rows by the kernel called `kernel`."""
    blocks = split_blocks(ArraySource(X).chunks())
    sketch_block = BlockSketcher(load_kernel(kernel), Design(frequencies))
    state = accumulate(sketch_block, blocks, State.empty(Design(frequencies), 0))
    return ckm.Sketch(frequencies, state.tally)


class FailingKernel:
    """A kernel that fails once it has sketched some blocks."""

    def __init__(self, n_blocks: int, error: BaseException) -> None:
        self._kernel = load_kernel("cpu")
        self._left = n_blocks
        self._error = error

    def tally(self, frequencies: ckm.Frequencies, rows: Any, weights: Any = None) -> Tally:
        self._left -= 1
        if self._left < 0:
            raise self._error
        return self._kernel.tally(frequencies, rows, weights)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)
