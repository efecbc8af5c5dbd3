"""Anchors: how well they cover the pilot that they are chosen on."""

import numpy as np
import pytest

from ckm._sketching.anchors import choose_anchors
from ckm._sketching.pilot import Pilot


@pytest.mark.parametrize("seed", range(5))
def test_few_anchors_are_spread_over_clusters_of_all_sizes(seed: int) -> None:
    """As many anchors as tight clusters of very different sizes: one in each."""
    rng = np.random.default_rng(seed)
    places = 10 * np.stack(np.divmod(np.arange(12), 4), axis=1).astype(np.float64)
    labels = rng.choice(12, 4000, p=np.geomspace(1, 0.02, 12) / np.geomspace(1, 0.02, 12).sum())
    rows = places[labels] + 0.01 * rng.standard_normal((4000, 2))
    pilot = Pilot(rows, np.ones(len(rows)))

    anchors = choose_anchors(pilot, pilot.origin, None, 12, np.random.default_rng(seed))

    assert anchors is not None
    gaps = np.linalg.norm(anchors.values + pilot.origin - places[:, None], axis=2)
    assert gaps.min(axis=1).max() < 0.1
    assert anchors.spread == pytest.approx(2 * 0.01**2, rel=0.2)
