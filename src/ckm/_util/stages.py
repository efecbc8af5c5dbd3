"""What a long computation is doing, for whoever shows it to people.

Nothing is reported unless someone follows: a stage is a word or two for a progress bar.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_on_stage: ContextVar[Callable[[str], None] | None] = ContextVar("on_stage", default=None)


def enter_stage(name: str) -> None:
    """Tell that another part of the work begins."""
    follower = _on_stage.get()
    if follower is not None:
        follower(name)


@contextmanager
def follow_stages(follower: Callable[[str], None]) -> Iterator[None]:
    """Call `follower` with the name of each stage that is entered in this thread.

    >>> seen = []
    >>> with follow_stages(seen.append):
    ...     enter_stage("placing")
    >>> enter_stage("unseen")
    >>> seen
    ['placing']
    """
    token = _on_stage.set(follower)
    try:
        yield
    finally:
        _on_stage.reset(token)
