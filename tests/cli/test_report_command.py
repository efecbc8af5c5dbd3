"""`ckm report`: the page of the library, with messages that name options."""

from pathlib import Path

import numpy as np
import pytest
from command import run

import ckm


def test_the_page_is_that_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(600, 2)), rng.normal(size=(300, 2)) + 12])
    np.save("data.npy", X)
    sketch = ckm.sketch(X, n_clusters=4, random_state=0)
    sketch.save("s.ckm")
    _, err = run("report", "s.ckm", "--max", 4, "--data", "data.npy", "-o", "r.html")
    assert "Wrote the report of 2 clusters in 900 rows: r.html" in err
    ckm.report(sketch, path="library.html", max_clusters=4, data="data.npy")
    assert Path("r.html").read_bytes() == Path("library.html").read_bytes()


def test_findings_name_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(500, 3))
    ckm.sketch(X, sketch_size=20, cells=0, random_state=0).save("small.ckm")
    run("report", "small.ckm", "-k", 5, "--max", 5, "-o", "r.html")
    text = Path("r.html").read_text(encoding="utf-8")
    assert "Do not rely on these clusters yet." in text
    assert "ckm sketch --sketch-size 75" in text


def test_a_table_with_categories_has_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    plans = rng.choice(["free", "pro"], 900)
    ages = rng.normal(np.where(plans == "free", 20, 60), 3)
    lines = [f"{age:.1f},{plan}" for age, plan in zip(ages, plans, strict=True)]
    Path("data.csv").write_text("\n".join(["age,plan", *lines, ""]))
    run("sketch", "data.csv", "-k", 4, "--standardize", "--categories", "plan", "-o", "s.ckm")
    for more in ((), ("--data", "data.csv")):
        _, err = run("report", "s.ckm", "-k", 2, *more, "-o", "r.html")
        assert "Wrote the report of 2 clusters in 900 rows: r.html" in err
        assert "plan=pro" in Path("r.html").read_text(encoding="utf-8")
