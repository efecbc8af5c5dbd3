"""Cluster any amount of data in one pass: compressive k-means (Keriven, Tremblay, Traonmilin, Gribonval, 2017)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckm import datasets, errors
    from ckm.decoding import Solution, decode
    from ckm.estimator import CompressiveKMeans
    from ckm.frequencies import Frequencies, draw_frequencies
    from ckm.sketcher import Sketcher
    from ckm.sketches import Sketch, merge
    from ckm.sketching import sketch
    from ckm.storage import load

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used, so that `import ckm` costs nothing.
_HOMES = {
    "CompressiveKMeans": "ckm.estimator",
    "Frequencies": "ckm.frequencies",
    "Sketch": "ckm.sketches",
    "Sketcher": "ckm.sketcher",
    "Solution": "ckm.decoding",
    "datasets": "",
    "decode": "ckm.decoding",
    "draw_frequencies": "ckm.frequencies",
    "errors": "",
    "load": "ckm.storage",
    "merge": "ckm.sketches",
    "sketch": "ckm.sketching",
}

__all__ = [  # noqa: RUF022  (in the order a person meets them)
    "CompressiveKMeans",
    "sketch",
    "decode",
    "merge",
    "load",
    "Sketch",
    "Sketcher",
    "Solution",
    "Frequencies",
    "draw_frequencies",
    "datasets",
    "errors",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ckm' has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(home), name) if home else import_module(f"ckm.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
