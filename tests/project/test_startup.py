"""Startup: nothing heavy is imported before it is used, and compiled code is cached on disk.

Each test starts processes of its own, and counts modules and compilations. `benchmarks/startup.py`
measures seconds.
"""

import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ckm

HEAVY = (
    "numpy",
    "numba",
    "llvmlite",
    "scipy",
    "sklearn",
    "pyarrow",
    "narwhals",
    "safetensors",
    "matplotlib",
    "pandas",
    "polars",
    "rich",
)


def run(code: str, **environment: str) -> list[str]:
    """The lines that a new process prints."""
    everything = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env=everything,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["-h"],
        ["--version"],
        ["fit", "--help"],
        ["predict", "--help"],
        ["demo", "--help"],
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
from ckm._cli.app import app
try:
    app({arguments!r})
finally:
    print(*(name for name in {HEAVY!r} if name in sys.modules))
"""
    output = run(code)
    assert output[0].strip() or output[1].strip()
    assert output[-1] == ""


def test_names_are_loaded_one_by_one() -> None:
    code = f"""
import sys
def loaded(): print(*(name for name in {HEAVY!r} if name in sys.modules))
import ckm; dir(ckm); ckm.__version__; loaded()
ckm.errors; loaded()
ckm.datasets; loaded()
"""
    assert run(code) == ["", "", "numpy"]


def test_public_names_are_pickled_by_reference() -> None:
    for name in ckm.__all__:
        value = getattr(ckm, name)
        if callable(value):
            assert pickle.loads(pickle.dumps(value)) is value


# Code for a process that prints how many functions were compiled, then a digest of its results.
COUNTED = """
import hashlib, numpy as np
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, happening): compiled.append(happening.data["dispatcher"].py_func.__name__)
    def on_end(self, happening): pass
event.register("numba:compile", Listener())
X = np.random.default_rng(0).normal(size=(3000, 3)) ** 3
%s
print(len(compiled))
print(hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest())
"""
EVERYTHING = (
    COUNTED
    % """
import ckm
s = ckm.sketch(X, n_clusters=3, random_state=0)
cells = ckm.decode(s, 3, random_state=0)
solution = ckm.decode(s.without_cells(), 3, random_state=0)
model = ckm.CompressiveKMeans.from_sketch(s, 3, random_state=0)
# Clusters that are far apart, which take another path through the decoder.
Y = np.cbrt(X) + 8 * (np.arange(len(X)) % 3)[:, None]
apart = ckm.decode(ckm.sketch(Y, n_clusters=3, cells=0, random_state=0), 3, random_state=0)
decoded = [cells.centroids, solution.centroids, solution.weights, np.array(solution.cost)]
used = [model.predict(X), np.array(model.score(X))]
parts = [s.z, s.mean, s.covariance, *decoded, apart.centroids, *used]
"""
)
NEAREST_ONLY = (
    COUNTED
    % """
from ckm._kmeans.index import CentroidIndex
from ckm._kmeans.nearest import find_nearest
parts = [np.empty(len(X), np.int32), np.empty(len(X))]
find_nearest(X, CentroidIndex(X[:9]), *parts)
"""
)


@pytest.mark.slow
def test_a_second_process_compiles_nothing_and_has_identical_results(tmp_path: Path) -> None:
    count, digest = run(EVERYTHING, NUMBA_CACHE_DIR=str(tmp_path))
    assert int(count) > 0
    assert run(EVERYTHING, NUMBA_CACHE_DIR=str(tmp_path)) == ["0", digest]
    kept = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")}
    files = ("objective_cpu", "objective_panels", "atom_loops", "nearest")
    compiled = {name for name in kept if name.split(".")[0] in files}
    names = ("_correlate", "_correlate_slopes", "_match", "_match_gaussians", "_sum_atoms")
    entries = {f"objective_cpu.{name}" for name in names}
    entries |= {"objective_panels._blurred_cost", "objective_panels._gaussian_cost"}
    assert compiled == {*entries, "nearest._find", "nearest.measure_distances"}, (
        "functions that only compiled code calls are inlined"
    )


@pytest.mark.slow
def test_processes_can_compile_at_the_same_time(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as executor:
        (_, one), (_, other) = executor.map(
            lambda _: run(NEAREST_ONLY, NUMBA_CACHE_DIR=str(tmp_path)), range(2)
        )
    assert one == other
    assert run(NEAREST_ONLY, NUMBA_CACHE_DIR=str(tmp_path)) == ["0", one]


@pytest.mark.slow
def test_a_read_only_installation(tmp_path: Path) -> None:
    """Numba then caches compiled code in the home directory."""
    installed = tmp_path / "installed"
    home = tmp_path / "home"
    shutil.copytree(
        Path(ckm.__file__).parent, installed / "ckm", ignore=shutil.ignore_patterns("__pycache__")
    )
    home.mkdir()
    # A file of the same name keeps even the superuser from making the folder.
    for folder in {path.parent for path in (installed / "ckm").rglob("*.py")}:
        (folder / "__pycache__").touch()
    places = {
        "PYTHONPATH": str(installed),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    code = f"""
import os
del os.environ['NUMBA_CACHE_DIR']
{NEAREST_ONLY}
import ckm
assert ckm.__file__.startswith(os.environ['PYTHONPATH'])
"""
    count, digest = run(code, **places)
    assert int(count) > 0
    assert run(code, **places) == ["0", digest]
    assert any(home.rglob("nearest*.nbi"))
