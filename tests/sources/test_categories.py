"""Columns of categories: coded in the pass, the same from every kind of table, and in centroids as
shares.
"""

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder

import ckm
from ckm.errors import DataError, MismatchError, ParameterError
from tests.cli.command import run

PLANS = ("basic", "free", "pro")


def make_frame(seed: int, rows: int = 3000) -> pd.DataFrame:
    """Three clusters that differ in a number and in their plans."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(3, size=rows)
    plan = np.where(rng.random(rows) < 0.9, cluster, rng.integers(3, size=rows))
    return pd.DataFrame(
        {
            "plan": np.array(PLANS)[plan],
            "age": rng.normal(5.0 * cluster, 0.5),
            "is_member": rng.random(rows) < 0.5,
            "stars": rng.integers(1, 4, rows),
        }
    )


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_frame(0)


@pytest.fixture(scope="module")
def design(frame: pd.DataFrame) -> ckm.Sketch:
    return ckm.sketch(
        frame,
        n_clusters=3,
        columns=["age"],
        categories=["plan", "is_member", "stars"],
        standardize=True,
        random_state=0,
    )


def test_coded_columns_are_named_after_their_values(design: ckm.Sketch) -> None:
    plans = ("plan=basic", "plan=free", "plan=pro", "plan=other")
    members = ("is_member=false", "is_member=true", "is_member=other")
    stars = ("stars=1", "stars=2", "stars=3", "stars=other")
    assert design.columns == ("age", *plans, *members, *stars)


def test_the_result_is_that_of_a_column_transformer_before_it(frame: pd.DataFrame) -> None:
    encoder = ColumnTransformer([("plan", OneHotEncoder(), ["plan"])], remainder="passthrough")
    rows = encoder.fit_transform(frame[["plan", "age"]])
    model = ckm.CompressiveKMeans(3, columns=["age"], categories=["plan"], random_state=0)
    model.fit(frame)
    reference = KMeans(3, n_init=5, random_state=0).fit(rows)
    assert model.inertia_ <= 1.001 * reference.inertia_
    # The last column is that of other values, of which there is none.
    plain = np.column_stack([rows[:, -1], rows[:, :-1], np.zeros(len(rows))])
    means = [plain[model.labels_ == k].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(model.cluster_centers_, means, atol=0.01)
    np.testing.assert_array_equal(model.predict(frame), model.labels_)


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "dictionary", "polars", "duckdb"])
def test_every_kind_of_table_gives_the_same_bits(
    frame: pd.DataFrame, design: ckm.Sketch, tmp_path: Path, kind: str
) -> None:
    table = pa.Table.from_pandas(frame)
    pq.write_table(table, tmp_path / "t.parquet")
    if kind in ("arrow", "dictionary"):
        data = table
        if kind == "dictionary":
            data = table.set_column(0, "plan", table["plan"].dictionary_encode())
    elif kind == "polars":
        polars = pytest.importorskip("polars")
        levels = polars.Enum(PLANS)
        data = polars.from_arrow(table).with_columns(polars.col("plan").cast(levels))
    elif kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        data = duckdb.sql(f"select * from '{tmp_path / 't.parquet'}'")
    else:
        data = tmp_path / f"t.{kind}"
        if kind == "csv":
            pa_csv.write_csv(table, data)
    assert ckm.sketch(data, like=design) == design


def test_a_new_value_is_other_and_a_missing_one_is_missing(frame: pd.DataFrame) -> None:
    with_gaps = frame.assign(plan=frame["plan"].where(frame["age"] > 0))
    sketch = ckm.sketch(
        with_gaps, n_clusters=3, columns=["age"], categories=["plan"], random_state=0
    )
    assert sketch.columns is not None
    assert "plan=missing" in sketch.columns
    unseen = pd.DataFrame({"age": [1.0, 1.0, 1.0], "plan": ["gold", None, "pro"]})
    mean = ckm.sketch(unseen, like=sketch).mean
    shares = dict(zip(sketch.columns, mean.tolist(), strict=True))
    for name in ("plan=other", "plan=missing", "plan=pro"):
        assert shares[name] == pytest.approx(1 / 3)


def test_frequencies_are_shares_of_rows(frame: pd.DataFrame) -> None:
    sketch = ckm.sketch(
        frame,
        n_clusters=2,
        columns=["age"],
        categories={"plan": ("frequency", 2.0)},
        random_state=0,
    )
    assert sketch.columns == ("age", "frequency of plan")
    shares = frame["plan"].value_counts(normalize=True)
    solution = ckm.decode(sketch, 2, random_state=0)
    assert solution.weights @ solution.centroids[:, 1] == pytest.approx((shares**2).sum(), rel=1e-3)


def test_standardised_categories_weigh_as_one_column(design: ckm.Sketch) -> None:
    solution = ckm.decode(design, 3, random_state=0)
    assert solution.units is not None
    variances = np.diag(design.covariance) / solution.units**2
    for columns in (slice(0, 1), slice(1, 5), slice(5, 8), slice(8, 12)):
        assert variances[columns].sum() == pytest.approx(1)


def test_coding_is_part_of_the_design(
    frame: pd.DataFrame, design: ckm.Sketch, tmp_path: Path
) -> None:
    design.save(tmp_path / "s.ckms")
    assert ckm.load(tmp_path / "s.ckms") == design
    assert pickle.loads(pickle.dumps(design)) == design
    options = {"n_clusters": 3, "columns": ["age"], "random_state": 0, "sketch_size": 50}
    first = ckm.sketch(frame, categories=["plan"], **options)
    weighted = ckm.sketch(frame, categories={"plan": 2.0}, **options)
    with pytest.raises(MismatchError, match="prepared in another way"):
        first + weighted
    with pytest.raises(ParameterError, match="plan as categories"):
        ckm.sketch(frame, like=first, categories={"plan": 2.0})


def test_batches_are_coded_as_the_first(frame: pd.DataFrame) -> None:
    model = ckm.CompressiveKMeans(3, columns=["age"], categories=["plan"], random_state=0)
    sketcher = ckm.Sketcher(n_clusters=3, columns=["age"], categories=["plan"], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckm.errors.HeadWarning)
        for start in range(0, len(frame), 1000):
            batch = frame[start : start + 1000]
            model.partial_fit(batch)
            sketcher.update(batch)
    assert sketcher.result().count == len(frame)
    assert ckm.sketch(frame, like=sketcher.result()) == sketcher.result()
    assert model.predict(frame).shape == (len(frame),)


def test_commands_code_and_label(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = ["--columns", "age", "--categories", "plan,stars=frequency:2", "--seed", "0"]
    fitted = tmp_path / "c.json"
    run("fit", tmp_path / "t.parquet", "-k", 3, *options, "-o", fitted)
    record = json.loads(fitted.read_text())
    assert [own["coding"] for own in record["categories"]] == ["onehot", "frequency"]
    labels = [tmp_path / f"{kind}.npy" for kind in ("parquet", "csv")]
    for path in labels:
        run("predict", tmp_path / f"t.{path.stem}", "-c", fitted, "-o", path)
    np.testing.assert_array_equal(*map(np.load, labels))


def test_refusals_say_what_to_do(frame: pd.DataFrame) -> None:
    options = {"n_clusters": 2, "random_state": 0}
    dated = frame.assign(day=pd.Timestamp("2024-01-01"))
    with pytest.raises(DataError, match="'day' of the data frame holds dates"):
        ckm.sketch(dated, categories=["day"], **options)
    with pytest.raises(ParameterError, match="no column 'city' for categories="):
        ckm.sketch(frame, categories=["city"], **options)
    with pytest.raises(ParameterError, match='takes "onehot" or "frequency"'):
        ckm.sketch(frame, categories={"plan": "target"}, **options)
    with pytest.raises(ParameterError, match="no column names"):
        ckm.sketch(np.eye(3), categories=["plan"], **options)
    with pytest.raises(ParameterError, match="no column names"):
        ckm.CompressiveKMeans(2, categories=["plan"]).fit(np.eye(3))


def test_a_table_without_the_column_is_another_one(frame: pd.DataFrame, tmp_path: Path) -> None:
    """The message names what has the column, and no option that the command does not have."""
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.drop(columns="plan").to_csv(tmp_path / "other.csv", index=False)
    centroids = tmp_path / "c.json"
    run("fit", tmp_path / "data.csv", "-k", 2, "--categories", "plan", "-o", centroids)
    _, err = run("predict", tmp_path / "other.csv", "-c", centroids, expect=1)
    assert "other.csv has no column 'plan', whose values" in err
    assert "c.json was made with" in err
    assert "--categories" not in err
    sketch = ckm.sketch(frame, n_clusters=2, categories=["plan"], random_state=0)
    with pytest.raises(MismatchError, match="no column 'plan', whose values the sketch given"):
        ckm.sketch(frame.drop(columns="plan"), like=sketch)


def test_describe_says_how_to_use_text_of_few_values(frame: pd.DataFrame) -> None:
    assert any("categories=['plan']" in sentence for sentence in ckm.describe(frame).advice)
