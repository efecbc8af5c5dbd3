"""Sketches by a kernel of a given name, whatever the device that `ckm.sketch` would choose."""

import numpy as np

import ckm
from ckm._kernels import load_kernel
from ckm._sketching.accumulate import BlockSketcher, State, accumulate
from ckm._sources.arrays import ArraySource
from ckm._sources.blocks import split_blocks


def sketch_by(kernel: str, X: np.ndarray, frequencies: ckm.Frequencies) -> ckm.Sketch:
    """The sketch of these rows by the kernel called `kernel`."""
    blocks = split_blocks(ArraySource(X).chunks())
    sketch_block = BlockSketcher(load_kernel(kernel), frequencies)
    state = accumulate(sketch_block, blocks, State.empty(frequencies, 0))
    return ckm.Sketch(frequencies, state.tally)
