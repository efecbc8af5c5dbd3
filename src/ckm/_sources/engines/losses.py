"""Workers that are lost for good: how long a pass waits for others, and the error it ends with."""

import time

from ckm.errors import EngineError

# Seconds that a pass waits for a worker after the last one was lost: a new machine takes minutes.
NO_WORKERS_SECONDS = 300.0
# Seconds between two looks at the workers of a pass.
POLL_SECONDS = 1.0
# Characters of an engine's own message that are worth showing.
_REASON_CHARACTERS = 300


def lost_workers(engine: str, reason: str) -> EngineError:
    """The error of an engine that gave up for this reason, of which only the beginning is shown."""
    beginning = " ".join(reason.split()).rstrip(".")
    if len(beginning) > _REASON_CHARACTERS:
        beginning = beginning[:_REASON_CHARACTERS] + "..."
    return EngineError(
        f"{engine} lost workers and gave up, so there is no result: {beginning}. See the logs of "
        "the workers (too little memory is the usual reason), then run it again."
    )


class Patience:
    """How long a pass goes on without any worker.

    A cluster that has had no worker yet is waited for, as for a queue of jobs.

    Parameters
    ----------
    engine : str
        The name of the engine, for messages.
    has_workers : bool
        Whether there is a worker now.
    limit : float
        The seconds after which `look` raises.
    """

    def __init__(self, engine: str, has_workers: bool, limit: float) -> None:
        self._engine = engine
        self._limit = limit
        self._last_seen = time.monotonic() if has_workers else None

    def look(self, has_workers: bool) -> None:
        """Raise `EngineError` if the last worker was lost longer ago than the limit."""
        now = time.monotonic()
        if has_workers:
            self._last_seen = now
        elif self._last_seen is not None and now - self._last_seen > self._limit:
            raise lost_workers(
                self._engine, f"the last one is gone, and none came within {self._limit:g} seconds"
            )
