"""What every test stands on: laws are tried on the same examples each time, and no window is ever
opened.

Numba's cache looks only at the file of a compiled function, not at the constants and intrinsics it
takes from other files; so that a test never runs yesterday's arithmetic, the cache is kept in a
folder named after the version of Numba and the contents of every file that compiled code comes
from."""

import hashlib
import os
import tempfile
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, settings


def _compiles(source: str) -> bool:
    return "from numba" in source or "from ckm._util.jit" in source


_SOURCE = Path(__file__).parents[1] / "src" / "ckm"
_COMPILED = [
    p
    for p in sorted(_SOURCE.rglob("*.py"))
    if "_kernels" in p.parts or _compiles(p.read_text(encoding="utf-8"))
]
_KEY = hashlib.sha256(b"".join(path.read_bytes() for path in _COMPILED)).hexdigest()[:16]
os.environ["NUMBA_CACHE_DIR"] = str(
    Path(tempfile.gettempdir()) / f"ckm-test-cache-{os.getuid()}" / f"{_KEY}-{version('numba')}"
)
os.environ["MPLBACKEND"] = "Agg"

settings.register_profile(
    "laws",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("laws")


@pytest.fixture(scope="session")
def clusters() -> np.ndarray:
    """2000 rows in three well separated clusters of the plane; read-only, as it is shared."""
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])
    X = means[rng.integers(3, size=2000)] + rng.normal(size=(2000, 2))
    X.flags.writeable = False
    return X


@pytest.fixture
def fixed_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Private releases with noise from a seed, where the library asks the operating system."""
    from ckm._privacy import releasing
    from ckm._privacy.discrete_gaussian import discrete_gaussian

    seeded = partial(discrete_gaussian, bits=Random(0).randbytes)
    monkeypatch.setattr(releasing, "discrete_gaussian", seeded)


def _kernels() -> list[str]:
    """Every kernel that can run here."""
    if find_spec("torch") is None:
        return ["numpy", "cpu"]
    import torch

    return ["numpy", "cpu", "torch", *(["gpu"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=_kernels())
def kernel(request: pytest.FixtureRequest) -> str:
    """The name of each kernel in turn."""
    return str(request.param)
