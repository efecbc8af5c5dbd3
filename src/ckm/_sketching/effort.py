"""How long a pass may take, before it begins."""

from ckm._core.cells import Design
from ckm._messages import Argument, Message
from ckm._sketching.options import WORK_PER_PAIR
from ckm._util.text import describe_seconds

# Seconds per multiply-add on one core, as measured: 3e-11 to 5e-11. An estimate to a factor of two.
_SECONDS_PER_MULTIPLY_ADD = 5e-11
# Seconds from which on a word is said before the pass, and columns from which on rows are better
# projected.
LONG_SECONDS = 60.0
_WIDE = 64
_AXES = 32


def expected_pass_seconds(rows: int, design: Design) -> float:
    """The time on one core of a pass over so many rows, reading left out."""
    f = design.frequencies
    anchors = 0 if design.anchors is None else len(design.anchors)
    work = f.m * (f.n + WORK_PER_PAIR) + anchors * f.n
    if f.projection is not None:
        work += f.n * f.n_features
    return _SECONDS_PER_MULTIPLY_ADD * rows * work


def word_before_pass(rows: int | None, design: Design, threads: int) -> Message | None:
    """A word before a pass that takes long, with what takes less; None if it is short, or if the
    number of rows is not known.
    """
    seconds = expected_pass_seconds(rows or 0, design) / max(1, threads)
    if seconds < LONG_SECONDS:
        return None
    f = design.frequencies
    beginning = f"m = {f.m:,} frequencies of {rows:,} rows, about {describe_seconds(seconds)}"
    if f.projection is None and f.n >= _WIDE:
        faster = Argument("projection", _AXES)
    else:
        faster = Argument("sketch_size", f.m // 2)
    return Message(f"{beginning}: ", faster, " takes less.")
