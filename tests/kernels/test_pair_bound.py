"""No row adds more to a frequency than the bound that private releases rely on.

The proof is by enumeration: there are 2 113 929 218 float32 numbers in [-1/2, 1/2], subnormal ones
and both zeros included, and the compiled code of the kernel makes a pair of integers of each.
"""

import numpy as np
import pytest
from numba import njit, types

from ckm._core.tally import PAIR_BOUND
from ckm._kernels.cpu.llvm import FLOATS, LANES, element, i64, intrinsic, load, loop, store
from ckm._kernels.cpu.phases import waves
from ckm._kernels.spec import THREE_BITS

HALF_BITS = int(np.float32(0.5).view(np.int32))
NUMBERS = 2**16  # phases at a time: they stay in the cache


@intrinsic
def _write_pairs(context, phases, cosines, sines):
    """Bit patterns of 3 + cos and 3 + sin of float32 phases, by the code of the kernel."""

    def generate(context, builder, signature, args):
        start, out_c, out_s = (
            element(context, builder, kind, value)
            for kind, value in zip((phases, cosines, sines), args, strict=True)
        )
        with loop(builder, i64(0), i64(NUMBERS // LANES)) as (i, _):
            place = builder.mul(i, i64(LANES))
            ((c, s),) = waves(context, builder, [load(builder, start, place, FLOATS)])
            store(builder, c, out_c, place)
            store(builder, s, out_s, place)
        return context.get_dummy_value()

    return types.void(phases, cosines, sines), generate


@njit
def _longest_pair(phases, cosines, sines, three):
    """The largest c^2 + s^2 of some phases."""
    _write_pairs(phases, cosines, sines)
    longest = np.int64(0)
    for i in range(len(phases)):
        c = np.int64(cosines[i]) - three
        s = np.int64(sines[i]) - three
        longest = max(longest, c * c + s * s)
    return longest


def longest_pair(first, last, negative):
    """The largest c^2 + s^2 over the float32 numbers whose bits are first .. last - 1."""
    cosines, sines = np.empty((2, NUMBERS), np.int32)
    sign = np.uint32(2**31 if negative else 0)
    longest = 0
    for low in range(first, last, NUMBERS):
        # The last block is filled up with the last number.
        bits = np.minimum(np.arange(low, low + NUMBERS), last - 1).astype(np.uint32) | sign
        found = _longest_pair(bits.view(np.float32), cosines, sines, THREE_BITS)
        longest = max(longest, int(found))
    return longest


@pytest.mark.slow
def test_every_phase_gives_a_pair_within_the_bound():
    found = [longest_pair(0, HALF_BITS + 1, negative) for negative in (False, True)]
    assert max(found) == PAIR_BOUND


@pytest.mark.parametrize("negative", [False, True])
def test_phases_near_the_longest_pairs_are_within_the_bound(negative):
    """A quick look at the start of every 64th of a binade: 1/64 turns and more."""
    for first in range(HALF_BITS - 6 * 2**23, HALF_BITS, 2**17):
        assert longest_pair(first, first + 64, negative) <= PAIR_BOUND
    assert longest_pair(HALF_BITS, HALF_BITS + 1, negative) <= PAIR_BOUND
