"""`ckm demo`."""

import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command import run

import ckm


@pytest.mark.slow
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    out, err = run("demo", "--rows", 20000, "--folder", "play/demo")
    assert (tmp_path / "play/demo/demo.png").read_bytes().startswith(b"\x89PNG")
    assert pq.read_metadata("play/demo/mixture.parquet").num_rows == 20000
    assert ckm.load("play/demo/mixture.ckm").pool is None
    for words in (
        "total time",
        "29.8 kB",
        "800.0 kB",
        "SSE / k-means' SSE",
        "clusters found",
        "In this run",
        "ckm fit play/demo/mixture.parquet -k 10",
    ):
        assert words in out
    assert "not counted" in err


@pytest.mark.slow
def test_demo_without_matplotlib_says_how_to_get_the_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("matplotlib", "matplotlib.figure", "ckm._display.plots"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    out, _ = run("demo", "--rows", 2000)
    assert "pip install 'compressive-kmeans[plot]'" in out
    assert not (tmp_path / "demo/demo.png").exists()
