"""A sketch for each day: windows of the last days, and clusters that keep their numbers."""

from pathlib import Path

import numpy as np
import pytest
from command import read_csv, run

import ckm

MEANS = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sketches of four days, with the same frequencies."""
    folder = tmp_path_factory.mktemp("days")
    first = None
    for number in range(4):
        rng = np.random.default_rng(number)
        means = MEANS + rng.normal(scale=0.3, size=MEANS.shape)
        X = means[rng.integers(3, size=2000)] + rng.normal(size=(2000, 2))
        sketch = ckm.sketch(X, n_clusters=3, like=first, random_state=0)
        sketch.save(folder / f"day-{number}.ckm")
        first = first or sketch
    return folder


@pytest.fixture(autouse=True)
def here(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(days)


def test_a_window_is_the_sketch_of_its_days() -> None:
    _, err = run("window", "day-*.ckm", "--last", 2, "-o", "window.ckm")
    expected = ckm.load("day-2.ckm") + ckm.load("day-3.ckm")
    assert ckm.load("window.ckm") == expected
    assert "2 of 4 sketches, day-2.ckm to day-3.ckm, 4,000 rows: window.ckm" in err
    run("window", "day-*.ckm", "--last", 9, "-o", "all.ckm")
    assert ckm.load("all.ckm").count == 8000


def test_subtracting_leaves_the_sums_of_the_other_days() -> None:
    run("merge", "day-0.ckm", "day-1.ckm", "day-2.ckm", "-o", "three.ckm")
    _, err = run("subtract", "three.ckm", "day-0.ckm", "day-1.ckm", "-o", "left.ckm")
    assert "2,000 rows are left: left.ckm" in err
    np.testing.assert_array_equal(ckm.load("left.ckm").z, ckm.load("day-2.ckm").z)


def test_rows_that_are_not_there_are_not_subtracted() -> None:
    _, err = run("subtract", "day-0.ckm", "day-1.ckm", "day-2.ckm", "-o", "x.ckm", expect=1)
    assert "Error: Cannot subtract day-1.ckm from day-0.ckm." in err
    _, err = run("subtract", "day-0.ckm", "-o", "x.ckm", expect=2)
    assert "nothing to subtract" in err


def test_clusters_keep_the_numbers_of_yesterday() -> None:
    run("decode", "day-0.ckm", "-k", 3, "-o", "day-0.csv")
    first = read_csv(Path("day-0.csv").read_text())[1][:, 2:]
    for number in range(1, 4):
        yesterday, today = f"day-{number - 1}.csv", f"day-{number}.csv"
        run("decode", f"day-{number}.ckm", "-k", 3, "--match", yesterday, "-o", today)
        found = read_csv(Path(today).read_text())[1][:, 2:]
        assert np.linalg.norm(found - first, axis=1).max() < 3.0


def test_fit_takes_centroids_to_start_from_and_to_match(tmp_path: Path) -> None:
    X = np.random.default_rng(9).normal(size=(3000, 2)) + np.repeat(MEANS, 1000, axis=0)
    np.save(tmp_path / "rows.npy", X)
    Path("given.csv").write_text(
        "cluster,weight,[0],[1]\n0,1,0,12\n1,1,0,0\n2,1,12,0\n", encoding="utf-8"
    )
    for option in ("--match", "--init"):
        out = run("fit", tmp_path / "rows.npy", "-k", 3, option, "given.csv", "-q")[0]
        found = read_csv(out)[1][:, 2:]
        assert np.linalg.norm(found - MEANS[[2, 0, 1]], axis=1).max() < 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--init", "given.csv", "-k", 2), "initial centers (3, 2) does not match the number of"),
        (("--match", "none.csv", "-k", 3), "Cannot read centroids from none.csv"),
        (("--match", "wide.csv", "-k", 3), "centroids to match (1, 3) does not match the number"),
    ],
)
def test_centroids_that_do_not_fit_are_refused_before_decoding(
    arguments: tuple[object, ...], message: str
) -> None:
    Path("given.csv").write_text("cluster,weight,[0],[1]\n0,1,0,0\n1,1,1,1\n2,1,2,2\n")
    Path("wide.csv").write_text("cluster,weight,[0],[1],[2]\n0,1,0,0,0\n")
    assert message in run("decode", "day-0.ckm", *arguments, expect=1)[1]
