"""`ckm curve` and `ckm fit -k auto`: the library's curve, printed, drawn and taken."""

import json
from pathlib import Path

import numpy as np
import pytest
from command import run

import ckm

K = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("curve")
    rows = ckm.datasets.gaussian_mixture(4000, K, 3, separation=15, random_state=3).rows
    np.save(folder / "clusters.npy", rows)
    np.save(folder / "cloud.npy", np.random.default_rng(0).uniform(size=(4000, 3)))
    ckm.sketch(rows, n_clusters=8, random_state=0).save(folder / "clusters.ckm")
    return folder


def test_a_curve_is_a_table(folder: Path) -> None:
    out, _ = run("curve", folder / "clusters.ckm", "--max", "8")
    assert out.startswith(f"Suggested number of clusters: {K}")
    expected = ckm.curve(ckm.load(folder / "clusters.ckm"), 8, random_state=0)
    assert out.strip() == str(expected).strip()


def test_a_curve_is_json(folder: Path) -> None:
    out, _ = run("curve", folder / "clusters.ckm", "--max-clusters", "6", "--json")
    record = json.loads(out)
    assert record["suggestion"] == K
    assert record["n_clusters"] == [1, 2, 3, 4, 5, 6]
    assert len(record["sse_interval"][0]) == 2
    assert record["reason"]


def test_a_curve_is_drawn(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run("curve", folder / "clusters.ckm", "--max", "8", "-o", tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_of_another_kind_is_refused(folder: Path, tmp_path: Path) -> None:
    _, err = run("curve", folder / "clusters.ckm", "-o", tmp_path / "curve.txt", expect=2)
    assert ".png" in err


def test_too_many_clusters_are_refused_in_options(folder: Path) -> None:
    _, err = run("curve", folder / "clusters.ckm", "--max", "3000", expect=1)
    assert "--max-clusters 3000" in err
    assert "ask for at most" in err


def test_fit_takes_the_suggested_number_and_says_why(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "centroids.json"
    data = folder / "clusters.npy"
    _, err = run("fit", data, "-k", "auto", "--max-clusters", "8", "-o", output)
    assert f"Chose {K} clusters." in err
    record = json.loads(output.read_text())
    assert len(record["weights"]) == K
    assert str(K) in record["auto"]["reason"]


def test_fit_fails_where_there_is_no_clear_number(folder: Path) -> None:
    _, err = run("fit", folder / "cloud.npy", "-k", "auto", "--max-clusters", "8", expect=1)
    assert "No clear number of clusters" in err
    assert "--n-clusters" in err


@pytest.mark.parametrize("value", ["many", "0", "-1"])
def test_other_words_are_refused(folder: Path, value: str) -> None:
    _, err = run("fit", folder / "clusters.npy", "-k", value, expect=2)
    assert "--n-clusters" in err
