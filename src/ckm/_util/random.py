"""Random numbers: every random choice is drawn from a named stream of one integer seed."""

import operator
import secrets

import numpy as np

from ckm._messages import Argument
from ckm.errors import ParameterError

RandomState = int | np.integer | np.random.Generator | np.random.RandomState | None

# The position of a stream determines its numbers, and so results: append, never reorder.
STREAMS = (
    "pilot",
    "scale",
    "frequencies",
    "pool",
    "decode",
    "dataset",
    "anchors",
    "axes",
    "mixture",
    "curve",
    "sample",
    "init",
    "movement",
    "profile",
)


def seed_of(random_state: RandomState) -> int:
    """The integer seed that a `random_state` argument stands for.

    An integer is its own seed. A generator is drawn from once, so that it advances; None gives a
    new seed each time.
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
            Argument("random_state"),
            " must be None, an integer from 0 to 2**64 - 1, a NumPy Generator or a RandomState; "
            f"got {random_state!r}.",
        )
    return seed


def stream(seed: int, name: str, *position: int) -> np.random.Generator:
    """An independent generator for one purpose, and for one position (such as a block) of it."""
    key = (STREAMS.index(name), *position)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
