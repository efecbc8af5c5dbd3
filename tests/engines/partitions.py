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


# Bounds that some rows are beyond, and a cap that some weights are above.
DESIGN = ckm.public_frequencies(
    ([-2, -2, -4], [9, 12, 6]), sketch_size=SIZE, columns=NAMES, max_weight=3
)


def public_weights(X: np.ndarray) -> np.ndarray:
    """Whole-number weights, each a function of its row."""
    return np.where(X[:, 0] > 5, 4, 1)


def assert_releasable(found: ckm.Sketch, X: np.ndarray) -> None:
    """The bits of one machine for a public design, with what was clipped, ready for a release."""
    expected = ckm.sketch(X, like=DESIGN, sample_weight=public_weights(X))
    assert_same(found, expected)
    assert found.tally.bounded.identity() == expected.tally.bounded.identity()
    assert found.tally.bounded.clipped > 0
    assert found.tally.bounded.capped > 0
    assert ckm.release(found, 1.0, 1e-6).release.budget.epsilon == 1.0


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
