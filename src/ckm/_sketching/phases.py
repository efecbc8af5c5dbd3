"""Rows so far from the origin that float32 cannot represent their phases."""

import numpy as np

from ckm._core.sketch import Sketch
from ckm._kernels.spec import MAX_TURNS
from ckm._messages import Argument, Message
from ckm._util.arrays import FloatArray
from ckm._util.warn import warn_user
from ckm.errors import PhaseWarning


def has_large_phases(sketch: Sketch) -> bool:
    """Whether rows are so far from the origin that float32 cannot represent their phases."""
    return sketch.count > 0 and _max_turns(sketch) > MAX_TURNS


def warn_of_large_phases(sketch: Sketch) -> None:
    """Warn of rows so far from the origin that float32 cannot represent their phases."""
    f = sketch.frequencies
    farthest = int(np.argmax(_reach(sketch) / f.step))
    where = ""
    if f.projection is None:
        name = farthest if sketch.columns is None else repr(sketch.columns[farthest])
        where = f", most of all in column {name},"
    warn_user(
        Message(
            f"Some rows are so far from the others{where} ({_max_turns(sketch):.3g} turns of "
            "phase) that float32 cannot represent their phases: they add noise to the sketch. "
            "Remove outliers, or give a larger ",
            Argument("scale", ...),
            f" (now {f.scale:.3g}).",
        ),
        PhaseWarning,
    )


def _reach(sketch: Sketch) -> FloatArray:
    """The distance from the origin to the farthest value of each column (n,)."""
    origin = sketch.frequencies.origin
    return np.asarray(np.maximum(np.abs(sketch.lower - origin), np.abs(sketch.upper - origin)))


def _max_turns(sketch: Sketch) -> float:
    """The largest phase of any point within the bounds of the rows, in turns."""
    return sketch.frequencies.max_turns(_reach(sketch), MAX_TURNS)
