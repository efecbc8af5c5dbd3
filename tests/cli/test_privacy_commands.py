"""`ckm frequencies`, `ckm release` and what `ckm merge` and `ckm inspect` say of private files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import fail, run

import ckm

BOUNDS = {"east": [-30, 30], "north": [-25, 35]}
ROWS = ckm.datasets.gaussian_mixture(6000, 3, 2, separation=30, random_state=0).rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bounds, a design, and two exact sketches with their releases."""
    folder = tmp_path_factory.mktemp("privacy")
    (folder / "bounds.json").write_text(json.dumps(BOUNDS))
    design = folder / "design.ckm"
    run("frequencies", "--bounds", folder / "bounds.json", "-k", 3, "-o", design)
    for i, part in enumerate(np.array_split(ROWS, 2)):
        frame = pd.DataFrame(part, columns=["east", "north"]).assign(who=np.arange(3000) % 500)
        frame.to_csv(folder / f"{i}.csv", index=False)
        columns = ("--columns", "east,north")
        run("sketch", folder / f"{i}.csv", *columns, "--like", design, "-o", folder / f"{i}.ckm")
        release(folder / f"{i}.ckm", folder / f"{i}.private.ckm")
    return folder


def release(exact: Path, private: Path, *more: object, **given: object) -> tuple[str, str]:
    budget = {"epsilon": 1, "delta": 1e-6} | given
    return run("release", exact, *more, "-o", private, *as_options(budget))


def as_options(values: dict[str, object]) -> list[str]:
    return [text for name, value in values.items() for text in (f"--{name}", str(value))]


def test_a_design_is_that_of_the_library(folder: Path) -> None:
    lower, upper = zip(*BOUNDS.values(), strict=True)
    expected = ckm.public_frequencies((lower, upper), n_clusters=3, columns=list(BOUNDS))
    assert ckm.load(folder / "design.ckm") == expected


def test_releases_merge_and_decode(folder: Path, tmp_path: Path) -> None:
    both = tmp_path / "all.ckm"
    parts = [folder / "0.private.ckm", folder / "1.private.ckm"]
    run("merge", *parts, "--population", "disjoint", "-o", both)
    merged = ckm.load(both)
    assert merged.release.budget.epsilon == 1
    assert abs(merged.count - 6000) < 300
    out, _ = run("decode", both, "-k", 3)
    assert out.count("\n") >= 4
    message = fail("merge", *parts, "-o", tmp_path / "no.ckm")
    assert "--population disjoint" in message
    assert not (tmp_path / "no.ckm").exists()
    message = fail("merge", folder / "0.ckm", parts[1], "--population", "same", "-o", both)
    assert "would hold exact sums of rows" in message


def test_a_release_says_what_was_clipped_and_spent(folder: Path, tmp_path: Path) -> None:
    far = tmp_path / "far.csv"
    pd.DataFrame({"east": [98765.4] * 20, "north": [0.0] * 20}).to_csv(far, index=False)
    run("sketch", far, "--like", folder / "design.ckm", "-o", tmp_path / "far.ckm")
    ledger = tmp_path / "spent.json"
    for spent in ("1 release with epsilon = 1 at", "2 releases with epsilon = 1.451 at"):
        options = ("--ledger", ledger, "--population", "patients")
        _, err = release(tmp_path / "far.ckm", tmp_path / "far.private.ckm", *options)
        assert "20 of 20 rows were beyond the bounds" in err
        assert "Released with epsilon = 1 and delta = 1e-06 for each row" in err
        assert f"Spent on this data in all: {spent}" in err
        assert "98765" not in err


