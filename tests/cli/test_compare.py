"""`ckm compare`: what `ckm.compare` says, as a table or JSON, and an exit status for pipelines."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import run

import ckm


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with sketches of two days, the second of which is shifted."""
    rng = np.random.default_rng(0)
    names = ["east", "north"]
    a = ckm.sketch(pd.DataFrame(rng.normal(size=(2000, 2)), columns=names), n_clusters=3)
    b = rng.normal(size=(2000, 2)) + np.array([0.0, 0.3])
    monkeypatch.chdir(tmp_path)
    a.save("monday.ckm")
    ckm.sketch(pd.DataFrame(b, columns=names), like=a).save("tuesday.ckm")
    return tmp_path


def test_a_table_names_the_column(folder: Path) -> None:
    out, err = run("compare", "monday.ckm", "tuesday.ckm")
    assert out == f"{ckm.compare(ckm.load('monday.ckm'), ckm.load('tuesday.ckm'))}\n"
    assert out.startswith("Different: p = ")
    assert "column north" in out
    assert err == ""


def test_json_has_everything(folder: Path) -> None:
    record = json.loads(run("compare", "monday.ckm", "tuesday.ckm", "--json", "-k", 2)[0])
    found = ckm.compare(ckm.load("monday.ckm"), ckm.load("tuesday.ckm"), n_clusters=2)
    assert record["p_value"] == found.p_value
    assert record["effect_interval"] == list(found.effect_interval)
    assert [column["name"] for column in record["columns"]] == ["north", "east"]
    assert len(record["clusters"]) == 2
    assert record["clusters"][0]["centroid_a"] == found.clusters[0].centroid_a.tolist()


def test_an_effect_above_the_bound_is_a_failure_that_still_prints(folder: Path) -> None:
    effect = ckm.compare(ckm.load("monday.ckm"), ckm.load("tuesday.ckm")).effect
    names = ("compare", "monday.ckm", "tuesday.ckm")
    out, err = run(*names, "--fail-above", effect / 2, expect=1)
    assert out.startswith("Different")
    assert "--fail-above" in err
    run(*names, "--fail-above", effect * 2)
    run("compare", "monday.ckm", "monday.ckm", "--fail-above", 0)
    run(*names, "--fail-above", -1, expect=2)


def test_values_that_are_not_numbers_are_null(folder: Path) -> None:
    X = np.random.default_rng(1).normal(size=(500, 2))
    a = ckm.sketch(X * [1, 0], n_clusters=2, random_state=0)
    a.save("a.ckm")
    ckm.sketch(X * [1, 0] + np.array([0, 1]), like=a).save("b.ckm")
    record = json.loads(run("compare", "a.ckm", "b.ckm", "--json")[0])
    assert record["columns"][0]["index"] == 1
    assert record["columns"][0]["shift"] is None


def test_other_frequencies_and_missing_files_are_errors(folder: Path) -> None:
    ckm.sketch(np.eye(2), sketch_size=5, scale=1.0).save("other.ckm")
    _, err = run("compare", "monday.ckm", "other.ckm", "--fail-above", 0, expect=2)
    assert "different frequencies" in err
    assert "--like" in err
    assert "There is no file" in run("compare", "monday.ckm", "none.ckm", expect=2)[1]
    run("compare", "monday.ckm", expect=2)
