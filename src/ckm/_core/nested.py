"""Nested frequencies: for private releases of many columns, where no rows can start a search.

Some hundred clusters in a hundred columns are hard to find from a sketch alone. In d = 10 numbers
y = P x, with the signs of P drawn at random, they are easy to find. So the first frequencies are
omega = P^T w: a sketch of y. All others are omega = P^T w + eta: by w they tell clusters apart
whose y is known, and by a small eta they say where these are in all columns,

    exp(-i omega^T x) = exp(-i w^T y) exp(-i eta^T x),

which is almost linear in x where eta is small. A decoder finds clusters in y first, and descends
from there in all columns, smaller eta first (`ckm._decoding.nested`).
"""

import math

import numpy as np

from ckm._core.laws import broad, uniform_directions
from ckm._util.arrays import FloatArray
from ckm._util.random import stream

NAME = "nested"
# Numbers that columns are mixed into: 64 clusters in a ball were told apart by the first search.
AXES = 10
# One frequency in so many is a sketch of y.
OWN_PERIOD = 5
# Lengths of eta, log-uniform, in units of one over the deviation within clusters that is assumed:
# for data whose deviation is twice as large they are phases of 0.5 to 3 radians. With phases up to
# 2 the SSE was 6 % higher.
ETA_RANGE = (0.25, 1.5)


def nested_axes(seed: int, n: int) -> FloatArray:
    """P (AXES, n): random signs, of rows of length one."""
    signs = stream(seed, "axes").integers(0, 2, size=(AXES, n)) * 2 - 1
    return np.asarray(signs / math.sqrt(n))


def is_own(m: int) -> slice:
    """Which of m frequencies are a sketch of y: the first ones."""
    return slice(0, m // OWN_PERIOD)


def draw_nested(rng: np.random.Generator, m: int, n: int, seed: int) -> FloatArray:
    """m nested frequencies (m, n) at unit scale."""
    frequencies = broad(rng, m, AXES) @ nested_axes(seed, n)
    low, high = ETA_RANGE
    lengths = low * (high / low) ** rng.random(m)
    eta = uniform_directions(rng, m, n) * lengths[:, None]
    eta[is_own(m)] = 0.0
    return np.asarray(frequencies + eta)
