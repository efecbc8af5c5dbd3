"""Tables: columns that are left out, advice on them, and what is done to them before the pass."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm._sketching.advice import Kind, TableSample, advise
from ckm.errors import AdviceWarning, ColumnsWarning, MissingRowsWarning, ParameterError

N = 3000


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """An id with all of the variance, an amount with a heavy tail, and two columns of clusters."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(3, size=N)
    return pd.DataFrame(
        {
            "user_id": 10_000 + np.arange(N),
            "x": 4.0 * cluster + rng.normal(size=N),
            "amount": np.exp(2.0 * cluster + rng.normal(size=N)),
            "rating": np.clip(np.rint(3 + cluster - 1 + rng.normal(size=N)), 1, 5),
        }
    )


def kinds_of(table: pd.DataFrame) -> dict[str, Kind]:
    rows = table.to_numpy(np.float64)
    sample = TableSample(rows, np.ones(len(rows)), list(table), len(rows), lambda: rows[:1000])
    return {one.column: one.kind for one in advise(sample)}


def test_a_clear_id_is_left_out_and_said(table: pd.DataFrame) -> None:
    with pytest.warns(ColumnsWarning, match="Left out user_id, which numbers the rows in order"):
        s = ckm.sketch(table, n_clusters=3, random_state=0)
    assert s.columns == ("x", "amount", "rating")


def test_an_id_that_is_named_stays(table: pd.DataFrame) -> None:
    columns = ["user_id", "x"]
    assert ckm.sketch(table, n_clusters=3, columns=columns).columns == ("user_id", "x")


def test_shuffled_ids_stay_with_a_warning(table: pd.DataFrame) -> None:
    shuffled = table.sample(frac=1, random_state=0)
    with pytest.warns(AdviceWarning, match=r"leave it out with exclude=\['user_id'\]"):
        s = ckm.sketch(shuffled, n_clusters=3, random_state=0)
    assert s.columns == tuple(table)


def test_the_estimator_keeps_its_columns_and_warns(table: pd.DataFrame) -> None:
    with pytest.warns(AdviceWarning, match="user_id numbers the rows"):
        model = ckm.CompressiveKMeans(3, random_state=0).fit(table)
    assert model.n_features_in_ == 4


def test_sorted_measurements_are_no_id(table: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)
    population = np.sort((1e4 / (1 - rng.random(N))).astype(int))
    assert kinds_of(table[["x"]].assign(population=population)).get("population") != Kind.ID


def test_excluded_columns_are_not_used(table: pd.DataFrame) -> None:
    s = ckm.sketch(table, n_clusters=3, exclude=["user_id", "rating"])
    assert s.columns == ("x", "amount")
    with pytest.raises(ParameterError, match="There is no column 'nothing' to leave out"):
        ckm.sketch(table, n_clusters=3, exclude=["nothing"])
    with pytest.raises(ParameterError, match="leaves out what columns= asks for"):
        ckm.sketch(table, n_clusters=3, exclude=["x"], columns=["x", "amount"])
    with pytest.raises(ParameterError, match="has no column names"):
        ckm.sketch(table.to_numpy(), n_clusters=3, exclude=["x"])


def test_kinds_of_columns() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=N)
    found = kinds_of(
        pd.DataFrame(
            {
                "x": x,
                "copy": 32 + 1.8 * x,
                "constant": np.full(N, 7.0),
                "flag": rng.integers(2, size=N),
                "code": rng.integers(1, 9, size=N),
                "seconds": 1.6e9 + 1e7 * rng.random(N),
                "day": np.repeat([20240131, 20240229, 20240331], 1000) - np.arange(N) % 28,
                "tail": rng.lognormal(3, 2, size=N),
            }
        )
    )
    assert found == {
        "copy": Kind.COPY,
        "constant": Kind.CONSTANT,
        "flag": Kind.BOOLEAN,
        "code": Kind.CODE,
        "seconds": Kind.TIMESTAMP,
        "day": Kind.TIMESTAMP,
        "tail": Kind.DOMINANT,
    }


