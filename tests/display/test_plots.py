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


def test_a_solution_draws_its_clusters(tmp_path: Path, clusters: np.ndarray) -> None:
    sketch = ckm.sketch(clusters, n_clusters=3, random_state=0)
    solution = ckm.decode(sketch, 3, random_state=0)
    figure = solution.plot(tmp_path / "clusters.png", data=clusters)
    assert (tmp_path / "clusters.png").read_bytes().startswith(b"\x89PNG")
    assert figure.axes[0].get_title(loc="left") == "3 clusters"
    assert {text.get_text() for text in figure.axes[0].texts} == {"0", "1", "2"}


def test_sketches_and_solutions_are_html_in_a_notebook(clusters: np.ndarray) -> None:
    sketch = ckm.sketch(clusters, n_clusters=3, random_state=0)
    assert "<table>" in sketch._repr_html_()
    assert f"{len(clusters):,} rows" in str(sketch)
    assert "3 centroids in 2 columns" in ckm.decode(sketch, 3, random_state=0)._repr_html_()
