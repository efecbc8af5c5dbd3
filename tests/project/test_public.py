"""The public names are pinned: a test changes whenever one is added or removed."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import ckm

PUBLIC = {
    "Change",
    "Comparison",
    "Description",
    "CompressiveGaussianMixture",
    "CompressiveKMeans",
    "Frequencies",
    "GaussianMixtureSolution",
    "KCurve",
    "Marginals",
    "Monitor",
    "MonitorStatus",
    "Profile",
    "SharedRelease",
    "Sketch",
    "Sketcher",
    "Solution",
    "compare",
    "curve",
    "datasets",
    "decode",
    "describe",
    "draw_frequencies",
    "errors",
    "fit_mixture",
    "load",
    "marginals",
    "merge",
    "profile",
    "report",
    "public_frequencies",
    "release",
    "sketch",
    "to_onnx",
}

ERRORS = {
    "AdviceWarning",
    "CheckpointError",
    "CellsWarning",
    "ColumnsWarning",
    "HeadWarning",
    "MissingPackageError",
    "MissingRowsWarning",
    "ClustersWarning",
    "CkmError",
    "DataError",
    "EngineError",
    "InputFileError",
    "LedgerError",
    "MismatchError",
    "MissingFileError",
    "NonFiniteError",
    "OutputError",
    "ParameterError",
    "PhaseWarning",
    "ScaleWarning",
    "SmallSketchWarning",
    "SketchFileError",
}


def test_public_names_are_pinned() -> None:
    assert set(ckm.__all__) == PUBLIC
    assert len(ckm.__all__) == len(PUBLIC)
    assert set(dir(ckm)) == PUBLIC | {"__version__"}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(ckm, name)
    assert value.__doc__
    assert name in vars(ckm), "it is looked up only once"


def test_other_names_raise_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'ckm' has no attribute 'nothing'"):
        ckm.nothing


def test_errors_are_pinned_and_have_one_base() -> None:
    found = {
        name: value
        for name, value in vars(ckm.errors).items()
        if isinstance(value, type) and value.__module__ == "ckm.errors"
    }
    assert set(found) == ERRORS
    for name, value in found.items():
        assert issubclass(value, UserWarning if name.endswith("Warning") else ckm.errors.CkmError)


def test_the_version_is_that_of_the_distribution() -> None:
    assert ckm.__version__ == version("compressive-kmeans")


HEAVY = (
    "numba",
    "sklearn",
    "pyarrow",
    "scipy",
    "pandas",
    "polars",
    "safetensors",
    "matplotlib",
    "torch",
    "numpy",
)


def imported_by(statement: str) -> list[str]:
    code = f"{statement}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()


def test_importing_loads_nothing_heavy() -> None:
    assert imported_by("import ckm") == []


def test_loading_a_sketch_needs_no_compiler() -> None:
    assert not {"numba", "sklearn", "pyarrow"} & set(
        imported_by("from ckm import load, merge, Sketch, draw_frequencies")
    )


def test_star_import_works() -> None:
    names: dict[str, object] = {}
    exec("from ckm import *", names)
    assert set(names) >= PUBLIC
