"""Exact draws of the discrete Gaussian N_Z(0, sigma^2), whose probabilities are proportional to
exp(-x^2 / 2 sigma^2) at the integers x.

Algorithms 1 to 3 of Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy"
(2020): integers and random bits alone decide, so that the law is exactly the one that the proof of
privacy is about. Floating-point noise is not (Mironov, 2012). How long a draw takes depends on its
value; an observer who can time single draws is not protected against.
"""

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isqrt

import numpy as np

from ckm._util.arrays import IntArray
from ckm.errors import ParameterError

# A function from a number of bytes to so many random bytes, as `os.urandom`. Others are for tests.
RandomBits = Callable[[int], bytes]

# Standard deviations up to 2**56: a draw beyond int64 is 2**7 of them away, with a probability
# below exp(-2**12).
MAX_VARIANCE = 2**112

_WORD_BITS = 64
# Bytes per read: a system call costs as much as a few draws.
_READ_BYTES = 2**13


def discrete_gaussian(
    variance: int | Fraction, count: int, bits: RandomBits = os.urandom
) -> IntArray:
    """Independent draws of N_Z(0, sigma^2), from the operating system's entropy.

    Algorithm 3: a draw Y of the discrete Laplace distribution of scale t = floor(sigma) + 1 is kept
    with probability exp(-(|Y| - sigma^2 / t)^2 / 2 sigma^2).

    Parameters
    ----------
    variance : int or Fraction
        sigma^2, positive. The variance of the draws is this or less, and equal to many digits from
        sigma = 1 on.
    count : int
        The number of draws.
    bits : function from int to bytes
        Where random bytes come from; for tests only.

    Returns
    -------
    int64 array (count,)

    Examples
    --------
    >>> discrete_gaussian(10**12, 5).shape
    (5,)
    """
    sigma2 = Fraction(variance)
    if not 0 < sigma2 <= MAX_VARIANCE:
        raise ParameterError(
            f"The variance of discrete noise must be positive and at most 2**112; got {variance}."
        )
    words = _random_words(bits)
    a, b = sigma2.numerator, sigma2.denominator
    t = isqrt(a // b) + 1
    # (|y| - sigma^2 / t)^2 / 2 sigma^2 = (|y| t b - a)^2 / 2 a b t^2
    tb = t * b
    denominator = 2 * a * tb * t
    draws: list[int] = []
    while len(draws) < count:
        y = _discrete_laplace(t, words)
        if _decays((abs(y) * tb - a) ** 2, denominator, words):
            draws.append(y)
    return np.array(draws, np.int64)


def _discrete_laplace(t: int, words: Iterator[int]) -> int:
    """Algorithm 2 with s = 1: probabilities are proportional to exp(-|y| / t)."""
    while True:
        u = _uniform_below(t, words)
        if not _decays_below_one(u, t, words):
            continue
        v = 0
        while _decays_below_one(1, 1, words):
            v += 1
        y = u + t * v
        if next(words) & 1:
            return y
        if y:  # minus zero would count zero twice
            return -y


def _decays(numerator: int, denominator: int, words: Iterator[int]) -> bool:
    """Algorithm 1: true with probability exp(-numerator / denominator)."""
    while numerator > denominator:
        if not _decays_below_one(1, 1, words):
            return False
        numerator -= denominator
    return _decays_below_one(numerator, denominator, words)


def _decays_below_one(numerator: int, denominator: int, words: Iterator[int]) -> bool:
    """The first half of Algorithm 1: true with probability exp(-gamma), gamma in [0, 1].

    exp(-gamma) is the probability that the first of events of probability gamma, gamma / 2,
    gamma / 3, ... that does not happen has an odd number.
    """
    k = 1
    while _happens(numerator, denominator * k, words):
        k += 1
    return bool(k & 1)


def _happens(numerator: int, denominator: int, words: Iterator[int]) -> bool:
    """True with probability numerator / denominator.

    A uniform number in [0, 1) is compared with it, 64 binary digits at a time, until they differ:
    as a rule one word of randomness decides, and the result is exact.
    """
    while True:
        digits, numerator = divmod(numerator << _WORD_BITS, denominator)
        word = next(words)
        if word != digits:
            return word < digits


def _uniform_below(t: int, words: Iterator[int]) -> int:
    """Each of 0 .. t - 1 with the same probability; t is at most 2**64."""
    shift = _WORD_BITS - (t - 1).bit_length()
    while True:
        u = next(words) >> shift
        if u < t:
            return u


def _random_words(bits: RandomBits) -> Iterator[int]:
    """Yield uniform integers of 64 bits. No word outlives the call that read it."""
    while True:
        yield from memoryview(bits(_READ_BYTES)).cast("Q")
