"""float16 to float32 in vectors. NumPy takes three times as long, twelve for subnormal numbers."""

import numpy as np

from ckm._util.arrays import Array, Float32Array
from ckm._util.jit import entry, leaf

# A float16 number has 5 bits of exponent (bias 15) and 10 of fraction; float32 has 8 (bias 127) and
# 23. Its bits, moved up by 13, are those of a float32 that is smaller by this factor, also if it is
# subnormal.
_SHIFT = np.uint32(13)
_FACTOR = np.float32(2.0 ** (127 - 15))
_MAGNITUDE = np.uint32(0x7FFF)
_SIGN = np.uint32(0x8000)
_SIGN_SHIFT = np.uint32(16)
# Infinity and NaN come out as the numbers from 65536 on. They get the exponent they should have.
_NOT_FINITE = np.float32(65536.0).view(np.uint32)
_EXPONENT = np.uint32(0x7F800000)
_PIECE = 2**12  # numbers


def widen_halves(values: Array) -> Float32Array:
    """A float16 array as a contiguous float32 array, exactly.

    >>> widen_halves(np.array([0.5, -np.inf, 6e-8], np.float16))
    array([5.0000000e-01,          -inf, 5.9604645e-08], dtype=float32)
    """
    halves = np.ascontiguousarray(values).reshape(-1).view(np.uint16)
    wide = np.empty(values.shape, np.float32)
    flat = wide.reshape(-1)
    _widen(halves, flat.view(np.uint32), flat)
    return wide


@entry
def _widen(halves, bits, wide):  # type: ignore[no-untyped-def]
    """`bits` and `wide` are the same memory, taken in pieces that stay in the cache."""
    for start in range(0, len(halves), _PIECE):
        stop = min(start + _PIECE, len(halves))
        _move_up(halves[start:stop], bits[start:stop])
        _scale(wide[start:stop])
        _add_signs(halves[start:stop], bits[start:stop])


@leaf
def _move_up(halves, bits):  # type: ignore[no-untyped-def]
    for i in range(len(halves)):
        bits[i] = (np.uint32(halves[i]) & _MAGNITUDE) << _SHIFT


@leaf
def _scale(wide):  # type: ignore[no-untyped-def]
    for i in range(len(wide)):
        wide[i] *= _FACTOR


@leaf
def _add_signs(halves, bits):  # type: ignore[no-untyped-def]
    for i in range(len(halves)):
        sign = (np.uint32(halves[i]) & _SIGN) << _SIGN_SHIFT
        exponent = _EXPONENT if bits[i] >= _NOT_FINITE else np.uint32(0)
        bits[i] = bits[i] | exponent | sign