def test_standardized_units_are_the_deviations_of_all_rows(table: pd.DataFrame) -> None:
    X = table.drop(columns="user_id")
    s = ckm.sketch(X, n_clusters=3, standardize=True, random_state=0)
    solution = ckm.decode(s, 3, random_state=0)
    deviations = X.to_numpy().std(axis=0)
    np.testing.assert_allclose(solution.units, deviations, rtol=1e-8)
    squares = ((X.to_numpy()[:, None] - solution.centroids) / deviations) ** 2
    np.testing.assert_allclose(-solution.score(X), squares.sum(axis=2).min(axis=1).sum())


def test_robust_units_are_those_of_the_design(table: pd.DataFrame) -> None:
    s = ckm.sketch(table[["x", "amount"]], n_clusters=3, standardize="robust", random_state=0)
    solution = ckm.decode(s, 3, random_state=0)
    np.testing.assert_array_equal(solution.units, s.frequencies.units)
    quartiles = np.quantile(table["amount"], [0.25, 0.75])
    assert solution.units[1] == pytest.approx(np.diff(quartiles)[0] / 1.349, rel=0.05)


def test_logarithms_are_those_of_a_table_of_logarithms(table: pd.DataFrame) -> None:
    X = table.drop(columns="user_id")
    own = X.assign(amount=np.log1p(X["amount"]))
    s = ckm.sketch(X, n_clusters=3, log=["amount"], standardize=True, random_state=0)
    expected = ckm.sketch(own, n_clusters=3, standardize=True, random_state=0)
    np.testing.assert_array_equal(s.z, expected.z)
    solution = ckm.decode(s, 3, random_state=0)
    reference = ckm.decode(expected, 3, random_state=0)
    np.testing.assert_allclose(np.log1p(solution.centroids[:, 1]), reference.centroids[:, 1])
    np.testing.assert_array_equal(solution.predict(X), reference.predict(own))
    np.testing.assert_allclose(solution.score(X), reference.score(own))
    assert (solution.sample(100, random_state=0)[:, 1] > -1).all()


def test_a_preparation_travels_with_the_sketch(table: pd.DataFrame, tmp_path: Path) -> None:
    X = table.drop(columns="user_id")
    s = ckm.sketch(X, n_clusters=3, log=["amount"], random_state=0)
    s.save(tmp_path / "s.ckm")
    loaded = ckm.load(tmp_path / "s.ckm")
    assert loaded == s
    assert ckm.sketch(X[:1000], like=loaded) + ckm.sketch(X[1000:], like=loaded) == s
    plain = ckm.sketch(X, n_clusters=3, random_state=0)
    with pytest.raises(ParameterError, match="which has no logarithms"):
        ckm.sketch(X, like=plain, log=["amount"])
    with pytest.raises(ParameterError, match="There is no column 'nothing' for log="):
        ckm.sketch(X, n_clusters=3, log=["nothing"])


def test_dates_that_are_named_are_days(table: pd.DataFrame, tmp_path: Path) -> None:
    days = np.arange(N) % 900
    times = np.datetime64("2020-01-01T12:00") + days.astype("m8[D]")
    dated = table[["x"]].assign(time=times)
    s = ckm.sketch(dated, n_clusters=3, columns=["x", "time"], random_state=0)
    numbers = table[["x"]].assign(time=18262.5 + days)
    assert ckm.sketch(numbers, like=s) == s
    for name, write in (("t.csv", dated.to_csv), ("t.parquet", dated.to_parquet)):
        write(tmp_path / name, index=False)
        assert ckm.sketch(tmp_path / name, like=s) == s


