"""One seed, many independent streams: every random choice of the library is drawn from a named
stream of one integer.
"""

import operator
import secrets
from typing import Any

import numpy as np

from ckm.errors import ParameterError

# A stream's position is part of what makes results reproducible: append, never reorder.
STREAMS = ("pilot", "scale", "frequencies", "pool", "decode", "dataset")


def seed_of(random_state: Any) -> int:
    """The integer seed behind `random_state`: None, an integer, a NumPy Generator or a RandomState.

    An integer is its own seed; a generator is drawn from once, so that it advances as its owner
    expects.
    """
    if random_state is None:
        return secrets.randbits(63)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))

    try:
        seed = -1 if isinstance(random_state, bool) else operator.index(random_state)
    except TypeError:
        seed = -1
    if not 0 <= seed < 2**64:
        raise ParameterError(
            f"random_state must be None, an integer from 0 to 2**64 - 1, a NumPy Generator or a RandomState; got {random_state!r}."
        )
    return seed


def stream(seed: int, name: str, *position: int) -> np.random.Generator:
    """An independent generator for one purpose (and, for pieces of data, one position)."""
    return np.random.default_rng(
        np.random.SeedSequence(seed, spawn_key=(STREAMS.index(name), *position))
    )
