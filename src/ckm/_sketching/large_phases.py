"""A warning for rows so far from the others that their phases lose all precision."""

import numpy as np

from ckm._core.sketch import Sketch
from ckm._kernels.spec import MAX_TURNS
from ckm._messages import Argument, Message
from ckm._util.warn import warn_user
from ckm.errors import PhaseWarning


def has_large_phases(sketch: Sketch) -> bool:
    """Whether rows are so far from the origin that float32 cannot represent their phases."""
    return sketch.count > 0 and _max_turns(sketch) > MAX_TURNS


def warn_of_large_phases(sketch: Sketch) -> None:
    """Warn of rows so far from the origin that float32 cannot represent their phases."""
    warn_user(
        Message(
            f"Some rows are so far from the others ({_max_turns(sketch):.3g} turns of phase) that "
            "float32 cannot represent their phases: they add noise to the sketch. Remove outliers, "
            "or give a larger ",
            Argument("scale", ...),
            f" (now {sketch.frequencies.scale:.3g}).",
        ),
        PhaseWarning,
    )


def _max_turns(sketch: Sketch) -> float:
    """The largest phase of any point within the bounds of the rows, in turns."""
    frequencies = sketch.frequencies
    below = np.abs(sketch.lower - frequencies.origin)
    above = np.abs(sketch.upper - frequencies.origin)
    return frequencies.max_turns(np.maximum(below, above), MAX_TURNS)
