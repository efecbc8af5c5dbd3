"""Cluster any amount of data in one pass: compressive k-means (Keriven, Tremblay, Traonmilin,
Gribonval, 2017).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckm import datasets, errors
    from ckm._core.frequencies import Frequencies, draw_frequencies
    from ckm._core.sketch import Sketch, merge
    from ckm._core.storage import load
    from ckm._decoding.api import Solution, decode
    from ckm._sketching.api import sketch
    from ckm._sketching.stream import Sketcher
    from ckm.estimators import CompressiveKMeans

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used, so that `import ckm` costs
# nothing.
_HOMES = {
    "CompressiveKMeans": "ckm.estimators",
    "Frequencies": "ckm._core.frequencies",
    "Sketch": "ckm._core.sketch",
    "Sketcher": "ckm._sketching.stream",
    "Solution": "ckm._decoding.api",
    "datasets": "",
    "decode": "ckm._decoding.api",
    "draw_frequencies": "ckm._core.frequencies",
    "errors": "",
    "load": "ckm._core.storage",
    "merge": "ckm._core.sketch",
    "sketch": "ckm._sketching.api",
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
