"""Fixtures of the decoder's tests."""

from pathlib import Path

import numpy as np
import pytest

import ckm


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests of this folder decode sketches that are too small, stale or of outliers: they look
    at the findings themselves.
    """
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ckm.errors.ClustersWarning"))


@pytest.fixture(scope="session")
def sketch(clusters: np.ndarray) -> ckm.Sketch:
    """Three well separated clusters of the plane, with a pool of 100 rows."""
    return ckm.sketch(clusters, sketch_size=60, pool=100, random_state=0, cells=0)
