"""Clusters that lose a part of themselves in the middle of a pass: rows that leave a mark when they
are made, and the moment at which something is lost.
"""

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np

from ckm.errors import EngineError

NAMES = ["east", "north", "height"]
MEANS = np.array([[0.0, 0, 0], [10, 0, 5], [0, 12, -3]])
WAIT_SECONDS = 300.0  # far longer than any pass here takes


@dataclass(frozen=True)
class MarkedRows:
    """Rows in partitions, each made by the worker that reads it.

    Parameters
    ----------
    folder : path
        Where each partition leaves a mark as often as it is made.
    partitions : int
        Their number. At most 64, so that results are merged in one round, in one order.
    rows : int
        The number of rows of each.
    pause : float
        Seconds that making one takes.
    """

    folder: Path
    partitions: int
    rows: int
    pause: float

    def make(self, number: int) -> np.ndarray:
        """The rows of a partition: the same each time."""
        (self.folder / f"{number}-{uuid4().hex}").touch()
        time.sleep(self.pause)
        return self.values(number)

    def values(self, number: int) -> np.ndarray:
        rng = np.random.default_rng(number)
        clusters = MEANS[rng.integers(3, size=self.rows)]
        return clusters + rng.normal(size=(self.rows, 3))

    def all_values(self) -> np.ndarray:
        return np.concatenate([self.values(number) for number in range(self.partitions)])

    def marks(self) -> int:
        return sum(1 for _ in self.folder.iterdir())

    @contextmanager
    def losing(self, lose: Callable[[], object], after: int) -> Iterator[None]:
        """Call `lose` while the block runs, once `after` partitions have been begun in it."""
        begun = self.marks()
        over = threading.Event()
        found: list[int] = []

        def watch() -> None:
            limit = time.monotonic() + WAIT_SECONDS
            while self.marks() < begun + after and time.monotonic() < limit:
                if over.wait(0.01):
                    return
            found.append(self.marks() - begun)
            lose()

        watcher = threading.Thread(target=watch)
        watcher.start()
        started = time.monotonic()
        try:
            yield
        finally:
            over.set()
            watcher.join()
        assert found, "the block was over before anything was lost"
        again = self.marks() - begun
        print(
            f"lost after {found[0]} of {again} partitions begun, "
            f"{time.monotonic() - started:.1f} s in all"
        )


def assert_one_error(error: EngineError) -> None:
    """One line, and no traceback of the engine's below or above that of the call."""
    assert len(str(error).splitlines()) == 1
    assert "During handling" not in "".join(traceback.format_exception(error))
