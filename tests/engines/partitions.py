"""What every engine is held to: the same rows in partitions of all kinds, and what may come back
from them.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import ckm

NAMES = ["east", "north", "height"]
SIZE = 60  # frequencies

# Where rows are cut into partitions: even, skewed, with empty ones at both ends and in between, of
# one row, all in one.
CUTS = {
    "even": [500, 1000, 1500, 2000],
    "skewed": [3, 5, 2400],
    "empty": [0, 0, 700, 700, 701, 2500],
    "one-row": list(range(1, 70)),
    "one": [],
}


def values(count: int = 2500) -> np.ndarray:
    """Rows in three clusters, read-only."""
    rng = np.random.default_rng(7)
    X = np.array([[0.0, 0, 0], [10, 0, 5], [0, 12, -3]])[rng.integers(3, size=count)] + rng.normal(
        size=(count, 3)
    )
    X.flags.writeable = False
    return X


def pieces(X: np.ndarray, cuts: Sequence[int]) -> list[np.ndarray]:
    return np.split(X, cuts)


def local_sketch(X: np.ndarray) -> ckm.Sketch:
    """The sketch that every engine should give, bit for bit, once it has these frequencies."""
    return ckm.sketch(X, sketch_size=SIZE, random_state=0)


def assert_same(found: ckm.Sketch, expected: ckm.Sketch) -> None:
    """The same bits, apart from column names; moments are rounded sums, and merged in another
    order.
    """
    assert found.frequencies.fingerprint == expected.frequencies.fingerprint
    assert found.exact
    assert found.tally.sums.tobytes() == expected.tally.sums.tobytes()
    assert (found.count, found.weight) == (expected.count, expected.weight)
    assert found.lower.tobytes() == expected.lower.tobytes()
    assert found.upper.tobytes() == expected.upper.tobytes()
    np.testing.assert_allclose(found.tally.first, expected.tally.first, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(found.tally.second, expected.tally.second, rtol=1e-10, atol=1e-8)


def rows_in(received: bytes, X: np.ndarray) -> int:
    """How many rows of X can be read in the bytes."""
    return sum(row.tobytes() in received for row in X)


def first_time(marker: Path) -> bool:
    """Whether nobody asked before, in whatever process; the file remembers."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
