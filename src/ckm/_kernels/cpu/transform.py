"""The fast Walsh-Hadamard transform of LANES vectors at a time, in passes over memory."""

import numpy as np
from numba import njit

from ckm._kernels.cpu import butterflies as b
from ckm._util.arrays import Array

_LONG = 2**15  # bytes from which LANES vectors do not fit in the first-level cache

_compiled = njit(nogil=True, cache=True, error_model="numpy")


def passes_of(p: int) -> Array:
    """How many sweeps each pass does: three or four, and four near the end only, so that no 16
    numbers share one set of the cache.
    """
    sweeps = p.bit_length() - 1
    return np.array([3] * (sweeps // 3 - sweeps % 3) + [4] * (sweeps % 3))


@njit(nogil=True, error_model="numpy", inline="always")
def transform(source, s, factors, d, target, t, p, passes):  # type: ignore[no-untyped-def]
    """target[t : t + p] = H diag(factors[d : d + p]) source[s : s + p], for arrays (.., LANES) of
    float32 or float64.
    """
    size = first_pass(source, s, factors, d, target, t, p, passes)
    for start in range(t, t + p, size):
        later_passes(target, start, size, p, passes, len(passes))


@_compiled
def first_pass(source, s, factors, d, target, t, p, passes):  # type: ignore[no-untyped-def]
    """Returns how many numbers the later passes should take at a time, so that they stay in the
    cache.
    """
    stride = p >> passes[0]
    if passes[0] == 4:
        b.scaled_pass_4(source, s, factors, d, target, t, p, stride)
    else:
        b.scaled_pass_3(source, s, factors, d, target, t, p, stride)
    return stride if p * target.shape[1] * target.itemsize > _LONG else p


@_compiled
def later_passes(work, w, size, p, passes, end):  # type: ignore[no-untyped-def]
    """All passes but the first, and but those from the `end`-th on, over work[w : w + size]."""
    stride = p >> passes[0]
    for i in range(1, end):
        stride >>= passes[i]
        if passes[i] == 4:
            b.plain_pass_4(work, w, size, stride)
        else:
            b.plain_pass_3(work, w, size, stride)
