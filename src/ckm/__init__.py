"""Compressive k-means: cluster any amount of data in one pass.

A sketch summarises the data in one pass, and clusters are decoded from the sketch alone (Keriven,
Tremblay, Traonmilin and Gribonval, "Compressive K-means", ICASSP 2017).

Examples
--------
>>> import ckm
>>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=100.0, random_state=0).rows
>>> s = ckm.sketch(X, n_clusters=3, random_state=0)
>>> ckm.decode(s, 3, random_state=0).centroids.shape
(3, 2)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckm import datasets, errors
    from ckm._analysis.change import Change, MonitorStatus
    from ckm._analysis.comparing import compare
    from ckm._analysis.comparison import Comparison
    from ckm._analysis.describing import describe
    from ckm._analysis.description import Description
    from ckm._analysis.every_k import curve
    from ckm._analysis.k_curve import KCurve
    from ckm._analysis.marginal import Marginals, marginals
    from ckm._analysis.mixture_fit import fit_mixture
    from ckm._analysis.mixture_solution import GaussianMixtureSolution
    from ckm._analysis.monitor import Monitor
    from ckm._analysis.profile import Profile
    from ckm._analysis.profiling import profile
    from ckm._core.drawing import draw_frequencies
    from ckm._core.frequencies import Frequencies
    from ckm._core.merging import merge
    from ckm._core.sketch import Sketch
    from ckm._core.storage import load
    from ckm._decoding.api import decode
    from ckm._decoding.solution import Solution
    from ckm._display.report.api import report
    from ckm._privacy.public import public_frequencies
    from ckm._privacy.releasing import release
    from ckm._privacy.shared import SharedRelease
    from ckm._sketching.api import sketch
    from ckm._sketching.stream import Sketcher
    from ckm._sklearn.onnx_model import to_onnx
    from ckm.estimators import CompressiveKMeans
    from ckm.mixture_estimator import CompressiveGaussianMixture

__version__ = "0.2.0"

# The module that defines each public name. Names are imported when they are first used, so that
# `import ckm` loads nothing heavy.
_HOMES = {
    "Change": "ckm._analysis.change",
    "Comparison": "ckm._analysis.comparison",
    "CompressiveGaussianMixture": "ckm.mixture_estimator",
    "CompressiveKMeans": "ckm.estimators",
    "Description": "ckm._analysis.description",
    "Frequencies": "ckm._core.frequencies",
    "GaussianMixtureSolution": "ckm._analysis.mixture_solution",
    "Monitor": "ckm._analysis.monitor",
    "MonitorStatus": "ckm._analysis.change",
    "KCurve": "ckm._analysis.k_curve",
    "Profile": "ckm._analysis.profile",
    "SharedRelease": "ckm._privacy.shared",
    "Sketch": "ckm._core.sketch",
    "Sketcher": "ckm._sketching.stream",
    "Solution": "ckm._decoding.solution",
    "compare": "ckm._analysis.comparing",
    "curve": "ckm._analysis.every_k",
    "datasets": "ckm.datasets",
    "decode": "ckm._decoding.api",
    "describe": "ckm._analysis.describing",
    "draw_frequencies": "ckm._core.drawing",
    "errors": "ckm.errors",
    "fit_mixture": "ckm._analysis.mixture_fit",
    "load": "ckm._core.storage",
    "Marginals": "ckm._analysis.marginal",
    "marginals": "ckm._analysis.marginal",
    "merge": "ckm._core.merging",
    "profile": "ckm._analysis.profiling",
    "public_frequencies": "ckm._privacy.public",
    "release": "ckm._privacy.releasing",
    "report": "ckm._display.report.api",
    "sketch": "ckm._sketching.api",
    "to_onnx": "ckm._sklearn.onnx_model",
}

__all__ = [  # noqa: RUF022  (in the order in which users need them)
    "CompressiveKMeans",
    "CompressiveGaussianMixture",
    "sketch",
    "decode",
    "curve",
    "merge",
    "load",
    "describe",
    "Description",
    "compare",
    "Comparison",
    "profile",
    "Profile",
    "report",
    "to_onnx",
    "marginals",
    "Marginals",
    "Sketch",
    "Sketcher",
    "Solution",
    "fit_mixture",
    "GaussianMixtureSolution",
    "Monitor",
    "MonitorStatus",
    "Change",
    "KCurve",
    "Frequencies",
    "draw_frequencies",
    "public_frequencies",
    "release",
    "SharedRelease",
    "datasets",
    "errors",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ckm' has no attribute {name!r}")
    module = import_module(_HOMES[name])
    value = module if _HOMES[name] == f"ckm.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
