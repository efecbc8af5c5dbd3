"""Plots of clusters."""

from pathlib import Path

import numpy as np
import pytest

import ckm

plots = pytest.importorskip("ckm._display.plots", reason="plots need matplotlib")


@pytest.mark.parametrize("sketch_size", [3, 30], ids=["diagonal moments", "full moments"])
def test_clusters_are_drawn_with_three_sets_of_centroids(
    clusters: np.ndarray, tmp_path: Path, sketch_size: int
) -> None:
    sketch = ckm.sketch(clusters, sketch_size=sketch_size, random_state=0)
    points = dict.fromkeys(("true means", "k-means", "ckm"), clusters[:3])
    path = tmp_path / "plot.png"
    plots.draw_clusters(path, "title", "subtitle", clusters, sketch, points)
    assert path.read_bytes().startswith(b"\x89PNG")
