"""Arrays of whole numbers of any size: int64 while they fit, Python's integers beyond."""

import numpy as np

from ckm._util.arrays import Array, IntArray

INT64_MAX = 2**63 - 1


def to_limbs(numbers: Array) -> IntArray:
    """Python's integers as digits (l, ...) to the base 2**62, the lowest first, in int64.

    >>> to_limbs(np.array([3, 2**70], dtype=object))
    array([[  3,   0],
           [  0, 256]])
    """
    limbs = []
    rest = numbers
    while True:
        is_last = all(-(2**62) <= number < 2**62 for number in rest.ravel())
        low = rest if is_last else rest & (2**62 - 1)
        limbs.append(low.astype(np.int64))
        if is_last:
            return np.stack(limbs)
        # Rounds towards minus infinity, so that what is left is exact.
        rest = (rest - low) >> 62


def from_limbs(limbs: IntArray) -> Array:
    """The numbers that `to_limbs` gave; int64 where they fit."""
    total = limbs[-1].astype(object)
    for low in limbs[-2::-1]:
        total = (total << 62) + low.astype(object)
    return shortest(total)


def bound(numbers: Array) -> int:
    """The largest absolute value."""
    return max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))


def shortest(numbers: Array) -> Array:
    """Python's integers as int64, if they fit; other arrays as they are."""
    if numbers.dtype.kind != "O" or bound(numbers) > INT64_MAX:
        return numbers
    return numbers.astype(np.int64)


def add(a: Array, b: Array, largest_a: int, largest_b: int) -> Array:
    """a + b, in Python's integers if int64 might overflow, given bounds of their numbers."""
    is_integer = a.dtype.kind != "f" and b.dtype.kind != "f"
    if is_integer and largest_a + largest_b > INT64_MAX:
        return np.asarray(a.astype(object) + b.astype(object))
    return np.asarray(a + b)


def subtract(a: Array, b: Array) -> Array:
    """a - b, in Python's integers if int64 might overflow."""
    if a.dtype.kind == "f" or b.dtype.kind == "f":
        return np.asarray(a - b)
    bounds = bound(a), bound(b)
    negative = -b if bounds[1] <= INT64_MAX else -b.astype(object)
    return add(a, negative, *bounds)
