"""Fixtures of the decoder's tests."""

import numpy as np
import pytest

import ckm


@pytest.fixture(scope="session")
def sketch(clusters: np.ndarray) -> ckm.Sketch:
    """Three well separated clusters of the plane, with a pool of 100 rows."""
    return ckm.sketch(clusters, sketch_size=60, pool=100, random_state=0, cells=0)
