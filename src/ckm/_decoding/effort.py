"""How long decoding may take, before it begins."""

from ckm._core.sketch import Sketch
from ckm._decoding.settings import DEFAULT, Settings
from ckm._messages import Argument, Message
from ckm._util.text import describe_seconds

# Seconds per multiply-add of an evaluation, and of a comparison of points with centroids, and the
# evaluations of a search for K atoms, as measured on one core. They serve an estimate to a factor
# of about two.
_SECONDS_PER_MULTIPLY_ADD = 0.8e-9
_SECONDS_PER_COMPARISON = 2.5e-11
_SEARCH_EVALUATIONS = 8
_CELL_EVALUATIONS = 4
# Seconds from which on a word is said before the work, and columns from which on rows are better
# projected.
LONG_SECONDS = 60.0
_WIDE = 64
_AXES = 32


def expected_seconds(sketch: Sketch, K: int, settings: Settings = DEFAULT) -> float:
    """The time on one core that the decoder "density" may need at most.

    Cells that explain the sketch take a few evaluations of their measure; without them, a search
    for K atoms may be followed by the descents of an ensemble.
    """
    m = sketch.frequencies.m
    n = sketch.frequencies.n
    if K == 1:
        return 0.0
    if sketch.cells is not None:
        work = _CELL_EVALUATIONS * len(sketch.cells.anchors) * m * (n + settings.atom_work)
        return _SECONDS_PER_MULTIPLY_ADD * work + _refining_seconds(K, n, settings)
    Q = settings.atoms_per_cluster * K
    work = Q * m * (n + settings.atom_work)
    ensemble = settings.members(K, work) * settings.member_steps * work
    search = _SEARCH_EVALUATIONS * K * K * m * (n + settings.atom_work)
    return _SECONDS_PER_MULTIPLY_ADD * (ensemble + search)


def _refining_seconds(K: int, n: int, settings: Settings) -> float:
    """The time that steps of k-means on many points take, where there are many clusters."""
    if settings.many_clusters > K:
        return 0.0
    points = min(settings.many_drawn_points_per_cluster * K, settings.max_drawn_numbers // n)
    return _SECONDS_PER_COMPARISON * settings.many_steps * points * K * n


def warning_before(sketch: Sketch, K: int, threads: int) -> Message | None:
    """A word before decoding that takes long, with what would take less; None if it is short."""
    seconds = expected_seconds(sketch, K) / max(1, min(threads, DEFAULT.min_members))
    if seconds < LONG_SECONDS:
        return None
    f = sketch.frequencies
    beginning = f"m = {f.m:,} frequencies, about {describe_seconds(seconds)}"
    if f.projection is None and f.n >= _WIDE:
        faster = Argument("projection", _AXES, function="ckm.sketch")
    elif sketch.cells is None:
        faster = Argument("cells", "auto", function="ckm.sketch")
    else:
        return Message(f"{beginning}.")
    return Message(f"{beginning}: a sketch made with ", faster, " takes seconds.")