def test_weights_are_released_with_a_cap(folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "w.csv"
    frame = pd.DataFrame({"east": [1.0] * 4, "north": [2.0] * 4, "times": [1, 2, 7, 0]})
    frame.to_csv(rows, index=False)
    bounds = ("--bounds", folder / "bounds.json", "-m", 20)
    design = tmp_path / "design.ckm"
    run("frequencies", *bounds, "--max-weight", 3, "-o", design)
    exact = tmp_path / "w.ckm"
    run("sketch", rows, "--like", design, "--weight-column", "times", "-o", exact)
    assert ckm.load(exact).count == 6
    _, err = release(exact, tmp_path / "w.private.ckm")
    assert "above the cap and count as 3 rows each: 1; this is for you" in err
    out, _ = run("inspect", tmp_path / "w.private.ckm")
    assert "for each row with weights up to 3" in out
    assert "whole numbers up to 3" in out
    wrong = ("--max-weight", 5000, "-o", tmp_path / "no.ckm")
    message = fail("frequencies", *bounds, *wrong, status=2)
    assert "--max-weight" in message
    assert "divide the weights by a public number" in message
    plain = tmp_path / "plain.ckm"
    run("sketch", rows, "--like", folder / "design.ckm", "--weight-column", "times", "-o", plain)
    message = fail("release", plain, "--epsilon", 1, "--delta", 1e-6, "-o", tmp_path / "no.ckm")
    assert "--max-weight" in message


def test_users_are_protected_with_a_cap(folder: Path, tmp_path: Path) -> None:
    exact = tmp_path / "users.ckm"
    cap = ("--user-column", "who", "--max-rows-per-user", 4)
    run("sketch", folder / "0.csv", "--like", folder / "design.ckm", *cap, "-o", exact)
    release(exact, tmp_path / "users.private.ckm", unit="user")
    out, _ = run("inspect", tmp_path / "users.private.ckm")
    assert "for each user (up to 4 rows)" in out
    message = fail(
        *("release", folder / "0.ckm", "--unit", "user", "-o", tmp_path / "no.ckm"),
        *as_options({"epsilon": 1, "delta": 1e-6}),
    )
    assert "ckm sketch --max-rows-per-user" in message


@pytest.mark.parametrize(
    ("name", "revealed"),
    [
        ("design.ckm", ["Nothing about rows"]),
        ("0.ckm", ["values of rows", "ckm release"]),
        ("0.private.ckm", ["epsilon = 1 at delta = 1e-06", "Nothing else depends on the rows"]),
        ("ordinary.ckm", ["in plain numbers: cells", "5 sampled rows", "ckm frequencies"]),
    ],
)
def test_inspect_says_what_a_file_reveals(folder: Path, name: str, revealed: list[str]) -> None:
    ckm.sketch(ROWS, n_clusters=3, pool=5, random_state=0).save(folder / "ordinary.ckm")
    out, _ = run("inspect", folder / name)
    record = json.loads(run("inspect", folder / name, "--json")[0])
    for words in revealed:
        assert words in " ".join(out.split())
        assert words in " ".join(record["reveals"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JSON"),
        ('{"east": [0, 1]', "is not JSON"),
        ("[]", "does not give two numbers for each column"),
        ("{}", "does not give two numbers for each column"),
        ('{"east": 5}', "does not give two numbers for each column"),
        ('{"east": [0, 1, 2]}', "does not give two numbers for each column"),
        ('{"east": ["0", "1"]}', "does not give two numbers for each column"),
        ('{"east": [true, false]}', "does not give two numbers for each column"),
        ('{"east": [1, 0]}', "those of column 0 are 1 and 0"),
        ('{"east": [0, NaN]}', "must be finite numbers"),
        ('{"east": [0, 1], "north": [0, 1], "east": [0, 2]}', "names a column twice"),
        ('{"east": [0, 1' + "0" * 400 + "]}", "must be two arrays of numbers"),
    ],
)
def test_bounds_that_cannot_be_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "bounds.json").write_text(text)
    out, err = run(
        *("frequencies", "--bounds", tmp_path / "bounds.json", "-k", 2),
        *("-o", tmp_path / "design.ckm"),
        expect=2,
    )
    assert out == ""
    assert "--bounds" in err
    assert reason in " ".join(err.split())
    assert not (tmp_path / "design.ckm").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"epsilon": 0}, "--epsilon must be a positive, finite number"),
        ({"delta": 1}, "--delta must be a number between 0 and 1"),
        ({"unit": "flock"}, "--unit must be"),
        ({"population": "patients"}, "recorded in a --ledger; name one"),
        ({"ledger": "s3://bucket/spent.json"}, "Name a file of this machine"),
    ],
)
def test_budgets_that_cannot_be_are_refused(
    folder: Path, tmp_path: Path, options: dict[str, object], reason: str
) -> None:
    budget = as_options({"epsilon": 1, "delta": 1e-6} | options)
    private = tmp_path / "private.ckm"
    _, err = run("release", folder / "0.ckm", *budget, "-o", private, expect=2)
    assert reason in " ".join(err.split())
    assert not private.exists()


def test_what_is_not_public_is_not_released(folder: Path, tmp_path: Path) -> None:
    ckm.sketch(ROWS, n_clusters=3, random_state=0).save(tmp_path / "own.ckm")
    budget = as_options({"epsilon": 1, "delta": 1e-6})
    message = fail("release", tmp_path / "own.ckm", *budget, "-o", tmp_path / "no.ckm")
    assert "`ckm frequencies`" in message
    assert "--like" in message
    exact = folder / "0.ckm"
    message = fail("release", exact, *budget, "-o", exact)
    assert "0.ckm" in message
