"""Releases whose noise is the same in every run."""

from functools import partial
from random import Random

import pytest

from ckm._privacy import releasing
from ckm._privacy.discrete_gaussian import discrete_gaussian


@pytest.fixture
def fixed_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise from a seed, where the library asks the operating system."""
    seeded = partial(discrete_gaussian, bits=Random(0).randbytes)
    monkeypatch.setattr(releasing, "discrete_gaussian", seeded)