def test_polish_keeps_logarithms(table: pd.DataFrame) -> None:
    X = table[["x", "amount"]]
    model = ckm.CompressiveKMeans(3, log=["amount"], polish=3, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(-model.score(X))
    rows = np.log1p(X["amount"].to_numpy())
    means = [rows[model.labels_ == k].mean() for k in range(3)]
    np.testing.assert_allclose(np.log1p(model.cluster_centers_[:, 1]), means, rtol=1e-2)


def test_missing_values_are_filled_in_and_counted(table: pd.DataFrame) -> None:
    X = table.drop(columns="user_id")
    gaps = X.mask(pd.DataFrame(np.eye(N, 3, dtype=bool), columns=list(X)))
    with pytest.warns(MissingRowsWarning, match="Filled in 3 missing values of 3 of 3,000 rows"):
        s = ckm.sketch(gaps, n_clusters=3, nan="impute", random_state=0)
    filled = gaps.fillna(dict(zip(X, s.frequencies.origin, strict=True)))
    assert s == ckm.sketch(filled, like=s)


def test_missing_values_of_batches_are_filled_in(table: pd.DataFrame) -> None:
    X = table.drop(columns="user_id")
    gaps = X.mask(pd.DataFrame(np.eye(N, 3, dtype=bool), columns=list(X)))
    sketcher = ckm.Sketcher(n_clusters=3, nan="impute", random_state=0)
    with pytest.warns(MissingRowsWarning, match="Filled in 3 missing values"):
        s = sketcher.update(gaps[:1000]).update(gaps[1000:]).result()
    filled = gaps.fillna(dict(zip(X, s.frequencies.origin, strict=True)))
    assert s == ckm.sketch(filled, like=s)
    model = ckm.CompressiveKMeans(3, nan="impute", random_state=0)
    with pytest.warns(MissingRowsWarning):
        assert model.partial_fit(gaps).predict(gaps).min() == 0


def test_missing_amounts_are_labelled_as_they_were_sketched(table: pd.DataFrame) -> None:
    """The origin is that of logarithms; rows that are labelled have amounts."""
    X = table[["x", "amount"]]
    gaps = X.assign(amount=X["amount"].mask(np.arange(N) % 7 == 0))
    model = ckm.CompressiveKMeans(3, nan="impute", log=["amount"], random_state=0)
    with pytest.warns(MissingRowsWarning):
        model.fit(gaps)
    fill = np.expm1(model.sketch_.frequencies.origin[1])
    assert 0.2 < fill / X["amount"].median() < 5
    filled = gaps.fillna({"amount": fill})
    assert model.sketch_ == ckm.sketch(filled, like=model.sketch_)
    np.testing.assert_array_equal(model.predict(filled), model.labels_)
    np.testing.assert_array_equal(model.predict(gaps), model.labels_)
    assert model.inertia_ == pytest.approx(-model.score(filled))


def test_prepared_columns_are_called_what_they_are(table: pd.DataFrame) -> None:
    X = table[["x", "amount"]]
    s = ckm.sketch(X, n_clusters=3, log=["amount"], random_state=0)
    assert ckm.marginals(s).columns == ("x", "log(1 + amount)")
    assert {column.name for column in ckm.compare(s, s).columns} == {"x", "log(1 + amount)"}
    mixture = ckm.fit_mixture(s, 3, random_state=0)
    assert "log(1 + amount)" in str(mixture)
    own = ckm.sketch(X.assign(amount=np.log1p(X["amount"])), n_clusters=3, random_state=0)
    reference = ckm.fit_mixture(own, 3, random_state=0)
    np.testing.assert_allclose(mixture.means, reference.means)
    expected = reference.score(X.assign(amount=np.log1p(X["amount"])))
    assert mixture.score(X) == pytest.approx(expected)


def test_the_estimator_chooses_columns_and_drops_rows(table: pd.DataFrame, tmp_path: Path) -> None:
    gaps = table.mask(table["x"] < -1.5)
    gaps["user_id"] = table["user_id"]
    gaps.to_parquet(tmp_path / "gaps.parquet")
    model = ckm.CompressiveKMeans(3, nan="drop", exclude=["user_id"], random_state=0)
    with pytest.warns(MissingRowsWarning):
        model.fit(gaps)
    is_missing = gaps["x"].isna().to_numpy()
    assert is_missing.any()
    np.testing.assert_array_equal(model.labels_ == -1, is_missing)
    assert list(model.feature_names_in_) == ["x", "amount", "rating"]
    np.testing.assert_array_equal(model.predict(str(tmp_path / "gaps.parquet")), model.labels_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingRowsWarning)
        again = ckm.CompressiveKMeans(3, nan="impute", columns=["x", "amount"], random_state=0)
        assert again.fit_predict(gaps).min() == 0


def test_anchors_are_chosen_for_rows_with_gaps_too() -> None:
    rng = np.random.default_rng(0)
    rows = 8 * rng.standard_normal((5, 5))[rng.integers(5, size=6000)]
    rows += rng.standard_normal(rows.shape)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    with pytest.warns(MissingRowsWarning):
        sketch = ckm.sketch(rows, n_clusters=5, nan="impute", random_state=0)
    assert ckm.decode(sketch, 5, random_state=0).status == "ok"
