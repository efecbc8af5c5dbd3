"""`ckm.describe`: what columns hold, in one pass."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm._analysis.distinct import DistinctCounter, hash_numbers

N = 5000


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    x[::10] = np.nan
    return pd.DataFrame(
        {
            "id": np.arange(N),
            "x": x,
            "spent": rng.lognormal(3, 2, size=N),
            "town": rng.choice(["Ulm", "Bonn", "Jena"], size=N),
            "day": np.datetime64("2024-01-01") + rng.integers(100, size=N),
        }
    )


@pytest.mark.parametrize("kind", ["frame", "parquet", "csv"])
def test_every_source_is_described_alike(table: pd.DataFrame, kind: str, tmp_path: Path) -> None:
    data = table if kind == "frame" else tmp_path / f"table.{kind}"
    if kind == "parquet":
        table.to_parquet(data)
    elif kind == "csv":
        table.to_csv(data, index=False)
    found = ckm.describe(data)
    assert found.n_rows == N
    by_name = {column.name: column for column in found.columns}
    assert list(by_name) == list(table)
    assert [column.kind for column in found.columns[:3]] == ["id", "ordinary", "heavy-tailed"]
    assert by_name["town"].distinct == 3
    assert by_name["day"].kind == "dates"
    assert by_name["x"].missing == pytest.approx(0.1)
    assert by_name["x"].std == pytest.approx(table["x"].std(ddof=0))
    assert by_name["spent"].upper == pytest.approx(table["spent"].max())
    np.testing.assert_allclose(by_name["x"].quantiles[2], table["x"].median(), atol=0.05)
    assert found.arguments == {"exclude": ["id"], "log": ["spent"], "standardize": True}


def test_the_advice_can_be_followed(table: pd.DataFrame) -> None:
    found = ckm.describe(table)
    used = table.drop(columns=["town", "day"])
    s = ckm.sketch(used.dropna(), n_clusters=2, **found.arguments)
    assert s.columns == ("x", "spent")


def test_it_shows_itself(table: pd.DataFrame) -> None:
    found = ckm.describe(table)
    assert "heavy-tailed" in str(found)
    assert "<table>" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["n_rows"] == N


def test_different_values_are_counted_to_a_few_percent() -> None:
    rng = np.random.default_rng(0)
    for count in (1, 500, 200_000):
        counter = DistinctCounter()
        for _ in range(3):
            counter.add(hash_numbers(rng.permutation(count).astype(np.float64)))
        assert counter.count == count if count < 1024 else abs(counter.count / count - 1) < 0.1


def test_missing_values_are_advised_on(table: pd.DataFrame) -> None:
    (said,) = (str(note) for note in ckm.describe(table).advice if "missing" in str(note))
    assert said == (
        "x has missing values: leave such rows out with nan='drop', or fill the values in with "
        "nan='impute'."
    )
    assert not any("missing" in str(note) for note in ckm.describe(table.dropna()).advice)


@pytest.mark.parametrize("seed", range(4))
def test_there_are_no_more_different_values_than_rows(seed: int) -> None:
    numbers = np.random.default_rng(seed).normal(size=3000)
    table = pd.DataFrame({"x": numbers, "text": numbers.astype(str)})
    table.loc[:99, "x"] = np.nan
    found = {column.name: column.distinct for column in ckm.describe(table).columns}
    assert 2600 < found["x"] <= 2900
    assert 2700 < found["text"] <= 3000


def test_ids_are_shown_with_all_their_digits() -> None:
    table = pd.DataFrame({"id": 1_000_001 + np.arange(500), "x": 123456.5 + np.arange(500)})
    shown = str(ckm.describe(table))
    assert "1,000,001" in shown
    assert "1,000,500" in shown
    assert "1.2346e+05" in shown
